"""Records and results of training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.core.checks import require
from dynamics.core.provenance import provenance
from dynamics.core.trajectory import Interrupted, Status
from dynamics.positional.problem import Problem
from dynamics.positional.samples.held_out import HeldOut
from dynamics.positional.samples.partitions import association_gap, patch_association

if TYPE_CHECKING:
    import xarray

#: Recorded quantities and their descriptions, in addition to the step.
QUANTITIES = {
    "time": "learning rate x steps",
    "loss": "empirical risk (E)",
    "alpha": "<v, w*>",
    "across": "norm of v across w*",
    "cosine": "cosine of v and w*",
    "association": "fraction of rows with Top_C(A_i) = S_l(i), diagonal included",
    "gap": "smallest off-diagonal A within sets minus largest A across sets",
    "test_error": "P[y F <= 0] on held-out samples",
    "disagreement": "P[f* F <= 0] on held-out samples",
}


class TrainingInterrupted(Interrupted):
    """Ctrl-C during training.

    Attributes
    ----------
    result, trajectory
        The :class:`TrainingResult` of the completed steps.
    """

    def __init__(self, result: TrainingResult) -> None:
        KeyboardInterrupt.__init__(self, result.message)
        self.result = result
        self.trajectory: Any = result


@dataclass(frozen=True, eq=False)
class History:
    """Records of training, with one entry per recorded step, shape (n,).

    Attributes
    ----------
    step
        Number of steps.
    time, loss, alpha, across, cosine, association, gap, test_error, disagreement
        See `QUANTITIES`. ``test_error`` and ``disagreement`` are nan without held-out samples.
    A, v
        Scores (n, D, D) and value vectors (n, d), or ``None`` if they were not stored.
    """

    step: np.ndarray
    time: np.ndarray
    loss: np.ndarray
    alpha: np.ndarray
    across: np.ndarray
    cosine: np.ndarray
    association: np.ndarray
    gap: np.ndarray
    test_error: np.ndarray
    disagreement: np.ndarray
    A: np.ndarray | None = None
    v: np.ndarray | None = None

    @classmethod
    def of(
        cls, rows: list[list[float]], states: list[tuple[np.ndarray, np.ndarray]] | None
    ) -> History:
        """Return the history of rows (step and `QUANTITIES`) and, optionally, states (A, v)."""
        columns = np.array(rows, dtype=float).reshape(len(rows), 1 + len(QUANTITIES)).T
        history = cls(columns[0].astype(np.int64), *columns[1:])
        if not states:
            return history
        A, v = (np.array(part) for part in zip(*states))
        return replace(history, A=A, v=v)


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """Result of training.

    Attributes
    ----------
    problem
        Constants.
    A, v
        Attention scores (D, D) and value vector (d,) at the end.
    history
        Records.
    status, message
        How the run ended.
    settings
        Arguments of the run.
    stats
        Numbers of evaluations and steps, and the largest relative rise of the loss.
    """

    problem: Problem
    A: np.ndarray
    v: np.ndarray
    history: History
    status: Status
    message: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, float] = field(default_factory=dict)

    def to_dataset(self) -> xarray.Dataset:
        """Return the history with its provenance as a dataset that NetCDF can store."""
        import xarray

        history = self.history
        columns: dict[str, Any] = {
            name: ("step", getattr(history, name), {"long_name": text})
            for name, text in QUANTITIES.items()
        }
        columns["A"] = (("patch", "other_patch"), self.A, {"long_name": "scores at the end"})
        columns["v"] = (("coordinate",), self.v, {"long_name": "value vector at the end"})
        return xarray.Dataset(
            columns,
            coords={"step": ("step", history.step)},
            attrs={
                "solver": "flow" if "horizon" in self.settings else "gd",
                "status": self.status.name.lower(),
                "message": self.message,
                "problem": json.dumps(asdict(self.problem)),
                "settings": json.dumps(dict(self.settings)),
                "provenance": json.dumps(provenance()),
            },
        )


class Recorder:
    """Computes the recorded quantities of a state.

    Parameters
    ----------
    problem
        Constants.
    w
        Feature w*, a unit vector (d,).
    owner
        Set of each patch, (D,).
    held_out
        Samples for the test error, or ``None``.
    """

    def __init__(
        self, problem: Problem, w: np.ndarray, owner: np.ndarray, held_out: HeldOut | None
    ) -> None:
        self.w, self.owner, self.held_out = w, owner, held_out
        if held_out is not None:
            same = held_out.problem == problem
            require(same, "held_out", "of another problem", "made for the problem that is trained")

    @property
    def description(self) -> list[Any]:
        """The parameters that determine the held-out samples."""
        test = self.held_out
        if test is None:
            return []
        return [test.samples, test.seed, test.projected, test.partition.tolist()]

    def row(self, step: int, time: float, loss: float, A: np.ndarray, v: np.ndarray) -> list[float]:
        """Return the step and the `QUANTITIES` of a state."""
        alpha = float(v @ self.w)
        size = float(np.linalg.norm(v))
        error = disagreement = np.nan
        if self.held_out is not None:
            rate = self.held_out.error(A, v, self.w)
            error, disagreement = rate.error, rate.disagreement
        return [
            step,
            time,
            loss,
            alpha,
            float(np.linalg.norm(v - alpha * self.w)),
            alpha / size if size > 0.0 else 0.0,
            patch_association(A, self.owner),
            association_gap(A, self.owner),
            error,
            disagreement,
        ]
