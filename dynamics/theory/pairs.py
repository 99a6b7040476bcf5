"""The emitted function of a user-defined theory on pairs: with error bounds, or with tangents.

The source of the kernel is transformed: each number becomes a pair, and each operation its rule for
pairs, so that there is no second derivation. Pairs (value, bound of its error) follow the rules of
`dynamics.theory.rounding`, pairs (value, derivative along a direction) those of
`dynamics.theory.tangents`. Indices, loops and arrays are unchanged. The compiled functions use IEEE
arithmetic in the order of the source.
"""

import ast
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from dynamics.core.jit import emitted_kernel, plain_python
from dynamics.theory import functions, rounding, tangents
from dynamics.theory.data import Array, Orbits
from dynamics.theory.rows import distinct

_OPERATIONS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}
_FUNCTIONS = ("exp", "log", "sqrt", "tanh", "sigmoid", "softplus", "modulus", "relu", "sign",
              "step", "shifted_log", "highest", "raised", "power")  # fmt: skip
_RULES = (*_OPERATIONS.values(), "negate", *_FUNCTIONS)
_INDICES = re.compile(r"_row\d+|_first_\w+|_blocks")
_ROWS, _TABLE = re.compile(r"_rows\d+"), re.compile(r"_out|_table\d+")


@cache
def with_errors(source: str, name: str) -> Callable[..., Any]:
    """Return the compiled function ``mean`` of an emitted module with running error bounds.

    It is called as ``mean(_theta, _out, _out_error, _constants, *columns)``, with the data of
    :func:`columns`. It writes the gradient and its bounds, before `rounding.final`, and returns
    risk and bound.
    """
    text = _transformed(source, _WithErrors())
    rows = _namespace(text, name, rounding, plain_python).get("rows")
    function: Callable[..., Any] = _compiled(text, name, rounding)
    plain_python(function).__globals__["rows"] = rows  # works on arrays, not compiled
    return function


@cache
def with_tangents(source: str, name: str) -> Callable[..., Any]:
    """Return the compiled function ``mean`` of an emitted module with derivatives.

    It is called as ``mean(_theta, _theta_tangent, _out, _out_tangent, _constants, *columns)``, with
    the data of `dynamics.theory.kernel.columns`. It writes the gradient and its derivative along
    the direction ``_theta_tangent`` (n,), and returns the risk and its derivative.
    """
    return _compiled(_transformed(source, _WithTangents()), name, tangents)


def columns(function: Callable[..., Any], data: Orbits) -> tuple[np.ndarray, ...]:
    """Return the data arguments of a function of :func:`with_errors`, with relative errors."""
    given = [x for first, arrays in zip(data.first, data.arrays) for x in (first, *arrays)]
    errors = np.array(data.errors or (0.0,) * (1 + sum(map(len, data.arrays))))
    rows = plain_python(function).__globals__.get("rows")
    tables = [y for x in (rows(*given, errors) if rows else ()) for y in _distinct(x)]
    return data.weight, *given, *tables, errors


def _distinct(pairs: Sequence[tuple[Array, Array]]) -> tuple[np.ndarray, ...]:
    """Return the row index of each family, the distinct rows, and the errors of their entries."""
    row, values = distinct([x for x, _ in pairs])
    errors = np.zeros(values.shape)
    for k, (_, error) in enumerate(pairs):
        np.maximum.at(errors[:, k], row, error)
    return row, values, errors


def _compiled(text: str, name: str, rules: ModuleType) -> Callable[..., Any]:
    """Return the function ``mean`` of a transformed module, compiled with some rules."""
    module = _namespace(text, name, rules, lambda rule: rule)
    kernel: Callable[..., Any] = emitted_kernel(
        module["mean"], text, callee=rules.softplus, fastmath=frozenset()
    )
    return kernel


def _namespace(
    text: str, name: str, rules: ModuleType, convert: Callable[[Any], Any]
) -> dict[str, Any]:
    """Execute a transformed module with converted rules, and return its names."""
    extra = ("given", "if_whole") if rules is rounding else ()
    module: dict[str, Any] = {f"_{x}": convert(getattr(rules, x)) for x in (*_RULES, *extra)}
    module |= {"_inf": math.inf, "_empty": convert(functions.empty), "_total": rounding.total}
    module |= {f"_{x.__name__}": convert(x) for x in (functions.clear, functions.multiplicity)}
    exec(compile(text, f"<{name}, {rules.__name__}>", "exec"), module)
    return module


def _transformed(source: str, pairs: "_Pairs") -> str:
    """Return the source of an emitted module, transformed to compute with pairs."""
    tree = ast.parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    tree.body = [pairs.visit(node) for node in functions if node.name in pairs.functions]
    return ast.unparse(ast.fix_missing_locations(tree))


class _Pairs(ABC, ast.NodeTransformer):
    """Transform numbers to pairs; a subclass defines the second entries of given numbers.

    Attributes
    ----------
    functions
        Names of the functions of the module to transform.
    suffix
        Ending of the names of arrays of second entries.
    """

    functions: tuple[str, ...]
    suffix: str

    def __init__(self) -> None:
        self._indices: set[str] = set()

    @abstractmethod
    def arguments(self, names: Sequence[str]) -> list[str]:
        """Return the names of the arguments of a transformed function."""

    @abstractmethod
    def literal(self, number: float) -> float:
        """Return the second entry of a literal."""

    @abstractmethod
    def argument(self, name: str, entry: ast.Subscript) -> str:
        """Return the pair of an entry of an argument, as source."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.args.args = [ast.arg(x) for x in self.arguments([x.arg for x in node.args.args])]
        return self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        if not isinstance(node.value, ast.Call):
            return node  # the docstring
        text = ast.unparse(node)  # a table is cleared
        return ast.parse(f"{text}\n{text.replace(')', f'{self.suffix})')}").body

    def visit_For(self, node: ast.For) -> ast.AST:
        node.body = [y for x in node.body for y in _listed(self.visit(x))]
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        target, value = node.targets[0], node.value
        if isinstance(value, ast.Call) and _name(value.func) == "_empty":
            text = ast.unparse(node)
            return ast.parse(f"{text}\n{text.replace(' =', f'{self.suffix} =', 1)}").body
        if self._is_index(value):
            self._indices.add(_name(target))
            return node
        return ast.Assign([self._target(target)], self.visit(value))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        own = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign(
            [self._target(node.target)], _call("_add", self.visit(own), self.visit(node.value))
        )

    def _is_index(self, x: ast.AST) -> bool:
        if isinstance(x, ast.Subscript):
            return bool(_INDICES.fullmatch(_name(x.value)))
        return _name(x) in self._indices

    def _target(self, target: ast.expr) -> ast.expr:
        if isinstance(target, ast.Name):
            return target
        return ast.parse(f"{self.both(target)} = 0").body[0].targets[0]  # type: ignore[attr-defined]

    def both(self, entry: ast.expr) -> str:
        """Return the source of a pair: an entry of an array and of the array of second entries."""
        text = ast.unparse(entry)
        return f"({text}, {text.replace('[', f'{self.suffix}[', 1)})"

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return _expression(f"({float(node.value)!r}, {self.literal(node.value)!r})")  # type: ignore[arg-type]

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        assert node.attr == "inf"
        return _expression("(_inf, 0.0)")

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        name = _name(node.value)
        if _TABLE.fullmatch(name):
            return _expression(self.both(node))
        return _expression(self.argument(name, node))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        rule = f"_{_OPERATIONS[type(node.op)]}"
        return _call(rule, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        assert isinstance(node.op, ast.USub)
        return _call("_negate", self.visit(node.operand))

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Transform the branches; the condition is a value or the identity of two families."""
        if isinstance(node.test, ast.Compare) and _name(node.test.left) == "_n":
            node.test.left = _expression("_n[0]")
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        rule = f"_{node.func.attr}" if isinstance(node.func, ast.Attribute) else _name(node.func)
        if rule == "_multiplicity":  # an integer, and its arguments are indices
            return _expression(f"({ast.unparse(node)}, 0.0)")
        if rule == "_total":
            return _call(rule, self.visit(node.args[0]), *node.args[1:])
        return _call(rule, *(self.visit(x) for x in node.args))


class _WithErrors(_Pairs):
    """Pairs of a value and the bound of its error."""

    functions = ("rows", "mean")
    suffix = "_error"

    def __init__(self) -> None:
        super().__init__()
        self._data: dict[str, int] = {}

    def arguments(self, names: Sequence[str]) -> list[str]:
        data = [
            x
            for x in names
            if not re.fullmatch(r"_(first_|blocks|rows?\d|theta|constants|out).*", x)
        ]
        if "_weight" not in data:  # the function ``rows``, whose arguments are data only
            data = ["_weight", *data]
        self._data = {name: k for k, name in enumerate(data)}
        paired = (x for x in names if x == "_out" or _ROWS.fullmatch(x))
        second = {x: f"{x}{self.suffix}" for x in paired}
        taken = [y for x in names for y in ([x, second[x]] if x in second else [x])]
        return [*taken, "_errors"]

    def literal(self, number: float) -> float:
        return float(abs(Fraction(number) - Fraction(float(number))))

    def argument(self, name: str, entry: ast.Subscript) -> str:
        text = ast.unparse(entry)
        if name in self._data:
            return f"_given({text}, _errors[{self._data[name]}])"
        return self.both(entry) if _ROWS.fullmatch(name) else f"({text}, 0.0)"

    def visit_Call(self, node: ast.Call) -> ast.AST:
        call = super().visit_Call(node)
        if isinstance(call, ast.Call) and _name(call.func) == "_power":
            call.args[1] = _Exponent().visit(call.args[1])
        return call


class _Exponent(ast.NodeTransformer):
    """Treat sums and products of integers in an exponent as exact: a sign may depend on them."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _name(node.func) not in ("_add", "_subtract", "_multiply"):
            return node
        node = _call(_name(node.func), *(self.visit(x) for x in node.args))
        return _call("_if_whole", node, *node.args)


class _WithTangents(_Pairs):
    """Pairs of a value and its derivative along a direction of the state."""

    functions = ("mean",)
    suffix = "_tangent"

    def arguments(self, names: Sequence[str]) -> list[str]:
        theta, out, *data = names
        return [theta, theta + self.suffix, out, out + self.suffix, *data]

    def literal(self, number: float) -> float:
        return 0.0

    def argument(self, name: str, entry: ast.Subscript) -> str:
        return self.both(entry) if name == "_theta" else f"({ast.unparse(entry)}, 0.0)"


def _listed(x: Any) -> list[ast.stmt]:
    return x if isinstance(x, list) else [x]


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _call(name: str, *arguments: Any) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
