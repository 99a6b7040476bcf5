"""Displayed equations of masked images, tested against the area form of four areas of any sizes.

Query p lies in the second area; the first area is the global one; r is the attention to masked
keys. The attentions sum to 1. The two equations of the reduction are tested by counting masks.
"""

from itertools import combinations

import sympy as sp

from symbolic.core.displays import Displays
from symbolic.masked.area_form import AreaForm, symbolic_form
from symbolic.masked.symbols import a_m, a_n, g_m, g_mean, others, s_q, z_m, z_n

AREAS = 4

n, m, q, p = sp.symbols("n m q p", integer=True)
_z, _a, _v, _Q, _tokens = (sp.IndexedBase(x) for x in ("z", "a", "v", "Q", "Xtilde"))
_logit = sp.Function("exp")(_tokens[p] * _Q[p, q] * _tokens[q])
_areas, _keys = sp.Symbol("N_k", integer=True), sp.Symbol("P", integer=True)
lead, r, a_1, g_1 = sp.symbols("lead r a_1 g_1", nonnegative=True)
_E, _z_1 = sp.Function("E"), sp.Symbol("z_1")
_EXACT = a_m * z_m * (g_mean - g_m)
_FALLS = lead + g_1 * (a_n + r) + z_n**2 * a_n * (1 - a_n)
_P, _M, _C_n, _K = sp.symbols("P M C_n K", integer=True, positive=True)
_PROBABILITY = sp.binomial(_P - _C_n, _M - _C_n) / sp.binomial(_P, _M)


def _values(form: AreaForm, share: sp.Expr) -> dict[str, sp.Expr]:
    """Return a mapping from displayed symbols to values; m is the third area."""
    z, a, g, own = form.z, form.a, form.g, form.own
    return {
        "z_n": z[own],
        "a_n": a[own],
        "z_m": z[2],
        "a_m": a[2],
        "z_1": z[0],
        "a_1": a[0],
        "H": form.twice_loss,
        "g_n": g[own],
        "g_m": g[2],
        "g_1": g[0],
        "g_mean": form.g_mean,
        "others": sum(z[k] ** 2 * a[k] ** 2 for k in range(AREAS) if k != own),
        "r": share,
        "p_masked": sp.Integer(1),
        "K": sp.Integer(1),
        "lead": sum(a[k] * (g[0] - g[k]) for k in range(AREAS) if k not in (0, own)),
    }


def _four_areas() -> tuple[AreaForm, sp.Symbol]:
    """Return the form with p's own attention eliminated by the sum rule."""
    form, share = symbolic_form(AREAS)
    a = list(form.a)
    a[form.own] = 1 - share - sum(x for k, x in enumerate(a) if k != form.own)
    return AreaForm(form.z, a, form.own), share


def residual(name: str, right: sp.Expr) -> sp.Expr:
    """Return an expression that vanishes if the equation holds."""
    if name == "attention":
        return sp.Sum(right, (q, 1, _keys)) - 1
    form, share = _four_areas()
    if name in ("F_p", "H"):
        return _sum_over_areas(name, right, form)
    values = _values(form, share)
    shown = right.replace(_E, lambda x: x)
    shown = shown.subs({x: values[x.name] for x in shown.free_symbols if x.name in values})
    exact = {
        "g_m": form.g[2],
        "g_n": form.g[form.own],
        "g_mean": form.g_mean,
        "dL_dPhi": form.feature(2),
        "alpha_m": form.feature(2),
        "alpha_n": form.feature(form.own),
        "alpha_1": form.feature(0),
        "global_falls": form.g[0] - form.g_mean,
        "beta_masked": form.position(s_q, None),
        "beta_other": form.position(s_q, 2),
        "beta_own": form.position(s_q, form.own),
    }
    return shown - exact[name]


def _sum_over_areas(name: str, right: sp.Expr, form: AreaForm) -> sp.Expr:
    """Return the difference from twice the loss; the displayed sum of H omits m = n."""
    basis, own = sp.symbols(f"v_1:{AREAS + 1}"), form.own
    entries = {
        x[k + 1]: row[k]
        for x, row in ((_z, form.z), (_a, form.a), (_v, basis))
        for k in range(AREAS)
    }
    shown = sp.expand(right.subs({_areas: AREAS, n: own + 1}).doit().xreplace(entries))
    if name == "H":
        return shown - form.z[own] ** 2 * form.a[own] ** 2 - form.twice_loss
    missing = sp.expand(basis[own] * form.z[own] - shown)
    outside = missing.subs(dict.fromkeys(basis, 0))
    return outside**2 + sum(sp.diff(missing, v) ** 2 for v in basis) - form.twice_loss


#: Number of patches, number of masked patches, and p's area with p = 0, for counting masks.
PATCHES, MASKED, AREA = 6, 4, {0, 1, 2}


def reduction_residual(name: str, right: sp.Expr) -> sp.Expr:
    """Return the displayed probability or floor minus the value from counting all masks."""
    masks = [set(mask) for mask in combinations(range(PATCHES), MASKED)]
    hidden = sp.Rational(sum(mask >= AREA for mask in masks), len(masks))
    share = sp.Rational(sum(0 in mask for mask in masks), len(masks))
    values = {_P: PATCHES, _M: MASKED, _C_n: len(AREA), _K: 2, z_n: sp.Integer(3)}
    shown = right.replace(_E, lambda x: x).subs(values).doit()
    return shown - {"p_masked": share, "floor": 9 * hidden / 2}[name]


#: Displayed equations and their tests.
AREA_FORM = Displays(
    {
        "attention": _logit / sp.Sum(_logit, (q, 1, _keys)),
        "F_p": sp.Sum(_a[m] * _z[m] * _v[m], (m, 1, _areas)),
        "H": (1 - _a[n]) ** 2 * _z[n] ** 2 + sp.Sum(_z[m] ** 2 * _a[m] ** 2, (m, 1, _areas)),
        "g_m": z_m**2 * a_m,
        "g_n": -(z_n**2) * (1 - a_n),
        "g_mean": others - z_n**2 * a_n * (1 - a_n),
    },
    residual,
)
LEMMA_5_1 = Displays(
    {
        "dL_dPhi": _E(sp.Symbol("p_masked") * _EXACT) / sp.Symbol("K"),
        "alpha_m": _EXACT,
        "alpha_n": a_n * (z_n**3 * (1 - a_n) ** 2 + z_n * others),
        "global_falls": _FALLS,
        "alpha_1": -a_1 * _z_1 * _FALLS,
    },
    residual,
)
LEMMA_5_2 = Displays(
    {
        "beta_masked": s_q * g_mean,
        "beta_other": s_q * (g_mean - g_m),
        "beta_own": s_q * (z_n**2 * (1 - a_n) ** 2 + others),
    },
    residual,
)
REDUCTION = Displays(
    {
        "p_masked": _M / _P,
        "floor": _E(z_n**2) / (2 * _K) * sp.Sum(_PROBABILITY, (sp.Symbol("k"), 1, _K)),
    },
    reduction_residual,
)
