"""Values on either side of each threshold of the claims."""

from typing import Any

#: Claim -> (table, predicate, values that pass, values that do not).
EDGES: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "figure-1a": [
        ("models", "P is local in four of five runs, unless images are permuted",
         {"permuted": False, "runs": 5, "local": 4}, {"permuted": False, "runs": 5, "local": 3}),
        ("models", "P is local in four of five runs, unless images are permuted",
         {"permuted": True, "runs": 5, "local": 0}, {"permuted": False, "runs": 5, "local": 0}),
        *(("models", "before training P is random, unless images are permuted",
           {"permuted": False, "mean_start_z": sign * 1.99},
           {"permuted": False, "mean_start_z": sign * 2.01}) for sign in (1, -1)),
        ("models", "before training P is random, unless images are permuted",
         {"permuted": True, "mean_start_z": 3.0}, {"permuted": False, "mean_start_z": 3.0}),
        *(("models", "after training on permuted images P is random",
           {"permuted": True, "mean_z": sign * 1.99},
           {"permuted": True, "mean_z": sign * 2.01}) for sign in (1, -1)),
        ("models", "after training on permuted images P is random",
         {"permuted": False, "mean_z": 30.0}, {"permuted": True, "mean_z": 30.0}),
        ("models", "P of vanilla attention is local in some run", {"local": 1}, {"local": 0}),
    ],
    "figure-5": [
        ("equivariance", "permuted patches give the same run of a ViT",
         {"deviation": 0.99e-14}, {"deviation": 1.01e-14}),
        ("errors", "the CNN on permuted cells is within 5 % of the mean of the visible pixels",
         {"test_error": 0.951, "visible_mean": 1.0}, {"test_error": 0.949, "visible_mean": 1.0}),
        ("locality", "P is local with the permutation undone", {"p": 0.005}, {"p": 0.0051}),
        *(("order shown", "P is not local in the order shown",
           {"mean_shown_z": sign * 1.99}, {"mean_shown_z": sign * 2.01}) for sign in (1, -1)),
    ],
    "figure-6-7": [
        ("data sets", "positional attention is at most 0.03 behind",
         {"difference_high": 0.0299}, {"difference_high": 0.0301}),
        ("parts", "not every part is absent",
         {"absent": 2, "parts": 3}, {"absent": 3, "parts": 3}),
    ],
    "section-2-trained-P": [
        ("runs", "every row of P^T P shows its set", {"rows": 1.0}, {"rows": 35 / 36}),
        ("runs", "with (T) entries within sets rank higher than before training",
         {"auc": 0.51, "start_auc": 0.5}, {"auc": 0.5, "start_auc": 0.5}),
    ],
    "augmentation-makes-locality": [
        ("locality", "P is local", {"mean_z_low": 0.01}, {"mean_z_low": 0.0}),
        ("parts", "not every part is absent",
         {"absent": 1, "parts": 2}, {"absent": 2, "parts": 2}),
    ],
}  # fmt: skip
