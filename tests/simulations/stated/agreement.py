"""Comparison of the derived reduction of a theory with its full model at a state."""

from dynamics.theory.data import orbits
from dynamics.theory.kernel import mean, mean_function
from simulations.stated.full import FullModel
from simulations.stated.law import law
from symbolic.theory.source import source
from tests.closeness import close, within


def assert_lifted_is_dense(theory, values, state, rel=1e-11):
    """Compare losses, gradients per entry and numbers of entries; return loss and gradient.

    ``state`` contains the order parameters in the order of the theory. The tolerance of slopes is
    relative to the largest one.
    """
    __tracebackhide__ = True
    checked = theory.checked(values)
    data, names = orbits(law(theory, checked)), [order.name for order in theory.orders]
    function = mean_function(source(theory), theory.name)
    loss, gradient = mean(function, data, state, list(checked.values()))
    full = FullModel(theory, checked)
    expected, slopes = full.dense.evaluate(full.embed(dict(zip(names, state))))
    entries = full.mean(slopes)
    largest = max([1e-300, *(abs(value) for value, _, _ in entries.values())])
    close(loss, expected, rel=rel)
    for order, slope in zip(theory.orders, gradient):
        value, spread, number = entries[order.name]
        assert number == full.numbers.whole(order.count), order.name
        within(slope, value, absolute=rel * largest)
        within(spread, 0.0, absolute=rel * largest)
    return loss, gradient
