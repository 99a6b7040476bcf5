"""Derivations of positional attention for `patchdyn derive`: equations and proofs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import sympy as sp

from symbolic.core.derivation import Derivation, Equation, Notation, from_contents
from symbolic.core.proof import Proof, decide_all
from symbolic.core.source import source
from symbolic.positional import (
    attention,
    diagonal,
    excess,
    floor,
    kernels,
    large_D,
    lemma_4_1,
    lemma_4_2,
    lemma_4_3,
    margins,
    model_equations,
    symmetric_line,
    symmetry,
)
from symbolic.positional import symbols as sym
from symbolic.positional.contents import TITLES
from symbolic.positional.increments import MODEL
from symbolic.positional.justifications import justification

NOTATION = Notation(sym.LATEX_NAMES, sym.TEXT_NAMES)
#: Lemmas 4.1 and 4.2 and the reduced equations, for all sizes.
ALL_SIZES = Path(__file__).with_name("reduction.v")
#: Sums over any number of sets, from identities of one set.
ALL_SETS = Path(__file__).with_name("all_sets.v")


def derivation(
    name: str,
    statement: str | None,
    equations: list[Equation],
    prove: Callable[[], list[Proof]],
    emitted: Callable[[], str] | None = None,
) -> Derivation:
    """Return a derivation with the justification of each equation."""
    shown = [
        replace(x, justification=justification(name, x.name) or x.justification) for x in equations
    ]
    coq = ALL_SIZES if name in ("lemma-4.1", "lemma-4.2") else None
    lemmas = ALL_SETS if name in ("lemma-4.3", "excess") else None
    options = {"notation": NOTATION, "emitted": emitted, "coq": coq, "coq_lemmas": lemmas}
    return from_contents(TITLES, name, statement, shown, prove, **options)


def _attention(name: str) -> Derivation:
    written = [Equation(str(k), k, v) for k, v in attention.WRITTEN_OUT.items()]
    equations = [*written, Equation("G", sym.G, attention.G_OF_WEIGHTS)]
    row_sum = Equation("row_sum", attention.SUM_RULE + 1, sp.Integer(1), "rows of S sum to 1")
    equations.append(row_sum)
    for (weight, parameter), derivative in attention.DERIVATIVES.items():
        label = f"d{weight}_d{parameter}"
        equations.append(Equation(label, sp.Derivative(weight, parameter), derivative))
    statement = """With A_ii = beta, A_ij = gamma inside a set and rho between sets, each row of
    S = softmax(A/tau) contains Lambda once, Gamma C - 1 times and Xi D - C times."""
    claims = attention.identities()
    return derivation(name, statement, equations, lambda: [decide_all("Attention", claims)])


def _over_patches(term: Callable[[int], sp.Expr]) -> sp.Expr:
    """Return the sum of a function of s over the patches of a random set, for display."""
    return sym.a * term(1) + sym.b * term(-1) + (sym.C - sym.a - sym.b) * term(0)


def _margins(name: str) -> Derivation:
    O = [sp.Symbol(f"O_{patch}") for patch in margins.PATCHES]  # noqa: E741
    equations = [
        Equation(left.name, left, margins.at_patch(margins.MARGIN, patch), f"{patch} patch")
        for left, patch in zip(O, margins.PATCHES)
    ]
    h = sp.Function("h")(sym.a, sym.b, sym.T)
    rows = margins.row_gradient()
    total = margins.of_random_set(margins.activation(margins.MARGIN))
    act, note = sp.Function("act"), "contribution of a random set of type (a, b) to F"
    compact = _over_patches(lambda s: act(O[{1: 1, -1: 2, 0: 3}[s]]))
    equations.append(Equation("h", h, total, note, compact=compact))
    for parameter, row in zip((sym.alpha, sym.gamma, sym.rho), rows):
        left, term = sp.Derivative(h, parameter), sp.Function(f"k_{parameter}")
        note = f"k_{parameter}(s) = d act(O)/d {parameter} of a patch with coefficient s"
        total = margins.of_random_set(row)
        compact = _over_patches(term)
        equations.append(Equation(f"dh_d{parameter}", left, total, note, compact=compact))
        equations.append(Equation(f"k_{parameter}", term(sym.s), row, "n = a - b"))
    c_of = {sym.gamma: sym.c_gamma, sym.rho: sym.c_rho}
    second = margins.second_derivatives(sym.c_gamma, sym.c_rho)
    equations += [
        Equation("c", sym.c, margins.WEIGHTED_SUM, "one formula for every patch"),
        Equation("c_gamma", c_of[sym.gamma], margins.d_gamma(sym.c)),
        Equation("c_rho", c_of[sym.rho], margins.d_rho(sym.c)),
        Equation("c_gamma_stable", c_of[sym.gamma], margins.d_gamma_stable(), "no cancellation"),
        Equation("c_rho_stable", c_of[sym.rho], margins.d_rho_stable(), "no cancellation"),
    ]
    for pair, right in zip(("gamma_gamma", "gamma_rho", "rho_rho"), second):
        equations.append(Equation(f"c_{pair}", sp.Symbol(f"c_{pair}"), right))
    statement = """With s the coefficient of w* in a patch, n its sum over the set of the patch and
    T = C + R its sum over all patches: c = sum_j S_ij s_j, O = kappa alpha c, F = sum_i act(O_i),
    act(x) = x^p + nu x. The signal set has s = 1, n = C; a random set of type (a, b) has n = a - b.
    """
    claims = margins.identities()
    return derivation(name, statement, equations, lambda: [decide_all("Margins", claims)])


def _excess(name: str) -> Derivation:
    table = {
        "sum_of_margins": (sp.Symbol("sum_of_margins"), "columns of S sum to 1"),
        "O_empty": (sp.Symbol("O_empty"), "zero patch in an empty set"),
        "excess": (sym.excess, ""),
        "d_gamma": (sp.Symbol("d_gamma"), "one row"),
        "d_rho": (sp.Symbol("d_rho"), "one row"),
    }
    equations = excess.DISPLAYS.labelled(table)
    statement = """The sum of the margins over all rows is kappa alpha T because the columns of S
    sum to 1. It does not depend on gamma and rho, so any constant can be subtracted from act'(O) in
    the two attention gradients. If its value at a zero patch in an empty set is subtracted, the
    D - O(C) rows of empty sets contribute nothing, and no digits cancel at large D."""
    return derivation(name, statement, equations, excess.prove_all)


def _full_model(name: str) -> Derivation:
    L, S, O = sp.Symbol("L"), model_equations.S, model_equations.O  # noqa: E741
    row, column = model_equations.i, model_equations.j
    table = {
        "S_ij": (S[row, column], "rows of the softmax"),
        "O_i": (O[row], ""),
        "F": (model_equations.F, "act(x) = x^p + nu x"),
        "dL_dA_ij": (sp.Derivative(L, sp.Symbol("A_ij")), "s is the logistic sigmoid"),
        "dL_dv": (sp.Derivative(L, sp.Symbol("v")), ""),
    }
    equations = model_equations.DISPLAYS.labelled(table, evaluates=False)
    statement = """All A_ij with i != j and all v_k are free. The logistic weight s(-yF) is one
    factor per data point. Patches are X_j, and z_j = <v, X_j>."""
    return derivation(name, statement, equations, model_equations.prove_all)


def _symmetry(name: str) -> Derivation:
    proofs = [(4, 3), (6, 3), (4, 5)]
    return derivation(name, symmetry.__doc__, [], lambda: [symmetry.prove(D, p) for D, p in proofs])


def _lemma_4_1(name: str) -> Derivation:
    L = sp.Symbol("L")
    same, different = sp.Symbol("A_same"), sp.Symbol("A_different")
    F, A_kl = sp.Symbol("F"), sp.Symbol("A_kl")
    table = {
        "dF_dA_kl": (sp.Derivative(F, A_kl), "x_j = <v, X_j>; any A, v and X"),
        "dL_dA_same": (sp.Derivative(L, same), "i, j in the same set"),
        "dL_dA_different": (sp.Derivative(L, different), "i, j in different sets"),
    }
    equations = lemma_4_1.DISPLAYS.labelled(table, evaluates=False)
    return derivation(name, lemma_4_1.__doc__, equations, lambda: lemma_4_1.prove_all(quick=True))


def _lemma_4_2(name: str) -> Derivation:
    L, along, orthogonal = sp.Symbol("L"), sp.Symbol("v_parallel"), sp.Symbol("v_perp")
    F, v_t = sp.Symbol("F"), sp.Symbol("v_t")
    table = {
        "dF_dv_t": (sp.Derivative(F, v_t), "any A, v and X"),
        "dL_dv_parallel": (sp.Derivative(L, along), "along w*"),
        "dL_dv_perp": (sp.Derivative(L, orthogonal), "orthogonal to w*"),
    }
    equations = lemma_4_2.DISPLAYS.labelled(table, evaluates=False)
    return derivation(name, lemma_4_2.__doc__, equations, lemma_4_2.prove_all)


_NOTES = {
    "signal": "signal set, per eta and s(-F)",
    "leading": "signal set at R = 0, per eta and E[s(-F)]",
    "leading_gamma_excess": "the same in excess form",
    "leading_rho_excess": "the same in excess form",
    "leading_rho_over_gamma": "",
    "polylog_gamma": "times eta alpha^p Gamma G^(p-1)",
    "polylog_rho": "times eta alpha^p Gamma G^(p-1) / D",
    "isolated": "random set of type (1, 0), Xi T dropped",
    "ratio": "exact over leading, measured along a trajectory",
    "measured_gamma": "the lemma's polylog(d) for gamma",
    "measured_rho": "the least polylog(d) for rho; sign(rho) delta_rho while rho keeps its sign",
    "delta": "to first order in delta_gamma and delta_rho: the chain rule",
    "exact": "one step of descent",
}


def _lemma_4_3(name: str) -> Derivation:
    equations = []
    for label, right in lemma_4_3.EQUATIONS.items():
        prefix, _, parameter = label.partition("_")
        note = _NOTES.get(label, _NOTES.get(prefix, ""))
        if prefix == "h":
            equations.append(_random_set(parameter, right))
        elif right.has(sp.Function("E")):
            left = getattr(sym, label)
            note = (
                f"exact; h_{parameter}(a, b, T) is the share of a random set of type (a, b), below"
            )
            equations.append(Equation(label, left, right, note, evaluates=False))
        else:
            equations.append(Equation(label, sp.Symbol(label), right, note))
    return derivation(name, lemma_4_3.__doc__, equations, lambda: [lemma_4_3.prove()])


def _random_set(parameter: str, right: sp.Expr) -> Equation:
    """Return the equation of the share of a random set in an increment."""
    left = sp.Function(f"h_{parameter}")(sym.a, sym.b, sym.T)
    shared = MODEL.shared[getattr(sym, parameter)]
    compact = _over_patches(sp.Function(f"k_{parameter}")) / shared
    note = (
        f"share of a random set of type (a, b), per eta and s(-F); k_{parameter}(s) = "
        f"d act(O)/d {parameter} of a patch with coefficient s, written out in `margins`"
    )
    return Equation(f"h_{parameter}", left, right, note, compact=compact)


def _symmetric_line(name: str) -> Derivation:
    velocity = sp.Derivative(sp.Symbol("gamma_minus_rho"), sp.Symbol("t"))
    per_image = "of one image on gamma = rho = x over s(-F), Gamma = 1/(e^((beta-x)/tau) - 1 + D)"
    outputs = {"y_plus": 1, "y_zero": 0, "y_minus": -1}
    table = {
        "R": (sym.R, "N_plus and N_minus features"),
        **{y: (sp.Symbol(y), f"O/(kappa alpha) at s = {of}") for y, of in outputs.items()},
        "F": (sp.Symbol("F"), "on gamma = rho"),
        "mean_n": (sp.Symbol("mean_n"), "over a random set"),
        "drift": (sp.Symbol("drift"), per_image),
        "velocity": (velocity, ""),
    }
    equations = symmetric_line.DISPLAYS.labelled(table)
    return derivation(name, symmetric_line.__doc__, equations, symmetric_line.prove_all)


def _floor(name: str) -> Derivation:
    table = {
        "c_s": (sp.Symbol("c_s"), "on gamma = rho"),
        "mirrored": (sp.Symbol("mirrored"), "c_s with opposite s and T"),
        "c_zero": (sp.Symbol("c_zero"), ""),
        "c_plus": (sp.Symbol("c_plus"), ""),
        "pair": (sp.Symbol("c_plus") + sp.Symbol("c_minus"), ""),
        "more_plus": (sp.Symbol("more_plus"), "rows with s = 1 minus rows with s = -1: T"),
        "F": (sp.Symbol("F"), "act_plus = act(kappa alpha c_plus), and so on"),
        "on_rho_beta": (sp.Symbol("c"), "C = 2 on rho = beta; n - s is that of the partner"),
        "ell_rate": (sp.Derivative(sp.Symbol("ell"), sp.Symbol("t")), "v_x is dx/dt"),
        "variance": (sp.Symbol("variance"), "of rho' over a time; not negative"),
        "until": (
            sp.Symbol("until"),
            "the time in which the remaining loss could move rho to beta",
        ),
    }
    equations = floor.DISPLAYS.labelled({label: table[label] for label in floor.EQUATIONS})
    return derivation(name, floor.__doc__, equations, floor.prove_all)


def _diagonal(name: str) -> Derivation:
    t, moving = sp.Symbol("t"), (sym.beta, sym.gamma, sym.rho)
    table = {
        "c_beta": (sp.Symbol("c_beta"), "one formula for every patch"),
        "ell_beta": (sp.Symbol("ell_beta"), "rows of dL/dA sum to 0"),
        **{f"d{x}_dt": (sp.Derivative(x, t), "") for x in moving},
        "row_sum": (sp.Symbol("row_sum"), "a constant of motion"),
    }
    equations = diagonal.DISPLAYS.labelled(table)
    return derivation(name, diagonal.__doc__, equations, diagonal.prove_all)


def _large_D(name: str) -> Derivation:
    notes = {
        "F_limit": "gamma = rho = 0, kappa = D, tau = 1, D -> infinity",
        "A": "",
        "B": "",
        "alpha_dF_dalpha": "in A and B; F = A T^p + B T",
        "drift_limit": "d(gamma - rho)/dt on gamma = rho = 0, per s(-F)",
        "drift_at_D": "exact, given the numbers of features",
        "attended": "contribution to F where y = alpha G is of order 1, G >> 1",
        **{f"power_{label}": "power of D" for label in large_D.EXPONENTS},
    }
    table = {label: (sp.Symbol(label), note) for label, note in notes.items()}
    table = {"quasi_steady": (large_D.CONDITION, "equation of alpha*"), **table}
    equations = large_D.DISPLAYS.labelled(table)
    return derivation(name, large_D.__doc__, equations, lambda: [large_D.prove()])


def _kernels(name: str) -> Derivation:
    equations, seen = [], set()
    for kernel in kernels.kernels():
        results = enumerate(right.rewrite(sp.Pow) for _, right in kernel.results)
        for left, right in kernel.steps:
            if (left, right) not in seen:
                seen.add((left, right))
                plain = right.rewrite(sp.Pow)
                equations.append(Equation(left.name, left, plain, f"step of {kernel.name}"))
        for index, right in results:
            label = f"{kernel.name}_{index}"
            note = f"result {kernel.results[index][0]} of {kernel.name}"
            equations.append(Equation(label, sp.Symbol(label), right, note))
    return derivation(
        name,
        kernels.__doc__,
        equations,
        lambda: [decide_all("Kernels", kernels.identities())],
        lambda: source(kernels.TARGETS[0]),
    )


BUILDERS: dict[str, Callable[[str], Derivation]] = {
    "attention": _attention,
    "margins": _margins,
    "excess": _excess,
    "full-model": _full_model,
    "symmetry": _symmetry,
    "lemma-4.1": _lemma_4_1,
    "lemma-4.2": _lemma_4_2,
    "lemma-4.3": _lemma_4_3,
    "symmetric-line": _symmetric_line,
    "floor": _floor,
    "diagonal": _diagonal,
    "large-D": _large_D,
    "kernels": _kernels,
}
