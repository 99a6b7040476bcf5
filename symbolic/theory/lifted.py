"""The lifted reading: one value for each coincidence pattern of an expression's free indices.

On the invariant manifold an entry depends on the pattern of its indices only, so an expression
does, once the data are given up to symmetry (`symbolic.theory.orbit_data`). A sum over an axis is
a sum over the ways in which one index can be added to a pattern: an element in use, a new one of
the same larger element, or one of a new larger element. How many ways there are is a polynomial in
the sizes and in the counts of the data, so that a value holds for all sizes at once.

Softmax is a primitive: a weight is e^(score - top) over the sum of these, ``top`` the largest score
of an element that there is, so that nothing overflows and what is smallest keeps its digits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import sympy as sp
from sympy.core.function import AppliedUndef

from symbolic.theory.expression import FUNCTIONS, Node
from symbolic.theory.orbit_data import Home
from symbolic.theory.patterns import NONE, Key
from symbolic.theory.places import FAMILIES, New, Pattern, places
from symbolic.theory.sets import IndexSet
from symbolic.theory.tensors import Sequence, Tensor

#: Functions without evaluation rules of their own: what is nested stays cheap to build.
OPAQUE: Mapping[str, Callable[[sp.Expr], sp.Expr]] = {name: sp.Function(name) for name in FUNCTIONS}
#: Operations up to which a value is written where it is used, and up to which a sum or product is.
SHORT, LONG = 3, 30
_COSTLY = {*FUNCTIONS, "power", "softmax", "softmax_tangent"}
#: Softmax: e^(score - top); the largest of some scores; a score that a number of elements has: of a
#: sum over families it makes a search for the largest; 1 if two families are the same.
RAISED, TOP, HIGHEST, SAME = map(sp.Function, ("raised", "top", "highest", "same"))
#: Operations up to which a summand is written out to see whether it is a polynomial in the data.
WRITTEN_OUT = 120


@dataclass(frozen=True)
class Step:
    """A named value, a function of families; ``depth`` sums lie within each other in it."""

    families: tuple[sp.Symbol, ...]
    value: sp.Expr
    depth: int


class Lift:
    """Values of expressions at patterns, as SymPy expressions in sizes, data and order parameters.

    Values are named, the same value once (``steps``), so that what is nested does not grow.

    Parameters
    ----------
    homes
        The larger sets.
    entries
        The value of every orbit of every tensor: a symbol, a fixed value or 0.
    """

    def __init__(
        self, homes: tuple[Home, ...], entries: Mapping[tuple[Tensor, Key], sp.Expr]
    ) -> None:
        self.homes, self.entries = homes, entries
        self._known: dict[tuple[Node, Pattern], sp.Expr] = {}
        self._of_softmax: dict[tuple[str, Node, Pattern], sp.Expr] = {}
        self._names: dict[sp.Expr, sp.FunctionClass] = {}
        self.steps: dict[sp.FunctionClass, Step] = {}

    def value(self, x: Node, pattern: Pattern) -> sp.Expr:
        """Return the value of an expression where its free indices lie as in a pattern."""
        pattern, families = pattern.restricted(x.axes).canonical()
        if (x, pattern) not in self._known:
            short = LONG if x.op in ("add", "multiply") else 0 if x.op in _COSTLY else SHORT
            self._known[x, pattern] = self._named(self._value(x, pattern), short)
        return self._known[x, pattern].xreplace(families)

    def _named(self, value: sp.Expr, short: int = SHORT) -> sp.Expr:
        """Return a name for a value, a function of the families that it depends on."""
        if value.is_Atom or value.count_ops() <= short:
            return value
        families = tuple(sorted(value.free_symbols & FAMILIES, key=lambda f: f.name))
        if value not in self._names:
            name = self._names[value] = sp.Function(f"_v{len(self.steps)}")
            self.steps[name] = Step(families, value, self._depth(value))
        return self._names[value](*families)

    def _depth(self, value: sp.Expr) -> int:
        """Return how many sums over families lie within each other in a value."""
        totals = value.atoms(sp.Sum)
        own = max((1 + self._depth(total.function) for total in totals), default=0)
        within = (
            self.steps[x.func].depth for x in value.atoms(AppliedUndef) if x.func in self.steps
        )
        return max(own, *within, 0)

    def _value(self, x: Node, at: Pattern) -> sp.Expr:
        if x.op == "constant":
            return x.detail
        if x.op == "entry":
            return self._entry(x, at)
        if x.op == "orbit":
            return sp.Integer(at.key(x.indices) == x.detail)
        if x.op == "same":
            return sp.Integer(at.element(x.indices[0]) == at.element(x.indices[1]))
        if x.op == "part":
            return x.detail.values[self._part(at, x.indices[0])]
        if x.op == "inside":
            inner, outer = map(at.element, x.indices)
            return sp.Integer(inner.larger == outer.larger and inner.own != NONE)
        if x.op == "sum":
            (body,) = x.arguments
            return self.total(at, x.detail, body.axes[x.detail], lambda p: self.value(body, p))
        if x.op == "softmax":
            return self._raised(x, at) / self._norm(x, at)
        if x.op == "softmax_tangent":
            return self._softmax_tangent(x, at)
        values = [self.value(argument, at) for argument in x.arguments]
        if x.op == "add":
            return sp.Add(*values)
        if x.op == "multiply":
            return sp.Mul(*values)
        if x.op == "power":
            return values[0] ** x.detail
        return OPAQUE[x.op](values[0])

    def _entry(self, x: Node, at: Pattern) -> sp.Expr:
        if isinstance(x.detail, Tensor):
            return self.entries.get((x.detail, at.key(x.indices)), sp.Integer(0))
        element = at.element(x.indices[0])
        if isinstance(x.detail, Sequence):
            return sp.Integer(element.larger == at.element(x.indices[1]).larger)
        home, family = at.larger[element.larger]
        if element.members is None:
            return home.value(x.detail, family)
        kind = element.members.kinds[at.own[element.own][2]]
        return kind[element.members.sources.index(x.detail)]

    def _part(self, at: Pattern, index: str) -> IndexSet:
        """Return the set that an index points into."""
        element = at.element(index)
        part = (
            at.larger[element.larger][0].root if element.members is None else (element.members.part)
        )
        assert part is not None
        return part

    def _raised(self, x: Node, at: Pattern) -> sp.Expr:
        """Return e to the score of a softmax less the largest, where its index points."""
        at, families = at.restricted(x.axes).canonical()
        value = RAISED(self.value(x.arguments[0], at), self._top(x, at))
        return self._named(value, 0).xreplace(families)

    def _top(self, x: Node, at: Pattern) -> sp.Expr:
        """Return the largest score of a softmax."""
        (score,), over = x.arguments, x.detail

        def largest(rest: Pattern) -> sp.Expr:
            scores = []
            for some in places(self.homes, rest, over, score.axes[over]):
                for number, value in some.each(partial(self.value, score)):
                    if some.new is None:
                        scores.append(HIGHEST(number, value))
                    elif number.has(some.new.family) or value.has(some.new.family):
                        scores.append(self._loop(some.new, HIGHEST(number, value)))
                    else:
                        scores.append(HIGHEST(some.new.number * number, value))
            return self._named(TOP(*dict.fromkeys(scores)), 0)

        return self._kept("top", x, at, largest)

    def _norm(self, x: Node, at: Pattern) -> sp.Expr:
        """Return what the weights of a softmax are divided by."""
        (score,), over = x.arguments, x.detail

        def sum_of_all(rest: Pattern) -> sp.Expr:
            body = partial(self._raised, x)
            return self._named(self.total(rest, over, score.axes[over], body))

        return self._kept("norm", x, at, sum_of_all)

    def _kept(self, what: str, x: Node, at: Pattern, make: Callable[[Pattern], sp.Expr]) -> sp.Expr:
        """Return what belongs to all weights of a softmax at once, made once for each pattern."""
        others = {name: where for name, where in x.axes.items() if name != x.detail}
        rest, families = at.restricted(others).canonical()
        if (what, x, rest) not in self._of_softmax:
            self._of_softmax[what, x, rest] = make(rest)
        return self._of_softmax[what, x, rest].xreplace(families)

    def _softmax_tangent(self, x: Node, at: Pattern) -> sp.Expr:
        """Return p_j sum_k p_k (x_j' - x_k')."""
        (weights, slope), over = x.arguments, x.detail
        here, other = self.value(slope, at), f"other {over}"

        def term(p: Pattern) -> sp.Expr:
            moved = p.pointing(over, p.element(other))
            difference = here - self.value(slope, moved)
            return difference * self.value(weights, moved) if difference != 0 else sp.Integer(0)

        total = self.total(at, other, x.axes[over], term)
        return self.value(weights, at) * total

    def total(
        self, at: Pattern, index: str, where: IndexSet, body: Callable[[Pattern], sp.Expr]
    ) -> sp.Expr:
        """Return the sum of a body over all elements that an index can point to."""
        terms: list[sp.Expr] = []
        for some in places(self.homes, at, index, where):
            one = _collected(some.each(body))
            terms.append(one if some.new is None else self._over_all(some.new, one))
        return self._factored(sp.Add(*terms))

    def _factored(self, value: sp.Expr) -> sp.Expr:
        """Return a sum less the factors that all terms have, named, times these factors."""
        terms = sp.Add.make_args(value)
        shared = set.intersection(*(set(sp.Mul.make_args(term)) for term in terms))
        common = [x for x in sp.Mul.make_args(terms[0]) if x in shared and not x.is_number]
        if len(terms) == 1 or not common:
            return value
        factor = sp.Mul(*common)
        return sp.Mul(factor, self._named(sp.Add(*(term / factor for term in terms))))

    def _over_all(self, new: New, value: sp.Expr) -> sp.Expr:
        """Return the sum of a value over all larger elements but those in use.

        What is a polynomial in the data is summed over all of them: a sum of data is exact, so that
        those in use can be taken away. Else nothing is taken away that would have to cancel.
        """
        if not value.has(new.family):
            return new.number * value
        sums = self._polynomials(value, new.family) if new.used else None
        if sums is None:
            return self._loop(new, value)
        return sp.Add(
            *(
                factor
                * sp.Add(
                    self._loop(replace(new, used=()), data),
                    *(-data.xreplace({new.family: used}) for used in new.used),
                )
                for factor, data in sums.items()
            )
        )

    def _loop(self, new: New, value: sp.Expr) -> sp.Expr:
        """Return the sum over families of larger elements, or the largest of them.

        The family is named by the number of sums below, so that no name is ever caught.
        """
        copies = new.home.copies(new.family) - sp.Add(*(SAME(new.family, x) for x in new.used))
        if value.func is HIGHEST:
            summand = HIGHEST(copies * value.args[0], value.args[1])
        else:
            summand = copies * value
        bound = sp.Symbol(f"b_{self._depth(summand)}", integer=True)
        summand = summand.xreplace({new.family: bound})
        return sp.Sum(summand, (bound, 0, new.home.families - 1))

    def _polynomials(self, value: sp.Expr, family: sp.Symbol) -> dict[sp.Expr, sp.Expr] | None:
        """Return polynomials in the data of a family by what they are multiplied with.

        ``None`` if the value is no sum of such products.
        """
        plain = self._written_out(value, family)
        if plain.count_ops() > WRITTEN_OUT:
            return None
        found: dict[sp.Expr, sp.Expr] = {}
        for term in sp.Add.make_args(sp.expand(plain)):
            rest, own = term.as_independent(family, as_Add=False)
            if not all(
                isinstance(x.as_base_exp()[0], sp.Indexed) for x in sp.Mul.make_args(own) if x != 1
            ):
                return None
            number, factor = rest.as_coeff_Mul()
            found[factor] = found.get(factor, sp.Integer(0)) + number * own
        return found

    def _written_out(self, value: sp.Expr, family: sp.Symbol) -> sp.Expr:
        """Return a value without names that depend on a family."""
        named = [x for x in value.atoms(AppliedUndef) if x.func in self.steps and x.has(family)]
        while named:
            contents = {}
            for x in named:
                step = self.steps[x.func]
                contents[x] = step.value.xreplace(dict(zip(step.families, x.args)))
            value = value.xreplace(contents)
            if value.count_ops() > WRITTEN_OUT:
                break
            named = [x for x in value.atoms(AppliedUndef) if x.func in self.steps and x.has(family)]
        return value


def _collected(pairs: list[tuple[sp.Expr, sp.Expr]]) -> sp.Expr:
    """Return the sum of numbers times values, the numbers of values that differ in sign together.

    The numbers are whole, so that what cancels among them cancels exactly.
    """
    numbers: dict[sp.Expr, sp.Expr] = {}
    for number, value in pairs:
        sign, rest = value.as_coeff_Mul()
        if rest.could_extract_minus_sign():
            sign, rest = -sign, -rest
        numbers[rest] = numbers.get(rest, sp.Integer(0)) + sign * number
    return sp.Add(*(rest * number for rest, number in numbers.items()))
