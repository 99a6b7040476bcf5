"""Parameters that are trained, and the data: what a theory's expressions are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sympy as sp

from symbolic.theory.errors import TheoryError, here, require
from symbolic.theory.expression import Array, ByPart, Node, node
from symbolic.theory.numbers import exact, named
from symbolic.theory.sets import Exchangeable, IndexSet, Union


def _named(name: Any, axes: tuple[Any, ...]) -> None:
    named(name)
    for where in axes:
        require(
            isinstance(where, IndexSet),
            f"{name} has the axis {where!r}, which is not allowed: it must be an index set",
        )


def number(name: str, value: Any) -> sp.Expr:
    """Return a number or an expression in sizes and constants, or raise `TheoryError`."""
    try:
        return exact(value)
    except (TypeError, ValueError, sp.SympifyError):
        raise TheoryError(
            f"{name} = {value!r} is not allowed: it must be a number, or an expression in sizes "
            "and constants"
        ) from None


class Tensor(Array):
    """A parameter, one axis per index set; its orbits are the order parameters.

    Parameters
    ----------
    name, axes
        The letter, and the index sets of its axes; none for a scalar.
    start
        The initial value of every entry: a number or an expression in sizes and constants, or a
        mapping from names of orbits (the others start at 0).
    """

    def __init__(self, name: str, axes: Any = (), *, start: Any = 0) -> None:
        self.axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
        _named(name, self.axes)
        self.name, self.where = name, here()
        self.fixed: dict[str, sp.Expr] = {}
        if isinstance(start, Mapping):
            self.starts = {orbit: number(f"start of {name}", x) for orbit, x in start.items()}
            self.start = sp.Integer(0)
        else:
            self.starts, self.start = {}, number(f"start of {name}", start)

    def fix(self, orbit: str, value: Any) -> None:
        """Keep the entries of one orbit at a value: ``A.fix("diagonal", beta)``."""
        self.fixed[orbit] = number(f"{self.name} on {orbit!r}", value)


class Source(Array):
    """Data with a law, one value for each element of an index set."""

    over: Any

    def require_law(self, value: Callable[[sp.Expr], sp.Expr]) -> None:
        """Raise `TheoryError` unless the law is allowed, ``value`` given for sizes and constants.

        An expression whose value still depends on them is not checked.
        """
        raise NotImplementedError

    def _require_probabilities(self, named: Iterable[tuple[str, sp.Expr]]) -> None:
        for what, x in named:
            require(
                bool(x.free_symbols) or bool(x.is_extended_real and 0 <= x <= 1),
                f"{what} = {x} is not allowed: it must be in [0, 1]",
                self.where,
            )

    def _at(self, name: str, over: IndexSet) -> None:
        _named(name, (over,))
        signed = any(part.signed for part in over.parts)
        require(not signed, f"{name} over {over} is not allowed: a signed set carries no data")
        self.name, self.over, self.axes, self.where = name, over, (over,), here()


class Subset(Source):
    """1 on ``size`` elements of a set, each choice equally likely, and 0 on the others."""

    def __init__(self, name: str, over: IndexSet, size: Any) -> None:
        self._at(name, over)
        self.size = number(f"size of {name}", size)

    def require_law(self, value: Callable[[sp.Expr], sp.Expr]) -> None:
        """Raise `TheoryError` unless the size is a whole number, at most that of the set."""
        of, size = value(self.over.count), value(self.size)
        require(
            bool(size.is_integer and 0 <= size <= of),
            f"{self.name} has {self.size} = {size} of {of} elements: it must be a whole number, "
            "at most all of them",
            self.where,
        )


class Choice(Subset):
    """1 on one element of a set, each equally likely, and 0 on the others."""

    def __init__(self, name: str, over: IndexSet) -> None:
        super().__init__(name, over, 1)


class Colouring(Source):
    """A value for each element, independent of each other.

    Parameters
    ----------
    name, over
        The letter and the index set.
    law
        Probability of each value; they sum to 1.
    given
        ``{choice: value}``: elements inside what was chosen have this value.
    """

    def __init__(
        self,
        name: str,
        over: Exchangeable,
        law: Mapping[Any, Any],
        *,
        given: Mapping[Choice, Any] | None = None,
    ) -> None:
        self._at(name, over)
        require(
            not isinstance(over, Union),
            f"{name} over {over} is not allowed: a colouring is of one exchangeable set",
        )
        require(
            isinstance(law, Mapping) and len(law) > 0,
            f"law of {name} = {law!r} is not allowed: it must map values to probabilities",
        )
        self.law = {
            number(f"value of {name}", x): number(f"probability of {name}", p)
            for x, p in law.items()
        }
        total = sp.cancel(sp.Add(*self.law.values()))
        require(
            total == 1, f"law of {name} is not allowed: its probabilities sum to {total}, not 1"
        )
        self.require_law(lambda p: p)
        self.given = {}
        for choice, value in (given or {}).items():
            require(
                isinstance(choice, Choice) and choice.over is over.inside,
                f"given of {name} is not allowed: it must name a Choice of {over.inside}",
            )
            self.given[choice] = number(f"value of {name}", value)
            require(
                self.given[choice] in self.law,
                f"given of {name} = {value} is not allowed: it must be a value of its law",
            )

    def require_law(self, value: Callable[[sp.Expr], sp.Expr]) -> None:
        """Raise `TheoryError` unless every probability is in [0, 1]."""
        self._require_probabilities(
            (f"probability of {self.name} = {x}", value(p)) for x, p in self.law.items()
        )


class Sequence(Source):
    """Tokens, each an element of a vocabulary: 1 where a token is that element, and 0 elsewhere.

    Tokens are independent, and within a part of the vocabulary every element is equally likely.
    They carry nothing else: no parameter and no other data may be indexed by them.

    Parameters
    ----------
    name, token, vocabulary
        The letter, as in ``x["i", "k"]``, and two exchangeable sets that lie in no other; the
        vocabulary may be a `Union` of such.
    chance
        ``{part: chance}``, by name, that a token is in a part of a union.
    """

    def __init__(
        self,
        name: str,
        token: Exchangeable,
        vocabulary: IndexSet,
        *,
        chance: Mapping[str, Any] | None = None,
    ) -> None:
        _named(name, (token, vocabulary))
        for what, where in (("token", token), ("vocabulary", vocabulary)):
            require(
                (what == "vocabulary" or isinstance(where, Exchangeable))
                and not where.signed
                and all(part.inside is None for part in where.parts),
                f"{what} of {name} = {where} is not allowed: it must be an exchangeable set that "
                "lies in no other",
            )
        require(
            token not in vocabulary.parts,
            f"{name} over {token} and {vocabulary} is not allowed: tokens and vocabulary must be "
            "two sets",
        )
        parts = {part.name: part for part in vocabulary.parts}
        if chance is None and len(parts) == 1:
            chance = dict.fromkeys(parts, 1)
        require(
            isinstance(chance, Mapping) and set(chance) == set(parts),
            f"chance of {name} = {chance!r} is not allowed: it must have one for each part of its "
            f"vocabulary ({', '.join(parts)})",
        )
        self.chances = {
            parts[part]: number(f"chance of {name}", x) for part, x in (chance or {}).items()
        }
        total = sp.cancel(sp.Add(*self.chances.values()))
        require(total == 1, f"chance of {name} is not allowed: its chances sum to {total}, not 1")
        self.name, self.where = name, here()
        self.over, self.vocabulary, self.size = token, vocabulary, token.size
        self.axes = (token, vocabulary)
        self.require_law(lambda p: p)

    def require_law(self, value: Callable[[sp.Expr], sp.Expr]) -> None:
        """Raise `TheoryError` unless the chance of every part is in [0, 1]."""
        self._require_probabilities(
            (f"chance of {part} in {self.name}", value(p)) for part, p in self.chances.items()
        )


class Gaussian(Source):
    """Independent normal numbers of mean 0, one for each tuple of elements.

    The mean over them is taken exactly, for all sizes, where the loss is a polynomial in them.

    Parameters
    ----------
    name, axes
        The letter, and one index set or several; signed ones are allowed.
    variance
        Of every entry: a number or an expression in sizes and constants; or ``{part: variance}``,
        by name, for every part of the one axis that is a `Union`.
    """

    def __init__(self, name: str, axes: Any = (), *, variance: Any = 1) -> None:
        self.axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
        _named(name, self.axes)
        self.name, self.where = name, here()
        self.by_part: ByPart | None = None
        self.variance = sp.Integer(1)
        if not isinstance(variance, Mapping):
            self.variance = number(f"variance of {name}", variance)
            self.require_law(lambda x: x)
            return
        unions = [where for where in self.axes if isinstance(where, Union)]
        parts = {part.name: part for where in unions for part in where.parts}
        require(
            len(unions) == 1 and set(variance) == set(parts),
            f"variance of {name} = {variance!r} is not allowed: it must be one number, or one for "
            f"each part of its one union ({', '.join(parts) or 'it has none'})",
        )
        table = {
            parts[part]: number(f"variance of {name}", value) for part, value in variance.items()
        }
        self.by_part = ByPart(unions[0], table)
        self.require_law(lambda x: x)

    def require_law(self, value: Callable[[sp.Expr], sp.Expr]) -> None:
        """Raise `TheoryError` unless every variance is positive and finite."""
        for x in map(value, self.variances):
            require(
                bool(x.free_symbols) or bool(x.is_real and x > 0),
                f"variance of {self.name} = {x} is not allowed: it must be positive",
                self.where,
            )

    @property
    def variances(self) -> tuple[sp.Expr, ...]:
        """Every variance that occurs."""
        return (self.variance,) if self.by_part is None else tuple(self.by_part.values.values())

    def variance_at(self, indices: tuple[str, ...]) -> list[Node]:
        """Return the variance of an entry as factors of an expression."""
        if self.by_part is None:
            return [] if self.variance == 1 else [node(self.variance)]
        (over,) = self.by_part.axes
        return [self.by_part.at(indices[self.axes.index(over)])]


class Data(tuple[Source, ...]):
    """The data of a theory: independent sources, each of which may be given an earlier choice."""

    def __new__(cls, *sources: Source) -> Data:
        """Return the sources after a check of each."""
        for source in sources:
            require(
                isinstance(source, Source),
                f"data = {source!r} is not allowed: it must be a Choice, Subset, Colouring, "
                "Sequence or Gaussian",
            )
            for choice in getattr(source, "given", {}):
                require(
                    choice in sources, f"{source.name} is given {choice.name}, which is no data"
                )
        return super().__new__(cls, sources)
