"""What is drawn in ``figures/large_D.py``."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray


def gather(found: Mapping[Any, Any]) -> xarray.Dataset:
    """Return what is drawn, dims (scaling, qD, D), from runs keyed by their case; nan without."""
    scalings = list(dict.fromkeys(case.scaling for case in found))
    features = sorted({case.features for case in found})
    sizes = sorted({case.D for case in found})

    def table(value: Any) -> tuple[tuple[str, ...], np.ndarray]:
        by_place = {(c.scaling, c.features, c.D): float(value(run)) for c, run in found.items()}
        rows = [
            [[by_place.get((s, f, D), np.nan) for D in sizes] for f in features] for s in scalings
        ]
        return ("scaling", "qD", "D"), np.array(rows)

    return xarray.Dataset(
        {
            "alpha_star": table(lambda run: run.events.alpha_star),
            "T0": table(lambda run: run.events.T0.time),
            "T1": table(lambda run: run.events.T1.time),
            "T1_theory": table(lambda run: run.predicted_T1),
            "rise": table(lambda run: run.events.rise),
            "risk_after_rise": table(lambda run: run.risk_after_rise),
            "rise_ends": table(lambda run: run.events.end_of_rise.happens),
            "G": table(lambda run: run.G),
            "end": table(lambda run: run.path.time[-1]),
            "loss": table(lambda run: run.path.loss[-1]),
            "test_error": table(lambda run: run.test_error),
            "settled_error": table(lambda run: run.settled_error),
            "label_error": table(lambda run: run.label.error),
        },
        coords={"scaling": scalings, "qD": features, "D": sizes},
    )
