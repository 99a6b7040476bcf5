"""Derivations of masked image modelling for `patchdyn derive`: equations and proofs."""

from collections.abc import Callable
from functools import partial

import sympy as sp

from symbolic.core.derivation import Derivation, Equation, from_contents
from symbolic.core.proof import decide_all
from symbolic.core.source import source
from symbolic.masked import all_sizes, area_form, displays, kernels, lemma_5_1, lemma_5_2, reduction
from symbolic.masked import symbols as sym
from symbolic.masked.contents import TITLES

derivation = partial(from_contents, TITLES)


def _area_form(name: str) -> Derivation:
    p, q = displays.p, displays.q
    table = {
        "attention": (sp.IndexedBase("attn")[p, q], ""),
        "F_p": (sp.IndexedBase("F")[p], "p masked"),
        "H": (sym.H, "twice the loss of p, the sum without m = n"),
        "g_m": (sym.g_m, "half dH/da_m, m != n"),
        "g_n": (sym.g_n, "half dH/da_n"),
        "g_mean": (sym.g_mean, "sum of a_m g_m; others = sum of z_m^2 a_m^2 over m != n"),
    }
    claims = area_form.identities() | area_form.group_identities()
    return derivation(
        name,
        area_form.__doc__,
        displays.AREA_FORM.labelled(table),
        lambda: [
            decide_all("Areas", claims),
            displays.AREA_FORM.prove("Areas", areas=displays.AREAS),
        ],
    )


def _lemma_5_1(name: str) -> Derivation:
    L, Phi_m = sp.symbols("L Phi_m")
    lead = "lead = sum of a_m (g_1 - g_m) over m != 1, n; r the attention to masked keys"
    table = {
        "dL_dPhi": (-sp.Derivative(L, Phi_m), "summed over the clusters that contain v_m"),
        "alpha_m": (sp.Symbol("alpha_m"), "one image"),
        "alpha_n": (sp.Symbol("alpha_n"), "p's own area, others as above: >= 0"),
        "global_falls": (displays.g_1 - sym.g_mean, lead),
        "alpha_1": (sp.Symbol("alpha_1"), "the global area, p not in it"),
    }
    equations = displays.LEMMA_5_1.labelled(table)
    return derivation(name, lemma_5_1.__doc__, equations, lambda: lemma_5_1.prove_all(quick=True))


def _lemma_5_2(name: str) -> Derivation:
    notes = {
        "beta_masked": "-d loss / d Upsilon of a masked key, attn_{p->q} = s_q",
        "beta_other": "unmasked, in area m != n",
        "beta_own": "unmasked, in p's own area: >= 0",
    }
    table = {label: (sp.Symbol(label), note) for label, note in notes.items()}
    equations = displays.LEMMA_5_2.labelled(table)
    return derivation(name, lemma_5_2.__doc__, equations, lambda: lemma_5_2.prove_all(quick=True))


def _reduction(name: str) -> Derivation:
    table = {
        "p_masked": (sp.Symbol("p_masked"), "probability that p is masked"),
        "floor": (sp.Symbol("floor"), "loss that remains"),
    }
    equations = displays.REDUCTION.labelled(table)
    return derivation(name, reduction.__doc__, equations, reduction.prove_all)


def _kernels(name: str) -> Derivation:
    equations = [
        Equation(
            f"{kernel.name}_{index}",
            sp.Symbol(f"{kernel.name}_{index}"),
            right,
            f"result {label} of {kernel.name}",
        )
        for kernel in kernels.kernels()
        for index, (label, right) in enumerate(kernel.results)
    ]
    claims = kernels.identities()
    return derivation(
        name,
        kernels.__doc__,
        equations,
        lambda: [decide_all("Kernels", claims), all_sizes.prove_hessian()],
        emitted=lambda: source(kernels.TARGETS[0]),
    )


BUILDERS: dict[str, Callable[[str], Derivation]] = {
    "masked-area-form": _area_form,
    "masked-lemma-5.1": _lemma_5_1,
    "masked-lemma-5.2": _lemma_5_2,
    "masked-reduction": _reduction,
    "masked-kernels": _kernels,
}
