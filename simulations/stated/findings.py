"""What a stated theory is found to be: its order parameters, held against the full model."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from time import perf_counter, process_time

import numpy as np
import sympy as sp

from dynamics.core.errors import ParameterError
from dynamics.theory import closed
from dynamics.theory.data import Orbits, orbits
from dynamics.theory.kernel import mean, mean_function
from simulations.stated import manifold
from simulations.stated.digits import Digits
from simulations.stated.full import FullModel
from simulations.stated.law import Numbers, law
from symbolic.theory import Theory, TheoryError
from symbolic.theory.source import source

#: Largest difference of loss and gradient entries from the full model, of the largest of each.
AGREES = 1e-11
#: Sizes tried in search of small ones, and entries of the full model at most.
MOST_TRIED, MOST_ENTRIES = 2000, 120
_SPREAD = 0.4  # of the states that are drawn, about the start


@dataclass(frozen=True)
class OrderParameterFound:
    """An order parameter: names of the paper and as derived, entries and start as formulas."""

    name: str
    orbit: str
    entries: str
    start: str


@dataclass(frozen=True)
class Check:
    """The reduced model against the full one at one state of small sizes.

    ``difference`` is the largest, of loss and gradient entries, relative to the largest entry;
    ``spread`` that between entries of one orbit. ``miscounted`` names orbits whose number of
    entries is not the derived one. ``derived`` holds the slope of each order parameter per entry,
    ``slopes`` those of its entries in the full model.
    """

    at: dict[str, float]
    entries: int
    configurations: int
    data_orbits: int
    difference: float
    spread: float
    miscounted: tuple[str, ...]
    derived: dict[str, float]
    slopes: dict[str, tuple[float, ...]]

    @property
    def agrees(self) -> bool:
        """Whether the reduction is that of the full model."""
        return not self.miscounted and max(self.difference, self.spread) <= AGREES


@dataclass(frozen=True)
class Findings:
    """What is derived for all sizes, and what is seen at the small sizes of the check.

    ``conserved`` are formulas in order parameters at those sizes, ``linear`` the coefficients of
    those that are linear; ``dimension`` that of the
    smallest affine space through the start which the flow stays in; ``digits`` what is proved of
    the compiled gradient along that flow, if it was asked for.
    """

    theory: str
    paper: str
    order_parameters: tuple[OrderParameterFound, ...]
    steps: int
    check: Check
    agrees: bool
    manifold: manifold.Manifold
    conserved: tuple[str, ...]
    linear: tuple[dict[str, float], ...]
    dimension: int
    derivation_seconds: float
    gradient_seconds: float
    digits: tuple[Digits, ...] = ()


def examine(theory: Theory, given: Mapping[str, float] | None = None) -> Findings:
    """Derive a theory and hold it against its full model.

    Parameters
    ----------
    theory
        What is stated.
    given
        Sizes and constants of the check; what is not given is chosen small.

    Raises
    ------
    TheoryError, ParameterError
        If it cannot be derived, if a value is not allowed, or if no sizes are small enough.
    """
    before = process_time()
    text = source(theory)
    derived = process_time() - before
    values, full, data = _small(theory, dict(given or {}))
    function, constants = mean_function(text, theory.name), list(values.values())
    start = np.array([full.numbers.real(order.start) for order in theory.orders])
    count = len(start)
    rng = np.random.default_rng(0)
    states = start + _SPREAD * rng.normal(size=(count * (count + 1) // 2 + count + 5, count))
    evaluate = _finite(lambda state: mean(function, data, state, constants), values)
    evaluate(start)
    before = perf_counter()
    found = [evaluate(state) for state in states]
    seconds = (perf_counter() - before) / len(states)
    gradients = np.array([gradient for _, gradient in found])
    check = _check(theory, values, full, data, states[0], found[0])
    closing = closed.closure(lambda state: evaluate(state)[1], start)
    names = [order.name for order in theory.orders]
    linear = closed.linear(gradients)
    conserved = _linear_forms(linear, names)
    conserved += _quadratic_forms(closed.quadratic(states, gradients), names)
    around = manifold.examine(full, dict(zip(names, start.tolist())))
    return Findings(
        theory=theory.name,
        paper=theory.paper,
        order_parameters=tuple(
            OrderParameterFound(order.name, order.orbit, str(order.count), str(order.start))
            for order in theory.orders
        ),
        steps=len(theory.reduced.steps),
        check=check,
        agrees=check.agrees and around.agrees,
        manifold=around,
        conserved=tuple(conserved),
        linear=tuple(dict(zip(names, form)) for form in linear.tolist()),
        dimension=len(closing),
        derivation_seconds=derived,
        gradient_seconds=seconds,
    )


def _finite(
    evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]], values: Mapping[str, float]
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Return loss and gradient as a function that raises ParameterError where one is not finite."""

    def checked(state: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            loss, gradient = evaluate(state)
        except (ArithmeticError, ValueError):  # of `math`: a logarithm of 0, an overflow
            loss, gradient = np.nan, np.zeros(0)
        if not (np.isfinite(loss) and np.isfinite(gradient).all()):
            at = ", ".join(f"{name} = {value:g}" for name, value in values.items())
            raise ParameterError(
                "the loss or its gradient is not finite at the start or a state near it"
                + (f" ({at})" if at else "") + ": choose another start, or other values"
            )  # fmt: skip
        return loss, gradient

    return checked


def _check(
    theory: Theory,
    values: Mapping[str, float],
    full: FullModel,
    data: Orbits,
    state: np.ndarray,
    reduced: tuple[float, np.ndarray],
) -> Check:
    names = [order.name for order in theory.orders]
    loss, gradient = full.dense.evaluate(full.embed(dict(zip(names, state.tolist()))))
    entries = full.mean(gradient)
    largest = max([abs(value) for value, _, _ in entries.values()] + [1e-300])
    differences = [abs(reduced[0] - loss) / max(abs(loss), 1e-300)]
    differences += [abs(x - entries[name][0]) / largest for name, x in zip(names, reduced[1])]
    miscounted = [
        f"orbit {order.orbit!r} has {order.count} entries; the full model has "
        f"{entries[order.name][2]}"
        for order in theory.orders
        if entries[order.name][2] != full.numbers.whole(order.count)
    ]
    return Check(
        at=dict(values),
        entries=sum(array.size for array in gradient.values()),
        configurations=len(full.dense.weight),
        data_orbits=len(data.weight),
        difference=float(np.max(differences)),
        spread=max(spread for _, spread, _ in entries.values()) / largest,
        miscounted=tuple(miscounted),
        derived=dict(zip(names, reduced[1].tolist())),
        slopes={name: tuple(x.tolist()) for name, x in full.by_order(gradient).items()},
    )


def _small(theory: Theory, given: dict[str, float]) -> tuple[dict[str, float], FullModel, Orbits]:
    """Return the smallest sizes at which every orbit has entries, with their two models."""
    failure: Exception | None = None
    for name in given:
        if name in theory.unknown:
            theory.unknown[name].checked(given[name])
    of_all, of_each = _entries(theory), sp.Mul(*(order.count for order in theory.orders))
    for number, sizes in enumerate(_sizes(theory, given)):
        if number == MOST_TRIED:
            break
        constants = _examples(theory)
        try:
            values = theory.checked(constants | sizes | given)
            numbers = Numbers(values)
            if not given and not numbers.whole(of_each):
                continue
            if (entries := numbers.whole(of_all)) > MOST_ENTRIES:
                raise ParameterError(
                    f"{entries} entries are too many to check against the full model (most "
                    f"{MOST_ENTRIES}): choose smaller sizes"
                )
            return values, FullModel(theory, values), orbits(law(theory, values))
        except (TheoryError, ParameterError) as error:
            failure = failure or error
    raise failure or ParameterError("no sizes are small enough for the full model")


def _entries(theory: Theory) -> sp.Expr:
    """Return how many entries the parameters have together, in the sizes."""
    return sp.Add(
        *(sp.Mul(*(where.count for where in tensor.axes)) for tensor in theory.parameters)
    )


def _examples(theory: Theory) -> dict[str, float]:
    """Return values of the constants, no two of one domain alike: that might be a symmetry."""
    alike: dict[str, list[str]] = {}
    for name, constant in theory.unknown.items():
        alike.setdefault(constant.allowed, []).append(name)
    return {
        name: theory.unknown[name].another(number, len(names))
        for names in alike.values()
        for number, name in enumerate(names)
    }


def _sizes(theory: Theory, given: Mapping[str, float]) -> Iterator[dict[str, float]]:
    """Yield sizes, the smallest first, but as few as can be at their least, which is special."""
    free = [size for size in theory.sizes if size.name not in given]
    ranges = [range(size.least, min(size.most, size.least + 6) + 1) for size in free]
    least = [size.least for size in free]

    def order(row: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        return sum(x == low for x, low in zip(row, least)), sum(row), row

    for found in sorted(product(*ranges), key=order):
        yield {size.name: x for size, x in zip(free, found)}


def _linear_forms(forms: np.ndarray, names: list[str]) -> list[str]:
    return [_formula({name: c for name, c in zip(names, form) if c != 0.0}) for form in forms]


def _quadratic_forms(forms: np.ndarray, names: list[str]) -> list[str]:
    found = []
    for form in forms:
        terms = {}
        for i, j in zip(*np.triu_indices(len(names))):
            weight = form[i, j] * (1.0 if i == j else 2.0)
            product_ = f"{names[i]}^2" if i == j else f"{names[i]} {names[j]}"
            if weight != 0.0:
                terms[product_] = weight
        found.append(_formula(terms))
    return found


def _formula(terms: Mapping[str, float]) -> str:
    """Return a sum in words, such as ``A + 2 B - C``."""
    text = ""
    for name, weight in terms.items():
        sign = "-" if weight < 0 else "+"
        size = "" if abs(abs(weight) - 1.0) < 1e-7 else f"{abs(weight):.6g} "
        text += f" {sign} {size}{name}" if text else f"{'-' if weight < 0 else ''}{size}{name}"
    return text


def described(findings: Findings) -> str:
    """Return the findings as text."""
    check = findings.check
    orders = findings.order_parameters
    width = max(len(order.name) for order in orders)
    lines = [f"{findings.theory}: {findings.paper}", ""]
    lines += ["order parameters, entries and start, for all sizes:"]
    lines += [
        f"  {x.name:<{width}}  {x.entries} entries, starts at {x.start}"
        + (f" ({x.orbit})" if x.orbit != x.name else "")
        for x in orders
    ]
    at = ", ".join(f"{name} = {value:g}" for name, value in check.at.items())
    verdict = "agrees with" if findings.agrees else "DOES NOT AGREE with"
    lines += ["", f"gradient: {findings.steps} derived steps, for all sizes, in "
              f"{findings.derivation_seconds:.2g} s of processor time",
              f"checked at {at}:",
              f"  the reduced model ({check.data_orbits} data orbits) {verdict} the full one "
              f"({check.entries} entries, {check.configurations} configurations)",
              f"  largest difference {check.difference:.1e}, within an orbit {check.spread:.1e} "
              f"(allowed {AGREES:g})",
              *(f"  {words}" for words in check.miscounted),
              f"  one gradient {findings.gradient_seconds:.2g} s in plain Python",
              *(f"  {one.sentence}" for one in findings.digits), ""]  # fmt: skip
    lines += ["conserved there by the flow: " + ("" if findings.conserved else "nothing linear or "
              "quadratic")]  # fmt: skip
    lines += [f"  {formula}" for formula in findings.conserved]
    lines += [f"the smallest space that the flow stays in has {findings.dimension} dimensions"]
    return "\n".join([*lines, "", *_around(findings.manifold)])


def _around(found: manifold.Manifold) -> list[str]:
    """Return what the full model says of the manifold, line by line."""
    told = "each orbit has one value" if found.agrees else "AN ORBIT HAS MORE THAN ONE VALUE"
    lines = [f"from the gradient in every entry alone: {found.discovered} values move, and there "
             f"are {found.orbits} orbits; {told}"]  # fmt: skip
    if found.remark:
        lines += [found.remark]
    if found.growth == -np.inf:
        return [*lines, "the manifold is all there is: no entry lies outside"]
    repels = "repels" if found.growth > 1e-9 else "does not repel"
    return [*lines, f"the manifold {repels} there at the start: a deviation grows at a rate of "
            f"{found.growth:.3g} at most"]  # fmt: skip
