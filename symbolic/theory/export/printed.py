"""Print the derived equations as text and as LaTeX (a fragment that needs ``amsmath``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import sympy as sp
from sympy.printing.latex import LatexPrinter
from sympy.printing.printer import Printer
from sympy.printing.str import StrPrinter

from symbolic.theory.export import sequences
from symbolic.theory.export.equations import equations, is_family, parted
from symbolic.theory.export.sequence_latex import SequencePrinter, legend
from symbolic.theory.lifted import SAME
from symbolic.theory.orbit_data import ElementType, InnerSet, OuterSet
from symbolic.theory.sources import Gaussian

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Letters for elements, in order of preference.
_LETTERS = "klmjihrst"
#: Longest text of a sum that is not broken into several lines of LaTeX.
_WIDE = 75
_GREEK = {"lam": r"\lambda"}


class _Text(StrPrinter):
    """Printer of Python-like text; sums over elements are ``sum_k(...)``."""

    def _print_Sum(self, expr: sp.Sum) -> str:
        summand, index = _summand(expr)
        return f"sum_{index.replace(' ', '')}({self._print(summand)})"

    def _as_ordered_terms(self, expr: sp.Add, order: str | None = None) -> list[sp.Expr]:
        return _positive_first(super()._as_ordered_terms(expr, order))


class _Latex(LatexPrinter):
    """Printer of LaTeX; numbers of elements have the element as index."""

    def _print_Symbol(self, expr: sp.Symbol, style: str = "plain") -> str:
        tensor, bracket, orbit = expr.name.partition("[")
        if bracket:  # an order parameter, such as A[same set]
            return rf"{self._print(sp.Symbol(tensor))}_{{\text{{{orbit.rstrip(']')}}}}}"
        text: str = _GREEK.get(expr.name) or super()._print_Symbol(expr)
        return rf"\mathrm{{{text}}}" if len(text) > 1 and text.isalpha() else text

    def _print_Sum(self, expr: sp.Sum) -> str:
        summand, index = _summand(expr)
        body = self._print(summand)
        index = index.replace("!=", r"\neq")
        return rf"\sum_{{{index}}} " + (rf"\left({body}\right)" if summand.is_Add else body)

    def _print_ExpBase(self, expr: sp.Expr, exp: str | None = None) -> str:
        before = self._settings["fold_short_frac"]
        self._settings["fold_short_frac"] = True
        power = self._print(expr.args[0])
        self._settings["fold_short_frac"] = before
        text = f"e^{{{power}}}"
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"

    _print_exp = _print_ExpBase

    def _print_Function(self, expr: sp.Function, exp: str | None = None) -> str:
        name = type(expr).__name__
        arguments = ", ".join(map(self._print, expr.args))
        if name == "softplus":
            text = rf"\log\left(1 + e^{{{arguments}}}\right)"
        elif name == "modulus":
            text = rf"\left|{arguments}\right|"
        elif name in ("relu", "sign", "step"):
            text = rf"\mathrm{{{name}}}\left({arguments}\right)"
        elif name == "sigmoid":
            text = rf"\sigma\left({arguments}\right)"
        elif name[1:].isdigit():  # a name of `equations`
            text = rf"{name[0]}_{{{name[1:]}}}({arguments})"
        elif name == "n" or name.startswith(("n^", r"\mathrm")):  # data
            text = f"{name}_{{{arguments}}}"
        else:
            text = super()._print_Function(expr)
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"

    def _as_ordered_terms(self, expr: sp.Add, order: str | None = None) -> list[sp.Expr]:
        return _positive_first(super()._as_ordered_terms(expr, order))


def _positive_first(terms: list[sp.Expr]) -> list[sp.Expr]:
    """Move a summand without a minus sign to the front: D - C, not -C + D."""
    positive = [x for x in terms if not x.could_extract_minus_sign()]
    if not positive or positive[0] is terms[0]:
        return terms
    return [positive[0], *(x for x in terms if x is not positive[0])]


def _summand(total: sp.Sum) -> tuple[sp.Expr, str]:
    """Return the summand of a sum over elements, and its index with the excluded elements."""
    copies, summand = parted(total)
    bound = total.limits[0][0]
    pairs = [(-x).args for x in sp.Add.make_args(copies) if (-x).func is SAME]
    others = [x for pair in pairs for x in pair if x != bound]
    return summand, str(bound) + "".join(f" != {x}" for x in others)


class _Names:
    """Names of the data, and letters of the elements that they belong to."""

    def __init__(self, theory: Theory, latex: bool) -> None:
        self._outer_sets = [outer for outer in theory.outer_sets if outer.has_data]
        self._latex = latex
        taken = {x.name for x in (*theory.sizes, *theory.data)}
        taken |= {*theory.free_constants, *theory.order_parameters}
        self._letters = [letter for letter in _LETTERS if letter not in taken]
        self._several = sum(x.varies for outer in self._outer_sets for x in outer.inner) > 1
        self._data = {(array, index): name for array, index, name, _ in self.legend()}

    def legend(self) -> Iterator[tuple[str, int | None, str, str]]:
        """Yield array, index of the type, name and meaning of each quantity of the data."""
        for outer in self._outer_sets:
            of = "" if outer.root is None else f" of a {outer.root.name}"
            for source in outer.sources:
                name = rf"\mathrm{{{source.name}}}" if self._latex else source.name
                yield f"{source.name}_{outer.name}", None, name, f"value of {source.name}{of}"
            for members in (x for x in outer.inner if x.varies):
                for index, values in enumerate(members.types):
                    conditions = [f"{s.name} = {x}" for s, x in zip(members.sources, values)]
                    where = f" with {' and '.join(conditions)}" if conditions else ""
                    meaning = f"number of elements of {members.part.name}{of}{where}"
                    yield members.array, index, self._number(outer, members, values), meaning

    def _number(self, outer: OuterSet, members: InnerSet, values: ElementType) -> str:
        """Return the name of a number of elements, such as ``n[-1]``."""
        labels = [str(value) for value in values]
        labels = [members.part.name, *labels] if self._several else labels
        if not labels:
            return "n"
        if not self._latex:
            return f"n[{', '.join(labels)}]"
        inside = (rf"\text{{{x}}}" if x[0].isalpha() else x for x in labels)
        return f"n^{{({', '.join(inside)})}}"

    def spelled(self, *expressions: sp.Expr) -> list[sp.Expr]:
        """Return expressions with names for the data and letters for the elements."""
        symbols = {x for y in expressions for x in y.free_symbols}
        symbols |= {x.limits[0][0] for y in expressions for x in y.atoms(sp.Sum)}
        families = sorted(filter(is_family, symbols), key=lambda x: (x.name[0] == "b", x.name))
        letters = {x: sp.Symbol(letter, integer=True) for x, letter in zip(families, self._letters)}
        return [
            y.replace(
                lambda x: isinstance(x, sp.Indexed) and self._is_data(x), self._named
            ).xreplace(letters)
            for y in expressions
        ]

    def _is_data(self, x: sp.Indexed) -> bool:
        return not str(x.base).startswith("count_")

    def _named(self, x: sp.Indexed) -> sp.Expr:
        family, *types = x.indices
        name = self._data[str(x.base), int(types[0]) if types else None]
        return sp.Symbol(name) if family.is_Integer else sp.Function(name)(family)


def text(theory: Theory) -> str:
    """Return the reduced risk, its gradient per entry and the symbols in them as plain text."""
    if theory.is_ordered:
        rows = [f"{theory.name}: {theory.paper}", ""]
        rows += _symbols(theory, _Names(theory, latex=False), _Text())
        return "\n".join([*rows, *sequences.description(theory)]) + "\n"
    reduced, names, printer = equations(theory), _Names(theory, latex=False), _Text()
    mean = "E[ {} ]" if _has_data(theory) else "{}"

    def printed(value: sp.Expr) -> str:
        return mean.format(printer.doprint(*names.spelled(value)))

    rows = [f"{theory.name}: {theory.paper}", "", *_symbols(theory, names, printer)]
    if reduced.definitions:
        rows += ["", "definitions"]
        pairs = (names.spelled(x.name, x.value) for x in reduced.definitions)
        rows += [f"  {printer.doprint(name)} = {printer.doprint(value)}" for name, value in pairs]
    rows += ["", "risk", f"  L = {printed(reduced.loss)}", ""]
    rows += ["gradient in one entry of each order parameter, and the flow dx/dt = -gradient"]
    rows += [f"  dL/d {name} = {printed(slope)}" for name, slope in reduced.gradient.items()]
    return "\n".join(rows) + "\n"


def _has_data(theory: Theory) -> bool:
    """Return whether the risk is a mean over data that are not integrated exactly."""
    return any(outer.has_data for outer in theory.outer_sets)


def _symbols(theory: Theory, names: _Names, printer: Printer) -> Iterator[str]:
    """Yield the meaning of sizes, constants, order parameters and data."""
    yield "sizes and constants"
    for size in theory.sizes:
        divides = f", divides {size.divides}" if size.divides else ""
        yield f"  {size.name}: {size.meaning or 'size'}, at least {size.least}{divides}"
    for constant in theory.free_constants.values():
        yield f"  {constant.name}: {constant.allowed}"
    yield ""
    yield "order parameters"
    for order in theory.orders:
        number = printer.doprint(order.count)
        entries = "1 entry" if number == "1" else f"{number} entries"
        yield f"  {order.name}: {order.orbit}, {entries}, start {printer.doprint(order.start)}"
    gaussian = [source.name for source in theory.data if isinstance(source, Gaussian)]
    if _has_data(theory) or gaussian:
        yield ""
        yield "data"
    if gaussian:
        yield f"  {', '.join(gaussian)}: normal, integrated exactly"
    if _has_data(theory):
        yield from (f"  {name}: {meaning}" for _, _, name, meaning in names.legend())
        yield "  E[ ]: mean over the data; sum_k: sum over the elements k of the larger set"


def latex(theory: Theory) -> str:
    """Return the reduced risk and the gradient flow as a LaTeX fragment, one ``align*``."""
    names = _Names(theory, latex=True)
    rows = [f"{name} &= {value}" for name, value in _latex_rows(theory, names, _broken)]
    comments = [
        f"% Reduced risk and gradient flow of {theory.name} ({theory.paper}).",
        r"% Needs \usepackage{amsmath, amssymb}; \sigma(x) = 1 / (1 + e^{-x}).",
        *(f"% ${name}$: {meaning}" for _, _, name, meaning in names.legend()),
        *(f"% {line}" for line in (legend(theory) if theory.is_ordered else ())),
    ]
    aligned = "\\begin{align*}\n" + " \\\\\n".join(rows) + "\n\\end{align*}\n"
    return "\n".join(comments) + "\n" + aligned


def latex_equations(theory: Theory) -> list[str]:
    """Return definitions, reduced risk and gradient flow, each as a LaTeX formula."""
    rows = _latex_rows(theory, _Names(theory, latex=True), lambda x, printer: printer.doprint(x))
    return [f"{name} = {value}" for name, value in rows]


def _latex_rows(
    theory: Theory, names: _Names, printed: Callable[[sp.Expr, LatexPrinter], str]
) -> Iterator[tuple[str, str]]:
    """Yield both sides of each equation; ``printed`` prints values without a mean."""
    if theory.is_ordered:
        yield from SequencePrinter(_Latex().doprint, theory).rows()
        return
    reduced, printer = equations(theory), _Latex()
    for definition in reduced.definitions:
        name, value = names.spelled(definition.name, definition.value)
        yield printer.doprint(name), printed(value, printer)
    outputs = [(r"\mathcal{L}", reduced.loss)] + [
        (rf"\frac{{d}}{{dt}} {printer.doprint(order.symbol)}", -reduced.gradient[order.name])
        for order in theory.orders
    ]
    for left, value in outputs:
        (value,) = names.spelled(value)
        if _has_data(theory):
            yield left, rf"\mathbb{{E}}\left[{printer.doprint(value)}\right]"
        else:
            yield left, printed(value, printer)


def _broken(value: sp.Expr, printer: LatexPrinter) -> str:
    """Return the LaTeX of a value; a long sum has line breaks between its summands."""
    if not value.is_Add or len(str(value)) <= _WIDE:
        return str(printer.doprint(value))
    lines, width = [""], 0
    for x in printer._as_ordered_terms(value):
        term = printer.doprint(x)
        plus = "" if lines == [""] or term.startswith("-") else "+ "
        if width and width + len(str(x)) > _WIDE:
            lines.append("")
            width = 0
        lines[-1] += f" {plus}{term}" if lines[-1] else f"{plus}{term}"
        width += len(str(x))
    return " \\\\\n&\\qquad ".join(lines)
