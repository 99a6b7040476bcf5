"""Learning dynamics of attention in numbers.

`core`
    What every theory computes with: `risk` (what a theory tells the solvers), `descent` and `flow`
    with `plans` and `integrate`, `trajectory`, `invariants`, `crossing` (events).
`positional`: Jelassi, Sander, Li 2022
    The idealized process (Section 4.1): `problem`, `attention`, `population` with its three methods
    (`enumeration`, `fourier`, `sampling`), `trajectory`, `events`, `slow_manifold`; `diagonal`
    trains the diagonal of A too; `oracle` is the D x D model; `large_D` is the limit of many
    patches. Finite samples (Sections 4.2 and 5): `samples`. Sections 2 and 3: `baselines`,
    `labelling`.
`masked`: Huang, Wen, Chi, Liang 2024
    Problem, population, phases, and its own oracle.
`shallow`: Li, Wang, Liu, Chen 2023
    SGD on counts of tokens, population descent in few numbers, and its own oracle on tokens.
`locality`
    Of encodings and attention of any model: do similar patches lie side by side?

`full`, `empirical`, `events` and `diversity` are public names of modules of these.
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
