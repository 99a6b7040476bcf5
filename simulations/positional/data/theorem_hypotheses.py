"""What is drawn in ``figures/theorem_hypotheses.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray

from simulations.positional import runs
from simulations.positional.theorem_4_1 import LABEL_POWER, MUCH_LESS


def gather(inside: Mapping[Any, Any], outside: Mapping[Any, Any]) -> xarray.Dataset:
    """Return the bound on P[f* F <= 0] (problem, power) and the place of every problem."""
    powers = list(next(iter(inside.values())).at)

    def place(found: Mapping[Any, Any]) -> tuple[list[float], list[float]]:
        excess = [one.hypotheses.label_error * p.dimension**LABEL_POWER for p, one in found.items()]
        return [p.q for p in found], excess

    (q, excess), (q_outside, excess_outside) = place(inside), place(outside)
    return xarray.Dataset(
        {
            "disagreement": (
                ("problem", "power"),
                [[one.at[power].disagreement for power in powers] for one in inside.values()],
            ),
            "D": ("problem", [p.D for p in inside]),
            "qD": ("problem", [round(p.q * p.D, 9) for p in inside]),
            "q": ("problem", q),
            "label_excess": ("problem", excess),
            "q_outside": ("other", q_outside),
            "label_excess_outside": ("other", excess_outside),
        },
        coords={"power": powers, "problem": [runs.describe(p) for p in inside],
                "other": [runs.describe(p) for p in outside]},
        attrs={"label_power": LABEL_POWER, "much_less": MUCH_LESS},
    )  # fmt: skip
