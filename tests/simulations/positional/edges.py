"""Values on either side of each threshold of the claims."""

from typing import Any

from tests.simulations.stated.edges import REDUCTION

#: Claim -> (table, predicate, values that pass, values that do not).
EDGES: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "figure-3": [
        ("data point", "f* > 0 where more patches hold -1 than +1",
         {"f_star": 4, "minus": 31, "plus": 30}, {"f_star": 4, "minus": 30, "plus": 30}),
        ("data point", "f* > 0 where more patches hold -1 than +1",
         {"f_star": 4, "minus": 31, "plus": 30}, {"f_star": 0, "minus": 31, "plus": 30}),
        ("data point", "a set holds +1 alone", {"whole_sets": 1}, {"whole_sets": 0}),
        ("data point", "the share is its exact probability",
         {"deviation": 3.99}, {"deviation": 4.01}),
        ("data point", "the share is its exact probability",
         {"deviation": -3.99}, {"deviation": -4.01}),
    ],
    "stated": REDUCTION,
}  # fmt: skip
