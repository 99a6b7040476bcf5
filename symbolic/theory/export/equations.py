"""Readable form of the derived equations: sums over elements, named subexpressions.

`symbolic.theory.reduced.Reduced` names every intermediate value and sums over families of equal
elements. `equations` inlines values that are short or used once, cancels sizes, and omits the
largest score, which softmax subtracts to avoid overflow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.core.function import AppliedUndef

from symbolic.theory.lifted import OPAQUE, RAISED, SAME, SHIFTED_LOG, Step
from symbolic.theory.sharing import of_data

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Largest number of operations of an inlined value, and of one that is used once.
_SHORT, _USED_ONCE = 3, 12
#: Summands with more operations are named.
_LONG_SUMMAND = 30


@dataclass(frozen=True)
class Definition:
    """A named value: a symbol, or a function of the elements that it depends on."""

    name: sp.Expr
    value: sp.Expr


@dataclass(frozen=True)
class Equations:
    """Risk and gradient per entry of a theory, for all sizes.

    Attributes
    ----------
    definitions
        Named values, each before its first use.
    loss, gradient
        The loss of one configuration of the data, and its derivative in one entry of each order
        parameter; the risk is the mean over the data.
    """

    definitions: tuple[Definition, ...]
    loss: sp.Expr
    gradient: Mapping[str, sp.Expr]


def equations(theory: Theory) -> Equations:
    """Return the equations of a theory.

    Raises
    ------
    TheoryError
        If they cannot be derived.
    """
    reduced = theory.reduced
    sizes = {sp.Symbol(size.name) for size in theory.sizes}
    outputs = [reduced.loss, *reduced.gradient.values()]
    taken = {str(x) for x in (*theory.order_parameters, *theory.free_constants, *sizes)}
    reader = _Reader(reduced.steps, sizes, outputs, taken)
    loss, *slopes = (reader.value(x) for x in outputs)
    return Equations(tuple(reader.definitions), loss, dict(zip(reduced.gradient, slopes)))


class _Reader:
    """Inline short values, and name long ones that are used more than once."""

    def __init__(
        self,
        steps: Mapping[Any, Step],
        sizes: set[sp.Symbol],
        outputs: list[sp.Expr],
        taken: set[str],
    ) -> None:
        self._steps, self._sizes, self._taken = steps, sizes, taken
        self._uses = Counter(_uses(steps, outputs))
        self._written: dict[Any, sp.Expr] = {}
        self._known: dict[sp.Expr, sp.Expr] = {}
        self.definitions: list[Definition] = []

    def value(self, x: sp.Expr) -> sp.Expr:
        """Return an expression whose steps are inlined or replaced by names."""
        x = x.replace(lambda y: y.func is RAISED, lambda y: sp.exp(y.args[0]))
        x = x.replace(lambda y: y.func is SHIFTED_LOG, lambda y: OPAQUE["log"](y.args[0]))
        used = sorted((y for y in x.atoms(AppliedUndef) if y.func in self._steps), key=self._order)
        x = x.xreplace({y: self._step(y) for y in used})
        known = {OPAQUE[name]: getattr(sp, name) for name in ("exp", "log", "tanh")}
        x = x.replace(lambda y: y.func in known, lambda y: known[y.func](*y.args))
        return self._summands(self._tidy(x))

    def _order(self, x: sp.Expr) -> int:
        return int(x.func.__name__[2:])

    def _step(self, x: sp.Expr) -> sp.Expr:
        """Return a step at its families, inlined or as a name."""
        step = self._steps[x.func]
        if x.func not in self._written:
            value = self.value(step.value)
            operations = value.count_ops()
            once = operations <= _USED_ONCE and self._uses[x.func] == 1
            if self._is_weight(step.value):
                value = self._name(value, step.families, "p")
            elif operations > _SHORT and not once:
                value = self._name(value, step.families)
            self._written[x.func] = value
        return self._written[x.func].xreplace(dict(zip(step.families, x.args)))

    def _is_weight(self, value: sp.Expr) -> bool:
        """Return whether a value is a weight of a softmax."""
        number, over = value.as_numer_denom()
        step = self._steps.get(number.func)
        return step is not None and step.value.func is RAISED and over != 1

    def _name(self, value: sp.Expr, families: tuple[sp.Symbol, ...], letter: str = "") -> sp.Expr:
        """Return a name for a value up to sign, times the sign; equal values share a name."""
        sign = -1 if value.could_extract_minus_sign() else 1
        value = sign * value
        if value not in self._known:
            letter = letter or ("u" if families else "a")
            numbered = (f"{letter}{number}" for number in count(1))
            text = next(name for name in numbered if name not in self._taken)
            self._taken.add(text)
            self._known[value] = sp.Function(text)(*families) if families else sp.Symbol(text)
            self.definitions.append(Definition(self._known[value], value))
        return sign * self._known[value]

    def _summands(self, x: sp.Expr) -> sp.Expr:
        """Name long summands, and sums that depend on the data only."""
        if not x.args or not x.has(sp.Sum):
            return x
        if not isinstance(x, sp.Sum):
            return x.func(*map(self._summands, x.args))
        if of_data(x.function, x.limits[0][0]):
            number, summand = x.function.as_coeff_Mul()
            return number * self._name(sp.Sum(summand, x.limits[0]), ())
        copies, rest = parted(x)
        number, rest = self._summands(rest).as_coeff_Mul()
        if rest.count_ops() > _LONG_SUMMAND:
            rest = self._name(rest, tuple(sorted(filter(is_family, rest.free_symbols), key=str)))
        return number * sp.Sum(copies * rest, x.limits[0])

    def _tidy(self, x: sp.Expr) -> sp.Expr:
        """Return an expression whose factors that depend on sizes only are in lowest terms."""
        if not x.args or isinstance(x, sp.Indexed):
            return x
        if x.free_symbols and x.free_symbols <= self._sizes:
            return sp.factor(sp.cancel(x)) if x.is_rational_function() else x
        if isinstance(x, sp.Sum):
            return sp.Sum(self._tidy(x.function), *x.limits)
        if x.is_Mul:
            sizes = [y for y in x.args if y.free_symbols <= self._sizes]
            sizes = [y for y in sizes if y.is_rational_function()]
            rest = [self._tidy(y) for y in x.args if y not in sizes]
            return sp.Mul(sp.factor(sp.cancel(sp.Mul(*sizes))), *rest)
        return x.func(*map(self._tidy, x.args))


def parted(total: sp.Sum) -> tuple[sp.Expr, sp.Expr]:
    """Return the number of unused elements of the family of a sum, and the summand."""
    bound = total.limits[0][0]
    factors = sp.Mul.make_args(total.function)
    copies = [x for x in factors if _counts(x, bound)]
    assert len(copies) == 1, "a sum over families has one factor that counts elements"
    return copies[0], sp.Mul(*(x for x in factors if x not in copies))


def _counts(x: sp.Expr, family: sp.Symbol) -> bool:
    """Return whether an expression is the number of unused elements of a family."""
    terms = [y for y in sp.Add.make_args(x) if (-y).func is not SAME]
    return (
        len(terms) == 1
        and isinstance(terms[0], sp.Indexed)
        and str(terms[0].base).startswith("count_")
        and terms[0].indices == (family,)
    )


def is_family(x: sp.Symbol) -> bool:
    """Return whether a symbol is a family of elements, free or summed over."""
    return bool(x.is_integer) and x.name[:2] in ("f_", "b_")


def _uses(steps: Mapping[Any, Step], outputs: list[sp.Expr]) -> Iterator[Any]:
    """Yield the name of a step for each use."""
    for x in (*outputs, *(step.value for step in steps.values())):
        for y in sp.preorder_traversal(x):
            if isinstance(y, AppliedUndef) and y.func in steps:
                yield y.func
