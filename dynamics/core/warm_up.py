"""Compile the kernels of a risk by running it once."""

from dynamics.core.descent import gradient_descent
from dynamics.core.risk import Risk


def warm_up(risk: Risk) -> None:
    """Evaluate a risk in every way and take two steps of gradient descent."""
    start = risk.problem.initial_state
    risk.gradient(start)
    risk.jacobian(start)
    risk.evaluate(start)
    gradient_descent(risk, learning_rate=0.01, steps=2)
