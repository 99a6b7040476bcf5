"""Export of a theory in overlaps as a module for NumPy or JAX, for all sizes.

The expectations run once on symbols: closed forms become formulas, and other means become calls of
a rule that the module contains.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp
from sympy.printing.numpy import NumPyPrinter

from dynamics.overlaps.algebra import Algebra
from dynamics.overlaps.functions import Monomial
from dynamics.overlaps.moments import Arithmetic, Normal
from simulations.stated.overlaps import Numbers, algebra, formula
from symbolic.overlaps import OverlapTheory
from symbolic.theory.errors import require

#: Nodes of Gauss and Legendre for the mean of two signs.
_NODES = 40
#: The imports of each format.
_IMPORTS = {
    "python": (
        "import math as _math\n\nimport numpy as _np\n\n"
        "_erf = _np.vectorize(_math.erf, otypes=[float])"
    ),
    "jax": (
        "import math as _math\n\nimport jax as _jax\nimport jax.numpy as _np\n\n"
        '_jax.config.update("jax_enable_x64", True)\n_erf = _jax.scipy.special.erf'
    ),
}
_MODULE = '''\
"""Loss of {name} and its gradient, exported by patchdyn.

Source: {paper}.

``x`` contains the overlaps {orders}.
``values`` are {values}.
``gradient`` returns S G + G S^T: gradient flow is dx/dt = -gradient(x, **values). ``step`` is one
step of gradient descent on the vectors, exact if the dimension is at least their number. Sizes are
so large that each overlap exists. Means without a closed form are computed by a trapezoidal rule.
"""

{imports}


def loss(x, /, **values):
    """Return the population loss at the overlaps x (n,)."""
    return _evaluate(x, 0.0, **values)[0]


def gradient(x, /, **values):
    """Return minus the velocity of the overlaps under gradient flow, (n,)."""
    return _np.array(_evaluate(x, 0.0, **values)[1])


def step(x, learning_rate, /, **values):
    """Return the overlaps after one step of gradient descent on the vectors, (n,)."""
    return _np.array(_evaluate(x, learning_rate, **values)[2])


def _evaluate(_x, _rate, /, *, {arguments}):
    {unpacked} = _x
{body}
    return {loss}, [{gradient}], [{step}]
'''
_RULE = '''

#: Families and monomials (i, a, b), y^i f^a g^b with the derivative g of erf, of the means.
_PRODUCTS = {products}
_FUNCTIONS = {{
    "erf": _erf,
    "sigmoid": lambda y: 0.5 * (1.0 + _np.tanh(0.5 * y)),
    "tanh": _np.tanh,
}}


def _mean(number, *moments):
    """Return the mean of a product: means, then rows of the covariance up to the diagonal."""
    factors = _PRODUCTS[int(number)]
    n = len(factors)
    mean, rows = moments[:n], iter(moments[n:])
    covariance = [[next(rows) for _ in range(k + 1)] for k in range(n)]
    step = 0.125 if n < 3 else 0.3
    node = step * _np.arange(-round(9.5 / step), round(9.5 / step) + 1)
    weight = step * _np.exp(-(node**2) / 2.0) / _math.sqrt(2.0 * _math.pi)
    total, factor = 1.0, []
    for k, (family, (i, a, b)) in enumerate(factors):
        row, y = [], mean[k]
        for j in range(k + 1):
            rest = covariance[k][j] - sum(p * q for p, q in zip(row, factor[j] if j < k else row))
            pivot = _np.sqrt(_np.maximum(rest, 0.0)) if j == k else factor[j][j]
            scaled = _np.where(pivot > 0.0, rest / _np.where(pivot > 0.0, pivot, 1.0), 0.0)
            row.append(pivot if j == k else scaled)
            y = y + row[j] * node.reshape([-1 if axis == j else 1 for axis in range(n)])
        factor.append(row)
        function = _FUNCTIONS[family](y) ** a if a else 1.0
        slope = (2.0 / _math.sqrt(_math.pi) * _np.exp(-(y**2))) ** b if b else 1.0
        total = total * y**i * function * slope
        total = total * weight.reshape([-1 if axis == k else 1 for axis in range(n)])
    return _np.sum(total)
'''
_SIGNS = '''

_NODES, _WEIGHTS = map(_np.array, {nodes})


def _signs(x, y, r):
    """Return the mean of sign(x + u) sign(y + v), u and v of variance 1/2 with correlation r."""
    angle = _np.arcsin(r) * (_NODES + 1.0) / 2.0
    power = (2.0 * x * y * _np.sin(angle) - x * x - y * y) / _np.cos(angle) ** 2
    return _erf(x) * _erf(y) + _np.arcsin(r) / _math.pi * _np.sum(_WEIGHTS * _np.exp(power))
'''


class Symbols(Numbers):
    """Sizes and constants as symbols."""

    def __init__(self) -> None:
        super().__init__({})

    def integer(self, expression: sp.Expr) -> Any:
        """Return a number of elements."""
        return expression

    def ball(self, expression: sp.Expr) -> Any:
        """Return an expression."""
        return expression


class Traced(Arithmetic):
    """Formulas instead of numbers; means without a closed form are calls of a rule.

    Attributes
    ----------
    products
        Families and monomials of these means.
    """

    def __init__(self) -> None:
        super().__init__(certified=True)
        self.products: list[tuple[tuple[str, Monomial], ...]] = []

    def number(self, value: Any) -> Any:
        """Return an integer as a number."""
        return sp.Integer(value)

    def sqrt(self, x: Any) -> Any:
        """Return the square root."""
        return sp.sqrt(x)

    def exp(self, x: Any) -> Any:
        """Return the exponential."""
        return sp.exp(x)

    def erf(self, x: Any) -> Any:
        """Return the error function."""
        return sp.Function("_erf")(x)

    def mean_of_signs(self, x: Any) -> Any:
        """Return 2 arcsin(x) / pi."""
        return 2 * sp.asin(x) / sp.pi

    def shifted_signs(self, x: Any, y: Any, r: Any) -> Any:
        """Return the mean of two signs of shifted normal variables."""
        return sp.Function("_signs")(x, y, r)

    @property
    def slope(self) -> Any:
        """2 / sqrt(pi)."""
        return 2 / sp.sqrt(sp.pi)

    def mean(self, families: Sequence[str], law: Normal, monomials: Sequence[Monomial]) -> Any:
        """Return a call of the rule."""
        product = tuple(zip(families, monomials))
        if product not in self.products:
            self.products.append(product)
        rows = (x for k, row in enumerate(law.covariance) for x in row[: k + 1])
        return sp.Function("_mean")(self.products.index(product), *law.mean, *rows)


def module(theory: OverlapTheory, form: str) -> str:
    """Return a module with ``loss``, ``gradient`` and ``step``, for ``"python"`` or ``"jax"``.

    Raises
    ------
    TheoryError
        For a softmax over tokens.
    """
    families = {family for x in theory.reduced.components for family, _ in x.functions}
    require(
        "softmax" not in families,
        f"export = {form} is not allowed for a softmax over tokens: use text or latex",
        theory.location,
    )
    entries, arithmetic = {pair: k for k, pair in enumerate(theory.entries)}, Traced()
    orders = {order.name: sp.Symbol(order.identifier) for order in theory.orders}
    fixed = [x for pair in theory.entries if (x := theory.fixed(pair)) is not None]
    gram = [*orders.values(), *fixed]
    derivatives = formula([theory.reduced], Symbols(), entries).at(gram, len(orders), arithmetic)[0]
    slopes = [sp.Symbol(f"_s{k}") for k in range(len(orders))]
    first, (loss, *values) = _shared("_t", [derivatives.value, *derivatives.gradient])
    structure = algebra(theory, Symbols(), entries, has_numbers=False)
    second, moved = _shared("_u", _motion(structure, slopes, gram))
    body = [*first, *(f"{s} = {x}" for s, x in zip(slopes, values)), *second]
    names = [x.name for x in theory.sizes] + list(theory.free_constants)
    used = {name: theory.defaults.get(name) for name in names}
    arguments = ", ".join(n if x is None else f"{n}={x!r}" for n, x in used.items())
    text = _MODULE.format(
        name=theory.name,
        paper=theory.paper,
        orders=", ".join(map(str, orders.values())),
        values=", ".join(names),
        imports=_IMPORTS[form],
        arguments=arguments,
        unpacked=", ".join(map(str, orders.values())) + ("," if len(orders) == 1 else ""),
        body="\n".join(f"    {line}" for line in body),
        loss=loss,
        gradient=", ".join(moved[: len(orders)]),
        step=", ".join(moved[len(orders) :]),
    )
    if arithmetic.products:
        text += _RULE.format(products=arithmetic.products)
    if "_signs(" in text:
        nodes = [x.tolist() for x in np.polynomial.legendre.leggauss(_NODES)]
        text += _SIGNS.format(nodes=tuple(nodes))
    return text


def _motion(structure: Algebra, slopes: list[sp.Symbol], gram: list[sp.Expr]) -> list[sp.Expr]:
    """Return minus the velocity of the overlaps, and the overlaps after a step."""
    matrix = structure.matrix(gram)
    s = structure.projected(structure.coefficients(slopes), matrix)
    rate = sp.Symbol("_rate")
    step = [sp.Integer(int(diagonal)) - rate * x for diagonal, x in zip(structure.diagonal, s)]
    moved = structure.conjugated(step, matrix)
    triples = zip(structure.diagonal, structure.sphere, moved)
    scale = [
        1 / sp.sqrt(x) if sphere else sp.Integer(int(diagonal)) for diagonal, sphere, x in triples
    ]
    after = structure.varying(structure.conjugated(scale, moved))
    return [*structure.velocity(s, matrix), *after]


def _shared(prefix: str, values: list[sp.Expr]) -> tuple[list[str], list[str]]:
    """Return assignments of common subexpressions, and the code of the values."""
    printer = NumPyPrinter({"fully_qualified_modules": True, "allow_unknown_functions": True})

    def code(value: sp.Expr) -> str:
        return str(printer.doprint(value)).replace("numpy.", "_np.")

    named, results = sp.cse(values, symbols=sp.numbered_symbols(prefix))
    lines = [f"{symbol} = {code(value)}" for symbol, value in named]
    return lines, [code(value) for value in results]
