"""Values of the printed equations of a theory on sequences, summed over all its sequences."""

from functools import cache
from itertools import product

import numpy as np

from simulations.stated.full import FullModel
from simulations.stated.sequences import probability
from symbolic.theory.export.sequence_equations import sequence_equations
from symbolic.theory.words import Words

FUNCTIONS = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "modulus": np.abs,
    "relu": lambda x: np.maximum(x, 0.0),
    "sign": np.sign,
    "step": lambda x: (x > 0.0) * 1.0,
}


class Values:
    """Values of equations for one sequence, as arrays over all elements of the free indices."""

    def __init__(self, model, tensors, tokens):
        self.model, self.tensors, self.known = model, tensors, {}
        self.tokens, self.size = tokens, cache(lambda s: model.numbers.whole(s.count))
        self.real = cache(model.numbers.real)

    def of(self, x, axes):
        """Return the value of an expression with given axes, by index."""
        own = self._own(x)
        letters = {index: i for i, index in enumerate({**x.axes, **axes})}
        array = np.einsum(
            own, [letters[i] for i in x.axes], [letters[i] for i in axes if i in x.axes]
        )
        shape = [self.size(s) if i in x.axes else 1 for i, s in axes.items()]
        return np.broadcast_to(array.reshape(shape), [self.size(s) for s in axes.values()])

    def _own(self, x):
        if not x.arguments:
            array = np.asarray(self._leaf(x))
            letters = {index: i for i, index in enumerate(x.axes)}
            return np.einsum(array, [letters[i] for i in x.indices], list(letters.values()))
        axes = {i: s for y in x.arguments for i, s in y.axes.items()}
        values = [self.of(y, axes) for y in x.arguments]
        if x.op in ("add", "multiply"):
            return values[0] + values[1] if x.op == "add" else values[0] * values[1]
        if x.op == "power":
            return values[0] ** self.real(x.detail)
        if x.op in FUNCTIONS:
            return FUNCTIONS[x.op](values[0])
        axis = list(axes).index(x.detail)
        if x.op == "sum":
            return values[0].sum(axis)
        raised = np.exp(values[0]) * (values[1] if len(values) > 1 else 1.0)
        total = raised.sum(axis, keepdims=True)
        if x.op == "logsumexp":
            return np.log(total.squeeze(axis))
        return np.divide(raised, total, out=np.zeros_like(raised), where=total > 0.0)

    def _leaf(self, x):
        if x.op == "constant":
            return self.real(x.detail)
        if x.op == "named":
            return self.known[x.detail]
        if x.op == "relation":
            return np.array(x.detail.values, float).reshape([self.size(s) for s in x.detail.axes])
        if x.op == "same":
            return np.eye(self.size(x.detail.axes[0]))
        if x.detail.name in self.tensors:
            return self.tensors[x.detail.name]
        if isinstance(x.detail, Words):
            return np.eye(self.size(x.detail.token))[list(self.tokens)]
        return np.array(self.tokens, float)


def printed(theory, values, state):
    """Return loss and gradient per entry from the printed equations."""
    model, equations = FullModel(theory, values), sequence_equations(theory)
    tensors = model.embed(dict(zip(theory.order_parameters, state)))
    rows, weight = [()], {(): 1.0}
    if theory.data:
        (source,) = theory.data
        states = model.numbers.whole(source.token.count) if isinstance(source, Words) else 2
        rows = list(product(range(states), repeat=int(source.over.count)))
        weight = {row: probability(source, values)(row) for row in rows}
    loss, total = 0.0, {tensor.name: 0.0 for tensor in theory.parameters}
    reader = Values(model, tensors, ())
    for row in rows:
        reader.tokens = row
        for definition in equations.definitions:
            reader.known[definition.name] = reader.of(definition.value, definition.axes)
        loss += weight[row] * float(reader.of(equations.loss, {}))
        for tensor, slope in equations.slopes.items():
            total[tensor.name] = total[tensor.name] + weight[row] * reader.of(
                slope.value, slope.axes
            )
    return loss, model.mean(total)
