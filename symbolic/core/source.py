"""Emit kernels as Python source, one module per target of a theory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import sympy as sp
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.pycode import PythonCodePrinter

from symbolic.core.kernel import Kernel

PACKAGE = Path(__file__).resolve().parents[2] / "dynamics"
WIDTH = 100


@dataclass(frozen=True)
class Target:
    """A module to be emitted.

    Attributes
    ----------
    path
        Path of the file.
    header
        Text above the kernels.
    kernels
        Function that returns the kernels.
    compiled
        Whether the functions are decorated with ``@kernel``.
    excluded
        Symbols that are never part of a shared subexpression.
    """

    path: Path
    header: str
    kernels: Callable[[], tuple[Kernel, ...]]
    compiled: bool = True
    excluded: tuple[sp.Symbol, ...] = ()


_FUNCTIONS = {
    "power": "power",
    "power_difference": "power_difference",
    "expm1": "math.expm1",
    "copysign": "math.copysign",
}


class _SourcePrinter(PythonCodePrinter):
    """Print kernels with `math` and helper functions, and with readable sums and products."""

    def _print_Function(self, expr: sp.Function) -> str:
        name = _FUNCTIONS[type(expr).__name__]
        return f"{name}({', '.join(map(self._print, expr.args))})"

    _print_power = _print_power_difference = _print_expm1 = _print_copysign = _print_Function

    def statement(self, expr: sp.Expr) -> str:
        """Print the right-hand side of an assignment."""
        text = self.doprint(expr)
        return text[1:-1] if isinstance(expr, sp.Piecewise) else text

    def _print_Piecewise(self, expr: sp.Piecewise) -> str:
        (value, condition), (otherwise, always) = expr.args
        if always != sp.true:
            raise ValueError(f"{expr} is not a value, a condition and another value")
        text, test, alternative = map(self._print, (value, condition, otherwise))
        return f"({text} if {test[1:-1]} else {alternative})"

    def _print_Max(self, expr: sp.Max) -> str:
        return f"max({', '.join(sorted(map(self._print, expr.args)))})"

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        if expr.exp == 2:
            base = self.parenthesize(expr.base, PRECEDENCE["Mul"])
            return f"{base} * {base}"
        if expr.exp == -1:  # a term of a sum
            return f"1 / {self.parenthesize(expr.base, PRECEDENCE['Mul'])}"
        raise ValueError(
            f"{expr} would be emitted as a float power; use symbolic.core.kernel.power"
        )

    def _print_Mul(self, expr: sp.Mul) -> str:
        sign, expr = (-1, -expr) if expr.could_extract_minus_sign() else (1, expr)
        numerator, denominator = sp.fraction(expr)
        text = " * ".join(self._factor(f) for f in self._factors(numerator))
        for factor in self._factors(denominator) if denominator != 1 else ():
            text += f" / {self._factor(factor)}"
        return text if sign > 0 else f"-{text}"

    @staticmethod
    def _factors(product: sp.Expr) -> list[sp.Expr]:
        """Return the factors in the order numbers, symbols and calls, sums."""
        factors = list(sp.Mul.make_args(product))
        return sorted(factors, key=lambda f: (not f.is_Number, f.is_Add, str(f)))

    def _factor(self, factor: sp.Expr) -> str:
        return self.parenthesize(factor, PRECEDENCE["Mul"])

    def _print_Add(self, expr: sp.Add, order: str | None = None) -> str:
        terms = list(expr.args)
        terms.sort(key=lambda t: (t.could_extract_minus_sign(), t.count_ops(), str(t)))
        text = self._print(terms[0])
        for term in terms[1:]:
            negative = term.could_extract_minus_sign()
            text += f" - {self._print(-term)}" if negative else f" + {self._print(term)}"
        return text


def _assignments(
    kernel: Kernel, excluded: tuple[sp.Symbol, ...]
) -> tuple[list[tuple[str, sp.Expr]], list[sp.Expr]]:
    """Share common subexpressions; return ordered (name, expression) pairs and the results.

    Only subexpressions with a name in ``kernel.shared`` become variables. Others are substituted
    back: the compiler finds them too, and names such as ``x3`` would be hard to read.
    """
    steps = list(kernel.steps)
    expressions = [e for _, e in steps] + [e for _, e in kernel.results]
    ignore = (*excluded, *(s for s, _ in steps if s.name == "Z"))
    common, reduced = sp.cse(expressions, ignore=ignore)
    replacements: dict[sp.Symbol, sp.Expr] = {}
    named: list[tuple[sp.Symbol, sp.Expr]] = []
    step_names: dict[sp.Expr, sp.Symbol] = {e: name for name, e in steps}
    full: dict[sp.Symbol, sp.Expr] = {}
    for x, expression in common:
        full[x] = expression.xreplace(full)
        readable = expression.xreplace(replacements)
        label = kernel.shared.get(sp.factor_terms(full[x])) or kernel.shared.get(full[x])
        if full[x] in step_names:
            replacements[x] = step_names[full[x]]
            named.append((replacements[x], readable))
        elif label:
            replacements[x] = sp.Symbol(label, real=True)
            named.append((replacements[x], readable))
        else:
            replacements[x] = readable
    reduced = [e.xreplace(replacements) for e in reduced]
    own = [(name, e) for (name, _), e in zip(steps, reduced) if name not in dict(named)]
    return _sorted(kernel, named + own), reduced[len(steps) :]


def _sorted(
    kernel: Kernel, assignments: list[tuple[sp.Symbol, sp.Expr]]
) -> list[tuple[str, sp.Expr]]:
    """Sort assignments topologically; steps stay in their own order."""
    rank = {name: index for index, (name, _) in enumerate(kernel.steps)}
    waiting = sorted(assignments, key=lambda item: rank.get(item[0], -1))
    known = {symbol.name for symbol in kernel.arguments}
    ordered = []
    while waiting:
        index = next(
            i for i, (_, e) in enumerate(waiting) if {x.name for x in e.free_symbols} <= known
        )
        name, expression = waiting.pop(index)
        known.add(name.name)
        ordered.append((name.name, expression))
    return ordered


def _wrap(head: str, items: Sequence[str], tail: str, indent: str = "") -> list[str]:
    """Format a bracketed list like `ruff format`: one line, one indented line, or one item each."""
    line = f"{indent}{head}{', '.join(items)}{tail}"
    if len(line) <= WIDTH:
        return [line]
    inner = f"{indent}    {', '.join(items)}"
    if len(inner) <= WIDTH and head.startswith("def"):
        return [indent + head, inner, indent + tail]
    return [indent + head, *(f"{indent}    {item}," for item in items), indent + tail]


def kernel_source(
    kernel: Kernel, compiled: bool = True, excluded: tuple[sp.Symbol, ...] = ()
) -> str:
    """Return the Python source of one kernel.

    Parameters
    ----------
    kernel
        The kernel.
    compiled
        Whether the function is decorated with ``@kernel``.
    excluded
        Symbols that are never part of a shared subexpression.

    Raises
    ------
    ValueError
        If a line would be too long.
    """
    printer = _SourcePrinter({"fully_qualified_modules": True})
    assignments, results = _assignments(kernel, excluded)
    lines = ["@kernel"] if compiled else []
    lines += _wrap(f"def {kernel.name}(", [x.name for x in kernel.arguments], "):")
    end = '\n    """' if "\n" in kernel.doc else '"""'
    lines += [f'    """{kernel.doc}{end}']
    lines += [f"    {name} = {printer.statement(e)}" for name, e in assignments]
    values = [printer.doprint(e) for e in results]
    one_line = f"    return {', '.join(values)}"
    lines += [one_line] if len(one_line) <= WIDTH else _wrap("return (", values, ")", "    ")
    too_long = [line for line in "\n".join(lines).splitlines() if len(line) > WIDTH]
    if too_long:
        raise ValueError(f"emitted line longer than {WIDTH} characters: {too_long[0]}")
    return "\n".join(lines) + "\n"


def source(target: Target) -> str:
    """Return the source of an emitted module."""
    functions = [
        kernel_source(kernel, target.compiled, target.excluded) for kernel in target.kernels()
    ]
    return "\n\n".join([target.header, *functions])
