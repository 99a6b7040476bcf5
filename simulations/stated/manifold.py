"""Compare the invariant manifold of a theory with the gradient of its full model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.theory import closure, invariance
from dynamics.theory.data import Array
from simulations.stated.full import FullModel

#: Largest slope whose square is finite.
_LARGEST = 1e150


@dataclass(frozen=True)
class Manifold:
    """The manifold of a theory, compared with the gradient in all trained entries.

    Attributes
    ----------
    orbits
        Number of trained orbits of the group that have entries.
    discovered
        Number of values that move, from the gradient alone.
    agrees
        Whether the entries of each orbit have the same value.
    remark
        Message if fewer values suffice; else empty.
    growth
        Largest growth rate of a deviation at the start; -inf if the manifold contains every entry.
    """

    orbits: int
    discovered: int
    agrees: bool
    remark: str
    growth: float


def examine(full: FullModel, start: Mapping[str, float]) -> Manifold:
    """Detect the values that remain equal in a full model, and compare them with its orbits.

    Parameters
    ----------
    full
        Full model at small sizes.
    start
        Initial values of the order parameters.

    Raises
    ------
    ParameterError
        If the full model does not have the symmetry of the theory, or is not closed.
    """
    entries = _Entries(full, start)
    _require_symmetry(full, start)
    partition = closure.discover(entries.gradient, entries.start)
    orbits = entries.orbits
    number = len(set(orbits.tolist()) - {-1})
    zero = bool(np.all(partition.label[orbits == -1] == -1))
    return Manifold(
        orbits=number,
        discovered=int(partition.moves.sum()),
        agrees=zero and partition.refined_by(orbits),
        remark=invariance.too_small(partition, number),
        growth=closure.growth(entries.gradient, entries.start, entries.lift),
    )


class _Entries:
    """Trained entries of a full model as a vector: start, gradient and orbits."""

    def __init__(self, full: FullModel, start: Mapping[str, float]) -> None:
        self._full, self._at = full, full.embed(start)
        self._free = {name: full.free(name) for name in self._at}
        self.start = self._joined(self._at)
        self.orbits = self._numbered()
        zero = self._joined(full.embed(dict.fromkeys(start, 0.0)))
        columns = [
            self._joined(full.embed(dict.fromkeys(start, 0.0) | {name: 1.0})) - zero
            for name in start
        ]
        self.lift = np.array([column for column in columns if column.any()]).T

    def gradient(self, vector: Array) -> Array:
        """Return the slope in every trained entry."""
        moved, first = {}, 0
        for name, values in self._at.items():
            moved[name] = np.array(values, float)
            size = int(self._free[name].sum())
            moved[name][self._free[name]] = vector[first : first + size]
            first += size
        slopes = self._joined(self._full.dense.evaluate(moved)[1])
        if not np.isfinite(slopes).all() or np.abs(slopes).max(initial=0.0) > _LARGEST:
            raise ParameterError(
                "the gradient of the full model is not finite near the start, or too large: choose "
                "another start, or other values"
            )
        return slopes

    def _joined(self, arrays: Mapping[str, Array]) -> Array:
        return np.concatenate([np.asarray(arrays[name])[self._free[name]] for name in self._at])

    def _numbered(self) -> np.ndarray:
        """Return the orbit number of each entry, -1 for entries that the group sets to 0."""
        rows, first = [], 0
        for name in self._at:
            label = self._full.entries[name].label
            rows.append(np.where(label < 0, -1, label + first)[self._free[name]])
            first += int(label.max(initial=0)) + 1
        return np.concatenate(rows)


def _require_symmetry(full: FullModel, start: Mapping[str, float]) -> None:
    """Raise ParameterError unless loss, gradient and start have the symmetry of the theory."""
    rng = np.random.default_rng(0)
    orbits = {name: entries.label for name, entries in full.entries.items()}
    off = {
        name: closure.SPREAD * rng.normal(size=full.dense.shape(name)) + values
        for name, values in full.embed(start).items()
    }
    for description, moved in _moved(full, off):
        invariance.require_invariant(
            lambda tensors: full.dense.evaluate(tensors)[0], off, description, moved
        )
    on = full.embed({name: x + closure.SPREAD * rng.normal() for name, x in start.items()})
    slopes = full.dense.evaluate(on)[1]
    trained = {name: np.where(full.free(name), slope, 0.0) for name, slope in slopes.items()}
    invariance.require_closed(trained, orbits)
    invariance.require_symmetric(full.embed(start), orbits)


def _moved(full: FullModel, state: Mapping[str, Array]) -> Iterator[tuple[str, dict[str, Array]]]:
    """Yield the description and the image of a state for each generator of the group."""
    axes = full.dense.tensors
    for description, images in full.dense.group.generators():
        moved = {}
        for name, x in state.items():
            targets, signs = zip(*(images[own] for own in axes[name])) if axes[name] else ((), ())
            moved[name] = x[np.ix_(*targets)] if targets else x
            for factor in np.ix_(*signs):
                moved[name] = moved[name] * factor
        yield description, moved
