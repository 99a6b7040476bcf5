"""Learning dynamics of attention in numbers.

Any theory
    `risk` (what a theory tells the solvers), `descent` and `flow` with `plans` and `integrate`,
    `trajectory`, `invariants`, `crossing` (events), `diversity` (of attention maps).
Jelassi, Sander, Li 2022, the idealized process (Section 4.1)
    `problem`, `attention`, `population` with its three methods `enumeration` (`states`,
    `expectation`, `truncation`), `fourier` and `sampling`, `reduced` (its trajectory), `events`,
    `slow_manifold`; `diagonal` trains the diagonal of A too; `full` is the D x D oracle; `large_D`
    is the limit of many patches, its branches followed by `continuation`.
The same paper, finite samples (Sections 4.2 and 5)
    `empirical`: data, full-batch descent, checkpoints, test error.
The same paper, Sections 2 and 3
    `linear_models` (Theorem 3.1) with `set_sums`, `explicit_transformer` (Theorem 3.2),
    `gaussian_patches` (Figure 2), `labelling`.
Huang, Wen, Chi, Liang 2024
    `masked`: problem, population, phases, and its own oracle.
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
