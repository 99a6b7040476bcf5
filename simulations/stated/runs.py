"""Risks of user-defined theories: derivation, compilation and data orbits."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

from flint import ctx

from dynamics.core.checks import integer
from dynamics.core.errors import ParameterError
from dynamics.theory.data import MOST_ORBITS, Law, orbits, relative_errors
from dynamics.theory.risk import Kernels, TheoryProblem, TheoryRisk
from dynamics.theory.sequences import SequenceLaw
from dynamics.theory.truncated import truncated
from simulations.stated.check import require_agreement
from simulations.stated.law import Balls, initial_values, law
from simulations.stated.ranges import bounds
from symbolic.theory import Theory
from symbolic.theory.source import source
from symbolic.theory.sources import Gaussian

#: Precision of balls around probabilities, in bits.
_BITS = 128
#: Number of random sequences of a run with too many data orbits.
SAMPLES = 10_000
#: Largest seed of a random start.
LARGEST_SEED = 2**53


def risk(
    theory: Theory, *, remainder: float = 0.0, samples: float = 0, **values: Any
) -> TheoryRisk:
    """Return the risk of a theory at given sizes and constants, for `dynamics.gradient_flow`.

    Parameters
    ----------
    theory
        The theory.
    remainder
        Probability of data orbits that may be omitted, the least probable first; 0 omits none. The
        method ``left_out`` returns a certified bound of the error in risk and gradient; it is
        infinite if the loss of a datum is unbounded.
    samples
        Number of random sequences if a theory on ordered positions has too many data orbits; 0
        samples none. Risk and gradient are then estimates, with infinite bounds and the standard
        errors of the method ``standard_error``.
    values
        Sizes and constants; for a theory with a random start, also ``seed`` (default 0).

    Raises
    ------
    TheoryError
        If a size or constant is missing or not allowed, or if the theory fails its check.
    ParameterError
        If there are too many data orbits.
    """
    seed = values.pop("seed", 0) if theory.is_random else 0
    return risk_of(theory, problem(theory, theory.checked(values), seed), remainder, samples)


def problem(theory: Theory, values: dict[str, float], seed: int = 0) -> TheoryProblem:
    """Return the problem at checked sizes and constants, with the start of the theory."""
    seed = integer("seed", seed, 0, LARGEST_SEED)
    return TheoryProblem(theory.name, values, initial_values(theory, values, seed))


def risk_of(
    theory: Theory, problem: TheoryProblem, remainder: float = 0.0, samples: float = 0
) -> TheoryRisk:
    """Return the risk of a problem; raise TheoryError if the theory fails its check."""
    require_agreement(theory)
    known = law(theory, problem.values)
    if samples and isinstance(known, SequenceLaw) and known.count > MOST_ORBITS:
        data = known.sampled(integer("samples", samples, 2, MOST_ORBITS))
    else:
        data = truncated(known, remainder) if remainder else orbits(known)
        data = replace(data, errors=_errors(theory, problem, known))
    return TheoryRisk(
        problem,
        Kernels.of(source_of(theory), theory.name),
        data,
        bounds(theory, problem.values) if remainder else None,
        integrated=any(isinstance(source, Gaussian) for source in theory.data),
    )


def _errors(theory: Theory, problem: TheoryProblem, known: Law | SequenceLaw) -> tuple[float, ...]:
    """Return relative errors of probabilities and values of the data; infinite if unknown."""
    with ctx.workprec(_BITS):
        try:
            return relative_errors(known, law(theory, problem.values, Balls(problem.values)))
        except ParameterError:
            number = len(relative_errors(known, known))
            return (math.inf,) * number


@cache
def source_of(theory: Theory) -> str:
    """Return the emitted source of a theory (cached)."""
    return source(theory)
