"""What `patchdyn derive masked-...` shows: equations and proofs of the second theory."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sp

from symbolic.core.derivation import Derivation, Equation
from symbolic.core.proof import Proof, decide_all
from symbolic.core.source import source
from symbolic.masked import all_sizes, area_form, kernels, lemma_5_1, lemma_5_2, reduction
from symbolic.masked import symbols as sym
from symbolic.masked.contents import TITLES

_z_n, _a_n, _z_m, _a_m, _s_q = sp.symbols("z_n a_n z_m a_m s_q", positive=True)
_H, _g_n, _g_m = sp.symbols("H g_n g_m", real=True)
_others = sp.Symbol("others", positive=True)


def derivation(
    name: str,
    statement: str | None,
    equations: list[Equation],
    prove: Callable[[], list[Proof]],
    emitted: Callable[[], str] | None = None,
) -> Derivation:
    """Return a derivation with the title and the place that the contents give it."""
    title, place = TITLES[name]
    text = " ".join((statement or "").split())
    return Derivation(name, title, place, text, tuple(equations), prove, emitted=emitted)


def _area_form(name: str) -> Derivation:
    n, m, q, p = sp.symbols("n m q p", integer=True)
    z, a, v, Q = (sp.IndexedBase(x) for x in ("z", "a", "v", "Q"))
    attention, F = sp.IndexedBase("attn"), sp.IndexedBase("F")
    tokens = sp.IndexedBase("Xtilde")
    logit = sp.Function("exp")(tokens[p] * Q[p, q] * tokens[q])
    areas, P = sp.Symbol("N_k", integer=True), sp.Symbol("P", integer=True)
    square = z[m] ** 2 * a[m] ** 2
    equations = [
        Equation("attention", attention[p, q], logit / sp.Sum(logit, (q, 1, P)), evaluates=False),
        Equation("F_p", F[p], sp.Sum(a[m] * z[m] * v[m], (m, 1, areas)), "p masked",
                 evaluates=False),
        Equation("H", _H, (1 - a[n]) ** 2 * z[n] ** 2 + sp.Sum(square, (m, 1, areas)),
                 "twice the loss of p, the sum without m = n", evaluates=False),
        Equation("g_m", _g_m, _z_m**2 * _a_m, "half dH/da_m, m != n"),
        Equation("g_n", _g_n, -(_z_n**2) * (1 - _a_n), "half dH/da_n"),
        Equation("g_mean", sym.g_mean, _others - _z_n**2 * _a_n * (1 - _a_n),
                 "sum of a_m g_m; others = sum of z_m^2 a_m^2 over m != n"),
    ]  # fmt: skip
    claims = area_form.identities() | area_form.group_identities()
    return derivation(name, area_form.__doc__, equations, lambda: [decide_all("Areas", claims)])


def _lemma_5_1(name: str) -> Derivation:
    L, Phi_m = sp.symbols("L Phi_m")
    E, masked, K = sp.Function("E"), sp.Symbol("p_masked"), sp.Symbol("K")
    lead, r, a_1, g_1 = sp.symbols("lead r a_1 g_1", nonnegative=True)
    exact = _a_m * _z_m * (sym.g_mean - _g_m)
    own = _a_n * (_z_n**3 * (1 - _a_n) ** 2 + _z_n * _others)
    falls = lead + g_1 * (_a_n + r) + _z_n**2 * _a_n * (1 - _a_n)
    equations = [
        Equation("dL_dPhi", -sp.Derivative(L, Phi_m), E(masked * exact) / K,
                 "summed over the clusters that hold v_m", evaluates=False),
        Equation("alpha_m", sp.Symbol("alpha_m"), exact, "one image"),
        Equation("alpha_n", sp.Symbol("alpha_n"), own, "p's own area, others as above: >= 0"),
        Equation("global_falls", g_1 - sym.g_mean, falls,
                 "lead = sum of a_m (g_1 - g_m) over m != 1, n; r the attention to masked keys"),
        Equation("alpha_1", sp.Symbol("alpha_1"), -a_1 * sp.Symbol("z_1") * falls,
                 "the global area, p not in it"),
    ]  # fmt: skip
    return derivation(name, lemma_5_1.__doc__, equations, lambda: lemma_5_1.prove_all(quick=True))


def _lemma_5_2(name: str) -> Derivation:
    equations = [
        Equation("beta_masked", sp.Symbol("beta_masked"), _s_q * sym.g_mean,
                 "-d loss / d Upsilon of a masked key, attn_{p->q} = s_q"),
        Equation("beta_other", sp.Symbol("beta_other"), _s_q * (sym.g_mean - _g_m),
                 "unmasked, in area m != n"),
        Equation("beta_own", sp.Symbol("beta_own"), _s_q * (_z_n**2 * (1 - _a_n) ** 2 + _others),
                 "unmasked, in p's own area: >= 0"),
    ]  # fmt: skip
    return derivation(name, lemma_5_2.__doc__, equations, lambda: lemma_5_2.prove_all(quick=True))


def _reduction(name: str) -> Derivation:
    P, M, C_n, K = sp.symbols("P M C_n K", integer=True, positive=True)
    chance = sp.binomial(P - C_n, M - C_n) / sp.binomial(P, M)
    square = sp.Function("E")(_z_n**2)
    floor = square / (2 * K) * sp.Sum(chance, (sp.Symbol("k"), 1, K))
    equations = [
        Equation("p_masked", sp.Symbol("chance"), M / P, "that p is masked"),
        Equation("floor", sp.Symbol("floor"), floor, "loss that remains", evaluates=False),
    ]
    return derivation(name, reduction.__doc__, equations, reduction.prove_all)


def _kernels(name: str) -> Derivation:
    equations = [
        Equation(f"{kernel.name}_{index}", sp.Symbol(f"{kernel.name}_{index}"), right,
                 f"result {label} of {kernel.name}")
        for kernel in kernels.kernels()
        for index, (label, right) in enumerate(kernel.results)
    ]  # fmt: skip
    claims = kernels.identities()
    return derivation(name, kernels.__doc__, equations, lambda: [
        decide_all("Kernels", claims), all_sizes.prove_hessian()],
        lambda: source(kernels.TARGETS[0]))  # fmt: skip


BUILDERS: dict[str, Callable[[str], Derivation]] = {
    "masked-area-form": _area_form,
    "masked-lemma-5.1": _lemma_5_1,
    "masked-lemma-5.2": _lemma_5_2,
    "masked-reduction": _reduction,
    "masked-kernels": _kernels,
}
