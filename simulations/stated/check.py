"""Check of a user-defined theory: compare the derived reduction with the full model.

The comparison uses small sizes. A theory that fails the check is never run (`require_agreement`).
Passed checks are recorded next to the compiled code, under a digest of the file and of all code
that the check depends on.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import sympy as sp

import dynamics.theory
import symbolic.theory
from dynamics.core.errors import ParameterError
from dynamics.core.jit import cache_folder
from dynamics.theory import functions
from dynamics.theory.data import Orbits, orbits
from dynamics.theory.kernel import mean, mean_function
from simulations.stated.full import FullModel
from simulations.stated.law import initial_values, law
from simulations.stated.sequences import some_sequences
from simulations.stated.sizes import fewest_minima_first
from symbolic.theory import Theory, TheoryError
from symbolic.theory.source import source

#: Tolerance of loss and gradient entries, relative to the largest of each.
AGREES = 1e-11
#: Number of sizes tried, and largest number of entries of a full model: for one evaluation, and for
#: the analysis of its manifold. With frames, a few rotations are evaluated, also of more entries.
MOST_TRIED, MOST_EVALUATED, MOST_ENTRIES, MOST_ROTATED = 2000, 20_000, 120, 10**6
#: Smallest scale of the gradient relative to the loss: terms that cancel leave rounding errors.
_LEAST_SCALE = 1e-3


@dataclass(frozen=True)
class Check:
    """Comparison of the reduction with the full model at one state and small sizes.

    Attributes
    ----------
    at
        Sizes and constants.
    entries, configurations, data_orbits
        Numbers of entries, of data configurations and of data orbits.
    difference
        Largest difference of loss and gradient entries, relative to the largest entry.
    spread
        Largest relative difference between gradient entries of an orbit.
    miscounted
        Messages for orbits whose derived number of entries is wrong.
    derived
        Derived gradient per entry, by order parameter.
    slopes
        Gradient entries of the full model, by order parameter.
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
    def largest(self) -> float:
        """The larger of both differences."""
        return max(self.difference, self.spread)

    @property
    def agrees(self) -> bool:
        """Whether the reduction agrees with the full model."""
        return not self.miscounted and self.largest <= AGREES


def require_agreement(theory: Theory) -> None:
    """Raise unless the reduction of a theory agrees with its full model at small sizes.

    Raises
    ------
    TheoryError
        If it does not agree, or if no sizes are small enough for the full model.
    """
    _require_agreement(theory, _mark(theory))


@cache
def _require_agreement(theory: Theory, mark: Path | None) -> None:
    """Check a theory once per process, unless the file ``mark`` records a passed check."""
    if mark is not None and mark.exists():
        return
    try:
        check = agreement(theory)
    except ParameterError as error:
        raise TheoryError(f"no check against the full model: {error}", theory.location) from None
    at = ", ".join(f"{name} = {value:g}" for name, value in check.at.items())
    if not check.agrees:
        raise TheoryError(
            "the derived reduction is wrong, so that nothing is computed with it: it differs by "
            f"{check.largest:.1e} from the full model at {at} (allowed "
            f"{AGREES:g}); please report this theory",
            theory.location,
        )
    if mark is not None:
        with suppress(OSError):  # without a writable cache, each process repeats the check
            mark.touch()


def _mark(theory: Theory) -> Path | None:
    """Return the file that records a passed check; ``None`` without a writable cache."""
    folder = cache_folder(functions.softplus)
    if folder is None or theory.digest is None:
        return None
    return folder / f"agrees.{theory.digest[:32]}.{_digest()}"


@cache
def _digest() -> str:
    """Return a digest of all code that a check depends on."""
    digest = hashlib.sha256(f"{sp.__version__} {np.__version__}".encode())
    folders = (symbolic.theory, dynamics.theory)
    files = [file for folder in folders for file in Path(str(folder.__file__)).parent.glob("*.py")]
    files += [Path(__file__).with_name(name) for name in ("check.py", "full.py", "law.py")]
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:32]


def agreement(theory: Theory) -> Check:
    """Compare a theory with its full model at small sizes and one state.

    Raises
    ------
    TheoryError, ParameterError
        If the theory cannot be derived, if no sizes are small enough, or if it is not finite at any
        state.
    """
    text = source(theory)
    most = MOST_ROTATED if theory.is_framed else MOST_EVALUATED
    try:
        values, full, data = small(theory, most=most)
    except ParameterError:  # sizes at which every orbit has entries are too large
        try:
            values, full, data = small(theory, most=most, every=False)
        except ParameterError:
            if theory.is_framed or not (theory.is_ordered and theory.data):
                raise
            values, full, data = few_sequences(theory)
    function, constants = mean_function(text, theory.name), list(values.values())
    evaluate = finite(lambda state: mean(function, data, state, constants), values)
    start = np.array(list(initial_values(theory, values).values()))
    noise = np.random.default_rng(0).normal(size=len(start))
    states = [start + spread * noise for spread in (0.4, 0.1, 0.02, 0.0)] + [1.0 + 0.1 * noise]
    failure: ParameterError | None = None
    for state in states:
        try:
            reduced = evaluate(state)
        except ParameterError as error:
            failure = failure or error
            continue
        return compared(theory, values, full, data, state, reduced)
    assert failure is not None
    raise failure


def finite(
    evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]], values: Mapping[str, float]
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Wrap a function so that it raises ParameterError if loss or gradient is not finite."""

    def checked(state: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            loss, gradient = evaluate(state)
        except (ArithmeticError, ValueError):  # of `math`: a logarithm of 0, an overflow
            loss, gradient = np.nan, np.zeros(0)
        if not (np.isfinite(loss) and np.isfinite(gradient).all()):
            at = ", ".join(f"{name} = {value:g}" for name, value in values.items())
            raise ParameterError(
                "the loss or its gradient is not finite at the start or a state near it"
                + (f" ({at})" if at else "")
                + ": choose another start, or other values"
            )
        return loss, gradient

    return checked


def compared(
    theory: Theory,
    values: Mapping[str, float],
    full: FullModel,
    data: Orbits,
    state: np.ndarray,
    reduced: tuple[float, np.ndarray],
) -> Check:
    """Compare loss and gradient of the reduction with those of the full model at a state."""
    names = [order.name for order in theory.orders]
    tensors = full.embed(dict(zip(names, state.tolist())))
    loss, gradient = full.dense.evaluate(tensors)
    scale = max(full.dense.magnitude(tensors), 1e-300)
    entries = full.mean(gradient)
    largest = max([abs(value) for value, _, _ in entries.values()] + [_LEAST_SCALE * scale])
    differences = [abs(reduced[0] - loss) / scale]
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


def small(
    theory: Theory,
    given: Mapping[str, float] | None = None,
    *,
    most: int = MOST_ENTRIES,
    every: bool = True,
) -> tuple[dict[str, float], FullModel, Orbits]:
    """Return small sizes and constants, with the full model and the data of the reduction.

    Parameters
    ----------
    theory
        The theory.
    given
        Fixed sizes and constants.
    most
        Largest number of entries of the full model.
    every
        Whether every orbit must have entries if no size is given.

    Raises
    ------
    TheoryError, ParameterError
        If a value is not allowed, or if no sizes are small enough.
    """
    failure: Exception | None = None
    given = dict(given or {})
    for name in given:
        if name in theory.free_constants:
            theory.free_constants[name].checked(given[name])
    constants, number_of_entries = _examples(theory), _entries(theory)
    for number, sizes in enumerate(_sizes(theory, given)):
        if number == MOST_TRIED:
            break
        candidate = constants | sizes | given
        has_all, entries = number_of_entries(candidate)
        if every and not given and not has_all:
            continue
        try:
            values = theory.checked(candidate)
            if entries > most:
                raise ParameterError(
                    f"{entries:g} entries are too many to check against the full model (most "
                    f"{most}): choose smaller sizes"
                )
            return values, FullModel(theory, values), orbits(law(theory, values))
        except (TheoryError, ParameterError) as error:
            failure = failure or error
    raise failure or ParameterError("no sizes are small enough for the full model")


def few_sequences(theory: Theory) -> tuple[dict[str, float], FullModel, Orbits]:
    """Return sizes, the full model on a few sequences, and the data orbits of these.

    For theories with too many sequences. The loss of a sequence and its gradient are compared, not
    the probabilities of the sequences.
    """
    sizes = next(_sizes(theory, {}))
    values = theory.checked(_examples(theory) | sizes)
    few, sequences = some_sequences(theory, values)
    return values, FullModel(theory, values, sequences=sequences), few.orbits()


def _entries(theory: Theory) -> Callable[[Mapping[str, float]], tuple[bool, float]]:
    """Return a function of sizes: whether all orbits have entries, and the total number."""
    of_all = sp.Add(*(sp.Mul(*(where.count for where in x.axes)) for x in theory.parameters))
    counts = [order.count for order in theory.orders]
    names = [size.name for size in theory.sizes] + list(theory.free_constants)
    function = sp.lambdify([sp.Symbol(name) for name in names], [*counts, of_all], "math")

    def count(values: Mapping[str, float]) -> tuple[bool, float]:
        try:
            *numbers, total = function(*(values.get(name, math.nan) for name in names))
        except ArithmeticError:
            return False, math.inf
        return all(round(x) >= 1 for x in numbers if math.isfinite(x)), total

    return count


def _examples(theory: Theory) -> dict[str, float]:
    """Return values of the constants, distinct within each domain to avoid accidental symmetry."""
    same_domain: dict[str, list[str]] = {}
    for name, constant in theory.free_constants.items():
        same_domain.setdefault(constant.allowed, []).append(name)
    return {
        name: theory.free_constants[name].another(number, len(names))
        for names in same_domain.values()
        for number, name in enumerate(names)
    }


def _sizes(theory: Theory, given: Mapping[str, float]) -> Iterator[dict[str, float]]:
    """Yield sizes, smallest first; sizes at their minimum, often a special case, come last."""
    free = [size for size in theory.sizes if size.name not in given]
    ranges = [range(size.least, min(size.most, size.least + 6) + 1) for size in free]
    for row in fewest_minima_first(ranges):
        yield {size.name: x for size, x in zip(free, row)}
