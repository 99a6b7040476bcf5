"""Sums of unspecified length: deltas collapse them, and what is left is decided without a point.

Entries of arrays are `sympy.IndexedBase` elements, so that differentiating a sum in one entry
leaves Kronecker deltas. `collapse` sums these up and writes every other sum in one normal form
(linear, constants in front, nested ranges in one order, indices named by depth); `vanishes` then
cancels the rational function that is left, its sums, entries, exponentials and opaque functions
taken as independent unknowns. A zero found in this way is a zero for every length and every value
of the entries.
"""

from collections.abc import Iterable

import sympy as sp


def transposed(entry: sp.Expr, index: sp.Symbol, one: sp.Symbol, other: sp.Symbol) -> sp.Expr:
    """Return ``entry`` with its index sent through the exchange of ``one`` and ``other``.

    Entries are linear in the deltas: f[sigma(j)] = f[j] + [j = one] (f[other] - f[one]) + [j =
    other] (f[one] - f[other]), for ``one`` and ``other`` different.
    """
    at_one, at_other = entry.subs(index, one), entry.subs(index, other)
    return (
        entry
        + sp.KroneckerDelta(index, one) * (at_other - at_one)
        + sp.KroneckerDelta(index, other) * (at_one - at_other)
    )


def collapse(expression: sp.Expr) -> sp.Expr:
    """Return the expression with its deltas summed up and every other sum in normal form.

    Summed indices run over their whole range, and free indices lie in it.
    """
    return _renamed(_collapse(_fresh(sp.sympify(expression, strict=True))))


def _fresh(node: sp.Expr) -> sp.Expr:
    """Give every sum indices of its own, so that nothing is ever caught by a wrong sum."""
    if not node.has(sp.Sum):
        return node
    if not isinstance(node, sp.Sum):
        return node.func(*map(_fresh, node.args))
    function, limits = node.function, []
    for index, *ends in node.limits:
        own = sp.Dummy(index.name, integer=True)
        function = function.subs(index, own)
        limits.append((own, *ends))
    return sp.Sum(_fresh(function), *limits)


def _collapse(node: sp.Expr) -> sp.Expr:
    if not node.has(sp.Sum):
        return node
    if not isinstance(node, sp.Sum):
        return node.func(*map(_collapse, node.args))
    total = node.function
    for limit in node.limits:  # the innermost first
        total = _sum_of(_collapse(total), limit)
    return total


def _sum_of(body: sp.Expr, limit: sp.Tuple) -> sp.Expr:
    terms = sp.Add.make_args(sp.expand(body))
    return sp.Add(*(_sum_of_term(term, limit) for term in terms))


def _sum_of_term(term: sp.Expr, limit: sp.Tuple) -> sp.Expr:
    index, first, last = limit
    front, rest = term.as_independent(index, as_Add=False)
    if rest == 1:
        return front * (last - first + 1)
    for delta in rest.atoms(sp.KroneckerDelta):
        if index in delta.args:
            (there,) = (argument for argument in delta.args if argument != index)
            if delta in sp.Mul.make_args(rest) and not there.has(index):
                return front * _collapse(rest.subs(index, there))
    for total in sp.Mul.make_args(rest):  # of two sums the one whose range comes first is outside
        if isinstance(total, sp.Sum) and str(total.limits[-1][2]) < str(last):
            *inner, outer = total.limits
            body = sp.Sum(total.function, *inner) if inner else total.function
            return front * _sum_of(_sum_of(rest / total * body, limit), outer)
    return front * sp.Sum(rest, limit)


def _renamed(node: sp.Expr) -> sp.Expr:
    """Name summed indices by the number of sums below."""
    if not node.has(sp.Sum):
        return node
    if not isinstance(node, sp.Sum):
        return node.func(*map(_renamed, node.args))
    body, limits = _renamed(node.function), []
    for depth, (index, *ends) in enumerate(node.limits, start=_depth(body)):
        bound = sp.Symbol(f"bound_{depth}", integer=True)
        body = body.subs(index, bound)
        limits.append((bound, *ends))
    return sp.Sum(body, *limits)


def _depth(node: sp.Expr) -> int:
    """Return how many sums are nested in the expression."""
    below = max(map(_depth, node.args), default=0)
    return below + (len(node.limits) if isinstance(node, sp.Sum) else 0)


def vanishes(expression: sp.Expr, different: Iterable[tuple[sp.Symbol, sp.Symbol]] = ()) -> bool:
    """Whether the expression is zero for every length of its sums and every value of its entries.

    ``different`` names pairs of free indices that are not equal.
    True is a proof. False says that the normal forms differ: the expression is not zero, or a
    relation between its unknowns (such as e^(2x) = (e^x)^2 between different exponents) is needed.
    """
    apart = {sp.KroneckerDelta(*pair): sp.Integer(0) for pair in different}
    return _vanishes(collapse(expression).xreplace(apart))


def _vanishes(normal: sp.Expr) -> bool:
    bound = {limit[0] for total in normal.atoms(sp.Sum) for limit in total.limits}
    free = [e for e in normal.atoms(sp.KroneckerDelta) if not e.free_symbols & bound]
    if free:  # equal or not: both cases
        delta = min(free, key=str)
        equal = collapse(normal.subs(*delta.args))
        return _vanishes(normal.xreplace({delta: sp.Integer(0)})) and _vanishes(equal)
    return sp.cancel(_rational(normal, {})) == 0


def _rational(node: sp.Expr, unknowns: dict[sp.Expr, sp.Symbol]) -> sp.Expr:
    """Replace whatever is not a sum, product or whole power by an unknown of its own."""
    whole_power = node.is_Pow and node.exp.is_Integer
    if node.is_Add or node.is_Mul or whole_power:
        return node.func(*(_rational(argument, unknowns) for argument in node.args))
    if node.is_Rational or node.is_Symbol:
        return node
    return unknowns.setdefault(node, sp.Dummy())
