"""The flow conserves a^2 - b^2."""

import numpy as np

from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Measurement
from simulations.reproduction.predicates import Column, Table
from tests.toy.simulations.figures import plane
from tests.toy.simulations.system import SYSTEM

TOLERANCE = 1e-6
TABLE = Table(
    index=("s",),
    columns={"balance_change": Column("largest change of a^2 - b^2", atol=TOLERANCE)},
    strict={"a^2 - b^2 is conserved": lambda t: t.balance_change < TOLERANCE},
)


def measure(context):
    path = SYSTEM.solve(SYSTEM.build({"s": 1.5}))
    balance = path.column("a") ** 2 - path.column("b") ** 2
    change = float(np.abs(balance - balance[0]).max())
    data = path.to_dataset()[["a", "b"]]
    return Measurement(
        {"runs": TABLE.frame([{"s": 1.5, "balance_change": change}])},
        {"s": 1.5},
        (report_figure("toy-plane", "Two scalars", "One run.", plane.draw, data),),
    )


def headline(tables):
    return {"change": tables["runs"].data.balance_change.max()}


CLAIM = Claim(
    id="toy-balance",
    place="everywhere",
    statement="The flow conserves a^2 - b^2.",
    method="Its largest change along a run.",
    criterion="From the statement: no change beyond the tolerance of the flow.",
    tables={"runs": TABLE},
    measure=measure,
    headline=headline,
    finding="The balance changes by {change:.1e}.",
    tolerance=TOLERANCE,
)
