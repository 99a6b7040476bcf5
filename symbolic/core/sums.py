"""Normal forms of sums of symbolic length, and a test whether expressions with such sums vanish.

Entries of arrays are `sympy.IndexedBase` elements, so that the derivative of a sum with respect to
an entry contains Kronecker deltas. `collapse` evaluates the sums over deltas and writes all other
sums in a normal form (linear, constants in front, nested ranges in a fixed order, indices named by
depth). `vanishes` then cancels the remaining rational function, with sums, entries, exponentials
and undefined functions as independent unknowns. If the result is zero, the expression is zero for
all lengths and all values of the entries.
"""

from collections.abc import Iterable

import sympy as sp


def transposed(entry: sp.Expr, index: sp.Symbol, i: sp.Symbol, k: sp.Symbol) -> sp.Expr:
    """Return f[sigma(j)] for the transposition sigma of two different indices i and k.

    It equals f[j] + [j = i] (f[k] - f[i]) + [j = k] (f[i] - f[k]).

    Parameters
    ----------
    entry
        f[j].
    index
        j.
    i, k
        The transposed indices.
    """
    at_i, at_k = entry.subs(index, i), entry.subs(index, k)
    return (
        entry
        + sp.KroneckerDelta(index, i) * (at_k - at_i)
        + sp.KroneckerDelta(index, k) * (at_i - at_k)
    )


def collapse(expression: sp.Expr) -> sp.Expr:
    """Return the expression with sums over deltas evaluated and all other sums in normal form.

    Summed indices run over their whole range, and free indices must lie in it.
    """
    return _renamed(_collapse(_fresh(sp.sympify(expression, strict=True))))


def _fresh(node: sp.Expr) -> sp.Expr:
    """Rename the indices of every sum to dummies, so that no index is captured."""
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
    """Evaluate sums over deltas, from the inside out."""
    if not node.has(sp.Sum):
        return node
    if not isinstance(node, sp.Sum):
        return node.func(*map(_collapse, node.args))
    total = node.function
    for limit in node.limits:  # the innermost first
        total = _sum_of(_collapse(total), limit)
    return total


def _sum_of(body: sp.Expr, limit: sp.Tuple) -> sp.Expr:
    """Return the normal form of a sum."""
    terms = sp.Add.make_args(sp.expand(body))
    return sp.Add(*(_sum_of_term(term, limit) for term in terms))


def _sum_of_term(term: sp.Expr, limit: sp.Tuple) -> sp.Expr:
    """Return the normal form of a sum of a single term."""
    index, first, last = limit
    front, rest = term.as_independent(index, as_Add=False)
    if rest == 1:
        return front * (last - first + 1)
    for delta in rest.atoms(sp.KroneckerDelta):
        if index in delta.args:
            (value,) = (argument for argument in delta.args if argument != index)
            if delta in sp.Mul.make_args(rest) and not value.has(index):
                return front * _collapse(rest.subs(index, value))
    for total in sp.Mul.make_args(rest):  # outer sums are those whose range sorts first
        if isinstance(total, sp.Sum) and str(total.limits[-1][2]) < str(last):
            *inner, outer = total.limits
            body = sp.Sum(total.function, *inner) if inner else total.function
            return front * _sum_of(_sum_of(rest / total * body, limit), outer)
    return front * sp.Sum(rest, limit)


def _renamed(node: sp.Expr) -> sp.Expr:
    """Name summed indices by the number of sums inside."""
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
    """Return the number of nested sums in the expression."""
    inside = max(map(_depth, node.args), default=0)
    return inside + (len(node.limits) if isinstance(node, sp.Sum) else 0)


def vanishes(expression: sp.Expr, different: Iterable[tuple[sp.Symbol, sp.Symbol]] = ()) -> bool:
    """Return whether the expression is zero for all lengths of its sums and all values of entries.

    True is a proof. False means that the expression is not zero, or that a relation between its
    unknowns would be needed, such as e^(2x) = (e^x)^2.

    Parameters
    ----------
    expression
        Expression with sums of symbolic length.
    different
        Pairs of free indices that are assumed to be different.
    """
    deltas = {sp.KroneckerDelta(*pair): sp.Integer(0) for pair in different}
    return _vanishes(collapse(expression).xreplace(deltas))


def _vanishes(normal: sp.Expr) -> bool:
    """Return whether a normal form is zero, whether or not its free indices are equal."""
    bound = {limit[0] for total in normal.atoms(sp.Sum) for limit in total.limits}
    free = [e for e in normal.atoms(sp.KroneckerDelta) if not e.free_symbols & bound]
    if free:
        delta = min(free, key=str)
        equal = collapse(normal.subs(*delta.args))
        return _vanishes(normal.xreplace({delta: sp.Integer(0)})) and _vanishes(equal)
    return sp.cancel(_rational(normal, {})) == 0


def _rational(node: sp.Expr, unknowns: dict[sp.Expr, sp.Symbol]) -> sp.Expr:
    """Replace everything but sums, products and integer powers by unknowns."""
    integer_power = node.is_Pow and node.exp.is_Integer
    if node.is_Add or node.is_Mul or integer_power:
        return node.func(*(_rational(argument, unknowns) for argument in node.args))
    if node.is_Rational or node.is_Symbol:
        return node
    return unknowns.setdefault(node, sp.Dummy())
