"""Values on either side of each threshold of the claims on further statements."""

from typing import Any

#: Claim -> (table, predicate, values that pass, values that do not).
EDGES: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "equation-T": [
        ("conclusions", "item 1: patch association", {"associates": 1.0}, {"associates": 0.0}),
        ("conclusions", "item 2: P[f* F <= 0] at most 1/d",
         {"disagreement": 0.0099, "small": 0.01}, {"disagreement": 0.0101, "small": 0.01}),
        ("conclusions", "population risk at most 1/d",
         {"risk": 0.0099, "small": 0.01}, {"risk": 0.0101, "small": 0.01}),
    ],
    "theorem-4.1-dimension": [
        ("conclusions", "item 1: patch association", {"associates": 1.0}, {"associates": 0.0}),
        ("conclusions", "item 2: P[f* F <= 0] at most 1/D",
         {"disagreement": 0.0099, "small": 0.01}, {"disagreement": 0.0101, "small": 0.01}),
        ("conclusions", "population risk at most 1/D",
         {"risk": 0.0099, "small": 0.01}, {"risk": 0.0101, "small": 0.01}),
    ],
    "lemma-D.2": [
        ("event I", "alpha reaches a threshold at T0 > 0", {"T0": 1e-9}, {"T0": 0.0}),
        ("event I", "alpha increases until T0",
         {"start": 0.99, "least_step": 1e-9}, {"start": 1.01, "least_step": 1e-9}),
        ("event I", "alpha increases until T0",
         {"start": 0.99, "least_step": 1e-9}, {"start": 0.99, "least_step": -1e-9}),
        ("event I", "v moves faster than every A_ij until T0", {"faster": 1.01}, {"faster": 0.99}),
        ("event I", "A stays at its start until T0", {"moved": 0.0099}, {"moved": 0.0101}),
    ],
    "linear-at-start": [
        ("start", "F errs exactly where the linear predictor does",
         {"model_error": 0.1, "linear_error": 0.1 + 0.9e-9, "allowed": 1e-9},
         {"model_error": 0.1, "linear_error": 0.1 + 1.1e-9, "allowed": 1e-9}),
        ("start", "F errs exactly where the linear predictor does",
         {"model_error": 0.1 + 0.9e-9, "linear_error": 0.1, "allowed": 1e-9},
         {"model_error": 0.1 + 1.1e-9, "linear_error": 0.1, "allowed": 1e-9}),
        ("start", "it errs with probability at least 1/8",
         {"linear_error": 0.1251}, {"linear_error": 0.1249}),
        ("start", "its risk is at least log(2)/8 at every scale of v",
         {"linear_risk": 0.0867, "model_risk": 0.0867},
         {"linear_risk": 0.0866, "model_risk": 0.0867}),
        ("start", "its risk is at least log(2)/8 at every scale of v",
         {"linear_risk": 0.0867, "model_risk": 0.0867},
         {"linear_risk": 0.0867, "model_risk": 0.0866}),
    ],
    "lemma-D.11": [
        ("event III", "T1 exists", {"T1": 1.0}, {"T1": float("nan")}),
        ("event III", "alpha increases at T1",
         {"drift": 1e-9, "difference": 1e-9}, {"drift": -1e-9, "difference": 1e-9}),
        ("event III", "alpha increases at T1",
         {"drift": 1e-9, "difference": 1e-9}, {"drift": 1e-9, "difference": -1e-9}),
        ("event III", "it increases until the risk is 1e-3",
         {"risk_at_top": 1.0009e-3}, {"risk_at_top": 1.0011e-3}),
    ],
    "theorem-4.2-one-rate": [
        ("conclusions", "item 1: patch association in every row",
         {"association": 1.0}, {"association": 0.99}),
        ("conclusions", "item 2: P[f* F <= 0] a quarter of that of uniform attention",
         {"disagreement": 0.0249, "linear": 0.1}, {"disagreement": 0.0251, "linear": 0.1}),
    ],
}  # fmt: skip
