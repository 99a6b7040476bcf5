"""The loss of one masked patch as a function of area attentions, and its gradients.

With p masked, in area n, the output of p is the sum of a_m z_m v_m (masked patches contribute
nothing), so twice the loss is H = z_n^2 (1 - a_n)^2 + sum over m != n of z_m^2 a_m^2. Let g_m be
half of dH/da_m and gbar the sum of a_m g_m. For any key q with attention s_q the softmax gives
-d loss / d Phi_m = z_m a_m (gbar - g_m), for all unmasked keys of area m together;
-d loss / d Upsilon_q = s_q (gbar - g_m) if q is unmasked, in area m, and s_q gbar if it is masked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from symbolic.core.identity import Identity
from symbolic.masked import symbols as sym


@dataclass(frozen=True)
class AreaForm:
    """The area form of one image.

    Attributes
    ----------
    z, a
        Scales and unmasked attentions of all areas, symbols or exact numbers.
    own
        Index of p's own area.
    """

    z: Sequence[sp.Expr]
    a: Sequence[sp.Expr]
    own: int

    @property
    def twice_loss(self) -> sp.Expr:
        """H, twice the loss of p given that p is masked."""
        pairs = enumerate(zip(self.z, self.a))
        return sum(z**2 * ((1 - a) if m == self.own else a) ** 2 for m, (z, a) in pairs)

    @cached_property
    def g(self) -> list[sp.Expr]:
        """g_m = z_m^2 a_m, for p's own area -z_n^2 (1 - a_n)."""
        pairs = enumerate(zip(self.z, self.a))
        return [-(z**2) * (1 - a) if m == self.own else z**2 * a for m, (z, a) in pairs]

    @cached_property
    def g_mean(self) -> sp.Expr:
        """Gbar = sum over m != n of z_m^2 a_m^2 - z_n^2 a_n (1 - a_n)."""
        return sum(a * g for a, g in zip(self.a, self.g))

    def feature(self, m: int) -> sp.Expr:
        """Return -d loss / d Phi of area m."""
        return self.z[m] * self.a[m] * (self.g_mean - self.g[m])

    def position(self, attention: sp.Expr, area: int | None) -> sp.Expr:
        """Return -d loss / d Upsilon of a key.

        Parameters
        ----------
        attention
            Attention to the key.
        area
            Area of the key if it is unmasked; ``None`` if it is masked.
        """
        return attention * (self.g_mean - (0 if area is None else self.g[area]))


def symbolic_form(areas: int, own: int = 1) -> tuple[AreaForm, sp.Symbol]:
    """Return the form in symbols, and the symbol r of the attention to masked keys."""
    z = sp.symbols(f"z_1:{areas + 1}", positive=True)
    a = list(sp.symbols(f"a_1:{areas + 1}", positive=True))
    return AreaForm(z, a, own), sp.Symbol("r", positive=True)


def identities() -> dict[str, Identity]:
    """Return the identities of the area form with 4 areas."""
    form, _ = symbolic_form(4)
    n = form.own
    claims = {
        f"g_{m + 1} = dH/da_{m + 1} / 2": Identity(form.twice_loss / 2, form.g[m], a)
        for m, a in enumerate(form.a)
    }
    claims["gbar - g_n = H: no cancellation"] = Identity(form.g_mean - form.g[n], form.twice_loss)
    z, a = form.z[n], form.a[n]
    others = sum(z**2 * a**2 for m, (z, a) in enumerate(zip(form.z, form.a)) if m != n)
    claims["own correlation"] = Identity(form.feature(n), a * (z**3 * (1 - a) ** 2 + z * others))
    claims["gbar written out"] = Identity(form.g_mean, others - z**2 * a * (1 - a))
    return claims


def group_identities() -> dict[str, Identity]:
    """Return the identities of grouped equal areas: A = copies a enters as z^2 A^2 / copies."""
    total = sp.Symbol("A", positive=True)
    per_area = {sym.a: total / sym.copies}
    square = (sym.copies * sym.z**2 * sym.a**2).subs(per_area)
    return {
        "H of equal areas": Identity(square, sym.z**2 * total**2 / sym.copies),
        "g of equal areas": Identity(square / 2, (sym.z**2 * sym.a).subs(per_area), total),
    }
