"""A case, which is a problem with the settings of its solver, and the numbers that describe it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

#: Statuses of a run in addition to the names of :class:`dynamics.Status` in lower case.
INVALID, FAILED = "invalid", "failed"


@dataclass(frozen=True)
class Quantity:
    """Name, meaning and unit of a number.

    Attributes
    ----------
    name, meaning
        Unique name and one-line description.
    unit
        Unit such as ``"s"``; ``"time"`` is flow time, learning rate times steps.
    """

    name: str
    meaning: str
    unit: str = ""


#: Outcomes that :class:`System` adds for all theories.
COST = (
    Quantity("evaluations", "evaluations of the gradient along the run"),
    Quantity("seconds", "wall time", "s"),
)


@dataclass(frozen=True)
class Attention:
    """Attention matrix at one state.

    Attributes
    ----------
    weights
        Shape (queries, keys); rows sum to one unless the caption states otherwise.
    queries, keys
        Labels of rows and columns.
    caption
        Description for a figure.
    """

    weights: np.ndarray
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    caption: str


@dataclass(frozen=True)
class Case:
    """A problem and the settings of its solver; its result depends on nothing else.

    Attributes
    ----------
    system
        Name of the theory.
    values
        Parameters that the case was built from.
    problem
        Problem of the theory.
    solver
        ``"flow"`` or ``"gd"``; for theories in overlaps also ``"sgd"``.
    settings
        Keyword arguments of the solver and of the population expectation, with defaults.
    """

    system: str
    values: Mapping[str, Any]
    problem: Any
    solver: str
    settings: Mapping[str, Any] = field(default_factory=dict)
