"""Values on either side of each threshold of the claims about regimes and proofs."""

import math
from typing import Any

from simulations.positional.claims.theorem_4_1_large_D import ERROR_GOAL

NAN = math.nan

#: Claim -> (table, predicate, values that pass, values that do not).
EDGES: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "theorem-4.1-large-D": [
        ("flows", "patch association at the end", {"associates": True}, {"associates": False}),
        ("flows", "the population risk falls to 1e-3", {"risk": 1.00009e-3}, {"risk": 1.00011e-3}),
        ("flows", "test error at most 1e-3/log 2",
         {"test_error": ERROR_GOAL}, {"test_error": 1.443e-3}),
    ],
    "events-large-D": [
        ("events", "T0 < T1", {"T0": 1.0, "T1": 1.1}, {"T0": 1.0, "T1": 1.0}),
        ("events", "T0 < T1", {"T0": 1.0, "T1": 1.1}, {"T0": 1.0, "T1": NAN}),
        ("events", "III: alpha increases again", {"onset": 1e3}, {"onset": NAN}),
        ("events", "III: until the population risk is at most 1e-3",
         {"onset": 1e3, "risk_after_rise": 1e-3}, {"onset": 1e3, "risk_after_rise": 1.01e-3}),
        ("events", "III: until the population risk is at most 1e-3",
         {"onset": 1e3, "risk_after_rise": 1e-3}, {"onset": NAN, "risk_after_rise": 1e-3}),
    ],
    "gamma-ge-rho-boundary": [
        ("flows", "gamma >= rho holds where the boundary predicts it",
         {"holds": True, "predicted": True}, {"holds": True, "predicted": False}),
        ("flows", "gamma >= rho holds where the boundary predicts it",
         {"holds": False, "predicted": False}, {"holds": False, "predicted": True}),
        ("maps", "the map has flows on both sides",
         {"failures": 1, "flows": 2}, {"failures": 0, "flows": 2}),
        ("maps", "the map has flows on both sides",
         {"failures": 1, "flows": 2}, {"failures": 2, "flows": 2}),
    ],
    "regime-of-theorem-4.1": [
        ("boundary", "the conclusions do not fail within the hypotheses on the data",
         {"outside": 0.51, "hypotheses_density": 0.5}, {"outside": 0.5, "hypotheses_density": 0.5}),
        ("boundary", "the region does not shrink with D",
         {"outside": 1.41, "inside_before": 1.4}, {"outside": 1.4, "inside_before": 1.4}),
        ("boundary", "the region does not shrink with D",
         {"outside": 1.4, "inside_before": NAN}, {"outside": NAN, "inside_before": NAN}),
    ],
    "scaling-theory": [
        ("identities", "every exact identity holds",
         {"fewest": 1, "failed": 0}, {"fewest": 1, "failed": 1}),
        ("identities", "every exact identity holds",
         {"fewest": 1, "failed": 0}, {"fewest": 0, "failed": 0}),
        *(("flows", predicate, {column: sign * 0.0199}, {column: sign * 0.0201})
          for column, predicate in (
              ("alpha_star", "alpha* is within 2 % of the limit"),
              ("T1", "T1, given max |rho|, is within 2 % of the limit"),
          ) for sign in (1, -1)),
        *(("flows", "alpha jumps at the predicted fold, and nowhere else",
           {"jump_sought": True} | passes, {"jump_sought": True} | fails)
          for passes, fails in (
              ({"fold_G": 100.0, "jump_G": 104.9}, {"fold_G": 100.0, "jump_G": 105.1}),
              ({"fold_G": 100.0, "jump_G": 95.1}, {"fold_G": 100.0, "jump_G": 94.9}),
              ({"fold_G": NAN, "jump_G": NAN}, {"fold_G": NAN, "jump_G": 50.0}),
              ({"fold_G": NAN, "jump_G": NAN}, {"fold_G": 100.0, "jump_G": NAN}),
          )),
        ("flows", "alpha jumps at the predicted fold, and nowhere else",
         {"jump_sought": False, "fold_G": NAN, "jump_G": NAN},
         {"jump_sought": NAN, "fold_G": NAN, "jump_G": NAN}),
    ],
    "theorem-4.1-proved": [
        ("tubes", "the tube reaches its horizon",
         {"enclosed_until": 1e5, "horizon": 1e5}, {"enclosed_until": 9.9e4, "horizon": 1e5}),
        ("tubes", "1: patch association is proved at the end",
         {"associates": True}, {"associates": False}),
        ("tubes", "2: the test error is proved to be at most P[y f* <= 0] + 1/d",
         {"test_error_high": 0.1, "most": 0.1}, {"test_error_high": 0.101, "most": 0.1}),
        ("trainings", "the training stays in the tube", {"share": 1.0}, {"share": 1.01}),
    ],
    "gamma-ge-rho-proved": [
        ("tubes", "the tube reaches its horizon",
         {"enclosed_until": 1e5, "horizon": 1e5}, {"enclosed_until": 9.9e4, "horizon": 1e5}),
        ("tubes", "gamma > rho from time 0 to the end of the tube",
         {"positive_from": 0.0}, {"positive_from": 1e-9}),
        ("tubes", "gamma > rho for ever after", {"forever": True}, {"forever": False}),
        ("tubes", "the training stays in the tube", {"share": 1.0}, {"share": 1.01}),
    ],
    "gamma-ge-rho-refuted": [
        ("tubes", "gamma(t) >= rho(t) at all times",
         {"negative_from": NAN}, {"negative_from": 1e-3}),
        ("tubes", "a counterexample is proved",
         {"negative_from": 1e-3, "negative_until": 2e-3},
         {"negative_from": NAN, "negative_until": NAN}),
        ("tubes", "the training stays in the tube", {"share": 1.0}, {"share": 1.01}),
    ],
    "gamma-ge-rho-certified": [
        ("boxes", "d(gamma - rho)/dt >= 0 is proved on the whole box",
         {"answer": "proved"}, {"answer": "undecided"}),
        ("boxes", "no point refutes it", {"answer": "undecided"}, {"answer": "refuted"}),
        ("boxes", "no population gradient contradicts the answer",
         {"contradictions": 0}, {"contradictions": 1}),
    ],
}  # fmt: skip
