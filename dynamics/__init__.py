"""Learning dynamics of attention: population risks, gradient descent and gradient flow.

`core`
    Solvers and tools for any theory: the `Risk` interface, descent and flow, trajectories,
    invariants, events, ball arithmetic, enclosures of trajectories.
`positional`
    Jelassi, Sander, Li (2022): problem, certified population expectation (enumeration, Fourier
    method, sampling), events, finite samples, and the D x D oracle.
`masked`
    Huang, Wen, Chi, Liang (2024): problem, population, phases, and its oracle.
`shallow`
    Li, Wang, Liu, Chen (2023): SGD on token counts, population descent, and its oracle.
`theory`
    User-defined theories: the compiled risk, and the dense oracle that checks it.
`locality`
    Whether similar patches lie next to each other, for the encodings and attention of any model.

`full`, `empirical`, `events` and `diversity` are public names of modules of these packages.
"""

from dynamics.core.descent import gradient_descent
from dynamics.core.errors import ParameterError, ToleranceError
from dynamics.core.flow import gradient_flow
from dynamics.core.risk import Risk
from dynamics.core.trajectory import Interrupted, Status, Trajectory
from dynamics.positional.attention import Attention, attention
from dynamics.positional.population.population import AccuracyWarning, Population
from dynamics.positional.population.value import Value
from dynamics.positional.problem import Problem, State
from dynamics.positional.slow_manifold import SlowManifold
from dynamics.positional.trajectory import ReducedTrajectory

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
