"""The likely configurations of the data up to symmetry, and a bound on the chance of the rest.

A configuration is built type by type; what can still follow has a chance that is known, the power
of a sum, before it is written. Where that is small it is left out and its chance is added up, so
that the chance of all that is left out is bounded without being enumerated.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dynamics.core.errors import ParameterError
from dynamics.theory.data import (
    MOST_ORBITS,
    Law,
    Orbits,
    Type,
    collected,
    require_few_types,
    times,
    types_of,
    ways,
)

#: More than the rounding of the chances that are added up, relative.
ROUNDING = 1e-9
#: Shares of the remainder at which a branch may be left out, tried in turn.
SHARES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def truncated(law: Law, remainder: float) -> Orbits:
    """Return configurations up to symmetry whose chances sum to 1 up to a remainder.

    Parameters
    ----------
    law
        The data.
    remainder
        Chance that may be left out, in (0, 1). ``remainder`` of what is returned bounds what is
        left out, rounding included: a loss within [0, M] is missed by at most M times that.

    Raises
    ------
    ParameterError
        If that takes more than `MOST_ORBITS` configurations, or if the remainder is not allowed.
    """
    if not 0.0 < remainder < 1.0:
        raise ParameterError(f"remainder = {remainder} is not allowed: it must be in (0, 1)")
    require_few_types(law)
    types = [sorted(types_of(larger), key=lambda t: -t.weight) for larger in law.larger]
    for share in SHARES:
        branch = _Branches(law, types, share * remainder)
        rows, weights = [], []
        for chance, families in branch.configurations(0, 1.0, law.subset_size):
            rows.append(families)
            weights.append(chance / law.normaliser)
            if len(weights) > MOST_ORBITS:
                raise ParameterError(
                    f"more than {MOST_ORBITS:g} data orbits are likely at remainder = "
                    f"{remainder:g}: choose a larger one, or smaller sizes"
                )
            if branch.lost > remainder:
                break
        if branch.lost <= remainder:
            return collected(law, weights, rows, branch.lost)
    raise ParameterError(
        f"the data cannot be cut at remainder = {remainder:g}: {branch.lost:.2g} would be left out"
    )


@dataclass
class _Branches:
    """Enumeration without what is less likely than ``least``; ``lost`` bounds its chance."""

    law: Law
    types: Sequence[list[Type]]
    least: float
    lost: float = 0.0

    def __post_init__(self) -> None:
        self._rest = [
            [math.fsum(t.weight for t in own[at:]) for at in range(len(own) + 1)]
            for own in self.types
        ]
        masses = [rest[0] ** x.size for rest, x in zip(self._rest, self.law.larger)]
        self._after = [math.prod(masses[s + 1 :]) for s in range(len(masses))]

    def _unlikely(self, s: int, at: int, size: int, chance: float) -> bool:
        """Tell whether all that can follow may be left out, and add up its chance if so."""
        rest = self._rest[s][at] ** size * self._after[s]
        mass = float(times(chance, rest) / self.law.normaliser)
        if mass >= self.least:
            return False
        self.lost += mass * (1.0 + ROUNDING)
        return True

    def configurations(
        self, s: int, chance: float, left: tuple[int, ...]
    ) -> Iterator[tuple[float, list[list[tuple[int, Type]]]]]:
        """Yield chance and families of the sets from ``s`` on."""
        if s == len(self.types):
            if not any(left):
                yield chance, []
            return
        for own_chance, own, unused in self._multisets(s, 0, self.law.larger[s].size, left, chance):
            for total, rest in self.configurations(s + 1, own_chance, unused):
                yield total, [own, *rest]

    def _multisets(
        self, s: int, at: int, size: int, left: tuple[int, ...], chance: float
    ) -> Iterator[tuple[float, list[tuple[int, Type]], tuple[int, ...]]]:
        if self._unlikely(s, at, size, chance):
            return
        if size == 0:
            yield chance, [], left
            return
        if at == len(self.types[s]):
            return
        kind = self.types[s][at]
        for count in range(size + 1):
            unused = tuple(have - count * use for have, use in zip(left, kind.uses))
            if min(unused, default=0) < 0:
                break
            grown = times(chance, ways(size, count, kind.weight))
            own = [(count, kind)] if count else []
            for total, rest, last in self._multisets(s, at + 1, size - count, unused, grown):
                yield total, own + rest, last
