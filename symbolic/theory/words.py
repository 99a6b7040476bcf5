"""Sequences of data: joint laws of tokens at ordered positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import sympy as sp

from symbolic.theory.errors import calling_line, require, short_repr
from symbolic.theory.numbers import text_of
from symbolic.theory.sets import Exchangeable, Ordered
from symbolic.theory.sources import Source
from symbolic.theory.tensors import check_name_and_axes, number

_LAWS = "iid(), polya(alpha), chain(stay) or tree(parent, alpha)"


@dataclass(frozen=True)
class JointLaw:
    """Probability of a sequence, which depends only on which of its tokens are equal.

    Attributes
    ----------
    name
        ``"iid"``; ``"stay"``, a Markov chain; ``"polya"``, a random transition matrix.
    number
        Probability to repeat the parent (stay), or concentration alpha (polya).
    parent
        Parent of each position, ``None`` for a root; ``None`` instead of a tuple if each position
        follows the position before it.
    """

    name: str
    number: sp.Expr
    parent: tuple[int | None, ...] | None = None


def iid() -> JointLaw:
    """Return the law of independent tokens, each uniform in the vocabulary."""
    return JointLaw("iid", sp.Integer(1))


def polya(alpha: Any = 1, *, first: str = "uniform") -> JointLaw:
    """Return the law of a Markov chain whose transition matrix is random.

    The rows of the matrix are independent Dirichlet(alpha, ..., alpha) variables, new ones for
    every sequence. The probability of a transition from a to b after n_ab such transitions, n_a
    from a in all, is (n_ab + alpha) / (n_a + S alpha).

    Parameters
    ----------
    alpha
        Concentration: a positive number or an expression in sizes and constants.
    first
        ``"uniform"``: the law of the first token. A random chain has no other one in closed form.
    """
    return tree(None, alpha, first=first)


def chain(stay: Any) -> JointLaw:
    """Return the law of a Markov chain that repeats a token or moves to any other one.

    Parameters
    ----------
    stay
        Probability to repeat a token; the other tokens are equally likely.
    """
    return JointLaw("stay", number("stay", stay))


def tree(parent: Any, alpha: Any = 1, *, first: str = "uniform") -> JointLaw:
    """Return the law of tokens that are drawn given an earlier one by a random transition matrix.

    Parameters
    ----------
    parent
        For each position the number of an earlier one, or ``None`` for a root, uniform in the
        vocabulary.
    alpha
        Concentration of the rows of the matrix, see `polya`.
    first
        Law of the roots, see `polya`.

    Raises
    ------
    TheoryError
        If an argument is not allowed.
    """
    require(
        first == "uniform",
        f"first = {short_repr(first)} is not allowed: the first token of a random chain is "
        "uniform, because the mean of its stationary law over random chains has no closed form",
    )
    require(
        not isinstance(alpha, (list, tuple, dict)),
        f"alpha = {short_repr(alpha)} is not allowed: unequal priors depend on the names of "
        "tokens, which the symmetry exchanges; give one number",
    )
    if parent is None:
        return JointLaw("polya", number("alpha", alpha))
    require(
        isinstance(parent, (list, tuple))
        and all(
            x is None or (isinstance(x, int) and not isinstance(x, bool) and 0 <= x < t)
            for t, x in enumerate(parent)
        ),
        f"parent = {short_repr(parent)} is not allowed: it must be, for each position, an earlier "
        "position or None",
    )
    return JointLaw("polya", number("alpha", alpha), tuple(parent))


class Joint(Source):
    """Base class of sequences with a joint law."""

    over: Ordered
    numbers: tuple[sp.Expr, ...]


class Words(Joint):
    """One-hot tokens at ordered positions: ``x["t", "k"]`` is 1 if token t is k, else 0.

    The probability of a sequence depends only on which of its tokens are equal.

    Parameters
    ----------
    name
        The letter.
    position
        Ordered set.
    token
        Exchangeable set, the vocabulary, not inside another set.
    law
        `iid`, `polya`, `chain` or `tree`.

    Raises
    ------
    TheoryError
        If an argument is not allowed.

    Examples
    --------
    >>> from symbolic.theory import Exchangeable, Ordered, Size, Words, polya
    >>> token = Exchangeable("token", Size("S", least=2))
    >>> x = Words("x", Ordered("position", 4), token, polya(1))
    """

    def __init__(self, name: str, position: Ordered, token: Exchangeable, law: JointLaw) -> None:
        check_name_and_axes(name, (position, token))
        _require_ordered(name, position)
        require(
            isinstance(token, Exchangeable)
            and not isinstance(token, Ordered)
            and not token.signed
            and token.inside is None,
            f"token of {name} = {token} is not allowed: it must be an exchangeable set that lies "
            "in no other",
        )
        require(
            isinstance(law, JointLaw),
            f"law of {name} = {short_repr(law)} is not allowed: it must be {_LAWS}, which do not "
            "depend on the names of tokens",
        )
        require(
            law.parent is None or len(law.parent) == position.count,
            f"law of {name}: {len(law.parent or ())} parents are not allowed: there must be one "
            f"for each of the {position.count} elements of {position}",
        )
        self.name, self.location, self.over = name, calling_line(), position
        self.axes, self.joint, self.numbers = (position, token), law, (law.number,)
        self.token = token
        self.require_law(lambda x: x)

    @property
    def parent(self) -> tuple[int | None, ...]:
        """Parent of each position, ``None`` for a root."""
        if self.joint.parent is not None:
            return self.joint.parent
        return (None, *range(int(self.over.count) - 1))

    def require_law(self, value: Callable[[sp.Expr], sp.Expr]) -> None:
        """Raise `TheoryError` unless the number of the law is allowed."""
        x = value(self.joint.number)
        if x.free_symbols:
            return
        if self.joint.name == "stay":
            self._require_probabilities([(f"stay of {self.name}", x)])
        require(
            self.joint.name != "polya" or bool(x.is_real and x > 0),
            f"alpha of {self.name} = {text_of(x)} is not allowed: it must be positive",
            self.location,
        )


class Chain(Joint):
    """A Markov chain of two different states: ``x["t"]`` is 0 or 1, stationary from the start.

    Parameters
    ----------
    name
        The letter.
    position
        Ordered set.
    p, q
        Probabilities of the transitions from 0 to 1 and from 1 to 0: numbers in (0, 1] or
        expressions in sizes and constants.

    Raises
    ------
    TheoryError
        If an argument is not allowed.

    Examples
    --------
    >>> from symbolic.theory import Chain, Ordered, constants
    >>> p, q = constants(p="in (0, 1)", q="in (0, 1)")
    >>> x = Chain("x", Ordered("position", 4), p, q)
    """

    def __init__(self, name: str, position: Ordered, p: Any, q: Any) -> None:
        check_name_and_axes(name, (position,))
        _require_ordered(name, position)
        self.name, self.location, self.over = name, calling_line(), position
        self.axes = (position,)
        self.numbers = number(f"p of {name}", p), number(f"q of {name}", q)
        self.require_law(lambda x: x)

    def require_law(self, value: Callable[[sp.Expr], sp.Expr]) -> None:
        """Raise `TheoryError` unless both probabilities are in (0, 1]."""
        values = [(f"{x} of {self.name}", value(y)) for x, y in zip("pq", self.numbers)]
        self._require_probabilities(values)
        self._require_positive(values)

    def _require_positive(self, values: Iterable[tuple[str, sp.Expr]]) -> None:
        """Raise `TheoryError` if a probability is 0."""
        for text, x in values:
            require(
                bool(x.free_symbols) or x != 0,
                f"{text} = 0 is not allowed: it must be positive, so that there is one stationary "
                "law",
                self.location,
            )


def _require_ordered(name: str, position: Any) -> None:
    """Raise `TheoryError` unless an index set is ordered."""
    require(
        isinstance(position, Ordered),
        f"position of {name} = {short_repr(position)} is not allowed: it must be an ordered set",
    )
