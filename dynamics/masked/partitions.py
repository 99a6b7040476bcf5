"""Partitions of patches: validation, and conversion to text.

In text, ``0-3/4,5/6-7`` is a partition into three areas. A colon separates clusters.
"""

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from dynamics.core.checks import integer, require
from dynamics.core.errors import ParameterError

Partition = tuple[tuple[int, ...], ...]

#: Largest number of patches with explicit partitions.
MOST_PATCHES = 10_000
_PIECE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


def partitions_from(text: str) -> tuple[Partition, ...]:
    """Parse clusters of areas of patch indices; `checked_partitions` checks that they fit.

    Raises
    ------
    ParameterError
        If the text does not have this form.
    """
    return tuple(tuple(_area(area) for area in cluster.split("/")) for cluster in text.split(":"))


def _area(text: str) -> tuple[int, ...]:
    patches: list[int] = []
    for piece in text.split(","):
        match = _PIECE.fullmatch(piece.strip())
        if match is None:
            raise ParameterError(
                f"partitions = {text[:40]!r} is not allowed: an area must be patches such as 0-3 "
                "or 4,5; areas are separated by / and clusters by a colon"
            )
        first, last = int(match[1]), int(match[2] or match[1])
        patches += range(first, last + 1)
        if len(patches) > MOST_PATCHES:
            raise ParameterError(
                f"partitions with {len(patches)} patches in an area are not allowed: an area must "
                f"have at most {MOST_PATCHES}"
            )
    return tuple(patches)


def partitions_as_text(partitions: tuple[Partition, ...]) -> str:
    """Return the text that `partitions_from` parses to these partitions."""
    return ":".join("/".join(map(_as_text, cluster)) for cluster in partitions)


def _as_text(area: tuple[int, ...]) -> str:
    runs = groupby(enumerate(sorted(area)), key=lambda pair: pair[1] - pair[0])
    ends = [[patch for _, patch in run] for _, run in runs]
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in ends)


def checked_partitions(P: int, partitions: Any) -> tuple[Partition, ...]:
    """Return clusters of areas of patch indices as tuples.

    Raises
    ------
    ParameterError
        If there is no cluster, more than 16, or an area is empty or has a wrong patch.
    """
    if not isinstance(partitions, Iterable) or not partitions:
        raise ParameterError("partitions is not allowed: it must contain at least one cluster")
    clusters = []
    for k, areas in enumerate(partitions, 1):
        try:
            cluster = tuple(tuple(integer("patch", patch) for patch in area) for area in areas)
        except TypeError:
            raise ParameterError(
                f"partitions: cluster {k} is not allowed: it must be a sequence of areas"
            ) from None
        patches = sorted(patch for area in cluster for patch in area)
        if patches != list(range(P)) or not all(cluster):
            raise ParameterError(
                f"partitions: cluster {k} is not allowed: its areas must be nonempty and contain "
                f"each patch 0..{P - 1} once"
            )
        clusters.append(cluster)
    require(len(clusters) <= 16, "K", len(clusters), "at most 16")
    return tuple(clusters)
