"""Data in a random orthonormal frame, and what a theory with frames may contain.

The vectors of a frame are orthonormal, and rotated at random. Two vectors enter a loss only through
sums over their coordinates, so that a rotation of the frame and of all parameters together changes
nothing. The mean over rotations is therefore the loss of one rotation, at which the vectors are
unit vectors (`symbolic.theory.lowering`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symbolic.theory.errors import calling_line, require, short_repr
from symbolic.theory.expression import Node
from symbolic.theory.sets import MOST_POSITIONS, IndexSet, Ordered, Signed, Turned
from symbolic.theory.sources import Source
from symbolic.theory.tensors import check_name_and_axes

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory


class Frame(Source):
    """Vectors of a random orthonormal frame: ``x["t", "i"]`` is coordinate i of the vector at t.

    All frames over one set of coordinates are the same frame. The frame of a `Signed` set is any
    rotation of unit vectors; that of a `Turned` set is a rotation that commutes with the quarter
    turn M, so that vector 2k + 1 is M times vector 2k. In the loss, an index of coordinates must
    occur in exactly two factors and be summed over.

    Parameters
    ----------
    name
        The letter.
    position
        Ordered set.
    coordinate
        `Signed` or `Turned` set, or a `Union` of such sets, of given sizes.
    vectors
        Mapping from the name of each part of ``coordinate`` to the numbers of the vectors of the
        frame, one for each position.

    Raises
    ------
    TheoryError
        If an argument is not allowed.

    Examples
    --------
    Three tokens, of which the last repeats the first:

    >>> from symbolic.theory import Frame, Ordered, Signed
    >>> x = Frame("x", Ordered("position", 3), Signed("item", 4), {"item": [0, 1, 0]})
    """

    def __init__(
        self,
        name: str,
        position: Ordered,
        coordinate: IndexSet,
        vectors: Mapping[str, Sequence[int]],
    ) -> None:
        check_name_and_axes(name, (position, coordinate))
        require(
            isinstance(position, Ordered),
            f"position of {name} = {short_repr(position)} is not allowed: it must be an ordered "
            "set",
        )
        for part in coordinate.parts:
            require(
                isinstance(part, Signed) and bool(part.size.is_Integer),
                f"coordinate of {name} = {part} is not allowed: it must be a Signed or Turned set "
                "whose size is a whole number",
            )
        require(
            coordinate.count <= MOST_POSITIONS,
            f"coordinate of {name} = {coordinate} with {coordinate.count} elements is not allowed: "
            f"there must be at most {MOST_POSITIONS}",
        )
        parts = [part.name for part in coordinate.parts]
        require(
            isinstance(vectors, Mapping) and set(vectors) == set(parts),
            f"vectors of {name} = {short_repr(vectors)} is not allowed: it must be a mapping with "
            f"the numbers of the vectors in {' and '.join(parts)}",
        )
        self.name, self.location, self.over = name, calling_line(), position
        self.axes = (position, coordinate)
        self.vectors = {part: tuple(vectors[part.name]) for part in coordinate.parts}
        for part, numbers in self.vectors.items():
            require(
                len(numbers) == position.count
                and all(isinstance(x, int) and 0 <= x < part.size for x in numbers),
                f"vectors of {name} = {short_repr(list(numbers))} in {part} is not allowed: there "
                f"must be {position.count} whole numbers from 0 to {part.size - 1}",
            )

    def require_law(self, value: Any) -> None:
        """Accept all sizes and constants: the law has no numbers."""


def is_framed(theory: Theory) -> bool:
    """Return whether a theory has frames, or sets that occur in frames only."""
    return any(isinstance(x, Frame) for x in theory.data) or any(
        isinstance(part, Turned) for part in theory.sets
    )


def require_contracted(theory: Theory) -> None:
    """Raise `TheoryError` unless rotations of the frames change nothing in a theory.

    Sets, data and parameters must be allowed next to frames, and the loss must sum each index of
    coordinates over exactly two factors.
    """
    for source in theory.data:
        require(
            isinstance(source, Frame),
            f"{source.name} is not allowed next to a Frame or a Turned set: all data must be "
            "Frames",
            theory.location,
        )
    rotated = {part for x in theory.data for part in x.axes[1].parts}
    for part in theory.sets:
        require(
            isinstance(part, Ordered) or part in rotated,
            f"{part} is not allowed in a theory with frames: it must be an ordered set or the "
            "coordinates of a Frame",
            part.location,
        )
    for tensor in theory.parameters:
        require(
            sum(s.signed for s in tensor.axes) <= 2,
            f"{tensor.name} over {', '.join(map(str, tensor.axes))} is not allowed: it may have at "
            "most two indices of coordinates of frames",
            tensor.location,
        )
    degrees: dict[Node, dict[str, int]] = {}
    for x in theory.nodes:
        degrees[x] = _degree(x, [degrees[y] for y in x.arguments])


def _degree(x: Node, arguments: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the number of factors in which each free index of coordinates occurs."""

    def check(condition: bool, index: str, reason: str) -> None:
        require(
            condition,
            f"index {index!r} of coordinates is not allowed {reason}: it must occur in exactly two "
            "factors of a product and be summed over, so that a rotation of the frame changes "
            "nothing",
            x.location,
        )

    degree: dict[str, int] = {}
    if x.op == "entry":
        for index in x.indices:
            if x.axes[index].signed:
                degree[index] = degree.get(index, 0) + 1
        return degree
    for own in arguments:
        for index, number in own.items():
            degree[index] = degree.get(index, 0) + number
    if x.op == "sum":
        number = degree.pop(x.detail, 2)
        check(number == 2, x.detail, f"in {number} factors of a sum")
    elif x.op == "add":
        for index, number in degree.items():
            equal = all(2 * own.get(index, 0) == number for own in arguments)
            check(equal, index, "in only some terms of a sum")
            degree[index] = number // 2
    elif x.op == "power":
        for index, number in degree.items():
            check(bool(x.detail.is_Integer and x.detail > 0), index, f"to the power {x.detail}")
            degree[index] = number * int(x.detail)
    elif x.op != "multiply":
        for index in (i for i, s in x.axes.items() if s.signed):
            check(False, index, f"within {x.op}")
    return degree
