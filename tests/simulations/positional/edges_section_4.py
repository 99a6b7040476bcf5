"""Values on either side of each threshold of the claims of Section 4.1."""

from typing import Any

#: Identities decided by derivations, some of them for all sizes.
IDENTITIES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("identities", "every exact identity holds",
     {"fewest": 1, "failed": 0}, {"fewest": 1, "failed": 1}),
    ("identities", "every exact identity holds",
     {"fewest": 1, "failed": 0}, {"fewest": 0, "failed": 0}),
]  # fmt: skip
GENERAL = [
    *IDENTITIES,
    ("identities", "identities for all sizes hold",
     {"general_hold": True}, {"general_hold": False}),
]  # fmt: skip
#: Claim -> (table, predicate, values that pass, values that do not).
EDGES: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "reduced-equals-full": [
        ("descents", "reduced and full descent agree at every step",
         {"difference": 0.99e-11, "difference_other_seeds": 0.0},
         {"difference": 1.01e-11, "difference_other_seeds": 0.0}),
        ("descents", "reduced and full descent agree at every step",
         {"difference": 0.0, "difference_other_seeds": 0.99e-11},
         {"difference": 0.0, "difference_other_seeds": 1.01e-11}),
    ],
    "sigma-a-breaks-symmetry": [
        ("sigma_A = 0", "gamma = rho at all times",
         {"largest_gap": 0.99e-12}, {"largest_gap": 1.01e-12}),
        ("sigma_A = 0", "G = C at all times",
         {"largest_G_change": 0.99e-12}, {"largest_G_change": 1.01e-12}),
        ("sigma_A > 0", "patch association starts", {"started": 1e6}, {"started": float("nan")}),
    ],
    "lemma-4.1": [
        *GENERAL,
        ("descents", "A takes three values",
         {"three_values": 0.99e-12}, {"three_values": 1.01e-12}),
        ("descents", "the diagonal of A is fixed", {"diagonal": 0.99e-12}, {"diagonal": 1.01e-12}),
        ("descents", "A is symmetric", {"symmetry": 0.99e-12}, {"symmetry": 1.01e-12}),
        ("descents", "gamma and rho move", {"moved": 1.01e-3}, {"moved": 0.99e-3}),
    ],
    "lemma-4.2": [
        *GENERAL,
        ("descents", "v stays in span(w*)", {"leak": 0.99e-12}, {"leak": 1.01e-12}),
    ],
}  # fmt: skip
