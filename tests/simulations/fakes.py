"""Claims that run in no time, their folders, and a stand-in for the registry."""

import copy
import io
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import xarray

from simulations.display import PlainDisplay
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.folder import ReportFolder
from simulations.reproduction.predicates import Column, Table, Verdict
from simulations.reproduction.run import Outcome, reproduce

#: Stamp of the results in a folder.
STAMP = {"patchdyn": "0.1.0", "commit": "abc", "code": "123", "mode": "full", "seed": "0"}


def figure(name: str = "line") -> Figure:
    data = xarray.Dataset({"y": ("x", np.array([0.0, 1.0, np.nan]))}, {"x": [0, 1, 2]})

    def draw(canvas):
        canvas.subplots().plot(data.x, data.y)

    return Figure(name, "A <line>", "What & how.", draw, data, size=(3.0, 2.0))


VALUES = {"worst": np.float64(1e-12), "T1": float("nan"), "n": 3, "ok": True}


class Counter:
    """A measurement that counts its calls, and raises or warns if required."""

    def __init__(self, layout: Table, values, figures=(), error=None, warning=None):
        self.calls = 0
        self.layout, self.values, self.figures = layout, values, figures
        self.error, self.warning = error, warning

    def __call__(self, context: Context) -> Measurement:
        self.calls += 1
        self.context = context
        context.progress(0.5)
        if self.warning:
            warnings.warn(self.warning, UserWarning, stacklevel=1)
        if self.error is not None:
            raise self.error
        return Measurement(
            {"numbers": self.layout.frame([{"D": 16, "qD": 2.0, **self.values}])},
            {"problem": {"D": 16, "q": 0.125}, "state": np.zeros(2)},
            tuple(self.figures),
        )


def _small(holds: bool, t):
    return (t.worst < 1e-11) & holds


def _values(tables):
    return tables["numbers"].data.iloc[0].to_dict()


def claim(
    name: str, *, verdict=Verdict.HOLDS, extra=None, finding="The worst of {n} is {worst:.0e}.",
    amended: str = "", **options,
) -> Claim:  # fmt: skip
    """Return a claim with the numbers `VALUES` and ``extra``; see `Counter` for the options."""
    values = VALUES | (extra or {})
    small = {"the worst is small": partial(_small, verdict is Verdict.HOLDS)}
    layout = Table(
        ("D", "qD"),
        {name: Column(f"the {name}", missing="never") for name in values},
        strict=small if verdict is Verdict.FAILS else {},
        predicates=small if verdict is not Verdict.FAILS else {},
    )
    return Claim(
        id=name,
        place=f"Place of {name}",
        statement=f"The statement of {name}: a < b & c.",
        method=f"What {name} measures.",
        quick_note="smaller",
        assumptions="nothing",
        amended=amended,
        tables={"numbers": layout},
        measure=Counter(layout, values, **options),
        headline=_values,
        finding=finding,
        tolerance=1e-11,
    )  # fmt: skip


def run(
    path, claims, *, stamp=STAMP, quick=False, seed=0, force=False, stream=None, **options
) -> Outcome:
    """Run claims into a folder; ``stream`` receives the lines of the display."""
    with ReportFolder(path, stamp, [claim.id for claim in claims], force=force) as folder:
        display = PlainDisplay(stream or io.StringIO())
        return reproduce(claims, folder, display, Context(quick, seed), force=force, **options)


def fake_registry(*claims: Claim) -> SimpleNamespace:
    """Return a replacement of the module ``simulations.reproduction.registry``."""
    known = {claim.id: claim for claim in claims}
    return SimpleNamespace(
        claim_ids=lambda extra=None: tuple(known),
        load=known.__getitem__,
        texts=lambda claim_id: {**known[claim_id].texts(), "title": ""},
    )


def changed(theory, **methods):
    """Return a copy of a theory with other methods."""
    other = copy.copy(theory)
    vars(other).update(methods)
    return other
