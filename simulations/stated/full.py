"""Full model of a user-defined theory with all its entries, to check the derived reduction."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics.core.errors import ParameterError
from dynamics.theory.configurations import Elements, Integers, Values
from dynamics.theory.data import Array
from dynamics.theory.dense import DenseModel, Step
from simulations.stated.law import Numbers
from simulations.stated.sequences import probability
from symbolic.theory.expression import Node
from symbolic.theory.frames import Frame
from symbolic.theory.orbits import NONE, OTHER, Key, Position, canonical
from symbolic.theory.sets import Exchangeable, IndexSet, Ordered, Signed, Turned
from symbolic.theory.sources import Colouring, Gaussian, Sequence, Subset
from symbolic.theory.tensors import Tensor
from symbolic.theory.theory import Theory
from symbolic.theory.words import Joint, Words

#: Largest number of elements of an index set in the full model.
MOST_ELEMENTS = 10_000
#: Number of random rotations of frames, and number of coordinates above which it is 1.
ROTATIONS, MANY = 3, 64


@dataclass(frozen=True)
class Entries:
    """Orbits of the entries of a tensor: ``label`` and ``sign`` of entries, ``key`` of labels.

    The value of an entry is its sign times the value of its orbit.
    """

    label: Integers
    sign: Integers
    key: dict[int, Key]


class FullModel:
    """A theory at given sizes with all its entries.

    Parameters
    ----------
    theory
        The theory.
    values
        Sizes and constants, as returned by ``theory.checked``.
    integrated
        Whether to use the exact mean over Gaussian data instead of quadrature, for larger sizes.
    sequences
        Weights of some sequences, instead of the probabilities of all.

    Raises
    ------
    ParameterError
        If the data have too many configurations.
    """

    def __init__(
        self,
        theory: Theory,
        values: Mapping[str, float],
        *,
        integrated: bool = False,
        sequences: Mapping[tuple[int, ...], float] | None = None,
    ) -> None:
        self._sequences = sequences
        self.theory, self.numbers, self._values = theory, Numbers(values), values
        self._nodes = theory.mean.loss.all if integrated else theory.nodes
        self._name = _names(theory)
        self._parts = {part: i for i, part in enumerate(theory.sets)}
        signed = {
            i: isinstance(part, Turned)
            for part, i in self._parts.items()
            if isinstance(part, Signed)
        }
        axes = [{name: self._name[where] for name, where in x.axes.items()} for x in self._nodes]
        self.dense = DenseModel(
            self._steps(),
            {name: self._elements(where) for where, name in self._name.items()},
            {x.name: tuple(self._name[where] for where in x.axes) for x in theory.parameters},
            self._sources(integrated),
            axes,
            signed,
            self._frames() if theory.is_framed else None,
        )
        self.entries = {tensor.name: self._entries(tensor) for tensor in theory.parameters}

    def embed(self, state: Mapping[str, float]) -> dict[str, Array]:
        """Return the tensors whose entries are the values of the order parameters."""
        tensors = {}
        for tensor in self.theory.parameters:
            entries = self.entries[tensor.name]
            value = {-1: 0.0} | {
                label: self._value(tensor, key, state) for label, key in entries.key.items()
            }
            values = np.vectorize(value.__getitem__, [float])(entries.label)
            tensors[tensor.name] = np.asarray(entries.sign * values)
        return tensors

    def by_order(self, tensors: Mapping[str, Array]) -> dict[str, Array]:
        """Return the entries (n,) of each order parameter, multiplied by their signs."""
        by_order = {}
        for order in self.theory.orders:
            entries = self.entries[order.tensor.name]
            labels = [i for i, key in entries.key.items() if key == order.key]
            chosen = np.isin(entries.label, labels)
            signed = np.asarray(entries.sign * tensors[order.tensor.name], float)
            by_order[order.name] = signed[chosen]
        return by_order

    def mean(self, tensors: Mapping[str, Array]) -> dict[str, tuple[float, float, int]]:
        """Return mean, spread and number of the entries of each order parameter.

        The spread is 0 with frames: only a few rotations are compared, and the mean of a gradient
        over all of them has the mean of its entries, with their signs, in each.
        """
        return {
            name: (float(x.mean()), 0.0 if self.theory.is_framed else float(np.ptp(x)), x.size)
            if x.size
            else (0.0, 0.0, 0)
            for name, x in self.by_order(tensors).items()
        }

    def free(self, tensor: str) -> NDArray[np.bool_]:
        """Return whether each entry of a tensor is trained."""
        entries = self.entries[tensor]
        moving = {(order.tensor.name, order.key) for order in self.theory.orders}
        fixed = [i for i, key in entries.key.items() if (tensor, key) not in moving]
        return ~np.isin(entries.label, fixed)

    def _value(self, tensor: Tensor, key: Key, state: Mapping[str, float]) -> float:
        value = self.theory.entries[tensor, key]
        name = str(value)
        return float(state[name]) if name in state else self.numbers.real(value)

    def _entries(self, tensor: Tensor) -> Entries:
        label, sign = self.dense.group.orbits(self.dense.tensors[tensor.name])
        keys = {}
        for number in sorted(set(label.ravel().tolist()) - {-1}):
            index = np.argwhere(label == number)[0]
            spots: list[Position] = []
            turned: list[int] = []  # coordinates in their planes
            for axis, i in zip(tensor.axes, index):
                if isinstance(axis, Ordered):
                    spots.append((axis, int(i), NONE))
                    continue
                elements = self.dense.sets[self._name[axis]]
                part = self.theory.sets[elements.part[i]]
                own = int(elements.own[i])
                if isinstance(part, Turned):
                    is_other = bool(turned) and own != turned[0]
                    spots.append((part, int(elements.larger[i]), OTHER if is_other else NONE))
                    turned.append(own)
                    continue
                inside = part.inside is not None
                larger = int(elements.larger[i]) if inside or own < 0 else len(label) + own
                spots.append((part, larger, own if inside else NONE))
            keys[number] = canonical(tuple(spots))
            if turned == [0, 1]:  # the entry of the quarter turn that is -1
                sign[label == number] *= -1
        return Entries(label, sign, keys)

    def _elements(self, where: IndexSet) -> Elements:
        rows = []
        number = sum(self.numbers.whole(part.count) for part in where.parts)
        if number > MOST_ELEMENTS:
            raise ParameterError(
                f"{number:.2g} elements of {where} are too many for the full model (most "
                f"{MOST_ELEMENTS}): choose smaller sizes"
            )
        for part in where.parts:
            size, root = self.numbers.whole(part.size), part.inside or part
            first = 10**6 * self._parts.get(root, 0)
            if isinstance(part, Ordered):  # a part of its own for each element: none is exchanged
                rows += [(first + i + len(self._parts), first + i, i) for i in range(size)]
                continue
            if part.inside is not None:
                larger = range(self.numbers.whole(root.size))
                rows += [(self._parts[part], first + g, i) for g in larger for i in range(size)]
            elif any(outer_set.root is part for outer_set in self.theory.outer_sets):
                rows += [(self._parts[part], first + g, -1) for g in range(size)]
            elif isinstance(part, Turned):
                rows += [(self._parts[part], first + i // 2, i % 2) for i in range(size)]
            else:
                rows += [(self._parts[part], first, i) for i in range(size)]
        table = np.array(rows, np.int64).reshape(-1, 3)
        return Elements(table[:, 0], table[:, 1], table[:, 2])

    def _steps(self) -> list[Step]:
        number = {x: i for i, x in enumerate(self._nodes)}
        return [
            Step(x.op, tuple(number[y] for y in x.arguments), tuple(x.axes), self._detail(x))
            for x in self._nodes
        ]

    def _detail(self, x: Node) -> object:
        if x.op in ("constant", "power"):
            return self.numbers.real(x.detail)
        if x.op == "entry":
            return x.detail.name, x.indices
        if x.op == "relation":
            names = tuple(self._name[where] for where in x.detail.axes)
            shape = [int(where.count) for where in x.detail.axes]
            return np.array(x.detail.values, float).reshape(shape), names, x.indices
        if x.op in ("same", "inside"):
            return tuple(self._name[where] for where in x.detail.axes), x.indices
        if x.op == "part":
            values = {self._parts[p]: self.numbers.real(v) for p, v in x.detail.values.items()}
            return self._name[x.detail.axes[0]], x.indices[0], values
        return x.detail

    def _sources(self, integrated: bool) -> list[Values]:
        chosen, coloured = [], []
        for source in self.theory.data:
            over = tuple(self._name[where] for where in source.axes)
            if isinstance(source, Frame):
                coloured.append(Values(source.name, over, None, {}))
            elif isinstance(source, Joint):
                coloured.append(self._sequence(source, over))
            elif isinstance(source, Gaussian):
                coloured += [] if integrated else [self._gaussian(source, over)]
            elif isinstance(source, Sequence):
                coloured.append(Values(source.name, over, None, self._words(source), one_each=True))
            elif isinstance(source, Subset):
                size = self.numbers.whole(source.size)
                chosen.append(Values(source.name, over, size, {}))
            elif isinstance(source, Colouring):
                real = self.numbers.real
                law: dict[float, float] = {}
                for x, p in source.law.items():  # two values may coincide at these constants
                    law[real(x)] = law.get(real(x), 0.0) + real(p)
                given = tuple((choice.name, real(x)) for choice, x in source.given.items())
                coloured.append(Values(source.name, over, None, law, given))
        return [*chosen, *coloured]

    def _frames(self) -> dict[str, Array]:
        """Return the vectors of each source at some random rotations of the frames."""
        rng, data = np.random.default_rng(0), dict[str, list[Array]]()
        largest = max(int(source.axes[1].count) for source in self.theory.data)
        for _ in range(ROTATIONS if largest <= MANY else 1):
            rotations: dict[Exchangeable, Array] = {
                part: _rotation(rng, part) for part in self.theory.sets if isinstance(part, Signed)
            }
            for source in self.theory.data:
                assert isinstance(source, Frame)
                vectors = [rotations[part][:, row] for part, row in source.vectors.items()]
                data.setdefault(source.name, []).append(np.concatenate(vectors).T)
        return {name: np.array(vectors) for name, vectors in data.items()}

    def _sequence(self, source: Joint, over: tuple[str, ...]) -> Values:
        """Return a sequence with its joint law."""
        one_each = isinstance(source, Words)
        states = self.numbers.whole(source.axes[1].count) if one_each else 2
        law = {float(i): 1.0 / states for i in range(states)}
        if self._sequences is None:
            joint, rows = probability(source, self._values), None
        else:
            joint, rows = self._sequences.__getitem__, list(self._sequences)
        return Values(source.name, over, None, law, one_each=one_each, joint=joint, rows=rows)

    def _words(self, source: Sequence) -> dict[float, float]:
        """Return a mapping from the number of an element of a vocabulary to its probability."""
        parts = [
            part for part in source.vocabulary.parts for _ in range(self.numbers.whole(part.size))
        ]
        return {
            float(i): self.numbers.real(source.probabilities[part] / part.size)
            for i, part in enumerate(parts)
        }

    def _gaussian(self, source: Gaussian, over: tuple[str, ...]) -> Values:
        """Return a Gauss-Hermite rule that is exact for the loss, a polynomial."""
        real, degree = self.numbers.real, self.theory.mean.degree.get(source, 0)
        points, weights = np.polynomial.hermite_e.hermegauss(degree // 2 + 1)
        law = dict(zip(points.tolist(), (weights / weights.sum()).tolist()))
        if source.by_part is None:
            deviation = real(source.variance) ** 0.5
            law = {deviation * x: p for x, p in law.items()}
            return Values(source.name, over, None, law)
        at = source.axes.index(source.by_part.axes[0])
        table = {self._parts[p]: real(v) ** 0.5 for p, v in source.by_part.values.items()}
        return Values(source.name, over, None, law, deviation=(at, table))


def _rotation(rng: np.random.Generator, part: Signed) -> Array:
    """Return a random orthogonal matrix; of a turned set, one that commutes with M."""
    size = int(part.count)
    if not isinstance(part, Turned):
        return np.linalg.qr(rng.normal(size=(size, size)))[0]
    real, imaginary = rng.normal(size=(2, size // 2, size // 2))
    unitary = np.linalg.qr(real + 1j * imaginary)[0]
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    return np.asarray(np.kron(unitary.real, np.eye(2)) + np.kron(unitary.imag, turn))


def _names(theory: Theory) -> dict[IndexSet, str]:
    """Return a unique name for each index set of a theory."""
    names: dict[IndexSet, str] = {}
    sets = [where for x in (*theory.parameters, *theory.data) for where in x.axes]
    sets += [
        where
        for x in theory.nodes
        for where in (*x.axes.values(), *getattr(x.detail, "axes", ()))
        if isinstance(where, IndexSet)
    ]
    for where in sets:
        names.setdefault(where, f"{where.name} {len(names)}")
    return names
