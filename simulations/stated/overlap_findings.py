"""Findings on a theory in overlaps: order parameters, dense check and proved digits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynamics import gradient_flow
from dynamics.overlaps.risk import OverlapRisk
from simulations.stated import overlaps
from simulations.stated.digits import HORIZON, Digits
from simulations.stated.findings import OrderParameterSummary
from simulations.stated.overlap_check import TOLERANCE, OverlapCheck, check
from symbolic.overlaps import OverlapTheory


@dataclass(frozen=True)
class OverlapFindings:
    """Results for all sizes, and the comparison with vectors at small sizes.

    Attributes
    ----------
    theory, paper, order_parameters, expectations
        Name and paper of the theory, its order parameters, and the number of expectations.
    check, agrees
        Comparison with descent on vectors, and whether it agrees.
    digits
        Proved digits of risk and gradient along the flow.
    """

    theory: str
    paper: str
    order_parameters: tuple[OrderParameterSummary, ...]
    expectations: int
    check: OverlapCheck
    agrees: bool
    digits: tuple[Digits, ...] = ()


def examine(theory: OverlapTheory, given: Mapping[str, float] | None = None) -> OverlapFindings:
    """Derive a theory in overlaps, compare it with vectors, and prove digits along its flow.

    Parameters
    ----------
    theory
        The theory.
    given
        Sizes and constants of the check and of the flow; the other sizes are small.

    Raises
    ------
    TheoryError
        If the theory cannot be derived, or if a value is not allowed.
    """
    result = check(theory, tuple(sorted((given or {}).items())))
    orders = tuple(
        OrderParameterSummary(x.name, x.orbit, str(x.number), str(x.start)) for x in theory.orders
    )
    proved: tuple[Digits, ...] = ()
    if result.agrees:
        risk = overlaps.risk(theory, result.values)
        run = gradient_flow(risk, horizon=float(theory.defaults.get("horizon", HORIZON)))
        ends = ((0, -1) if run.time.size > 1 else (0,)) if run.time.size else ()
        proved = tuple(digits(risk, run.states[k], float(run.time[k])) for k in ends)
    return OverlapFindings(
        theory.name,
        theory.paper,
        orders,
        len(theory.reduced.components),
        result,
        result.agrees,
        proved,
    )


def digits(risk: OverlapRisk, state: np.ndarray, time: float = 0.0) -> Digits:
    """Prove the number of correct digits of risk and gradient at a state, in ball arithmetic."""
    names, value = risk.order_parameters, risk.evaluate(state)
    numbers = [value.loss, *value.gradient.tolist()]
    bounds = [value.bound, *value.gradient_bound.tolist()]
    relative = {
        name: error / (abs(x) - error) if abs(x) > error else (math.inf if error else 0.0)
        for name, x, error in zip(("risk", *names), numbers, bounds)
    }
    proved = {name: _digits(error) for name, error in relative.items()}
    failure = f"the risk is {risk.reason}" if risk.is_estimate else ""
    return Digits(time, dict(zip(names, state.tolist())), proved, relative, failure)


def _digits(error: float) -> int:
    """Return the number of digits that a relative error proves, at most 17."""
    if error == 0.0 or error >= 1.0:
        return 17 if error == 0.0 else 0
    return min(17, math.floor(-math.log10(error)))


def described(findings: OverlapFindings) -> str:
    """Return the findings as text."""
    width = max(len(x.name) for x in findings.order_parameters)
    at = ", ".join(f"{name} = {value:g}" for name, value in findings.check.values.items())
    verdict = "agrees with" if findings.agrees else "DOES NOT AGREE with"
    return "\n".join(
        [
            f"{findings.theory}: {findings.paper}",
            "",
            "order parameters, pairs of vectors and start, for all sizes:",
            *(
                f"  {x.name:<{width}}  {x.entries} pairs, starts at {x.start}"
                + (f" ({x.orbit})" if x.orbit != x.name else "")
                for x in findings.order_parameters
            ),
            "",
            f"loss: {findings.expectations} expectations, for all sizes",
            f"checked at {at}:",
            f"  descent on overlaps {verdict} descent on vectors: largest difference "
            f"{max(findings.check.loss, findings.check.overlaps):.1e} (allowed {TOLERANCE:g})",
            *(f"  {digits.sentence}" for digits in findings.digits),
        ]
    )
