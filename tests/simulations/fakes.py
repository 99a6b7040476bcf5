"""Small claims that run in no time, and one that does not run at all."""

import copy
import warnings
from types import SimpleNamespace

import numpy as np
import xarray

from simulations.reproduction.claim import Claim, Context, Figure, Headline, Outcome, Verdict
from simulations.reproduction.measured import measured_at


def figure(name: str = "line") -> Figure:
    data = xarray.Dataset({"y": ("x", np.array([0.0, 1.0, np.nan]))}, {"x": [0, 1, 2]})

    def draw(canvas):
        canvas.subplots().plot(data.x, data.y)

    return Figure(name, "A <line>", "What & how.", draw, data, size=(3.0, 2.0))


class Counter:
    """A run function that counts its calls and does what it is told."""

    def __init__(
        self, figures=(), verdict=Verdict.HOLDS, error=None, measured=None, warning=None, **words
    ):
        self.calls, self.words = 0, words
        self.figures, self.verdict, self.error, self.warning = figures, verdict, error, warning
        values = {"worst": np.float64(1e-12), "T1": float("nan"), "n": 3, "ok": True}
        rows = [(name, f"the {name}", value) for name, value in (values | (measured or {})).items()]
        self.measured = measured_at({"D": 16, "qD": 2.0}, *rows)

    def __call__(self, context: Context) -> Outcome:
        self.calls += 1
        self.context = context
        context.progress(0.5)
        if self.warning:
            warnings.warn(self.warning, UserWarning, stacklevel=1)
        if self.error is not None:
            raise self.error
        return Outcome(
            self.verdict,
            self.measured,
            1e-11,
            {"problem": {"D": 16, "q": 0.125}, "state": np.zeros(2)},
            self.words.get("summary", "The worst difference is 1e-12 < 1e-11."),
            tuple(self.figures),
        )


class Says:
    """A finding that was written before."""

    def __init__(self, words: str) -> None:
        self.words = words

    def __call__(self, outcome: Outcome) -> str:
        return self.words


def claim(
    name: str, *, finding: str = "", headline: Headline | None = None, amended: str = "", **options
) -> Claim:
    return Claim(
        id=name,
        place=f"Place of {name}",
        statement=f"The statement of {name}: a < b & c.",
        measures=f"What {name} measures.",
        run=Counter(**options),
        quick_note="smaller",
        depends="nothing",
        amended=amended,
        headline=headline,
        finding=Says(finding) if finding else None,
    )


def fake_registry(*claims: Claim) -> SimpleNamespace:
    """What stands in for the module ``simulations.reproduction.registry``."""
    known = {claim.id: claim for claim in claims}
    return SimpleNamespace(
        claim_ids=lambda extra=None: tuple(known), load=known.__getitem__, words=known.__getitem__
    )


def changed(theory, **methods):
    """Return a copy of a theory with other methods."""
    other = copy.copy(theory)
    vars(other).update(methods)
    return other
