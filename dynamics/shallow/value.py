"""What the population of the shallow transformer knows at a state."""

from typing import NamedTuple


class ShallowValue(NamedTuple):
    """The hinge loss and what else follows from the outputs F.

    ``bound`` is an estimate of rounding; ``test_error`` is P[yF <= 0]; ``attention`` the mean over
    queries of the attention on relevant tokens; ``margin`` the mean of yF, ``least_margin`` its
    minimum over the samples that can occur.
    """

    loss: float
    bound: float
    test_error: float
    attention: float
    margin: float
    least_margin: float
