"""Partitions of patches as one word: ``0-3/4,5/6-7``, the next cluster after a colon."""

import re
from itertools import groupby

from dynamics.core.errors import ParameterError

Partition = tuple[tuple[int, ...], ...]

#: So many patches can be written out: what follows enumerates the sets of areas.
MOST = 10_000
_PIECE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")


def partitions_from(text: str) -> tuple[Partition, ...]:
    """Return clusters of areas of patch indices.

    Raises
    ------
    ParameterError
        If the text is nothing of the kind; whether it is a partition the problem checks.
    """
    return tuple(tuple(_area(area) for area in cluster.split("/")) for cluster in text.split(":"))


def _area(text: str) -> tuple[int, ...]:
    patches: list[int] = []
    for piece in text.split(","):
        found = _PIECE.fullmatch(piece.strip())
        if found is None:
            raise ParameterError(
                f"partitions = {text[:40]!r} is not allowed: an area must be patches such as 0-3 "
                "or 4,5; areas are separated by / and clusters by a colon"
            )
        first, last = int(found[1]), int(found[2] or found[1])
        patches += range(first, last + 1)
        if len(patches) > MOST:
            raise ParameterError(
                f"partitions with {len(patches)} patches in an area are not allowed: at most {MOST}"
            )
    return tuple(patches)


def partitions_as_text(partitions: tuple[Partition, ...]) -> str:
    """Return the word that `partitions_from` reads as these partitions."""
    return ":".join("/".join(map(_as_text, cluster)) for cluster in partitions)


def _as_text(area: tuple[int, ...]) -> str:
    runs = groupby(enumerate(sorted(area)), key=lambda pair: pair[1] - pair[0])
    ends = [[patch for _, patch in run] for _, run in runs]
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in ends)
