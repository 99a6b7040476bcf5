"""Values on both sides of each threshold of the claims of the shallow transformer."""

from typing import Any

#: A decrease of the loss, relative to all tokens and to random removal.
HELPS = {
    "gain_low": 1e-9, "gain_high": 1.0, "gain_over_random_low": 1e-9, "gain_over_random_high": 1.0,
}  # fmt: skip
#: Slopes that agree with the paper, without attention and with.
STEEP = {"attention": False, "stated": -4.0, "slope_low": -5.0, "slope_high": -3.51}
FLAT = {"attention": True, "stated": -2.0, "slope_low": -2.49, "slope_high": -1.0}
#: A curve that agrees with the slides.
READ = {"read": 0.7, "allowed": 0.1, "attention_low": 0.7, "attention_high": 0.7}
_SAMPLES = "N grows at most (without attention: at least) as stated, to 0.5"

#: Mapping from claim to (table, predicate, values that pass, values that fail).
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
    "li-theorem-1-iterations": [
        *(
            ("exponents", "the exponent predicted is inside the interval",
             {"exponent_predicted": 1.0, "exponent_low": low, "exponent_high": high}, fails)
            for low, high in ((1.0, 1.1), (0.9, 1.0))
            for fails in (
                {"exponent_predicted": 1.0, "exponent_low": 1.0001, "exponent_high": 1.1},
                {"exponent_predicted": 1.0, "exponent_low": 0.9, "exponent_high": 0.9999},
            )
        ),
        ("exponents", "the exponent is resolved to 0.15",
         {"exponent_low": 1.0, "exponent_high": 1.299},
         {"exponent_low": 1.0, "exponent_high": 1.301}),
    ],
    "li-optimizers": [
        ("runs", "the hinge loss becomes small", {"learned": 1e9}, {"learned": float("nan")}),
        ("runs", "zero generalization error at the end",
         {"test_error": 0.0}, {"test_error": 1e-300}),
        ("runs", "attention comes within 0.05 of the plateau",
         {"plateau": 0.5, "end": 0.451}, {"plateau": 0.5, "end": 0.449}),
        ("runs", "it does not exceed the plateau",
         {"plateau": 0.5, "end": 0.5 + 0.9e-9}, {"plateau": 0.5, "end": 0.5 + 1.1e-9}),
    ],
    "li-sparsification": [
        ("losses", "without relevant tokens the loss rises",
         {"change_low": 1e-9}, {"change_low": 0.0}),
        ("helps", "removing them lowers the test loss", HELPS, HELPS | {"gain_low": 0.0}),
        ("helps", "removing them lowers the test loss",
         HELPS, HELPS | {"gain_over_random_low": 0.0}),
        ("parts", "not every part is absent",
         {"absent": 3, "parts": 4}, {"absent": 4, "parts": 4}),
    ],
    "li-sample-complexity": [
        *(
            (table, _SAMPLES, passes, fails)
            for table in ("first order", "hinge")
            for passes, fails in (
                (STEEP, STEEP | {"slope_high": -3.49}),
                (FLAT, FLAT | {"slope_low": -2.51}),
            )
        ),
        ("first order", "the interval does not exclude that",
         STEEP | {"slope_low": -3.51, "slope_high": -1.0},
         STEEP | {"slope_low": -3.49, "slope_high": -1.0}),
        ("first order", "the interval does not exclude that",
         FLAT | {"slope_low": -5.0, "slope_high": -2.49},
         FLAT | {"slope_low": -5.0, "slope_high": -2.51}),
    ],
    "li-noise": [
        ("growth", "the number of samples grows",
         {"growth_low": 1.01, "growth_high": 1.4}, {"growth_low": 1.0, "growth_high": 3.0}),
        ("parts", "not every part is absent",
         {"absent": 5, "parts": 6}, {"absent": 6, "parts": 6}),
    ],
    "li-proposition-2": [
        *(
            ("curve", "the curve agrees with the slides",
             READ | {end: 0.7 + 0.099 * side}, READ | {end: 0.7 + 0.101 * side})
            for end, side in (("attention_low", -1.0), ("attention_high", 1.0))
        ),
        ("curve", "the interval is not wholly off the slides",
         READ | {"attention_low": 0.799, "attention_high": 0.9},
         READ | {"attention_low": 0.801, "attention_high": 0.9}),
        ("curve", "the interval is not wholly off the slides",
         READ | {"attention_low": 0.5, "attention_high": 0.601},
         READ | {"attention_low": 0.5, "attention_high": 0.599}),
        ("curve", "the interval is not wholly off the slides",
         READ | {"attention_low": 0.5, "attention_high": 0.9},
         READ | {"attention_low": 0.9, "attention_high": 0.95}),
        ("plateaus", "it does not exceed the plateau",
         {"end": 0.8 + 0.9e-9, "plateau": 0.8}, {"end": 0.8 + 1.1e-9, "plateau": 0.8}),
        ("plateaus", "it comes within 0.05 of the plateau",
         {"end": 0.7501, "plateau": 0.8}, {"end": 0.7499, "plateau": 0.8}),
        ("exponents", "1 - attention falls as 1/t or faster", {"rate": -1.0}, {"rate": -0.999}),
        ("exponents", "eta, not eta_KQ/eta, sets the limit",
         {"C": 0.1, "missing_ratio": 0.0}, {"C": 0.0999, "missing_ratio": 0.499}),
        ("exponents", "eta, not eta_KQ/eta, sets the limit",
         {"C": 0.0, "missing_ratio": 0.5}, {"C": 0.0, "missing_ratio": 0.499}),
    ],
}  # fmt: skip
