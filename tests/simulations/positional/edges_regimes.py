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
}  # fmt: skip
