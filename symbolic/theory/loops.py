"""Emit the risk of a theory on ordered positions as loops over positions, tokens and data orbits.

The tokens of a data orbit are its *blocks*, the classes of equal tokens of the sequence. All tokens
that do not occur in the sequence are alike: as many *representatives* of them as an expression has
indices over tokens stand for all. The values of an expression form an array over positions, blocks
and representatives; a sum over tokens weights each element by `multiplicity`, the number of tokens
that it stands for. The gradient is reverse-mode differentiation of this program. Arrays that do not
depend on the data are computed once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import sympy as sp

from symbolic.theory.expression import Node
from symbolic.theory.loop_tables import (
    Code,
    Table,
    flat,
    hidden_rows,
    layout,
    number_of_pattern,
    pattern_code,
    relation_key,
    runs,
)
from symbolic.theory.orbit_data import identifier
from symbolic.theory.sets import IndexSet, Ordered
from symbolic.theory.tensors import Tensor
from symbolic.theory.words import Joint, Words

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Operations that are written out where they are used, if they are used once.
_INLINE = {"add", "multiply"}
_LEAVES = {"constant", "entry", "lookup", "relation", "same"}
_FUNCTION = {"exp": "_math.exp", "log": "_math.log", "tanh": "_math.tanh"}
#: Derivatives of functions of {x} with the value {y}.
_SLOPES = {
    "exp": "{y}",
    "log": "(1.0 / {x})",
    "tanh": "((1.0 - {y}) * (1.0 + {y}))",
    "sigmoid": "({y} * _sigmoid(-{x}))",
    "softplus": "_sigmoid({x})",
    "modulus": "_sign({x})",
    "relu": "_step({x})",
}
Spelling = Mapping[str, str]


def source(theory: Theory, header: str) -> str:
    """Return the source of a module with the function ``mean``.

    ``mean(_theta, _out, _constants, _weight, _blocks, _relation0, ...)`` returns the risk and
    writes the gradient per entry to ``_out``. Its arguments are arrays:

    - ``_theta``, ``_out``, ``_constants``: as in `symbolic.theory.source`
    - ``_weight`` (b,): probability of each data orbit
    - ``_blocks`` (b, columns): the block of each position, and the columns of `Layout.sets`
    - ``_relation0``, ...: the numbers of each relation of `Layout.relations`
    """
    return _Program(theory).module(header)


class _Program:
    """The emitted program of a theory."""

    def __init__(self, theory: Theory) -> None:
        from symbolic.theory.source import Printer

        self._theory, self._layout = theory, layout(theory)
        self._nodes = self._layout.loss.all
        self._print: Callable[[sp.Expr], str] = Printer({}).doprint
        self._relations = {relation_key(x): i for i, x in enumerate(self._layout.relations)}
        self._tables: list[Table] = []
        self._names = 0
        self._code = Code()
        self._ones: set[Node] = set()
        uses = Counter(y for x in self._nodes for y in x.arguments)
        self._stored = [
            x for x in self._nodes
            if not (x.op in _LEAVES or (x.op in _INLINE and uses[x] == 1))
        ]  # fmt: skip
        self._of_parameters: dict[Node, bool] = {}
        self._of_data: dict[Node, bool] = {}
        for x in self._nodes:
            self._of_parameters[x] = (x.op == "entry" and isinstance(x.detail, Tensor)) or any(
                self._of_parameters[y] for y in x.arguments
            )
            own = x.op == "lookup" or (x.op == "entry" and isinstance(x.detail, Joint))
            vocabulary = any(self._layout.blocks(s) for s in x.axes.values())
            self._of_data[x] = own or vocabulary or any(self._of_data[y] for y in x.arguments)
        self._values: dict[Node, Table] = {x: self._table(x) for x in self._stored}
        self._pulls = {x: self._table(x) for x in self._stored if self._of_parameters[x]}
        rest = {
            x: [s for i, s in self._summed(x).items() if i != x.detail]
            for x in self._stored
            if x.op in ("softmax", "logsumexp")
        }
        self._tops = {x: self._new_table(sets) for x, sets in rest.items()}
        self._norms = {x: self._new_table(sets) for x, sets in rest.items()}
        self._tensors = {
            x: (self._orbit_table(x), self._orbit_table(x)) for x in self._layout.parameters
        }

    # Tables and elements

    def _new_table(self, sets: Sequence[IndexSet]) -> Table:
        table = Table(len(self._tables), tuple(self._length(s) for s in sets))
        self._tables.append(table)
        return table

    def _table(self, x: Node) -> Table:
        return self._new_table(tuple(x.axes.values()))

    def _length(self, index_set: IndexSet) -> int:
        """Return the number of positions, or the largest number of blocks and representatives."""
        if isinstance(index_set, Ordered):
            return int(index_set.count)
        number = [part is index_set for part in self._layout.sets].index(True)
        return self._layout.blocks(index_set) + self._layout.representatives[number]

    def _orbit_table(self, tensor: Tensor) -> Table:
        """Return a table of the orbits of a tensor: ordered elements, then patterns."""
        lengths = [int(s.count) for s in tensor.axes if isinstance(s, Ordered)]
        rest = tuple(s for s in tensor.axes if not isinstance(s, Ordered))
        table = Table(len(self._tables), (*lengths, len(number_of_pattern(rest))))
        self._tables.append(table)
        return table

    def _orbit(self, tensor: Tensor, elements: Sequence[str]) -> list[str]:
        """Return the index of the orbit of an entry: ordered elements, and the pattern as code."""
        ordered = [e for e, s in zip(elements, tensor.axes) if isinstance(s, Ordered)]
        rest = [(e, s) for e, s in zip(elements, tensor.axes) if not isinstance(s, Ordered)]
        return [*ordered, pattern_code(rest)]

    @staticmethod
    def _at(table: Table, x: Node, spelled: Spelling) -> str:
        return table.at([spelled[index] for index in x.axes])

    def _summed(self, x: Node) -> dict[str, IndexSet]:
        """Return the free indices of the first argument of a sum or softmax, and of its mask."""
        return {i: s for y in x.arguments for i, s in y.axes.items()}

    def _name(self, prefix: str) -> str:
        self._names += 1
        return f"_{prefix}{self._names}"

    # Loops

    @contextmanager
    def _loops(
        self, axes: Mapping[str, IndexSet], spelled: Spelling, body: Node | None = None
    ) -> Iterator[dict[str, str]]:
        """Write loops over indices; an index of a token that ``body`` determines needs none."""
        depth, inner = self._code.depth, dict(spelled)
        hits = self._determined(body, axes) if body is not None else {}
        for index, index_set in sorted(axes.items(), key=lambda a: not isinstance(a[1], Ordered)):
            if index in hits:
                continue
            inner[index] = self._name("i")
            ordered = isinstance(index_set, Ordered)
            end = str(index_set.count) if ordered else f"_m_{identifier(index_set)}"  # type: ignore[arg-type]
            self._code.add(f"for {inner[index]} in range({end}):")
            self._code.depth += 1
        for index, entry in hits.items():
            inner[index] = self._name("i")
            self._code.add(f"{inner[index]} = _blocks[_b, {inner[entry.indices[0]]}]")
        self._ones |= set(hits.values())
        yield inner
        self._ones -= set(hits.values())
        self._code.depth = depth

    def _determined(self, body: Node, axes: Mapping[str, IndexSet]) -> dict[str, Node]:
        """Return factors of a body that are tokens x[t, k], by index k: 0 but at one k."""
        pending, hits = [body], dict[str, Node]()
        while pending:
            x = pending.pop()
            if x.op == "multiply" and x not in self._values:
                pending += x.arguments
            elif x.op == "entry" and isinstance(x.detail, Words) and x.indices[1] in axes:
                hits.setdefault(x.indices[1], x)
        return hits

    def _multiplicity(self, index: str, axes: Mapping[str, IndexSet], spelled: Spelling) -> str:
        """Return the code of the number of elements that an index stands for; "" if it is 1."""
        index_set = axes[index]
        if isinstance(index_set, Ordered):
            return ""
        name = identifier(index_set)  # type: ignore[arg-type]
        others = [spelled[i] for i, s in axes.items() if s is index_set and i != index]
        row = ", ".join(["-1", *others])
        return f"_multiplicity({spelled[index]}, _n_{name}, _size_{name}, ({row},))"

    # Values

    def _value(self, x: Node, spelled: Spelling) -> str:
        """Return the code of the value of an expression."""
        if x in self._values:
            return self._at(self._values[x], x, spelled)
        elements = [spelled[index] for index in x.indices]
        if x.op == "constant":
            return f"({self._print(x.detail)})"
        if x in self._ones:
            return "1.0"
        if x.op == "relation":
            lengths = [int(s.count) for s in x.detail.axes]
            return f"_relation{self._relations[relation_key(x.detail)]}[{flat(elements, lengths)}]"
        if x.op == "lookup":
            relation, column = x.detail
            return f"_relation{self._relations[relation_key(relation)]}[_column{column}]"
        if x.op == "same":
            return f"(1.0 if {elements[0]} == {elements[1]} else 0.0)"
        if x.op == "entry" and isinstance(x.detail, Tensor):
            return self._tensors[x.detail][0].at(self._orbit(x.detail, elements))
        if x.op == "entry":
            is_one = elements[1] if len(elements) > 1 else "1"
            return f"(1.0 if _blocks[_b, {elements[0]}] == {is_one} else 0.0)"
        left, right = (self._value(y, spelled) for y in x.arguments)
        return f"({left} {'+' if x.op == 'add' else '*'} {right})"

    def _forward(self, x: Node) -> None:
        """Write the code that computes a stored expression."""
        if x.op == "sum":
            self._forward_sum(x)
        elif x.op in ("softmax", "logsumexp"):
            self._forward_softmax(x)
        else:
            with self._loops(x.axes, {}) as spelled:
                self._code.add(
                    f"{self._at(self._values[x], x, spelled)} = {self._function(x, spelled)}"
                )

    def _function(self, x: Node, spelled: Spelling) -> str:
        values = [self._value(y, spelled) for y in x.arguments]
        if x.op in _INLINE:
            return f"{values[0]} {'+' if x.op == 'add' else '*'} {values[1]}"
        if x.op == "power":
            return self._power(values[0], x.detail)
        return f"{_FUNCTION.get(x.op, f'_{x.op}')}({values[0]})"

    def _power(self, value: str, exponent: sp.Expr) -> str:
        """Return the code of a power."""
        if exponent == -1:
            return f"(1.0 / {value})"
        return value if exponent == 1 else f"_power({value}, {self._print(exponent)})"

    def _zero(self, table: Table) -> None:
        self._code.add(f"_clear(_table{table.number})")

    def _forward_sum(self, x: Node) -> None:
        (body,) = x.arguments
        self._zero(self._values[x])
        with self._loops(body.axes, {}, body) as spelled:
            value = self._times(self._number(x, spelled), self._value(body, spelled))
            self._code.add(f"{self._at(self._values[x], x, spelled)} += {value}")

    def _number(self, x: Node, spelled: Spelling) -> str:
        """Return the multiplicity of the index of a sum; a determined token is one element."""
        (body,) = x.arguments
        determined = any(y.indices[1] == x.detail for y in self._ones)
        return "" if determined else self._multiplicity(x.detail, body.axes, spelled)

    @staticmethod
    def _times(*factors: str) -> str:
        return " * ".join(x for x in factors if x and x != "1.0") or "1.0"

    def _forward_softmax(self, x: Node) -> None:
        """Write the largest score, the normalization and the weights, or their logarithm."""
        axes, over, top, norm = self._summed(x), x.detail, self._tops[x], self._norms[x]
        rest = {i: s for i, s in axes.items() if i != over}
        inner = {over: axes[over]}
        with self._loops(rest, {}) as spelled:
            top_at = top.at([spelled[i] for i in rest])
            norm_at = norm.at([spelled[i] for i in rest])
            self._code.add(f"{top_at} = -_math.inf")
            self._code.add(f"{norm_at} = 0.0")
            empty = hidden_rows(x)
            if empty is not None:
                hidden = self._value(
                    empty[tuple(i for i in x.arguments[1].indices if i != over)], spelled
                )
                self._code.add(f"{top_at} = _highest({hidden}, 0.0, {top_at})")
                self._code.add(f"{norm_at} = {hidden}")
            with self._loops(inner, spelled) as at:
                number = self._weight(x, axes, at) or "1.0"
                score = self._value(x.arguments[0], at)
                self._code.add(f"{top_at} = _highest({number}, {score}, {top_at})")
            with self._loops(inner, spelled) as at:
                self._code.add(f"{norm_at} += {self._raised(x, axes, at)}")
            if x.op == "logsumexp":
                result = self._at(self._values[x], x, spelled)
                self._code.add(f"{result} = _shifted_log({norm_at}, {top_at})")
                return
            with self._loops(inner, spelled) as at:
                raised = self._raised(x, axes, at, single=True)
                self._code.add(f"{self._at(self._values[x], x, at)} = {raised} / {norm_at}")

    def _weight(self, x: Node, axes: Mapping[str, IndexSet], spelled: Spelling) -> str:
        """Return the number of elements that the index of a softmax stands for, or its mask."""
        if len(x.arguments) > 1:
            return self._value(x.arguments[1], spelled)
        return self._multiplicity(x.detail, axes, spelled)

    def _raised(
        self, x: Node, axes: Mapping[str, IndexSet], spelled: Spelling, *, single: bool = False
    ) -> str:
        """Return e^(score - top) of all elements that an index stands for, or of one of them."""
        number = "" if single and len(x.arguments) == 1 else self._weight(x, axes, spelled)
        top = self._tops[x].at([spelled[i] for i in axes if i != x.detail])
        return self._times(number, f"_raised({self._value(x.arguments[0], spelled)}, {top})")

    # Gradient

    def _push(self, x: Node, pull: str, spelled: Spelling) -> None:
        """Write the code that adds a slope to that of an expression."""
        if not self._of_parameters[x]:
            return
        if x in self._pulls:
            self._code.add(f"{self._at(self._pulls[x], x, spelled)} += {pull}")
        elif x.op == "entry":
            elements = [spelled[index] for index in x.indices]
            slopes = self._tensors[x.detail][1]
            self._code.add(f"{slopes.at(self._orbit(x.detail, elements))} += {pull}")
        else:
            name = self._name("p")
            self._code.add(f"{name} = {pull}")
            left, right = x.arguments
            times = x.op == "multiply"
            self._push(
                left, self._times(name, self._value(right, spelled) if times else ""), spelled
            )
            self._push(
                right, self._times(name, self._value(left, spelled) if times else ""), spelled
            )

    def _backward(self, x: Node) -> None:
        """Write the code that passes the slope of a stored expression to its arguments."""
        pull, body = self._pulls[x], x.arguments[0]
        if x.op == "softmax":
            self._backward_softmax(x)
        elif x.op == "sum":
            with self._loops(body.axes, {}, body) as spelled:
                slope = self._times(self._number(x, spelled), self._at(pull, x, spelled))
                self._push(body, slope, spelled)
        elif x.op == "logsumexp":
            axes = self._summed(x)
            with self._loops(axes, {}) as spelled:
                norm = self._norms[x].at([spelled[i] for i in axes if i != x.detail])
                share = f"{self._raised(x, axes, spelled)} / {norm}"
                self._push(body, self._times(self._at(pull, x, spelled), share), spelled)
        else:
            with self._loops(x.axes, {}) as spelled:
                self._backward_function(x, spelled)

    def _backward_function(self, x: Node, spelled: Spelling) -> None:
        pull = self._at(self._pulls[x], x, spelled)
        if x.op in _INLINE:
            for y, other in zip(x.arguments, reversed(x.arguments)):
                factor = self._value(other, spelled) if x.op == "multiply" else ""
                self._push(y, self._times(pull, factor), spelled)
            return
        (argument,) = x.arguments
        value, result = self._value(argument, spelled), self._at(self._values[x], x, spelled)
        if x.op == "power":
            slope = f"({self._print(x.detail)}) * {self._power(value, x.detail - 1)}"
        else:
            slope = _SLOPES[x.op].format(x=value, y=result)
        self._push(argument, self._times(pull, slope), spelled)

    def _backward_softmax(self, x: Node) -> None:
        """Write the slopes p_k sum_j p_j (n_j g_k - n_k g_j), without cancellation."""
        axes, over = self._summed(x), x.detail
        rest = {i: s for i, s in axes.items() if i != over}
        inner = {over: axes[over]}
        values, pulls = self._values[x], self._pulls[x]
        single = len(x.arguments) > 1
        with self._loops(rest, {}) as spelled, self._loops(inner, spelled) as at:
            total = self._name("p")
            own = "" if single else self._multiplicity(over, axes, at)
            self._code.add(f"{total} = 0.0")
            with self._loops(inner, spelled) as other:
                number = "" if single else self._multiplicity(over, axes, other)
                left = self._times(number, self._at(pulls, x, at))
                right = self._times(own, self._at(pulls, x, other))
                weight = self._at(values, x, other)
                self._code.add(f"{total} += {weight} * ({left} - {right})")
            self._push(x.arguments[0], f"{self._at(values, x, at)} * {total}", at)

    # The module

    def module(self, header: str) -> str:
        """Return the source of the module."""
        theory = self._theory
        relations = [f"_relation{i}" for i in range(len(self._layout.relations))]
        arguments = ["_theta", "_out", "_constants", "_weight", "_blocks", *relations]
        self._body()
        text = header.format(
            name=theory.name,
            paper=theory.paper.replace("\\", "\\\\").replace('"', '\\"'),
            rows="",
            arguments=", ".join(arguments),
            orders=", ".join(theory.order_parameters),
        )
        return text + "".join(f"    {line}\n" for line in self._code.lines)

    def _body(self) -> None:
        """Write the body of the function: what does not depend on the data, then each orbit."""
        code, loss = self._code, self._layout.loss
        inside = [x for x in self._stored if self._of_data[x]]
        outside = [x for x in self._stored if not self._of_data[x]]
        for i, name in enumerate(
            [x.name for x in self._theory.sizes] + [*self._theory.free_constants]
        ):
            code.add(f"{name} = _constants[{i}]")
        for table in self._tables:
            code.add(table.definition)
        self._parameters()
        self._numbers_of_elements(of_data=False)
        self._forward_all(outside)
        code.add("_loss = 0.0")
        code.add("for _b in range(_weight.shape[0]):")
        code.depth += 1
        code.add("_w = _weight[_b]")
        for column in range(4 if self._layout.is_transferred else 0):
            code.add(f"_column{column} = _blocks[_b, {column}]")
        self._numbers_of_elements(of_data=True)
        self._forward_all(inside)
        code.add(f"_loss += _w * {self._value(loss, {})}")
        self._push(loss, "_w", {})
        self._backward_all(inside)
        code.depth -= 1
        self._backward_all(outside)
        self._results()
        code.add("return _loss")

    def _forward_all(self, nodes: Sequence[Node]) -> None:
        """Write the values of expressions, and zero slopes."""
        for x in nodes:
            self._forward(x)
            if x in self._pulls:
                self._zero(self._pulls[x])

    def _backward_all(self, nodes: Sequence[Node]) -> None:
        """Write the slopes of the arguments of expressions, the last expression first."""
        for x in reversed(nodes):
            if x in self._pulls:
                self._backward(x)

    def _numbers_of_elements(self, *, of_data: bool) -> None:
        """Write the numbers of blocks, of elements with representatives, and of all elements."""
        for i, part in enumerate(self._layout.sets):
            if bool(self._layout.blocks(part)) == of_data:
                row, column = ("_b" if of_data else "0"), self._layout.length + 3 * i
                for k, name in enumerate(("n", "m", "size")):
                    name = f"_{name}_{identifier(part)}"
                    self._code.add(f"{name} = _blocks[{row}, {column + k}]")

    def _parameters(self) -> None:
        """Write the tables of the entries of all parameters, and zero slopes."""
        number = {order.symbol: i for i, order in enumerate(self._theory.orders)}
        for tensor, (values, slopes) in self._tensors.items():
            self._zero(slopes)
            codes = []
            for value, _ in self._layout.parameters[tensor]:
                codes.append(number.get(value, self._print(sp.sympify(value))))
            for first, count, code in runs(codes):
                column = values.lengths[-1]
                name = self._name("i")
                self._code.add(f"for {name} in range({count}):")
                at = f"[({first} + {name}) // {column}, ({first} + {name}) % {column}]"
                value = f"_theta[{code} + {name}]" if isinstance(code, int) else code
                self._code.add(f"    _table{values.number}{at} = {value}")

    def _results(self) -> None:
        """Write the gradient per entry."""
        number = {order.symbol: i for i, order in enumerate(self._theory.orders)}
        for tensor, (_, slopes) in self._tensors.items():
            entries = self._layout.parameters[tensor]
            column = slopes.lengths[-1]
            codes: list[int | str] = [number.get(value, "") for value, _ in entries]
            for pattern in range(column):
                self._code.add(f"_n = {self._print(entries[pattern][1])}")
                for first, count, code in runs(codes[pattern::column], column):
                    if not isinstance(code, int):
                        continue
                    name = self._name("i")
                    self._code.add(f"for {name} in range({count}):")
                    out = f"_out[{code} + {name} * {column}]"
                    value = f"_table{slopes.number}[{first} + {name}, {pattern}] / _n"
                    self._code.add(f"    {out} = {value} if _n > 0 else 0.0")
