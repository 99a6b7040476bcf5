"""Reduced learning dynamics of positional attention (Jelassi, Sander, Li 2022), in numbers."""

from dynamics.attention import Attention, attention
from dynamics.descent import gradient_descent
from dynamics.errors import ParameterError, ToleranceError
from dynamics.flow import gradient_flow
from dynamics.population import AccuracyWarning, Population
from dynamics.problem import Problem, State
from dynamics.reduced import ReducedTrajectory
from dynamics.risk import Risk
from dynamics.slow_manifold import SlowManifold
from dynamics.trajectory import Interrupted, Status, Trajectory
from dynamics.value import Value

__all__ = [
    "AccuracyWarning",
    "Attention",
    "Interrupted",
    "ParameterError",
    "Population",
    "Problem",
    "ReducedTrajectory",
    "Risk",
    "SlowManifold",
    "State",
    "Status",
    "ToleranceError",
    "Trajectory",
    "Value",
    "attention",
    "gradient_descent",
    "gradient_flow",
]
