"""LaTeX of the equations of a theory on ordered positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING

import sympy as sp

from symbolic.theory.export.sequence_equations import Definition, Named, sequence_equations
from symbolic.theory.expression import Array, Node
from symbolic.theory.loop_tables import relation_key
from symbolic.theory.orbits import orbits
from symbolic.theory.positions import Relation, entries
from symbolic.theory.sets import Ordered
from symbolic.theory.tensors import Tensor

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Largest numbers of rows and columns of a relation that is printed as a matrix, and of entries of
#: one that is described by comparisons of its indices.
_MATRIX, _DESCRIBED = 16, 10_000
_FUNCTION = {
    "exp": r"\exp",
    "log": r"\log",
    "tanh": r"\tanh",
    "sigmoid": r"\sigma",
    "relu": r"\mathrm{relu}",
    "sign": r"\mathrm{sign}",
    "step": r"\mathrm{step}",
}
#: Precedence: a sum of terms, a product with a minus sign, a sum over an index, a product, others.
_SUM, _MINUS, _OPEN, _PRODUCT, _ATOM = range(5)
#: Signs of the indices, the largest value of their sum, and the symbol of the comparison.
Term = tuple[tuple[int, ...], int, str]


def legend(theory: Theory) -> list[str]:
    """Return the meaning of the symbols, as lines of text."""
    tensors = ", ".join(_word(x.name) for x in theory.parameters)
    lines = [
        f"${_word(x.name)}$: {'frame' if theory.is_framed else 'sequence'} over "
        f"{', '.join(map(str, x.axes))}; E is its mean"
        for x in theory.data
    ]
    signs = ", or differ by a sign" if theory.is_framed else ""
    return [
        *lines,
        r"$[s \leq t, t < n]$: 1 if all statements are true, else 0. Positions count from 0.",
        "A sum runs over all elements of a set. Weights are 0 where 0 / 0 would result.",
        f"A bar: derivative of the loss of one sequence, for ${tensors}$ in one entry.",
        f"A dot: d/dt of one entry. Entries of one order parameter stay equal{signs}.",
    ]


class SequencePrinter:
    """Printer of expressions; ``printed`` prints numbers in sizes and constants."""

    def __init__(self, printed: Callable[[sp.Expr], str], theory: Theory) -> None:
        self._printed, self._theory = printed, theory
        self._equations = sequence_equations(theory)
        self._numbered: dict[tuple[object, ...], str] = {}
        self._described: dict[tuple[object, ...], list[Term] | None] = {}
        self._matrices: list[tuple[str, str]] = []

    def rows(self) -> list[tuple[str, str]]:
        """Return both sides of each equation."""
        rows = [
            (self._name(x.name, [_letter(i) for i in x.axes]), self._value(x))
            for x in self._equations.definitions
        ]
        mean = r"\mathbb{{E}}\left[{}\right]" if self._theory.data else "{}"
        loss = Definition(Named("loss", {}), {}, self._equations.loss)
        rows.append((r"\mathcal{L}", mean.format(self._value(loss))))
        for tensor, slope in self._equations.slopes.items():
            bar = slope.name
            indices = [_letter(i) for i in slope.axes]
            rows.append((self._name(bar, indices), self._value(slope)))
            rows += self._flow(tensor, bar, indices, mean)
        return [*self._matrices, *rows]

    def _flow(
        self, tensor: Tensor, bar: Named, indices: list[str], mean: str
    ) -> Iterator[tuple[str, str]]:
        """Yield the gradient flow of each pattern of the entries of a tensor that are trained."""
        patterns: dict[tuple[str, ...], str] = {}
        trained = {order.key for order in self._theory.orders if order.tensor is tensor}
        if self._theory.is_framed and trained:
            patterns[tuple(indices)] = ""
        for orbit in orbits(tensor.axes):
            if orbit.key in trained and not self._theory.is_framed:
                first = dict[object, str]()
                at = tuple(
                    index if isinstance(x[0], Ordered) else first.setdefault(x, index)
                    for x, index in zip(orbit.key, indices)
                )
                different = [
                    rf"{x} \neq {y}"
                    for (s, x), (r, y) in combinations(list(first.items()), 2)
                    if s[0] is r[0]  # type: ignore[index]
                ]
                patterns[at] = ", ".join(different)
        for at, condition in patterns.items():
            left = rf"\dot{{{_word(tensor.name)}}}" + self._subscript(at)
            value = mean.format(self._name(bar, list(at)))
            yield left, f"-{value}" + (rf", \quad {condition}" if condition else "")

    def _value(self, definition: Definition) -> str:
        spelled = {index: _letter(index) for index in definition.axes}
        return self._print(definition.value, spelled)[1]

    @staticmethod
    def _subscript(indices: Sequence[str]) -> str:
        return f"_{{{', '.join(indices)}}}" if indices else ""

    def _name(self, name: Array, indices: list[str]) -> str:
        """Return a named value or an entry at indices."""
        of = name.of if isinstance(name, Named) else None
        if isinstance(name, Named) and not isinstance(of, Tensor):
            text = f"{name.name[0]}^{{({name.name[1:]})}}"
            text = rf"\bar{{{name.name[0]}}}^{{({name.name[1:]})}}" if of is not None else text
        else:
            text = _word(name.name)
            text = rf"\bar{{{text}}}" if of is not None else text
        return text + self._subscript(indices)

    def _print(self, x: Node, spelled: Mapping[str, str]) -> tuple[int, str]:
        """Return the precedence and the LaTeX of an expression."""
        at = [spelled[i] for i in x.indices]
        if x.op == "constant":
            text = self._printed(x.detail)
            negative = _MINUS if text.startswith("-") else _PRODUCT
            return (_SUM if x.detail.is_Add else negative), text
        if x.op in ("entry", "named"):
            return _ATOM, self._name(x.detail, at)
        if x.op == "same":
            return _ATOM, rf"\delta_{{{at[0]}, {at[1]}}}"
        if x.op == "relation":
            return _ATOM, self._relation(x.detail, at)
        if x.op == "add":
            return _SUM, self._sum(x, spelled)
        if x.op == "multiply":
            return self._product(x, spelled)
        if x.op in ("sum", "softmax", "logsumexp"):
            return self._over(x, spelled)
        inside = self._print(x.arguments[0], spelled)
        if x.op == "power":
            if x.detail == -1:
                return _PRODUCT, rf"\frac{{1}}{{{inside[1]}}}"
            base = inside[1] if inside[0] == _ATOM else rf"\left({inside[1]}\right)"
            if x.arguments[0].op == "named":  # has a superscript of its own
                base = f"{{{base}}}"
            return _ATOM, rf"{base}^{{{self._printed(x.detail)}}}"
        if x.op == "softplus":
            return _ATOM, rf"\log\left(1 + e^{{{inside[1]}}}\right)"
        if x.op == "modulus":
            return _ATOM, rf"\left|{inside[1]}\right|"
        return _ATOM, rf"{_FUNCTION[x.op]}\left({inside[1]}\right)"

    def _sum(self, x: Node, spelled: Mapping[str, str]) -> str:
        texts = [self._print(y, spelled)[1] for y in x.arguments if _constant(y) != 0]
        if len(texts) < 2:
            return texts[0] if texts else "0"
        if texts[0].startswith("-") and not texts[1].startswith("-"):
            texts.reverse()
        return texts[0] + (
            f" - {texts[1][1:].lstrip()}" if texts[1].startswith("-") else f" + {texts[1]}"
        )

    def _product(self, x: Node, spelled: Mapping[str, str]) -> tuple[int, str]:
        pending, factors, number = list(x.arguments), list[Node](), sp.Integer(1)
        while pending:
            y = pending.pop(0)
            constant = _constant(y)
            if constant is not None:
                number *= constant
            elif y.op == "multiply":
                pending = [*y.arguments, *pending]
            else:
                factors.append(y)
        texts = []
        for i, y in enumerate(factors):
            precedence, text = self._print(y, spelled)
            least = _OPEN if i == len(factors) - 1 else _PRODUCT
            texts.append(text if precedence >= least else rf"\left({text}\right)")
        coefficient = self._printed(number)
        if number.is_Add:
            coefficient = rf"\left({coefficient}\right)"
        if number == -1 and texts:
            texts[0] = f"-{texts[0]}"
        elif number != 1 or not texts:
            texts.insert(0, coefficient)
        is_single = len(texts) == len(factors) == 1 and number == 1
        text = " ".join(texts)
        if text.startswith("-"):
            return _MINUS, text
        return self._print(factors[0], spelled) if is_single else (_PRODUCT, text)

    def _over(self, x: Node, spelled: Mapping[str, str]) -> tuple[int, str]:
        """Return a sum, softmax or logarithm of a sum of exponentials over an index."""
        body = x.arguments[0]
        if x.op == "sum" and (chosen := _chosen(x)):
            rest, element = chosen
            return self._print(rest, {**spelled, x.detail: element})
        bound = _letter(x.detail)
        while bound in spelled.values():
            bound += "'"
        inner = {**spelled, x.detail: bound}
        if x.op == "sum":
            precedence, text = self._print(body, inner)
            if precedence == _MINUS:
                return _MINUS, rf"-\sum_{{{bound}}} {text[1:]}"
            text = text if precedence >= _OPEN else rf"\left({text}\right)"
            return _OPEN, rf"\sum_{{{bound}}} {text}"

        def weight(at: Mapping[str, str]) -> str:
            raised = rf"e^{{{self._print(body, at)[1]}}}"
            return " ".join([*(self._print(y, at)[1] for y in x.arguments[1:]), raised])

        total = rf"\sum_{{{bound}}} {weight(inner)}"
        if x.op == "logsumexp":
            return _ATOM, rf"\log\left({total}\right)"
        return _PRODUCT, rf"\frac{{{weight(spelled)}}}{{{total}}}"

    def _relation(self, relation: Relation, at: list[str]) -> str:
        """Return a relation at indices: comparisons in brackets, or the name of a matrix."""
        key = relation_key(relation)
        if key not in self._described:
            self._described[key] = _comparisons(relation)
        terms = self._described[key]
        if terms == []:
            return "1"
        if terms is not None:
            return rf"\left[{', '.join(_comparison(term, at) for term in terms)}\right]"
        if key not in self._numbered:
            self._numbered[key] = f"R^{{({len(self._numbered) + 1})}}"
            self._matrices.append((self._numbered[key], self._matrix(relation)))
        return self._numbered[key] + self._subscript(at)

    def _matrix(self, relation: Relation) -> str:
        """Return the numbers of a relation, or their shape if they are too many."""
        lengths = [int(s.count) for s in relation.axes]
        if len(lengths) > 2 or max(lengths) > _MATRIX:
            return rf"\text{{numbers of the exported module, }} {' × '.join(map(str, lengths))}"
        columns = lengths[-1]
        rows = [relation.values[i : i + columns] for i in range(0, len(relation.values), columns)]
        body = r" \\ ".join(" & ".join(map(self._printed, row)) for row in rows)
        return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"


def _letter(index: str) -> str:
    """Return an index of the file in LaTeX."""
    return index if len(index.rstrip("'")) == 1 else rf"\mathrm{{{_escaped(index)}}}"


def _word(name: str) -> str:
    """Return the name of a tensor or of data in LaTeX."""
    return name if len(name) == 1 else rf"\mathrm{{{_escaped(name)}}}"


def _escaped(name: str) -> str:
    return name.replace("_", r"\_")


def _constant(x: Node) -> sp.Expr | None:
    """Return the number that an expression of constants is; ``None`` if it is no constant."""
    if x.op == "constant":
        return x.detail
    if x.op == "power":
        base = _constant(x.arguments[0])
        return None if base is None else base**x.detail
    return None


def _chosen(x: Node) -> tuple[Node, str] | None:
    """Return the factor of a sum and the element that its other factor, a relation, chooses."""
    (body,) = x.arguments
    if body.op != "multiply":
        return None
    for y, other in zip(body.arguments, reversed(body.arguments)):
        if y.op == "relation" and y.indices == (x.detail,) and x.detail in other.axes:
            support = [i for i, value in enumerate(y.detail.values) if value]
            if len(support) == 1 and y.detail.values[support[0]] == 1:
                return other, str(support[0])
    return None


def _comparisons(relation: Relation) -> list[Term] | None:
    """Return linear comparisons that hold exactly where a relation is 1, if there are such.

    All inequalities for one index, a difference of two, or one index less two others are taken.
    Then those that the others imply are left out, those of three indices first. ``None`` if the
    relation has other values than 0 and 1.
    """
    rows = list(entries(relation.axes))
    related = [row for row, value in zip(rows, relation.values) if value]
    if len(rows) > _DESCRIBED or not related or not set(relation.values) <= {0, 1}:
        return None
    simple = [x for x in product((1, 0, -1), repeat=len(relation.axes)) if _is_simple(x)]
    terms: list[Term] = [(x, max(_dot(x, row) for row in related), r"\leq") for x in simple]
    terms = [x for x in terms if any(_dot(x[0], row) > x[1] for row in rows)]

    def number(chosen: list[Term]) -> int:
        return sum(all(_dot(x, row) <= most for x, most, _ in chosen) for row in rows)

    if number(terms) != len(related):
        return None
    for x in sorted(terms, key=lambda x: sum(map(abs, x[0])) % 3):
        rest = [y for y in terms if y is not x]
        terms = rest if number(rest) == len(related) else terms
    equal: dict[tuple[int, ...], Term] = {}
    for signs, most, _ in terms:
        if min(_dot(signs, row) for row in related) == most:
            first = max(signs, _minus(signs))
            equal[first] = first, most if first == signs else -most, "="
    return [*equal.values(), *(x for x in terms if max(x[0], _minus(x[0])) not in equal)]


def _is_simple(signs: tuple[int, ...]) -> bool:
    """Return whether signs are those of one index, a difference, or one index less two others."""
    positive, negative = signs.count(1), signs.count(-1)
    return sorted((positive, negative)) in ([0, 1], [1, 1], [1, 2])


def _minus(signs: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-x for x in signs)


def _dot(signs: Sequence[int], positions: Sequence[int]) -> int:
    return sum(x * y for x, y in zip(signs, positions))


def _comparison(term: Term, at: Sequence[str]) -> str:
    """Return the LaTeX of a comparison."""
    signs, most, symbol = term
    least = 0 if symbol == "=" else -1
    if 1 not in signs or (-1 in signs and most < least):
        signs, most, symbol = _minus(signs), -most, symbol.replace("leq", "geq")
    left, right = ([x for sign, x in zip(signs, at) if sign == side] for side in (1, -1))
    if right and symbol == r"\leq" and most == -1:
        symbol, most = "<", 0
    if right and symbol == r"\geq" and most == 1:
        symbol, most = ">", 0
    end = " + ".join([*right, *([str(abs(most))] if most or not right else [])])
    end = end.replace(f" + {-most}", f" - {-most}") if most < 0 else end
    return f"{' + '.join(left)} {symbol} {end}"
