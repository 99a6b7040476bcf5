"""What is recorded along training, and what training returns."""

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

#: What a record holds, beside the step.
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
    """Ctrl-C during training; ``result`` (also ``trajectory``) holds what had been computed."""

    def __init__(self, result: TrainingResult) -> None:
        KeyboardInterrupt.__init__(self, result.message)
        self.result = result
        self.trajectory: Any = result


@dataclass(frozen=True, eq=False)
class History:
    """Records along a run, one entry per recorded step, shape (n,); see `QUANTITIES`.

    ``test_error`` and ``disagreement`` are nan where no held-out samples were given. ``A`` (n, D,
    D) and ``v`` (n, d) are kept on demand.
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
        """Return the history made of rows (step and `QUANTITIES`) and the states beside them."""
        columns = np.array(rows, dtype=float).reshape(len(rows), 1 + len(QUANTITIES)).T
        history = cls(columns[0].astype(np.int64), *columns[1:])
        if not states:
            return history
        A, v = (np.array(part) for part in zip(*states))
        return replace(history, A=A, v=v)


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """The last state, A (D, D) and v (d,), the history, and how the run ended."""

    problem: Problem
    A: np.ndarray
    v: np.ndarray
    history: History
    status: Status
    message: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    stats: Mapping[str, float] = field(default_factory=dict)

    def to_dataset(self) -> xarray.Dataset:
        """Return the history as a labelled dataset that carries its provenance (NetCDF-safe)."""
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


class Watch:
    """What is recorded of a state."""

    def __init__(
        self, problem: Problem, w: np.ndarray, owner: np.ndarray, held_out: HeldOut | None
    ) -> None:
        self.w, self.owner, self.held_out = w, owner, held_out
        if held_out is not None:
            same = held_out.problem == problem
            require(same, "held_out", "of another problem", "made for the problem that is trained")

    @property
    def description(self) -> list[Any]:
        """What tells one set of held-out samples from another."""
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
