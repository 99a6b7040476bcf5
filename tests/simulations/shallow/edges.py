"""Values on either side of each threshold of the claims."""

from typing import Any

#: Claim -> (table, predicate, values that pass, values that do not).
EDGES: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "li-conserved": [
        ("shapes", "no more and no fewer forms than expected",
         {"forms": 4, "expected": 4}, {"forms": 5, "expected": 4}),
        ("shapes", "no more and no fewer forms than expected",
         {"forms": 4, "expected": 4}, {"forms": 3, "expected": 4}),
        ("shapes", "the two spaces are equal", {"outside": 0.99e-6}, {"outside": 1.01e-6}),
        ("shapes", "each form is conserved", {"rate": 0.99e-10}, {"rate": 1.01e-10}),
        ("shapes", "with a plus sign it changes", {"control": 1.01e-2}, {"control": 0.99e-2}),
    ],
    "li-reduction": [
        ("draws", "SGD on counts is SGD on tokens",
         {"difference": 9e-12}, {"difference": 1.1e-11}),
        ("draws", "A and H move", {"moved": 0.101}, {"moved": 0.099}),
        ("conserved quantities", "the drift is of first order in the rate",
         {"drift_ratio": 2.09}, {"drift_ratio": 2.11}),
        ("conserved quantities", "the drift is of first order in the rate",
         {"drift_ratio": 1.91}, {"drift_ratio": 1.89}),
    ],
}  # fmt: skip
