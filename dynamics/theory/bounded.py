"""The emitted function of a user-defined theory on pairs (value, bound of its error).

The source of the kernel is transformed: each operation is replaced by its rule in
`dynamics.theory.rounding`. The compiled function uses IEEE arithmetic in the order of the source.
The fast kernel, whose sums may be reordered, is compared with it.
"""

import ast
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from dynamics.core.jit import emitted_kernel, plain_python
from dynamics.theory import functions, rounding
from dynamics.theory.data import Array, Orbits
from dynamics.theory.rows import distinct

_RULES = (
    "given",
    "add",
    "subtract",
    "negate",
    "multiply",
    "divide",
    "if_whole",
    "exp",
    "log",
    "sqrt",
    "tanh",
    "sigmoid",
    "softplus",
    "highest",
    "raised",
    "power",
)
_OPERATIONS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}
_INDICES = re.compile(r"_row\d+|_first_\w+")
_PAIRED = re.compile(r"_rows\d+|_table\d+")


@cache
def bounded(source: str, name: str) -> Callable[..., Any]:
    """Return the compiled function ``mean`` of an emitted module on pairs.

    Its arguments are the columns of :func:`columns`. It writes the gradient to ``_out`` and its
    bounds, before `rounding.final`, to the last argument; it returns risk and bound.
    """
    text = paired(source)
    module = _run(text, name, lambda rule: rule)
    module["rows"] = _run(text, name, plain_python).get("rows")  # works on arrays, not compiled
    kernel: Callable[..., Any] = emitted_kernel(
        module["mean"], text, callee=rounding.softplus, fastmath=frozenset()
    )
    return kernel


def _run(text: str, name: str, convert: Callable[[Any], Any]) -> dict[str, Any]:
    """Execute a transformed module with converted rules, and return its names."""
    module: dict[str, Any] = {f"_{rule}": convert(getattr(rounding, rule)) for rule in _RULES}
    module |= {"_inf": math.inf, "_empty": convert(functions.empty), "_total": rounding.total}
    exec(compile(text, f"<bounds of {name}>", "exec"), module)
    return module


def columns(function: Callable[..., Any], data: Orbits) -> tuple[np.ndarray, ...]:
    """Return the data arguments of a function of :func:`bounded`, with their relative errors."""
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


@cache
def paired(source: str) -> str:
    """Return the source of an emitted module, transformed to compute with pairs."""
    tree = ast.parse(source)
    definitions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    tree.body = [_Pairs().visit(node) for node in definitions]
    return ast.unparse(ast.fix_missing_locations(tree))


class _Pairs(ast.NodeTransformer):
    """Transform names of numbers to names of pairs; indices, loops and arrays are unchanged."""

    def __init__(self) -> None:
        self._data: dict[str, int] = {}
        self._indices: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        names = [x.arg for x in node.args.args]
        data = [x for x in names if not re.fullmatch(r"_(first_|rows?\d|theta|constants|out).*", x)]
        if "_weight" not in data:  # the function ``rows``, whose arguments are data only
            data = ["_weight", *data]
        self._data = {name: k for k, name in enumerate(data)}
        taken = [y for x in names for y in ([x, f"{x}_error"] if _PAIRED.fullmatch(x) else [x])]
        out = ["_out"] if "_out" in names else []
        taken = [*(x for x in taken if x not in out), "_errors", *out, *(f"{x}_error" for x in out)]
        node.args.args = [ast.arg(x) for x in taken]
        return self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return node  # the docstring

    def visit_For(self, node: ast.For) -> ast.AST:
        node.body = [y for x in node.body for y in _listed(self.visit(x))]
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        target, value = node.targets[0], node.value
        if isinstance(value, ast.Call) and _name(value.func) == "_empty":
            text = ast.unparse(node)
            return ast.parse(f"{text}\n{text.replace(' =', '_error =', 1)}").body
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
        return ast.parse(f"{_both(target)} = 0").body[0].targets[0]  # type: ignore[attr-defined]

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        x = float(node.value)  # type: ignore[arg-type]
        error = abs(Fraction(node.value) - Fraction(x))  # type: ignore[arg-type]
        return _expression(f"({x!r}, {float(error)!r})")

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        assert node.attr == "inf"
        return _expression("(_inf, 0.0)")

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        name = _name(node.value)
        if name in self._data:
            return _expression(f"_given({ast.unparse(node)}, _errors[{self._data[name]}])")
        if name in ("_theta", "_constants"):
            return _expression(f"({ast.unparse(node)}, 0.0)")
        assert name == "_out" or _PAIRED.fullmatch(name), name
        return _expression(_both(node))

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
        if rule == "_total":
            return _call(rule, self.visit(node.args[0]), *node.args[1:])
        arguments = [self.visit(x) for x in node.args]
        if rule == "_power":
            arguments[1] = _Exponent().visit(arguments[1])
        return _call(rule, *arguments)


class _Exponent(ast.NodeTransformer):
    """Treat sums and products of integers in an exponent as exact: a sign may depend on them."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _name(node.func) not in ("_add", "_subtract", "_multiply"):
            return node
        node = _call(_name(node.func), *(self.visit(x) for x in node.args))
        return _call("_if_whole", node, *node.args)


def _listed(x: Any) -> list[ast.stmt]:
    return x if isinstance(x, list) else [x]


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _call(name: str, *arguments: Any) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _both(node: ast.expr) -> str:
    """Return the source of a pair: an entry of an array, and the entry of the array of errors."""
    text = ast.unparse(node)
    return f"({text}, {text.replace('[', '_error[', 1)})"
