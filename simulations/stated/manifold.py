"""What the full model's gradient says of the manifold that is stated, at small sizes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.theory import closure, invariance
from dynamics.theory.data import Array
from simulations.stated.full import FullModel

#: Largest slope that is looked into: its square is finite.
_LARGEST = 1e150


@dataclass(frozen=True)
class Manifold:
    """What is found from the gradient in every trained entry, and what was stated.

    ``orbits`` of the group that are trained and have entries; ``discovered`` values that move, from
    the gradient alone; ``agrees`` if entries of one orbit always share such a value; ``remark`` a
    sentence where fewer suffice. ``growth`` is the fastest rate at which a deviation grows at the
    start, -inf where no entry lies outside.
    """

    orbits: int
    discovered: int
    agrees: bool
    remark: str
    growth: float


def examine(full: FullModel, start: Mapping[str, float]) -> Manifold:
    """Discover the order parameters of a full model and hold them against its orbits.

    Parameters
    ----------
    full
        The model at small sizes.
    start
        The order parameters at the start.

    Raises
    ------
    ParameterError
        If the full model lacks the symmetry that is stated, or does not close.
    """
    entries = _Entries(full, start)
    _require_symmetry(full, start)
    found = closure.discover(entries.gradient, entries.start)
    orbits = entries.orbits
    number = len(set(orbits.tolist()) - {-1})
    zero = bool(np.all(found.label[orbits == -1] == -1))
    return Manifold(
        orbits=number,
        discovered=int(found.moves.sum()),
        agrees=zero and found.refined_by(orbits),
        remark=invariance.too_small(found, number),
        growth=closure.growth(entries.gradient, entries.start, entries.lift),
    )


class _Entries:
    """The trained entries of a full model in a row: start, gradient, orbits."""

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
        moved, place = {}, 0
        for name, values in self._at.items():
            moved[name] = np.array(values, float)
            size = int(self._free[name].sum())
            moved[name][self._free[name]] = vector[place : place + size]
            place += size
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
        """Return the number of each entry's orbit, -1 where the group asks for 0."""
        rows, first = [], 0
        for name in self._at:
            label = self._full.entries[name].label
            rows.append(np.where(label < 0, -1, label + first)[self._free[name]])
            first += int(label.max(initial=0)) + 1
        return np.concatenate(rows)


def _require_symmetry(full: FullModel, start: Mapping[str, float]) -> None:
    """Refuse a full model without its stated symmetry: off the manifold, on it, at the start."""
    rng = np.random.default_rng(0)
    orbits = {name: entries.label for name, entries in full.entries.items()}
    off = {
        name: closure.SPREAD * rng.normal(size=full.dense.shape(name)) + values
        for name, values in full.embed(start).items()
    }
    for words, moved in _moved(full, off):
        invariance.require_invariant(
            lambda tensors: full.dense.evaluate(tensors)[0], off, words, moved
        )
    on = full.embed({name: x + closure.SPREAD * rng.normal() for name, x in start.items()})
    slopes = full.dense.evaluate(on)[1]
    trained = {name: np.where(full.free(name), slope, 0.0) for name, slope in slopes.items()}
    invariance.require_closed(trained, orbits)
    invariance.require_symmetric(full.embed(start), orbits)


def _moved(full: FullModel, state: Mapping[str, Array]) -> Iterator[tuple[str, dict[str, Array]]]:
    """Yield where each generator of the group takes a state, with what it is called."""
    axes = full.dense.tensors
    for number, move in enumerate(full.dense.moves()):
        places = {name: np.ix_(*(move[own] for own in axes[name])) for name in state if axes[name]}
        yield (
            f"exchange {number}",
            {name: x[places[name]] if name in places else x for name, x in state.items()},
        )
    for number, flip in enumerate(full.dense.flips()):
        signs = {name: np.ix_(*(1.0 - 2.0 * flip[own] for own in axes[name])) for name in state}
        yield (
            f"flip {number}",
            {
                name: np.prod(np.broadcast_arrays(x, *signs[name]), axis=0)
                for name, x in state.items()
            },
        )
