"""Values on either side of each threshold of the claims."""

from typing import Any

from tests.simulations.stated.edges import REDUCTION

#: Claim -> (table, predicate, values that pass, values that do not).
EDGES: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "events": [
        ("events", "I: alpha increases from its start",
         {"start_alpha": 0.099, "alpha_star": 0.1}, {"start_alpha": 0.1, "alpha_star": 0.1}),
        ("events", "II: gamma exceeds max |rho|", {"T1": 1e3}, {"T1": float("nan")}),
        ("events", "III: alpha increases again, until the end",
         {"onset": 1e3, "end_of_rise": float("nan")}, {"onset": 1e3, "end_of_rise": 1e4}),
        ("events", "III: alpha increases again, until the end",
         {"onset": 1e3, "end_of_rise": float("nan")},
         {"onset": float("nan"), "end_of_rise": float("nan")}),
    ],
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
