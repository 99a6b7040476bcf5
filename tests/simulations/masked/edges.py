"""Values on either side of each threshold of the claims."""

from typing import Any

from tests.simulations.stated.edges import REDUCTION

#: Claim -> (table, predicate, values that pass, values that do not).
EDGES: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "huang-stated": REDUCTION,
}
