"""The class `OverlapTheory`: its order parameters, their starts, and its Gram matrix."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import permutations, product
from types import MappingProxyType
from typing import Any

import sympy as sp

from symbolic.overlaps.expansion import Reduced, expanded
from symbolic.overlaps.gram import Overlap, Pair, pair_of
from symbolic.overlaps.language import Directions, Element, Expression, Family, Normal, Vectors
from symbolic.overlaps.noise import Noise, noise
from symbolic.theory.errors import calling_line, require, short_repr
from symbolic.theory.formulas import Claim, Formulas
from symbolic.theory.numbers import Constant, Size, check_name, check_text, exact
from symbolic.theory.sets import Exchangeable
from symbolic.theory.values import checked_numbers


class OverlapTheory:
    """A loss that depends on vectors only through their inner products.

    Parameters
    ----------
    name, paper
        Name and source of the theory.
    sizes
        Every `Size` that it uses.
    parameters
        The trained `Vectors`.
    directions
        The fixed `Directions`.
    data
        The `Normal` data.
    loss
        Function with vectors and data as arguments that returns the loss of one datum.
    names
        Mapping from derived names of order parameters, such as ``"J.B[same]"``, to names.
    start
        Mapping from names of order parameters to initial values, numbers or expressions; by default
        1 for squared norms and 0 for others.
    defaults
        Default sizes and constants.

    Raises
    ------
    TheoryError
        If an argument is not allowed; one sentence that begins with the line.

    Examples
    --------
    >>> from symbolic.overlaps import Directions, Euclidean, Normal, OverlapTheory, Size, Vectors
    >>> d = Size("d")
    >>> space = Euclidean("coordinate", d)
    >>> x, w, u = Normal("x", space), Vectors("w", space), Directions("u", space)
    >>> theory = OverlapTheory(
    ...     "regression", "example", sizes=(d,), parameters=(w,), directions=(u,), data=(x,),
    ...     loss=lambda w, u, x: 0.5 * (w @ x - u @ x) ** 2,
    ... )
    >>> theory.order_parameters
    {'w.w': 1, 'w.u': 1}
    """

    #: A file in this language has no formulas and no random start.
    observables: Mapping[str, str] = MappingProxyType({})
    events: Mapping[str, str] = MappingProxyType({})
    claims: tuple[Claim, ...] = ()
    is_random = False

    def __init__(
        self,
        name: str,
        paper: str,
        *,
        sizes: Sequence[Size],
        parameters: Sequence[Vectors],
        loss: Callable[..., Expression],
        directions: Sequence[Directions] = (),
        data: Sequence[Normal] = (),
        names: Mapping[str, str] | None = None,
        start: Mapping[str, Any] | None = None,
        defaults: Mapping[str, float] | None = None,
    ) -> None:
        self.name, self.paper, self.location = name, paper, calling_line()
        check_text("name", name)
        check_text("paper", paper)
        self.sizes, self.parameters = tuple(sizes), tuple(parameters)
        self.directions, self.data = tuple(directions), tuple(data)
        self.defaults = dict(defaults or {})
        self.constants: tuple[Constant, ...] = ()
        self.digest: str | None = None
        arguments: tuple[tuple[str, type, tuple[Any, ...]], ...] = (
            ("sizes", Size, self.sizes),
            ("parameters", Vectors, self.parameters),
            ("directions", Directions, self.directions),
            ("data", Normal, self.data),
        )
        for argument, cls, values in arguments:
            for value in values:
                require(
                    isinstance(value, cls),
                    f"{argument}: {value!r} is not allowed: each must be of class {cls.__name__}",
                )
        families = [size.name for size in self.sizes]
        families += [family.name for family in (*self.vectors, *self.data)]
        repeated = sorted({x for x in families if families.count(x) > 1})
        require(not repeated, f"{', '.join(repeated)}: each name must be used once")
        require(bool(self.parameters), "parameters = () is not allowed: at least one is trained")
        self.loss = self._traced(loss)
        self.names = self._named(dict(names or {}))
        self.start = self._starts(dict(start or {}))

    @property
    def vectors(self) -> tuple[Family, ...]:
        """Trained vectors, followed by directions."""
        return *self.parameters, *self.directions

    def _traced(self, loss: Callable[..., Expression]) -> Expression:
        """Return the expression that the function ``loss`` builds."""
        known = {x.name: x for x in (*self.vectors, *self.data)}
        arguments = list(inspect.signature(loss).parameters)
        for name in arguments:
            require(
                name in known,
                f"loss({', '.join(arguments)}) is not allowed: {name} is neither a vector nor "
                f"data ({', '.join(known)})",
            )
        value = loss(**{name: known[name] for name in arguments})
        require(
            isinstance(value, Expression),
            f"the loss is {short_repr(value)}: it must be an expression in inner products",
        )
        free = ", ".join(value.free)
        require(not free, f"the loss has the free index {free}: sum over it", value.location)
        return value

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """All orbits of ordered pairs of vectors in the same space."""
        orbits = []
        for first, second in product(self.vectors, repeat=2):
            if first.space is second.space:
                shared = first.over is not None and first.over is second.over
                relations = ("same", "other") if shared else ("",)
                if first is second and first.over is not None:
                    relations = ("same", "other")
                orbits += [Pair(first, second, relation) for relation in relations]
        return tuple(orbits)

    def fixed(self, pair: Pair) -> sp.Expr | None:
        """Return the value of a Gram entry that is not an order parameter, otherwise ``None``."""
        first, second = pair.first, pair.second
        if isinstance(first, Vectors) or isinstance(second, Vectors):
            on_sphere = pair.is_diagonal and isinstance(first, Vectors) and first.sphere
            return sp.Integer(1) if on_sphere else None
        assert isinstance(first, Directions)
        assert isinstance(second, Directions)
        if first is second:
            return first.gram if pair.is_diagonal else sp.Integer(0)
        return first.overlaps.get(second, second.overlaps.get(first, sp.Integer(0)))

    @cached_property
    def entries(self) -> tuple[Pair, ...]:
        """All Gram entries, order parameters first."""
        entries = dict.fromkeys(pair.unordered for pair in self.pairs)
        trained = [pair for pair in entries if self.fixed(pair) is None]
        return *trained, *(pair for pair in entries if self.fixed(pair) is not None)

    @cached_property
    def overlaps(self) -> tuple[Pair, ...]:
        """The Gram entries that are order parameters."""
        return tuple(pair for pair in self.entries if self.fixed(pair) is None)

    def _named(self, names: dict[str, str]) -> dict[Pair, str]:
        """Return the names of the order parameters."""
        derived = {}
        for pair in self.overlaps:
            suffix = f"[{pair.relation}]" if pair.relation else ""
            for first, second in permutations((pair.first.name, pair.second.name)):
                derived[f"{first}.{second}{suffix}"] = pair
        chosen = {pair: pair.name for pair in self.overlaps}
        for key, name in names.items():
            require(
                key in derived,
                f"names: {key!r} is no order parameter; there are {', '.join(chosen.values())}",
                self.location,
            )
            check_name(name)
            chosen[derived[key]] = name
        taken = [*chosen.values(), *(x.name for x in self.sizes)]
        repeated = sorted({x for x in taken if taken.count(x) > 1})
        require(not repeated, f"{', '.join(repeated)} names two things", self.location)
        return chosen

    def _starts(self, start: dict[str, Any]) -> dict[str, sp.Expr]:
        """Return the initial value of each order parameter."""
        values = {name: sp.Integer(int(x.is_diagonal)) for x, name in self.names.items()}
        for name, value in start.items():
            require(
                name in values,
                f"start: {name!r} is no order parameter; there are {', '.join(values)}",
                self.location,
            )
            values[name] = exact(value)
        return values

    @property
    def tokens(self) -> sp.Expr:
        """Number of tokens of the softmax in the loss; 0 without one."""
        scores = (x.scores for term in self.loss.terms for x in term.factors if x.scores)
        return sp.Add(*(score.number for score in next(scores, ())))

    @property
    def orders(self) -> tuple[Overlap, ...]:
        """The order parameters with names, numbers of pairs and initial values."""
        return tuple(
            Overlap(name, pair.name, pair.number, self.start[name])
            for pair, name in self.names.items()
        )

    @cached_property
    def formulas(self) -> Formulas:
        """Formulas of the file, of which theories in overlaps have none."""
        return Formulas({}, {})

    @property
    def order_parameters(self) -> dict[str, sp.Expr]:
        """Mapping from order parameters to their numbers of unordered pairs."""
        return {self.names[pair]: pair.number for pair in self.overlaps}

    @cached_property
    def free_constants(self) -> dict[str, Constant]:
        """Mapping from names to the constants that occur; undeclared ones can be any number."""
        declared = {constant.name: constant for constant in self.constants}
        sizes = {size.name for size in self.sizes}
        symbols = set().union(*(x.free_symbols for x in self.scalars()))
        names = sorted(x.name for x in symbols if x.name not in sizes)
        return {name: declared.get(name) or Constant(name) for name in names}

    @property
    def sets(self) -> tuple[Exchangeable, ...]:
        """The index sets of vectors and data."""
        over = (x.over for x in (*self.vectors, *self.data))
        return tuple(dict.fromkeys(x for x in over if x is not None))

    def checked(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Return validated sizes and constants.

        Raises
        ------
        TheoryError
            If a value is missing or not allowed.
        """
        numbers = checked_numbers(self, values)
        variances = [(f"variance of {x.name}", x.variance) for x in self.data]
        norms = [(f"gram of {x.name}", x.gram) for x in self.directions]
        for name, expression in variances + norms:
            number = expression.subs({x: numbers[x.name] for x in expression.free_symbols})
            require(
                number >= 0,
                f"{name} = {expression} = {number} is not allowed: it must be at least 0",
                self.location,
            )
        return numbers

    def scalars(self) -> Iterator[sp.Expr]:
        """Yield the expressions in sizes and constants."""
        for coefficient, _ in self.reduced.terms:
            yield coefficient
        for component in self.reduced.components:
            for constant, entries in component.mean:
                yield constant
                yield from (x for _, x in entries)
            for row in component.covariance:
                yield from (x for entries in row for _, x in entries)
            yield component.power
        yield from (pair.number for pair in self.overlaps)
        yield from (value for pair in self.entries if (value := self.fixed(pair)) is not None)
        yield from self.start.values()

    @cached_property
    def reduced(self) -> Reduced:
        """The loss as a sum of products of expectations, for all sizes.

        Raises
        ------
        TheoryError
            If an expectation has more functions with different arguments than can be integrated.
        """
        return expanded(self.loss)

    @cached_property
    def noise(self) -> dict[Pair, Noise]:
        """The second moments of gradients of one datum, for each pair of trained vectors.

        Raises
        ------
        TheoryError
            If vectors lie on a sphere, or if an expectation has more functions with different
            arguments than can be integrated.
        """
        spheres = ", ".join(x.name for x in self.parameters if x.sphere)
        require(
            not spheres,
            f"one-pass SGD of {spheres} is not allowed: the mean over data of a step that is "
            "normalized to a sphere has no closed form; use vectors without sphere",
            self.location,
        )
        trained = [x for x in self.overlaps if {x.first, x.second} <= set(self.parameters)]
        return dict(zip(trained, noise(self.loss, trained)))

    def multiplication(self) -> list[tuple[int, int, int, sp.Expr]]:
        """Return (result, left, right, number): the product of two equivariant matrices.

        Rows and columns are vectors; entries are constant on orbits of ordered pairs, numbered as
        in `pairs`. Entry ``result`` of the product is the sum of number x left x right.
        """
        index = {pair: i for i, pair in enumerate(self.pairs)}
        rows = []
        for pair in self.pairs:
            a = Element(pair.first, 0 if pair.first.over is not None else None)
            other = 1 if pair.relation == "other" or pair.first.over is not pair.second.over else 0
            b = Element(pair.second, other if pair.second.over is not None else None)
            for family in self.vectors:
                if family.space is not pair.first.space:
                    continue
                inside = {x.label for x in (a, b) if x.family.over is family.over}
                used = sorted(label for label in inside if isinstance(label, int))
                positions: list[tuple[int | None, sp.Expr]] = [(None, sp.Integer(1))]
                if family.over is not None:
                    positions = [(k, sp.Integer(1)) for k in used]
                    positions.append((2, family.number - len(used)))
                for position, number in positions:
                    c = Element(family, position)
                    rows.append((index[pair], index[pair_of(a, c)], index[pair_of(c, b)], number))
        return rows
