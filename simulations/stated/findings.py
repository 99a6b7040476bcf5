"""Findings on a user-defined theory: order parameters, conserved forms, stability."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter, process_time

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.theory import closure
from dynamics.theory.kernel import mean, mean_function
from simulations.stated import manifold
from simulations.stated.check import (
    AGREES,
    MOST_ENTRIES,
    MOST_EVALUATED,
    Check,
    compared,
    finite,
    small,
)
from simulations.stated.digits import Digits
from simulations.stated.law import initial_values
from simulations.stated.manifold import Manifold
from symbolic.theory import Theory
from symbolic.theory.source import source

#: Standard deviation of random states around the start.
_SPREAD = 0.4


@dataclass(frozen=True)
class OrderParameterSummary:
    """An order parameter: its name, its orbit, and formulas of its entries and start."""

    name: str
    orbit: str
    entries: str
    start: str


@dataclass(frozen=True)
class Findings:
    """Results for all sizes, and measurements at the small sizes of the check.

    Attributes
    ----------
    theory, paper, order_parameters, steps
        Name and paper of the theory, its order parameters, and number of steps of the derived
        gradient.
    check, agrees
        Comparison with the full model, and whether it agrees.
    manifold
        Results from the gradient of the full model; ``None`` with frames, whose rotations are not
        enumerated.
    conserved, linear
        Formulas of conserved forms, and the coefficients of the linear ones.
    dimension
        Dimension of the smallest affine space through the start that is invariant under the flow.
    derivation_seconds, gradient_seconds
        Processor time of the derivation, and time of a gradient in plain Python.
    digits
        Proved digits of the compiled gradient along the flow, if requested.
    """

    theory: str
    paper: str
    order_parameters: tuple[OrderParameterSummary, ...]
    steps: int
    check: Check
    agrees: bool
    manifold: Manifold | None
    conserved: tuple[str, ...]
    linear: tuple[dict[str, float], ...]
    dimension: int
    derivation_seconds: float
    gradient_seconds: float
    digits: tuple[Digits, ...] = ()

    @property
    def analysis(self) -> Manifold:
        """Results from the gradient of the full model, which must be available.

        Raises
        ------
        ParameterError
            If the data are frames.
        """
        if self.manifold is None:
            raise ParameterError(
                f"the gradient of {self.theory} in every entry is not analysed: the rotations of "
                "its frames are not enumerated; use theory, run, sweep, map or falsify"
            )
        return self.manifold


def examine(theory: Theory, given: Mapping[str, float] | None = None) -> Findings:
    """Derive a theory and compare it with its full model.

    Parameters
    ----------
    theory
        The theory.
    given
        Sizes and constants of the check; the other sizes are small.

    Raises
    ------
    TheoryError, ParameterError
        If the theory cannot be derived, if a value is not allowed, or if no sizes are small enough.
    """
    before = process_time()
    text = source(theory)
    derived = process_time() - before
    most = MOST_EVALUATED if theory.is_framed else MOST_ENTRIES
    values, full, data = small(theory, given, most=most)
    function, constants = mean_function(text, theory.name), list(values.values())
    start = np.array(list(initial_values(theory, values).values()))
    count = len(start)
    rng = np.random.default_rng(0)
    states = start + _SPREAD * rng.normal(size=(count * (count + 1) // 2 + count + 5, count))
    evaluate = finite(lambda state: mean(function, data, state, constants), values)
    evaluate(start)
    before = perf_counter()
    results = [evaluate(state) for state in states]
    seconds = (perf_counter() - before) / len(states)
    gradients = np.array([gradient for _, gradient in results])
    check = compared(theory, values, full, data, states[0], results[0])
    basis = closure.closure(lambda state: evaluate(state)[1], start)
    names = [order.name for order in theory.orders]
    linear = closure.linear(gradients)
    conserved = _linear_forms(linear, names)
    conserved += _quadratic_forms(closure.quadratic(states, gradients), names)
    at_start = dict(zip(names, start.tolist()))
    around = None if theory.is_framed else manifold.examine(full, at_start)
    return Findings(
        theory=theory.name,
        paper=theory.paper,
        order_parameters=tuple(
            OrderParameterSummary(order.name, order.orbit, str(order.count), str(order.start))
            for order in theory.orders
        ),
        steps=theory.number_of_steps,
        check=check,
        agrees=check.agrees and (around is None or around.agrees),
        manifold=around,
        conserved=tuple(conserved),
        linear=tuple(dict(zip(names, form)) for form in linear.tolist()),
        dimension=len(basis),
        derivation_seconds=derived,
        gradient_seconds=seconds,
    )


def _linear_forms(forms: np.ndarray, names: list[str]) -> list[str]:
    return [_formula({name: c for name, c in zip(names, form) if c != 0.0}) for form in forms]


def _quadratic_forms(forms: np.ndarray, names: list[str]) -> list[str]:
    formulas = []
    for form in forms:
        terms = {}
        for i, j in zip(*np.triu_indices(len(names))):
            weight = form[i, j] * (1.0 if i == j else 2.0)
            factors = f"{names[i]}^2" if i == j else f"{names[i]} {names[j]}"
            if weight != 0.0:
                terms[factors] = weight
        formulas.append(_formula(terms))
    return formulas


def _formula(terms: Mapping[str, float]) -> str:
    """Return a sum as text, such as ``A + 2 B - C``."""
    text = ""
    for name, weight in terms.items():
        sign = "-" if weight < 0 else "+"
        size = "" if abs(abs(weight) - 1.0) < 1e-7 else f"{abs(weight):.6g} "
        text += f" {sign} {size}{name}" if text else f"{'-' if weight < 0 else ''}{size}{name}"
    return text


def described(findings: Findings) -> str:
    """Return the findings as text."""
    check = findings.check
    orders = findings.order_parameters
    width = max(len(order.name) for order in orders)
    lines = [f"{findings.theory}: {findings.paper}", ""]
    lines += ["order parameters, entries and start, for all sizes:"]
    lines += [
        f"  {x.name:<{width}}  {x.entries} entries, starts at {x.start}"
        + (f" ({x.orbit})" if x.orbit != x.name else "")
        for x in orders
    ]
    at = ", ".join(f"{name} = {value:g}" for name, value in check.at.items())
    verdict = "agrees with" if findings.agrees else "DOES NOT AGREE with"
    lines += [
        "",
        f"gradient: {findings.steps} derived steps, for all sizes, in "
        f"{findings.derivation_seconds:.2g} s of processor time",
        f"checked at {at}:",
        f"  the reduced model ({check.data_orbits} data orbits) {verdict} the full one "
        f"({check.entries} entries, {check.configurations} configurations)",
        f"  largest difference {check.difference:.1e}, within an orbit {check.spread:.1e} "
        f"(allowed {AGREES:g})",
        *(f"  {message}" for message in check.miscounted),
        f"  one gradient {findings.gradient_seconds:.2g} s in plain Python",
        *(f"  {digits.sentence}" for digits in findings.digits),
        "",
    ]
    lines += [
        "conserved there by the flow: "
        + ("" if findings.conserved else "nothing linear or quadratic")
    ]
    lines += [f"  {formula}" for formula in findings.conserved]
    lines += [f"the smallest space that the flow stays in has {findings.dimension} dimensions"]
    return "\n".join([*lines, "", *_around(findings.manifold)])


def _around(result: Manifold | None) -> list[str]:
    """Return the description of the manifold, line by line."""
    if result is None:
        return ["each configuration is a random rotation of the frames; they are not enumerated"]
    verdict = "each orbit has one value" if result.agrees else "AN ORBIT HAS MORE THAN ONE VALUE"
    lines = [
        f"from the gradient in every entry alone: {result.discovered} values move, and there "
        f"are {result.orbits} orbits; {verdict}"
    ]
    if result.remark:
        lines += [result.remark]
    if result.growth == -np.inf:
        return [*lines, "the manifold contains every entry"]
    repels = "repels" if result.growth > 1e-9 else "does not repel"
    return [
        *lines,
        f"the manifold {repels} there at the start: a deviation grows at a rate of "
        f"{result.growth:.3g} at most",
    ]
