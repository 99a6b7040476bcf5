"""Values on either side of each threshold of the claims on further statements."""

from typing import Any

#: Claim -> (table, predicate, values that pass, values that do not).
EDGES: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "huang-growth-stages": [
        ("stages", "rapid growth: the speed of Phi_n rises to a peak",
         {"fall_before": 0.9e-6, "boost": 3.01}, {"fall_before": 1.1e-6, "boost": 3.01}),
        ("stages", "rapid growth: the speed of Phi_n rises to a peak",
         {"fall_before": 0.9e-6, "boost": 3.01}, {"fall_before": 0.9e-6, "boost": 2.99}),
        ("stages", "attention is of constant order at the peak",
         {"attention_peak": 0.101}, {"attention_peak": 0.099}),
        ("stages", "convergence: the speed falls after the peak",
         {"rise_after": 0.9e-6, "slowdown": 3.01}, {"rise_after": 1.1e-6, "slowdown": 3.01}),
        ("stages", "convergence: the speed falls after the peak",
         {"rise_after": 0.9e-6, "slowdown": 3.01}, {"rise_after": 0.9e-6, "slowdown": 2.99}),
        ("stages", "all other speeds are small from the peak on",
         {"lead_after": 3.01}, {"lead_after": 2.99}),
    ],
    "huang-loss-lemma": [
        ("losses", "A.8: the raw loss is that of the attention",
         {"raw": 0.1, "loss": 0.1 + 0.9e-12}, {"raw": 0.1, "loss": 0.1 + 1.1e-12}),
        ("losses", "A.9: no loss is below the floor",
         {"raw": 0.1 - 0.9e-12, "floor": 0.1}, {"raw": 0.1 - 1.1e-12, "floor": 0.1}),
        ("losses", "A.9: the floor is approached",
         {"aligned": 0.1 + 0.9e-12, "floor": 0.1}, {"aligned": 0.1 + 1.1e-12, "floor": 0.1}),
        ("losses", "A.10: between the two bounds",
         {"raw": 0.3 - 0.9e-12, "floor": 0.1, "shortfall": 0.4},
         {"raw": 0.3 - 1.1e-12, "floor": 0.1, "shortfall": 0.4}),
        ("losses", "A.10: between the two bounds",
         {"raw": 0.6 + 0.9e-12, "floor": 0.1, "shortfall": 0.4},
         {"raw": 0.6 + 1.1e-12, "floor": 0.1, "shortfall": 0.4}),
    ],
}  # fmt: skip
