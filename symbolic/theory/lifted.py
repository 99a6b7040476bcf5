"""Lifted evaluation: one value per coincidence pattern of the free indices of an expression.

On the invariant manifold, entries and hence expressions depend only on the pattern of their
indices, for data given up to symmetry (`symbolic.theory.orbit_data`). A sum over an axis is a sum
over the extensions of the pattern by one index: an element in use, a new element of an outer
element in use, or an element of a new outer element. Their numbers are polynomials in the sizes and
in the counts of the data, so that values are valid for all sizes.

Softmax weights are evaluated as e^(score - top) divided by their sum, where ``top`` is the largest
score. This avoids overflow and preserves the relative accuracy of small weights.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import sympy as sp
from sympy.core.function import AppliedUndef

from symbolic.theory.expression import FUNCTIONS, Node
from symbolic.theory.orbit_data import OuterSet
from symbolic.theory.orbits import NONE, Key
from symbolic.theory.patterns import FAMILIES, New, Pattern, extensions
from symbolic.theory.sets import IndexSet
from symbolic.theory.sources import Sequence
from symbolic.theory.tensors import Tensor

#: Undefined functions: SymPy applies no evaluation rules, so nested expressions are cheap to build.
OPAQUE: Mapping[str, Callable[[sp.Expr], sp.Expr]] = {name: sp.Function(name) for name in FUNCTIONS}
#: Values of at most SHORT operations get no name, nor do sums and products of at most LONG.
SHORT, LONG = 3, 30
_COSTLY = {*FUNCTIONS, "power", "softmax", "softmax_tangent", "logsumexp"}
#: RAISED(score, top) is e^(score - top); TOP(...) is the largest of some scores;
#: HIGHEST(number, score) is a score that counts only if number > 0, and a sum over families of it
#: is a maximum; SAME(f, g) is 1 if two families are equal, else 0; SHIFTED_LOG(norm, top) is
#: top + log(norm), for a norm of exponentials relative to the top.
RAISED, TOP, HIGHEST, SAME, SHIFTED_LOG = map(
    sp.Function, ("raised", "top", "highest", "same", "shifted_log")
)
#: Limit of the operations of a summand that is expanded to test for a polynomial in the data.
WRITTEN_OUT = 120


@dataclass(frozen=True)
class Step:
    """A named intermediate value.

    Attributes
    ----------
    families
        Symbols of the families that it depends on.
    value
        Its definition.
    depth
        Number of nested sums over families in it.
    """

    families: tuple[sp.Symbol, ...]
    value: sp.Expr
    depth: int


class Lift:
    """Evaluate expressions at patterns, in terms of sizes, data and order parameters.

    Equal intermediate values get one name, so that nested expressions stay small.

    Parameters
    ----------
    outer_sets
        Outer sets of the theory.
    entries
        Mapping from tensor and orbit to the value of the entries, a symbol or a fixed value.
        Entries of other orbits are 0.

    Attributes
    ----------
    steps
        Mapping from names (SymPy functions of families) to their definitions.
    """

    def __init__(
        self, outer_sets: tuple[OuterSet, ...], entries: Mapping[tuple[Tensor, Key], sp.Expr]
    ) -> None:
        self.outer_sets, self.entries = outer_sets, entries
        self._known: dict[tuple[Node, Pattern], sp.Expr] = {}
        self._of_softmax: dict[tuple[str, Node, Pattern], sp.Expr] = {}
        self._weights: dict[Node, Node] = {}
        self._names: dict[sp.Expr, sp.FunctionClass] = {}
        self.steps: dict[sp.FunctionClass, Step] = {}

    def value(self, x: Node, pattern: Pattern) -> sp.Expr:
        """Return the value of an expression at a pattern of its free indices."""
        pattern, families = pattern.restricted(x.axes).canonical()
        if (x, pattern) not in self._known:
            short = LONG if x.op in ("add", "multiply") else 0 if x.op in _COSTLY else SHORT
            self._known[x, pattern] = self._named(self._value(x, pattern), short)
        return self._known[x, pattern].xreplace(families)

    def _named(self, value: sp.Expr, short: int = SHORT) -> sp.Expr:
        """Return a name for a value of more than ``short`` operations, else the value."""
        if value.is_Atom or value.count_ops() <= short:
            return value
        families = tuple(sorted(value.free_symbols & FAMILIES, key=lambda f: f.name))
        if value not in self._names:
            name = self._names[value] = sp.Function(f"_v{len(self.steps)}")
            self.steps[name] = Step(families, value, self._depth(value))
        return self._names[value](*families)

    def _depth(self, value: sp.Expr) -> int:
        """Return the number of nested sums over families in a value."""
        depths = [1 + self._depth(total.function) for total in value.atoms(sp.Sum)]
        depths += [
            self.steps[x.func].depth for x in value.atoms(AppliedUndef) if x.func in self.steps
        ]
        return max(depths, default=0)

    def _value(self, x: Node, pattern: Pattern) -> sp.Expr:
        """Evaluate the outermost operation of an expression."""
        if x.op == "constant":
            return x.detail
        if x.op == "entry":
            return self._entry(x, pattern)
        if x.op == "orbit":
            return sp.Integer(pattern.key(x.indices) == x.detail)
        if x.op == "same":
            return sp.Integer(pattern.element(x.indices[0]) == pattern.element(x.indices[1]))
        if x.op == "part":
            return x.detail.values[self._part(pattern, x.indices[0])]
        if x.op == "inside":
            inner, outer = map(pattern.element, x.indices)
            return sp.Integer(inner.outer == outer.outer and inner.inner != NONE)
        if x.op == "sum":
            (body,) = x.arguments
            return self.total(pattern, x.detail, body.axes[x.detail], lambda p: self.value(body, p))
        if x.op == "softmax":
            return self._raised(x, pattern) / self._norm(x, pattern)
        if x.op == "softmax_tangent":
            return self._softmax_tangent(x, pattern)
        if x.op == "logsumexp":
            weights = self._weights.setdefault(
                x, Node("softmax", x.arguments, x.detail, axes=x.arguments[0].axes)
            )
            return SHIFTED_LOG(self._norm(weights, pattern), self._top(weights, pattern))
        values = [self.value(argument, pattern) for argument in x.arguments]
        if x.op == "add":
            return sp.Add(*values)
        if x.op == "multiply":
            return sp.Mul(*values)
        if x.op == "power":
            return values[0] ** x.detail
        return OPAQUE[x.op](values[0])

    def _entry(self, x: Node, pattern: Pattern) -> sp.Expr:
        """Return the value of an entry of a tensor or of data."""
        if isinstance(x.detail, Tensor):
            return self.entries.get((x.detail, pattern.key(x.indices)), sp.Integer(0))
        element = pattern.element(x.indices[0])
        if isinstance(x.detail, Sequence):
            return sp.Integer(element.outer == pattern.element(x.indices[1]).outer)
        outer_set, family = pattern.outer[element.outer]
        if element.inner_set is None:
            return outer_set.value(x.detail, family)
        values = element.inner_set.types[pattern.inner[element.inner][2]]
        return values[element.inner_set.sources.index(x.detail)]

    def _part(self, pattern: Pattern, index: str) -> IndexSet:
        """Return the set that an index points into."""
        element = pattern.element(index)
        part = (
            pattern.outer[element.outer][0].root
            if element.inner_set is None
            else (element.inner_set.part)
        )
        assert part is not None
        return part

    def _raised(self, x: Node, pattern: Pattern) -> sp.Expr:
        """Return e^(score - top) at the element of the softmax index."""
        pattern, families = pattern.restricted(x.axes).canonical()
        value = RAISED(self.value(x.arguments[0], pattern), self._top(x, pattern))
        return self._named(value, 0).xreplace(families)

    def _top(self, x: Node, pattern: Pattern) -> sp.Expr:
        """Return the largest score of a softmax."""
        (score,), over = x.arguments, x.detail

        def largest(rest: Pattern) -> sp.Expr:
            scores = []
            for extension in extensions(self.outer_sets, rest, over, score.axes[over]):
                new = extension.new
                for number, value in extension.each(partial(self.value, score)):
                    if new is None:
                        scores.append(HIGHEST(number, value))
                    elif number.has(new.family) or value.has(new.family):
                        scores.append(self._loop(new, HIGHEST(number, value)))
                    else:
                        scores.append(HIGHEST(new.number * number, value))
            return self._named(TOP(*dict.fromkeys(scores)), 0)

        return self._cached("top", x, pattern, largest)

    def _norm(self, x: Node, pattern: Pattern) -> sp.Expr:
        """Return the normalization of a softmax, the sum of e^(score - top)."""
        (score,), over = x.arguments, x.detail

        def sum_of_all(rest: Pattern) -> sp.Expr:
            body = partial(self._raised, x)
            return self._named(self.total(rest, over, score.axes[over], body))

        return self._cached("norm", x, pattern, sum_of_all)

    def _cached(
        self, quantity: str, x: Node, pattern: Pattern, compute: Callable[[Pattern], sp.Expr]
    ) -> sp.Expr:
        """Return a quantity of a softmax that is independent of its index, cached by pattern."""
        others = {name: index_set for name, index_set in x.axes.items() if name != x.detail}
        rest, families = pattern.restricted(others).canonical()
        if (quantity, x, rest) not in self._of_softmax:
            self._of_softmax[quantity, x, rest] = compute(rest)
        return self._of_softmax[quantity, x, rest].xreplace(families)

    def _softmax_tangent(self, x: Node, pattern: Pattern) -> sp.Expr:
        """Return p_j sum_k p_k (x_j' - x_k')."""
        (weights, slope), over = x.arguments, x.detail
        here, other = self.value(slope, pattern), f"other {over}"

        def term(p: Pattern) -> sp.Expr:
            moved = p.pointing(over, p.element(other))
            difference = here - self.value(slope, moved)
            return difference * self.value(weights, moved) if difference != 0 else sp.Integer(0)

        total = self.total(pattern, other, x.axes[over], term)
        return self.value(weights, pattern) * total

    def total(
        self, pattern: Pattern, index: str, index_set: IndexSet, body: Callable[[Pattern], sp.Expr]
    ) -> sp.Expr:
        """Return the sum of a function over all elements that an index can point to.

        Parameters
        ----------
        pattern
            Pattern of the other indices.
        index, index_set
            The index, and the set that it runs over.
        body
            Value at a pattern with this index.
        """
        terms: list[sp.Expr] = []
        for extension in extensions(self.outer_sets, pattern, index, index_set):
            value = _collected(extension.each(body))
            terms.append(value if extension.new is None else self._over_all(extension.new, value))
        return self._factored(sp.Add(*terms))

    def _factored(self, value: sp.Expr) -> sp.Expr:
        """Return a sum with common factors of its terms factored out, the rest named."""
        terms = sp.Add.make_args(value)
        shared = set.intersection(*(set(sp.Mul.make_args(term)) for term in terms))
        common = [x for x in sp.Mul.make_args(terms[0]) if x in shared and not x.is_number]
        if len(terms) == 1 or not common:
            return value
        factor = sp.Mul(*common)
        return sp.Mul(factor, self._named(sp.Add(*(term / factor for term in terms))))

    def _over_all(self, new: New, value: sp.Expr) -> sp.Expr:
        """Return the sum of a value over all outer elements that are not in use.

        A polynomial in the data is summed over all outer elements, and those in use are subtracted:
        sums of data are exact. Other values are summed without subtraction, to avoid cancellation.
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
        """Return the sum or maximum over families of outer elements.

        The summation index is named after the depth of nested sums, so that it is never captured.
        """
        copies = new.outer_set.copies(new.family) - sp.Add(*(SAME(new.family, x) for x in new.used))
        if value.func is HIGHEST:
            summand = HIGHEST(copies * value.args[0], value.args[1])
        else:
            summand = copies * value
        bound = sp.Symbol(f"b_{self._depth(summand)}", integer=True)
        summand = summand.xreplace({new.family: bound})
        return sp.Sum(summand, (bound, 0, new.outer_set.families - 1))

    def _polynomials(self, value: sp.Expr, family: sp.Symbol) -> dict[sp.Expr, sp.Expr] | None:
        """Return a value as a sum of factors times polynomials in the data of a family.

        Returns
        -------
        dict or None
            Mapping from factors to polynomials; ``None`` if the value has not this form.
        """
        plain = self._written_out(value, family)
        if plain.count_ops() > WRITTEN_OUT:
            return None
        polynomials: dict[sp.Expr, sp.Expr] = {}
        for term in sp.Add.make_args(sp.expand(plain)):
            rest, own = term.as_independent(family, as_Add=False)
            if not all(
                isinstance(x.as_base_exp()[0], sp.Indexed) for x in sp.Mul.make_args(own) if x != 1
            ):
                return None
            number, factor = rest.as_coeff_Mul()
            polynomials[factor] = polynomials.get(factor, sp.Integer(0)) + number * own
        return polynomials

    def _written_out(self, value: sp.Expr, family: sp.Symbol) -> sp.Expr:
        """Return a value with its names that depend on a family substituted."""
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
    """Return the sum of numbers times values, with the numbers of x and -x combined.

    The numbers are integers, so that they cancel exactly.
    """
    numbers: dict[sp.Expr, sp.Expr] = {}
    for number, value in pairs:
        sign, rest = value.as_coeff_Mul()
        if rest.could_extract_minus_sign():
            sign, rest = -sign, -rest
        numbers[rest] = numbers.get(rest, sp.Integer(0)) + sign * number
    return sp.Add(*(rest * number for rest, number in numbers.items()))
