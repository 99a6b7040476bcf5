"""What is emitted to ``dynamics/masked/_emitted.py``: the summands of the area form.

``rest`` is handed over instead of being formed as 1 - a: when p's own area has all attention, what
it lacks is a sum of small terms and keeps its digits.
"""

from __future__ import annotations

import sympy as sp

from symbolic.kernel import Kernel
from symbolic.masked import keys
from symbolic.masked.area_form import AreaForm
from symbolic.masked.symbols import a, advantage, copies, g, g_mean, mass, rest, z


def _own() -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """H, its share of gbar, and g of p's own area, 1 - a replaced by ``rest``."""
    form = AreaForm([z], [a], 0)
    lacks = {1 - a: rest}
    return (
        form.twice_loss.subs(lacks),
        form.g_mean.subs(lacks),
        form.g[0].subs(lacks),
    )


def own_area() -> Kernel:
    """p's own area."""
    names = ("H", "a g", "g")
    doc = """Share of p's own area in twice the loss and in gbar, and its g.

    z^2 (1 - a)^2, -z^2 a (1 - a) and -z^2 (1 - a), with rest = 1 - a (Lemma 5.1)."""
    return Kernel("own_area", (z, a, rest), (), tuple(zip(names, _own())), doc)


def other_area() -> Kernel:
    """A group of equal areas that p is not in, ``a`` their attention together."""
    square = copies * (a / copies) ** 2 * z**2
    results = (("H and a g", square), ("g", sp.diff(square, a) / 2))
    doc = """Share of other areas in twice the loss and in gbar (the same), and their g.

    z^2 a^2 / copies and z^2 a / copies for so many equal areas with attention a together."""
    return Kernel("other_area", (z, a, copies), (), results, doc)


def correlation_gradient() -> Kernel:
    """Derivative of the loss of one image in a feature and in a position correlation."""
    results = (("d Phi", -z * mass * advantage), ("d Upsilon", -mass * advantage))
    doc = """Derivatives of the loss of one image in Phi and in Upsilon of keys of one area.

    -z mass (gbar - g) and -mass (gbar - g), mass the attention of these keys and
    advantage = gbar - g; masked keys have g = 0 and no Phi (Lemmas 5.1 and 5.2)."""
    return Kernel("correlation_gradient", (z, mass, advantage), (), results, doc)


def kernels() -> tuple[Kernel, ...]:
    """Return every kernel in the order in which it is emitted."""
    return own_area(), other_area(), correlation_gradient(), *keys.kernels()


def identities(built: tuple[Kernel, ...] | None = None) -> dict[str, sp.Expr]:
    """Return, per emitted result, its difference from the area form; all must vanish.

    ``built`` (default: the kernels that are emitted) is there to see an altered one fail.
    """
    of_own, of_other, of_gradient, *of_keys = built or kernels()
    z_n, a_n, z_m, a_m = sp.symbols("z_n a_n z_m a_m", positive=True)
    form = AreaForm([z_n, z_m, z_m], [a_n, a_m / 2, a_m / 2], 0)
    own = [e.subs({z: z_n, a: a_n, rest: 1 - a_n}) for _, e in of_own.results]
    other = [e.subs({z: z_m, a: a_m, copies: 2}) for _, e in of_other.results]
    gradient = [e.subs(advantage, g_mean - g) for _, e in of_gradient.results]
    values = {g_mean: form.g_mean, g: form.g[1]}
    phi = gradient[0].subs({z: z_m, mass: a_m / 2}).subs(values)
    upsilon = gradient[1].subs({mass: a_m / 6}).subs(values)
    masked = gradient[1].subs({mass: a_m / 6, g: 0}).subs(values)
    return {
        "twice the loss": own[0] + other[0] - form.twice_loss,
        "gbar": own[1] + other[0] - form.g_mean,
        "g of the own area": own[2] - form.g[0],
        "g of another area": other[1] - form.g[1],
        "advantage of the own area is twice the loss": form.twice_loss - form.g_mean + form.g[0],
        "d Phi": phi + form.feature(1),
        "d Upsilon, unmasked": upsilon + form.position(a_m / 6, 1),
        "d Upsilon, masked": masked + form.position(a_m / 6, None),
    } | keys.identities(tuple(of_keys))
