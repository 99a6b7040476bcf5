"""Hypothesis strategy for cases of a user-defined theory: sizes, and constants in their domains.

Sizes that are not given are small, or near the defaults of the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

from hypothesis import strategies as st

from dynamics import ParameterError
from dynamics.theory.data import count_orbits
from simulations.parameter_strategies import check_ranges, reals, within
from simulations.stated.law import Numbers, law
from simulations.stated.overlaps import Numbers as OverlapNumbers
from simulations.stated.overlaps import require_dimension
from simulations.stated.sizes import by_sum
from simulations.stated.system import SEEDS, UserTheorySystem
from symbolic.overlaps import OverlapTheory
from symbolic.theory import Constant, Size, TheoryError

#: Number of sizes tried; number of rows of small sizes, and of sizes near the defaults, to choose
#: from, without and with ranges.
_TRIED, _ROWS, _ROWS_IN_RANGES = 2000, 24, 4
#: Largest number of data orbits, without and with ranges of sizes.
_MOST_ORBITS, _MOST_ORBITS_IN_RANGES = 2000, 100_000
#: Number of small values of a size.
_SMALL = 7


def cases(
    system: UserTheorySystem,
    fixed: Mapping[str, Any],
    ranges: Mapping[str, tuple[float, float]],
) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of values for `UserTheorySystem.build`; see `System.cases`.

    Raises
    ------
    ParameterError
        If a range is not allowed.
    """
    known = {parameter.name: parameter for parameter in system.parameters}
    check_ranges(ranges, fixed, known.values())
    _check_domains(system, ranges)
    given = {name: value for name, value in fixed.items() if name in system.default_values}
    sizes = {size.name for size in system.theory.sizes}
    if not ranges:
        rows = _rows(system, given, _ROWS, _MOST_ORBITS)
        return _with_constants(system, rows, fixed) if rows else st.nothing()
    most = _MOST_ORBITS_IN_RANGES if sizes & set(ranges) else _MOST_ORBITS
    known_rows: dict[tuple[float, ...], list[dict[str, int]]] = {}

    def sample(_: Any, values: Mapping[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
        key = tuple(values[name] for name in sorted(sizes & set(values)))
        if key not in known_rows:
            own = given | {name: values[name] for name in sizes & set(values)}
            number = _ROWS_IN_RANGES if sizes & set(ranges) else _ROWS
            known_rows[key] = _rows(system, own, number, most)
        if not known_rows[key]:
            raise ParameterError("no sizes of the theory have these values")
        return _with_constants(system, known_rows[key], values)

    return within(system, {n: (known[n], *ends) for n, ends in ranges.items()}, fixed, sample)


def _check_domains(system: UserTheorySystem, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Raise ParameterError if the end of a range is outside the domain of a size or constant."""
    domains: dict[str, Size | Constant] = {size.name: size for size in system.theory.sizes}
    domains |= system.theory.free_constants
    for name, ends in ranges.items():
        for end in ends if name in domains else ():
            domain = domains[name]
            try:
                domain.checked(end, {}) if isinstance(domain, Size) else domain.checked(end)
            except TheoryError as error:
                raise ParameterError(error.sentence) from None


def _with_constants(
    system: UserTheorySystem, rows: Sequence[Mapping[str, int]], fixed: Mapping[str, Any]
) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of a row of sizes with random constants and the fixed values."""
    constants: dict[str, st.SearchStrategy[Any]] = {
        name: st.just(constant.example) | _in_domain(constant)
        for name, constant in system.theory.free_constants.items()
        if name not in fixed
    }
    if system.theory.is_random and "seed" not in fixed:
        constants["seed"] = st.integers(0, SEEDS - 1)
    pairs = st.tuples(st.sampled_from(rows), st.fixed_dictionaries(constants))
    values = pairs.map(lambda pair: {**pair[0], **pair[1], **fixed})
    return values.filter(partial(_has_positive_scales, system)) if constants else values


def _has_positive_scales(system: UserTheorySystem, values: Mapping[str, Any]) -> bool:
    """Return whether the scales of random starts are positive at parameter values."""
    numbers = Numbers({name: values.get(name, x) for name, x in system.default_values.items()})
    scales = [order.scale for order in system.theory.orders if order.scale is not None]
    return all(numbers.real(scale) > 0 for scale in scales)


def _rows(
    system: UserTheorySystem, given: Mapping[str, Any], number: int, most: int
) -> list[dict[str, int]]:
    """Return sizes that agree with the given values: small ones, then some near the defaults."""
    with suppress(ParameterError):  # the default sizes may have too many orbits to count
        most = max(most, _number_of_orbits(system, system.default_values))
    rows = list(islice(_feasible(system, given, _small, most), number))
    near = islice(_feasible(system, given, _near_default, most), number)
    return rows + [row for row in near if row not in rows]


def _feasible(
    system: UserTheorySystem, given: Mapping[str, Any], choices: Any, most: int
) -> Iterator[dict[str, int]]:
    """Yield sizes that agree with the given values and have at most ``most`` data orbits."""
    free = [size for size in system.theory.sizes if size.name not in given]
    values = [choices(system, size, given) for size in free]
    for positions in islice(by_sum([range(len(x)) for x in values]), _TRIED):
        row = {size.name: x[i] for size, x, i in zip(free, values, positions)}
        chosen = {**system.default_values, **row, **given}
        try:
            if not system.has_all(chosen):
                continue
            if _number_of_orbits(system, system.theory.checked(chosen)) <= most:
                yield row
        except (TheoryError, ParameterError):
            continue


def _number_of_orbits(system: UserTheorySystem, values: dict[str, float]) -> int:
    """Return the number of data orbits at checked values; 1 for normal data.

    Raises
    ------
    TheoryError
        If a theory in overlaps has fewer dimensions than vectors.
    """
    if isinstance(system.theory, OverlapTheory):
        require_dimension(system.theory, OverlapNumbers(values))
        return 1
    return count_orbits(law(system.theory, values))


def _small(system: UserTheorySystem, size: Size, given: Mapping[str, Any]) -> list[int]:
    """Return small values of a size, compatible with the given sizes that divide it."""
    if size.divides is not None and size.divides in given:
        return [x for x in _divisors(int(given[size.divides])) if size.least <= x <= size.most]
    parts = [int(given[x.name]) for x in system.theory.sizes
             if x.divides == size.name and x.name in given]  # fmt: skip
    step = math.lcm(*parts)
    first = -(-size.least // step) * step
    return list(range(first, min(size.most, first + (_SMALL - 1) * step) + 1, step))


def _near_default(system: UserTheorySystem, size: Size, given: Mapping[str, Any]) -> list[int]:
    """Return values of a size from half to twice its default, the nearest first."""
    default = int(system.default_values[size.name])
    values = (default, default - 1, default + 1, default // 2, 2 * default)
    return [x for x in dict.fromkeys(values) if size.least <= x <= size.most]


def _divisors(number: int) -> list[int]:
    """Return the divisors of a number, in order."""
    small = [x for x in range(1, math.isqrt(number) + 1) if number % x == 0]
    return sorted({*small, *(number // x for x in small)})


def _in_domain(constant: Constant) -> st.SearchStrategy[float]:
    """Return a strategy of values of a constant with few digits, in its domain and near 0."""
    low, high = max(constant.low, -3.0), min(constant.high, 3.0)
    if low > high:
        low, high = constant.low, constant.high
    allowed = reals(low, high).map(lambda x: float(f"{x:.3g}"))
    return allowed.filter(constant.allows)
