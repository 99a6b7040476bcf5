"""Times of events: found wherever they lie between two records."""

import pytest

from dynamics.core.crossing import root
from tests.closeness import close


@pytest.mark.parametrize("jump", [1e-9, 3.5e-3, 1.0, 4e17])
def test_a_jump_anywhere_in_a_long_time(jump):
    """Steps of descent at an absurd learning rate are that long."""
    close(root(lambda t: -1.0 if t < jump else 1e300, 0.0, 5e17), jump, rel=2e-3)


def test_a_change_that_rounding_hides_is_at_the_end():
    assert root(lambda t: 1.0, 2.0, 3.0) == 3.0
