"""Random data: the distributions that the language of theories has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sympy as sp

from symbolic.theory.errors import calling_line, require
from symbolic.theory.expression import Array, Node, node
from symbolic.theory.sets import Exchangeable, IndexSet, Union
from symbolic.theory.tensors import check_name_and_axes, number


class ByPart(Array):
    """One number for each part of a union, such as a learning signal of two groups of coordinates.

    Parameters
    ----------
    over
        The union that the index runs over.
    values
        Mapping from the name of each part to a number, or an expression in sizes and constants.

    Raises
    ------
    TheoryError
        If a part has no number, or another name has one.

    Examples
    --------
    >>> from symbolic.theory import ByPart, Exchangeable, Size, Union, constants
    >>> a, b = constants(a="> 0", b="> 0")
    >>> word = Union("word", Exchangeable("common", Size("m")), Exchangeable("rare", Size("n")))
    >>> scale = ByPart(word, {"common": a, "rare": b})["i"]
    """

    op = "part"

    def __init__(self, over: Union, values: Mapping[str, Any]) -> None:
        parts = {part.name: part for part in over.parts} if isinstance(over, Union) else {}
        require(
            isinstance(values, Mapping) and bool(parts) and set(values) == set(parts),
            f"ByPart({over}, {values}) is not allowed: it must have one number for each part of a "
            f"union ({', '.join(parts) or 'it has none'})",
        )
        self.name, self.axes = f"ByPart({over})", (over,)
        self.values = {
            parts[part]: number(f"number of {part}", value) for part, value in values.items()
        }

    def __getitem__(self, indices: Any) -> Node:
        x = super().__getitem__(indices)
        x.odd = frozenset()  # a sign change of a coordinate does not change the number
        return x


def _at(numbers: ByPart, index: str) -> Node:
    """Return a number of each part at an index, which need not be a name."""
    return Node("part", (), numbers, (index,), {index: numbers.axes[0]})


class Source(Array):
    """Random data with one value for each element of an index set."""

    over: Any

    def require_law(self, value: Callable[[sp.Expr], sp.Expr]) -> None:
        """Raise `TheoryError` unless the distribution is allowed.

        Parameters
        ----------
        value
            Substitutes sizes and constants in an expression. Expressions that still contain symbols
            afterwards are not checked.
        """
        raise NotImplementedError

    def _require_probabilities(self, probabilities: Iterable[tuple[str, sp.Expr]]) -> None:
        for description, x in probabilities:
            require(
                bool(x.free_symbols) or bool(x.is_extended_real and 0 <= x <= 1),
                f"{description} = {x} is not allowed: it must be in [0, 1]",
                self.location,
            )

    def _set_axis(self, name: str, over: IndexSet) -> None:
        check_name_and_axes(name, (over,))
        signed = any(part.signed for part in over.parts)
        require(not signed, f"{name} over {over} is not allowed: a signed set carries no data")
        self.name, self.over, self.axes, self.location = name, over, (over,), calling_line()


class Subset(Source):
    """Indicator of a uniformly random subset: 1 on ``size`` elements of a set, 0 elsewhere.

    Parameters
    ----------
    name
        The letter.
    over
        Index set, not signed.
    size
        Number of elements: an integer, a `Size` or an expression.

    Examples
    --------
    >>> from symbolic.theory import Exchangeable, Size, Subset
    >>> D = Size("D")
    >>> token = Exchangeable("token", D)
    >>> s = Subset("s", token, D / 2)
    """

    def __init__(self, name: str, over: IndexSet, size: Any) -> None:
        self._set_axis(name, over)
        self.size = number(f"size of {name}", size)

    def require_law(self, value: Callable[[sp.Expr], sp.Expr]) -> None:
        """Raise `TheoryError` unless the size is an integer from 0 to that of the set."""
        of, size = value(self.over.count), value(self.size)
        require(
            bool(size.is_integer and 0 <= size <= of),
            f"{self.name} has {self.size} = {size} of {of} elements: it must be a whole number, "
            "at most all of them",
            self.location,
        )


class Choice(Subset):
    """Indicator of a uniformly random element: 1 on this element of a set, 0 elsewhere.

    Parameters
    ----------
    name
        The letter.
    over
        Index set, not signed.

    Examples
    --------
    >>> from symbolic.theory import Choice, Exchangeable, Size
    >>> query = Choice("query", Exchangeable("feature", Size("K")))
    """

    def __init__(self, name: str, over: IndexSet) -> None:
        super().__init__(name, over, 1)


class Colouring(Source):
    """Independent, identically distributed discrete values of the elements of a set.

    Parameters
    ----------
    name
        The letter.
    over
        Exchangeable set.
    law
        Mapping from values to their probabilities, which sum to 1.
    given
        Mapping from a `Choice` of the outer set to a value: elements inside the chosen outer
        element have this value.

    Raises
    ------
    TheoryError
        If an argument is not allowed.

    Examples
    --------
    Noise on the patches, and a label on the patches of one area:

    >>> from symbolic.theory import Choice, Colouring, Exchangeable, Size, constants
    >>> (q,) = constants(q="in (0, 1]")
    >>> area = Exchangeable("area", Size("L"))
    >>> patch = Exchangeable("patch", Size("C"), inside=area)
    >>> signal = Choice("signal", area)
    >>> x = Colouring("x", patch, {1: q / 2, -1: q / 2, 0: 1 - q}, given={signal: 1})
    """

    def __init__(
        self,
        name: str,
        over: Exchangeable,
        law: Mapping[Any, Any],
        *,
        given: Mapping[Choice, Any] | None = None,
    ) -> None:
        self._set_axis(name, over)
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
    """One-hot tokens: ``x["i", "k"]`` is 1 if token i is element k of the vocabulary, else 0.

    Tokens are independent. Within a part of the vocabulary all elements are equally likely. No
    parameter and no other data can be indexed by the tokens.

    Parameters
    ----------
    name
        The letter.
    token
        Exchangeable set of the tokens, not inside another set.
    vocabulary
        Exchangeable set that is not inside another one, or a `Union` of such sets.
    probabilities
        Mapping from the name of each part of the vocabulary to the probability that a token is in
        this part; not needed if there is one part.
    chance
        Former name of ``probabilities``.

    Raises
    ------
    TheoryError
        If an argument is not allowed.

    Examples
    --------
    >>> from symbolic.theory import Exchangeable, Sequence, Size, Union, constants
    >>> (p,) = constants(p="in (0, 1)")
    >>> word = Union("word", Exchangeable("common", 1), Exchangeable("rare", Size("K")))
    >>> token = Exchangeable("token", Size("N"))
    >>> x = Sequence("x", token, word, probabilities={"common": p, "rare": 1 - p})
    """

    def __init__(
        self,
        name: str,
        token: Exchangeable,
        vocabulary: IndexSet,
        *,
        probabilities: Mapping[str, Any] | None = None,
        chance: Mapping[str, Any] | None = None,
    ) -> None:
        probabilities = chance if probabilities is None else probabilities
        check_name_and_axes(name, (token, vocabulary))
        for role, index_set in (("token", token), ("vocabulary", vocabulary)):
            require(
                (role == "vocabulary" or isinstance(index_set, Exchangeable))
                and not index_set.signed
                and all(part.inside is None for part in index_set.parts),
                f"{role} of {name} = {index_set} is not allowed: it must be an exchangeable set "
                "that lies in no other",
            )
        require(
            token not in vocabulary.parts,
            f"{name} over {token} and {vocabulary} is not allowed: tokens and vocabulary must be "
            "two sets",
        )
        parts = {part.name: part for part in vocabulary.parts}
        if probabilities is None and len(parts) == 1:
            probabilities = dict.fromkeys(parts, 1)
        require(
            isinstance(probabilities, Mapping) and set(probabilities) == set(parts),
            f"probabilities of {name} = {probabilities!r} is not allowed: there must be one for "
            f"each part of its vocabulary ({', '.join(parts)})",
        )
        self.probabilities = {
            parts[part]: number(f"probability in {name}", x)
            for part, x in (probabilities or {}).items()
        }
        total = sp.cancel(sp.Add(*self.probabilities.values()))
        require(
            total == 1,
            f"probabilities of {name} is not allowed: they sum to {total}, not 1",
        )
        self.name, self.location = name, calling_line()
        self.over, self.vocabulary, self.size = token, vocabulary, token.size
        self.axes = (token, vocabulary)
        self.require_law(lambda p: p)

    def require_law(self, value: Callable[[sp.Expr], sp.Expr]) -> None:
        """Raise `TheoryError` unless the probability of every part is in [0, 1]."""
        self._require_probabilities(
            (f"probability of {part} in {self.name}", value(p))
            for part, p in self.probabilities.items()
        )


class Gaussian(Source):
    """Independent normal entries of mean 0.

    The loss must be a polynomial in them. Its mean over them is computed exactly for all sizes by
    Wick's theorem (`symbolic.theory.wick`).

    Parameters
    ----------
    name
        The letter.
    axes
        One index set or a tuple of them, signed or not.
    variance
        Variance of every entry: a number or an expression in sizes and constants; or a mapping from
        the name of each part of the one axis that is a `Union` to a variance.

    Raises
    ------
    TheoryError
        If an argument is not allowed.

    Examples
    --------
    >>> from symbolic.theory import Exchangeable, Gaussian, Signed, Size
    >>> pair = Exchangeable("pair", Size("N"))
    >>> coordinate = Signed("coordinate", Size("n"))
    >>> x = Gaussian("x", (pair, coordinate), variance=2)
    """

    def __init__(self, name: str, axes: Any = (), *, variance: Any = 1) -> None:
        self.axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
        check_name_and_axes(name, self.axes)
        self.name, self.location = name, calling_line()
        self.by_part: ByPart | None = None
        self.variance = sp.Integer(1)
        if not isinstance(variance, Mapping):
            self.variance = number(f"variance of {name}", variance)
            self.require_law(lambda x: x)
            return
        unions = [index_set for index_set in self.axes if isinstance(index_set, Union)]
        parts = {part.name: part for index_set in unions for part in index_set.parts}
        require(
            len(unions) == 1 and set(variance) == set(parts),
            f"variance of {name} = {variance!r} is not allowed: it must be one number, or one for "
            f"each part of its one union ({', '.join(parts) or 'it has none'})",
        )
        self.by_part = ByPart(unions[0], variance)
        self.require_law(lambda x: x)

    def require_law(self, value: Callable[[sp.Expr], sp.Expr]) -> None:
        """Raise `TheoryError` unless every variance is positive and finite."""
        for x in map(value, self.variances):
            require(
                bool(x.free_symbols) or bool(x.is_real and x > 0),
                f"variance of {self.name} = {x} is not allowed: it must be positive",
                self.location,
            )

    @property
    def variances(self) -> tuple[sp.Expr, ...]:
        """All variances of entries."""
        return (self.variance,) if self.by_part is None else tuple(self.by_part.values.values())

    def variance_at(self, indices: tuple[str, ...]) -> list[Node]:
        """Return the variance of an entry as a list of factors, empty if it is 1."""
        if self.by_part is None:
            return [] if self.variance == 1 else [node(self.variance)]
        (over,) = self.by_part.axes
        return [_at(self.by_part, indices[self.axes.index(over)])]


class Data(tuple[Source, ...]):
    """The data of a theory: a tuple of independent sources.

    Parameters
    ----------
    *sources
        Each a `Choice`, `Subset`, `Colouring`, `Sequence`, `Gaussian`, `Words` or `Chain`. A
        colouring may depend on a choice (``given``) that is itself a source.

    Raises
    ------
    TheoryError
        If a source has another type, or depends on a choice that is not a source.
    """

    def __new__(cls, *sources: Source) -> Data:
        """Return the validated sources."""
        for source in sources:
            require(
                isinstance(source, Source),
                f"data = {source!r} is not allowed: it must be a Choice, Subset, Colouring, "
                "Sequence, Gaussian, Words or Chain",
            )
            for choice in getattr(source, "given", {}):
                require(
                    choice in sources, f"{source.name} is given {choice.name}, which is no data"
                )
        return super().__new__(cls, sources)
