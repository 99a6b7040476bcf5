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
    "lemma-4.3": [
        *IDENTITIES,
        ("factors", "gamma's factor is at most polylog(d)",
         {"gamma_factor_greatest": 0.99}, {"gamma_factor_greatest": 1.01}),
        ("factors", "gamma's factor is at least 1/polylog(d)",
         {"gamma_factor_least": 1.01}, {"gamma_factor_least": 0.99}),
        ("factors", "|rho|'s constant is at most polylog(d)",
         {"rho_constant": 0.99}, {"rho_constant": 1.01}),
        ("factors", "gamma's factor is positive",
         {"gamma_factor_least": 1e-9}, {"gamma_factor_least": 0.0}),
        ("factors", "rho moves less than gamma", {"rho_share": 0.99}, {"rho_share": 1.0}),
        ("exponents", "gamma's greatest factor scales no faster than polylog(d)",
         {"exponent_gamma_greatest": 0.29, "exponent_polylog": 0.3},
         {"exponent_gamma_greatest": 0.31, "exponent_polylog": 0.3}),
        ("exponents", "gamma's greatest factor scales no faster than polylog(d)",
         {"exponent_gamma_greatest": -0.29, "exponent_polylog": 0.3},
         {"exponent_gamma_greatest": -0.31, "exponent_polylog": 0.3}),
        ("exponents", "gamma's least factor scales no faster than polylog(d)",
         {"exponent_gamma_least": 0.29, "exponent_polylog": 0.3},
         {"exponent_gamma_least": 0.31, "exponent_polylog": 0.3}),
        ("exponents", "gamma's least factor scales no faster than polylog(d)",
         {"exponent_gamma_least": -0.29, "exponent_polylog": 0.3},
         {"exponent_gamma_least": -0.31, "exponent_polylog": 0.3}),
        ("exponents", "|rho|'s constant grows no faster than polylog(d)",
         {"exponent_rho": 0.29, "exponent_polylog": 0.3},
         {"exponent_rho": 0.31, "exponent_polylog": 0.3}),
    ],
    "theorem-4.1": [
        ("conclusions", "item 1: patch association",
         {"associates_in_time": True}, {"associates_in_time": False}),
        ("conclusions", "item 2: P[f* F <= 0] is at most 1/d",
         {"disagreement_in_time": 0.01, "small": 0.01},
         {"disagreement_in_time": 0.0101, "small": 0.01}),
        ("conclusions", "the population risk is at most 1/d",
         {"risk_in_time": 0.01, "small": 0.01}, {"risk_in_time": 0.0101, "small": 0.01}),
        ("conclusions", "P[f* F <= 0] falls in time",
         {"disagreement_over_earlier": 0.99}, {"disagreement_over_earlier": 1.0}),
        ("conclusions", "the population risk falls in time",
         {"risk_over_earlier": 0.99}, {"risk_over_earlier": 1.0}),
        ("larger D", "P[f* F <= 0] falls with D",
         {"disagreement_over_smaller_D": 0.99}, {"disagreement_over_smaller_D": 1.0}),
        ("larger D", "the population risk falls with D",
         {"risk_over_smaller_D": 0.99}, {"risk_over_smaller_D": 1.0}),
    ],
}  # fmt: skip
