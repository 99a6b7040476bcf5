"""The most probable data orbits, with a bound on the probability of the omitted ones.

Configurations are built type by type. The total probability of all completions of a partial
configuration is the power of a sum. Where it is small, the branch is omitted and its probability is
added to the bound, without enumerating the branch.
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
from dynamics.theory.sequences import SequenceLaw

#: Bound of the relative rounding error of the sum of omitted probabilities.
ROUNDING = 1e-9
#: Thresholds for omitting a branch, relative to the remainder, tried in this order.
SHARES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def truncated(law: Law | SequenceLaw, remainder: float) -> Orbits:
    """Return configurations up to symmetry whose probabilities sum to 1 up to a remainder.

    Parameters
    ----------
    law
        Distribution of the data.
    remainder
        Largest omitted probability, in (0, 1).

    Returns
    -------
    Orbits
        Its ``remainder`` bounds the omitted probability, rounding included: the mean of a loss in
        [0, M] changes by at most M times the remainder.

    Raises
    ------
    ParameterError
        If more than `MOST_ORBITS` configurations are needed, or the remainder is not allowed.
    """
    if not isinstance(law, Law):
        raise ParameterError(
            f"remainder = {remainder} is not allowed for a theory on ordered positions: all of its "
            "data orbits are used"
        )
    if not 0.0 < remainder < 1.0:
        raise ParameterError(f"remainder = {remainder} is not allowed: it must be in (0, 1)")
    require_few_types(law)
    types = [sorted(types_of(larger), key=lambda t: -t.weight) for larger in law.larger]
    for share in SHARES:
        branch = _Branches(law, types, share * remainder)
        rows, weights = [], []
        for probability, families in branch.configurations(0, 1.0, law.subset_size):
            rows.append(families)
            weights.append(probability / law.normaliser)
            if len(weights) > MOST_ORBITS:
                raise ParameterError(
                    f"more than {MOST_ORBITS:g} data orbits are needed at remainder = "
                    f"{remainder:g}: choose a larger one, or smaller sizes"
                )
            if branch.lost > remainder:
                break
        if branch.lost <= remainder:
            return collected(law, weights, rows, branch.lost)
    raise ParameterError(
        f"the data cannot be truncated at remainder = {remainder:g}: {branch.lost:.2g} would be "
        "omitted; choose a larger one"
    )


@dataclass
class _Branches:
    """Enumeration without branches of probability below ``least``; ``lost`` bounds their total."""

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

    def _unlikely(self, s: int, at: int, size: int, probability: float) -> bool:
        """Return whether a branch may be omitted; if so, add its probability to ``lost``."""
        rest = self._rest[s][at] ** size * self._after[s]
        mass = float(times(probability, rest) / self.law.normaliser)
        if mass >= self.least:
            return False
        self.lost += mass * (1.0 + ROUNDING)
        return True

    def configurations(
        self, s: int, probability: float, left: tuple[int, ...]
    ) -> Iterator[tuple[float, list[list[tuple[int, Type]]]]]:
        """Yield probability and families of the sets from ``s`` on."""
        if s == len(self.types):
            if not any(left):
                yield probability, []
            return
        for own_probability, own, unused in self._multisets(
            s, 0, self.law.larger[s].size, left, probability
        ):
            for total, rest in self.configurations(s + 1, own_probability, unused):
                yield total, [own, *rest]

    def _multisets(
        self, s: int, at: int, size: int, left: tuple[int, ...], probability: float
    ) -> Iterator[tuple[float, list[tuple[int, Type]], tuple[int, ...]]]:
        if self._unlikely(s, at, size, probability):
            return
        if size == 0:
            yield probability, [], left
            return
        if at == len(self.types[s]):
            return
        element_type = self.types[s][at]
        for count in range(size + 1):
            unused = tuple(have - count * use for have, use in zip(left, element_type.uses))
            if min(unused, default=0) < 0:
                break
            grown = times(probability, ways(size, count, element_type.weight))
            own = [(count, element_type)] if count else []
            for total, rest, last in self._multisets(s, at + 1, size - count, unused, grown):
                yield total, own + rest, last
