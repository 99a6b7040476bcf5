"""The flow conserves a^2 - b^2."""

import numpy as np

from simulations.figures import report_figure
from simulations.reproduction.measured import measured_at
from simulations.reproduction.outcome import Claim, Outcome, Verdict
from tests.toy.simulations.figures import plane
from tests.toy.simulations.theory import THEORY


def run(context):
    path = THEORY.solve(THEORY.build({"s": 1.5}))
    balance = path.column("a") ** 2 - path.column("b") ** 2
    worst = float(np.abs(balance - balance[0]).max())
    data = path.to_dataset()[["a", "b"]]
    figure = report_figure("toy-plane", "Two scalars", "One run.", plane.draw, data)
    return Outcome(
        Verdict.HOLDS if worst < 1e-6 else Verdict.FAILS,
        measured_at({"s": 1.5}, ("balance_change", "largest change of a^2 - b^2", worst)),
        1e-6, {"s": 1.5}, f"The balance changes by {worst:.1e}.", (figure,),
    )  # fmt: skip


CLAIM = Claim(
    id="toy-balance",
    place="everywhere",
    statement="The flow conserves a^2 - b^2.",
    method="Its largest change along a run.",
    criterion="From the statement: no change beyond the tolerance of the flow.",
    run=run,
)
