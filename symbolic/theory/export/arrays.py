"""Export to NumPy and JAX: a module with ``loss(x, **values)`` and ``gradient(x, **values)``.

The module imports NumPy (and JAX) only. A value is an array: axis 0 runs over the configurations of
the data up to symmetry, and one axis for each level of nested sums runs over families of outer
elements. Configurations with fewer families are padded with families without elements.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.pycode import PythonCodePrinter

from symbolic.theory.export import orbits, sequences
from symbolic.theory.lifted import HIGHEST, SAME, Step
from symbolic.theory.orbit_data import ElementType, InnerSet, OuterSet
from symbolic.theory.sources import Colouring, Source, Subset
from symbolic.theory.sources import Sequence as Tokens

if TYPE_CHECKING:
    from symbolic.theory.reduced import Reduced
    from symbolic.theory.theory import Theory

_HEADER = '''\
"""Reduced risk of {name} and its gradient, exported by patchdyn.

Source: {paper}.

``x`` contains the order parameters {orders}.
``values`` are {values}.
``gradient`` returns the derivative in one entry of each order parameter: gradient flow is
dx/dt = -gradient(x, **values).
"""
'''
_FUNCTIONS = '''

def loss(x, /, **values):
    """Return the reduced risk at the order parameters x (n,)."""
    return _evaluate(_np.asarray(x, float), **values)[0]


def gradient(x, /, **values):
    """Return the derivative in one entry of each order parameter, (n,)."""
    return _evaluate(_np.asarray(x, float), **values)[1]


def _evaluate({arguments}):
{body}

def _power(base, exponent):
    """Return a power, by multiplication if the exponent is an integer."""
    return base ** int(exponent) if exponent == int(exponent) else base**exponent


def _sigmoid(x):
    """Return 1 / (1 + e^-x)."""
    return _np.exp(-_np.logaddexp(0.0, -x))


def _softplus(x):
    """Return log(1 + e^x)."""
    return _np.logaddexp(0.0, x)


def _modulus(x):
    """Return |x|."""
    return _np.abs(x)


def _relu(x):
    """Return max(x, 0)."""
    return _np.maximum(x, 0.0)


def _sign(x):
    """Return the derivative of |x|, 0 at 0."""
    return _np.sign(x)


def _step(x):
    """Return the derivative of max(x, 0), 0 at 0."""
    return _np.where(_np.asarray(x) > 0.0, 1.0, 0.0)


def _shifted_log(norm, top):
    """Return the logarithm of a sum of exponentials, given the sum relative to ``top``."""
    return top + _np.log(norm)


def _score(number, score):
    """Return a score, or -inf if no element has it."""
    return _np.where(_np.asarray(number) > 0, score, -_np.inf)


def _raised(score, top):
    """Return e^(score - top); a score above ``top`` belongs to no element."""
    excess = score - top
    return _np.exp(_np.where(excess > 0.0, 0.0, excess))


def _top(*scores):
    """Return the largest score."""
    top = scores[0]
    for score in scores[1:]:
        top = _np.maximum(top, score)
    return {constant}
'''
_DATA = '''

def _families({values}):
    """Return the probability of each configuration and the arrays that describe its families."""
    sets = [
{sets}    ]
    rows = _orbits(sets, [{subsets}], {normalization})
    arrays = [{array}([probability for probability, _ in rows])]
    for i, layout in enumerate({layout}):
        most = max(len(families[i]) for _, families in rows)
        padded = [
            own + [(0, *own[0][1:])] * (most - len(own)) for own in (each[i] for _, each in rows)
        ]
        arrays.append({array}([[count for count, _, _ in own] for own in padded], float))
        root, inner = layout
        arrays += [
            {array}([[value[j] for _, value, _ in own] for own in padded], float)
            for j in range(root)
        ]
        arrays += [
            {array}([[numbers[j] for _, _, numbers in own] for own in padded], float)
            for j in inner
        ]
    return arrays


def _along(array, axis, axes):
    """Return an array (configurations, families) with its families along an axis."""
    shape = [array.shape[0]] + [1] * axes
    shape[axis] = array.shape[1]
    return array.reshape(shape)


def _same(first, second, number, axes):
    """Return 1 where the families along two axes are equal, else 0."""
    shape = [1] * (axes + 1)
    shape[first] = shape[second] = number
    return {array}([[float(i == j) for j in range(number)] for i in range(number)]).reshape(shape)
'''


class _Printer(PythonCodePrinter):
    """Printer of NumPy code, in which families are axes."""

    def __init__(self, axes: Mapping[sp.Symbol, int], outer_sets: Sequence[OuterSet]) -> None:
        super().__init__({"fully_qualified_modules": False})
        self._axes, self._total = axes, max(axes.values(), default=1)
        self._outer_sets = {outer.families - 1: outer.name for outer in outer_sets}
        self._over: list[str] = []  # sets of the sums around the current expression

    def _print_Indexed(self, expr: sp.Indexed) -> str:
        family, *types = expr.indices
        name = str(expr.base.label)
        entry = f"{name}[:, :, {types[0]}]" if types else name
        axis = 1 if family.is_Integer else self._axes[family]
        return f"_along({entry}, {axis}, {self._total})"

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        base, exponent = expr.args
        if exponent.is_Integer:
            factor = self.parenthesize(base, PRECEDENCE["Pow"])
            return (
                f"{factor}**{int(exponent)}"
                if exponent > 0
                else (f"(1.0 / {factor}**{-int(exponent)})")
            )
        return f"_power({self._print(base)}, {self._print(exponent)})"

    def _print_Integer(self, expr: sp.Integer) -> str:
        return f"{int(expr)}.0" if abs(expr) >= 2**53 else str(int(expr))

    def _print_Rational(self, expr: sp.Rational) -> str:
        return f"({int(expr.p)} / {int(expr.q)})"

    def _print_Sum(self, expr: sp.Sum) -> str:
        bound, _, last = expr.limits[0]
        method = "max" if expr.function.func is HIGHEST else "sum"
        self._over.append(self._outer_sets[last])
        body = self._print(expr.function)
        self._over.pop()
        return f"({body}).{method}({self._axes[bound]}, keepdims=True)"

    def _print_Function(self, expr: sp.Function) -> str:
        name = type(expr).__name__
        if expr.func is SAME:
            first, second = (self._axes[family] for family in expr.args)
            return f"_same({first}, {second}, count_{self._over[-1]}.shape[1], {self._total})"
        prefix = "_np." if name in ("exp", "log", "tanh") else "_"
        spelled = "_score" if expr.func is HIGHEST else f"{prefix}{name}"
        return f"{spelled}({', '.join(map(self._print, expr.args))})"

    _print_exp = _print_log = _print_tanh = _print_sigmoid = _print_softplus = _print_Function


def arrays_source(theory: Theory, form: str) -> str:
    """Return the exported module, ``form`` "python" (NumPy) or "jax"."""
    names = [size.name for size in theory.sizes] + list(theory.free_constants)
    outer_sets = [outer for outer in theory.outer_sets if outer.has_data]
    text = _HEADER.format(
        name=theory.name,
        paper=theory.paper.replace("\\", "\\\\").replace('"', '\\"'),
        orders=f"({', '.join(theory.order_parameters)})",
        values=", ".join(names) or "none",
    )
    if theory.is_ordered:
        return sequences.module(theory, text, form)
    array = "_np.array" if form == "python" else "_numpy.array"
    constant = "top" if form == "python" else "_jax.lax.stop_gradient(top)"
    imports = "import itertools as _itertools\nimport math as _math\n\n" if outer_sets else ""
    text += "\n" + imports + sequences.IMPORTS[form]
    text += _FUNCTIONS.format(
        arguments=", ".join(["_x", "*", *names] if names else ["_x"]),
        body="\n".join(f"    {line}" for line in _lines(theory, outer_sets, names)) + "\n",
        constant=constant,
    )
    if outer_sets:
        text += _data_source(theory, outer_sets, names, array)
        source = inspect.getsource(orbits)
        text += "\n\n" + source[source.index("def _orbits") :]
    return text


class _Program:
    """Assignments: one for each named value of `Reduced` and its families.

    Attributes
    ----------
    lines
        The assignments, in the order of evaluation.
    """

    def __init__(self, steps: Mapping[Any, Step], printer: _Printer) -> None:
        self._steps, self._printer = steps, printer
        self._names: dict[sp.Expr, sp.Symbol] = {}
        self.lines: list[str] = []

    def text(self, expression: sp.Expr, spelled: Mapping[sp.Expr, sp.Symbol]) -> str:
        """Return the code of an expression; append assignments of its named values."""
        for value in sorted(expression.atoms(AppliedUndef), key=str):
            if value.func in self._steps and value not in self._names:
                step = self._steps[value.func]
                content = step.value.xreplace(dict(zip(step.families, value.args)))
                code = self.text(content, spelled)
                self._names[value] = sp.Symbol(f"_v{len(self._names) + 1}")
                self.lines.append(f"{self._names[value]} = {code}")
        return str(self._printer.doprint(expression.xreplace(self._names).xreplace(spelled)))


def _lines(theory: Theory, outer_sets: Sequence[OuterSet], names: Sequence[str]) -> list[str]:
    """Return the body of ``_evaluate``."""
    reduced = theory.reduced
    spelled = {
        order.symbol: sp.Symbol(order.name if order.name.isidentifier() else f"_x{i}")
        for i, order in enumerate(theory.orders)
    }
    program = _Program(reduced.steps, _Printer(_axes(reduced), outer_sets))
    loss = program.text(reduced.loss, spelled)
    totals = [
        program.text(slope * order.count, spelled)
        for slope, order in zip(reduced.gradient.values(), theory.orders)
    ]
    counts = [program.text(order.count, {}) for order in theory.orders]
    arrays = [name for outer in outer_sets for name in outer.arrays]
    given = [f"{symbol} = _x[{i}]" for i, symbol in enumerate(spelled.values())]
    if outer_sets:
        given += [f"_weight, {', '.join(arrays)} = _families({', '.join(names)})"]
    mean = "_np.sum(_weight * _np.reshape({}, -1))" if outer_sets else "({})"
    slopes = [f"{mean.format(total)} / max({count}, 1)" for total, count in zip(totals, counts)]
    return [
        *given,
        *program.lines,
        f"_loss = {mean.format(loss)}",
        "_gradient = [",
        *(f"    {slope}," for slope in slopes),
        "]",
        "return _loss, _np.array(_gradient)",
    ]


def _axes(reduced: Reduced) -> dict[sp.Symbol, int]:
    """Return the axis of each index of a sum, 1 for the first."""
    expressions = [reduced.loss, *reduced.gradient.values()]
    expressions += [step.value for step in reduced.steps.values()]
    bound = {total.limits[0][0] for x in expressions for total in x.atoms(sp.Sum)}
    return {symbol: i for i, symbol in enumerate(sorted(bound, key=lambda b: int(b.name[2:])), 1)}


def _data_source(
    theory: Theory, outer_sets: Sequence[OuterSet], names: Sequence[str], array: str
) -> str:
    """Return the code of the functions that enumerate the configurations of the data."""
    used = {s for outer in outer_sets for s in outer.sources}
    used |= {s for outer in outer_sets for members in outer.inner for s in members.sources}
    used |= {m.sequence for outer in outer_sets for m in outer.inner if m.sequence}
    subsets = [x for x in theory.data if isinstance(x, (Subset, Tokens)) and x in used]
    printer = _Printer({}, outer_sets)
    layout = []
    for outer in outer_sets:
        ends = [members.varies for members in outer.inner]
        layout.append((len(outer.sources), [j for j, varies in enumerate(ends) if varies]))
    ways = [
        f"_math.comb({_whole(sp.Add(*(part.count for part in x.over.parts)))}, {_whole(x.size)})"
        if isinstance(x, Subset)
        else f"_poisson({_whole(x.size)}, {_whole(x.size)})"
        for x in subsets
    ]
    return _DATA.format(
        values=", ".join(names),
        sets="".join(f"        {_set_literal(outer, subsets, printer)},\n" for outer in outer_sets),
        subsets=", ".join(_whole(x.size) for x in subsets),
        normalization=" * ".join(ways) or "1.0",
        array=array,
        layout=layout,
    )


def _whole(x: sp.Expr) -> str:
    """Return the code of an integer."""
    return f"round({_Printer({}, ()).doprint(x)})"


def _set_literal(outer: OuterSet, subsets: Sequence[Source], printer: _Printer) -> str:
    """Return the description of an outer set for ``_orbits``."""
    roots = InnerSet(outer.inner[0].part, outer.sources).types
    types = [
        f"({_row(printer.doprint(x) for x in root)}, "
        f"{_probability(outer.sources, root, {}, printer)}, {_uses(outer.sources, root, subsets)})"
        for root in roots
    ]
    inner = [_inner_literal(outer, roots, members, subsets, printer) for members in outer.inner]
    return f"({_whole(outer.size)}, [{', '.join(types)}], [{', '.join(inner)}])"


def _inner_literal(
    outer: OuterSet,
    roots: Sequence[ElementType],
    members: InnerSet,
    subsets: Sequence[Source],
    printer: _Printer,
) -> str:
    """Return the description of a set inside an outer one for ``_orbits``."""
    mean = "None"
    if members.sequence is not None and outer.root is not None:
        probability = members.sequence.probabilities[outer.root]
        mean = printer.doprint(members.part.size * probability / outer.size)
    sources = (*members.sources, members.sequence)
    types = []
    for values in members.types:
        probabilities = (
            _probability(members.sources, values, dict(zip(outer.sources, root)), printer)
            for root in roots
        )
        types.append(f"({_row(probabilities)}, {_uses(sources, values, subsets)})")
    return f"({_whole(members.part.size)}, [{', '.join(types)}], {mean})"


def _row(texts: Iterable[str]) -> str:
    """Return the code of a tuple."""
    return f"({''.join(f'{text}, ' for text in texts).rstrip()})"


def _uses(sources: Sequence[Source | None], values: ElementType, subsets: Sequence[Source]) -> str:
    """Return for each subset whether an element with these values belongs to it, as code."""
    return _row(
        str(int(x in sources and (isinstance(x, Tokens) or values[sources.index(x)] == 1)))
        for x in subsets
    )


def _probability(
    sources: Sequence[Source],
    values: ElementType,
    root: Mapping[Source, sp.Expr],
    printer: _Printer,
) -> str:
    """Return the code of the probability of independent values; ``_orbits`` counts subsets."""
    factors = []
    for source, value in zip(sources, values):
        if isinstance(source, Colouring):
            forced = [x for choice, x in source.given.items() if root.get(choice) == 1]
            probability = sp.Integer(value == forced[0]) if forced else source.law[value]
            factors.append(f"({printer.doprint(probability)})")
    return " * ".join(factors) or "1.0"
