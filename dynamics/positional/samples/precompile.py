"""Compile the kernels of the empirical risk (E)."""

import numpy as np

from dynamics.positional.problem import Problem
from dynamics.positional.samples.data import sample
from dynamics.positional.samples.gradient import EmpiricalRisk, FixedScores, FixedValue
from dynamics.positional.samples.training import initial_weights


def compile_empirical(dtype: str) -> str:
    """Compile all kernels for one precision by evaluating a small problem; return a label."""
    problem, rng = Problem(D=4, C=2, q=0.3), np.random.default_rng(0)
    risk = EmpiricalRisk(problem, *sample(problem, 3, rng, dtype=dtype))
    A, v = initial_weights(problem, rng)
    for evaluator in (risk, FixedScores(risk, A), FixedValue(risk, v)):
        evaluator.gradient(A, v)
    FixedScores(risk, A).descend(v, v, (0.0, 0.1), (np.inf, 0.0), 1)
    return f"finite samples, {dtype}"
