"""The soft committee machine of Saad and Solla: symmetric plateau, and the time of its escape."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray

import patchdyn
from dynamics import Trajectory, gradient_flow
from dynamics.core.crossing import every_step, first_passage
from dynamics.overlaps.risk import OverlapRisk
from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import seeds_of
from simulations.stated.figures.saad_solla import draw
from simulations.stated.overlaps import risk as risk_of
from symbolic.overlaps import Directions, Euclidean, Normal, OverlapTheory, Size, Vectors, sqrt

FILE = Path(__file__).parents[1] / "examples" / "saad_solla.py"
#: Hidden units of the plateaus and of the flows.
UNITS, FLOWS_OF = (2, 3, 4, 5, 6, 7, 8), (2, 3, 5, 8)
#: Initial R - S of the flows, and the other overlaps at their start.
DIFFERENCES, START = (1e-3, 1e-4, 1e-5, 1e-6), {"Q": 0.2, "C": 0.01, "S": 0.01}
#: Hidden units of the random starts, their largest squared norm, and their largest other overlap.
FREE, NORM, SMALL = 3, 0.5, 1e-6
#: Horizon in units of 1 / rate; at its end all exponentials are below the rounding.
HORIZON = 400.0
#: Tolerances: residual, loss and rate of the plateau; loss and growth in the middle of a flow,
#: delay for a smaller start; the same for random starts; distance from the teacher at the end.
RESIDUAL, LOSS, RATE, FLOW, RANDOM_FLOW, END = 1e-14, 1e-12, 1e-9, 0.01, 0.03, 1e-6


def plateau_loss(K: int) -> float:
    """Return the loss of the symmetric plateau, (K / pi) (pi / 6 - K arcsin(1 / (2 K)))."""
    return K / math.pi * (math.pi / 6.0 - K * math.asin(0.5 / K))


def escape_rate(K: int) -> float:
    """Return the largest growth rate at the plateau, (2 / pi) K / ((2K-1)^1/2 (2K+1)^3/2)."""
    return 2.0 / math.pi * K / (math.sqrt(2.0 * K - 1.0) * (2.0 * K + 1.0) ** 1.5)


def plateau(K: int) -> dict[str, float]:
    """Return the overlaps of the plateau: Q = C = 1/(2K-1), R = S = 1/sqrt(K(2K-1))."""
    q, r = 1.0 / (2 * K - 1), 1.0 / math.sqrt(K * (2 * K - 1))
    return {"Q": q, "C": q, "R": r, "S": r}


def plateau_row(risk: OverlapRisk, K: int) -> dict[str, Any]:
    """Return the row of the plateau in the table `PLATEAUS`."""
    state = np.array([plateau(K)[name] for name in risk.order_parameters])
    value, rates = risk.evaluate(state), -np.linalg.eigvals(risk.jacobian(state)).real
    return {
        "K": K,
        "residual": float(np.abs(value.gradient).max()),
        "loss": value.loss,
        "bound": value.bound,
        "loss_off": value.loss / plateau_loss(K) - 1.0,
        "rate": float(rates.max()),
        "rate_off": float(rates.max()) / escape_rate(K) - 1.0,
        "positive": int((rates > 0.0).sum()),
    }


def flow_from(risk: OverlapRisk, K: int, start: np.ndarray) -> tuple[Trajectory, float]:
    """Return the flow until it has settled, and the time at which half the plateau's loss is left.

    All steps of the integrator are records, so that the time does not depend on a grid.
    """
    horizon = HORIZON / escape_rate(K)
    flow = every_step(
        gradient_flow(risk, horizon=horizon, initial=start, rtol=1e-11, atol=1e-14, records=2)
    )
    return flow, first_passage(flow, lambda state: -risk.loss(state), -0.5 * plateau_loss(K))


def middle(risk: OverlapRisk, K: int, flow: Trajectory, half: float, difference: Any) -> Any:
    """Return loss and growth in the middle of the time to half the plateau's loss.

    The growth is that of ``difference(state)``, which measures how much the units differ.
    """
    early, late = (math.log(difference(flow.at(part * half))) for part in (0.4, 0.6))
    return {
        "half": half,
        "rests": risk.loss(flow.at(0.5 * half)) / plateau_loss(K) - 1.0,
        "growth": (late - early) / (0.2 * half * escape_rate(K)) - 1.0,
    }


def symmetric_flows(
    theory: Any, K: int, differences: tuple[float, ...]
) -> list[tuple[float, Trajectory, dict[str, Any]]]:
    """Return the flows of equivalent units from starts with small differences R - S."""
    risk, flows = theory.risk(K=K, d=2 * K), []
    R, S = map(risk.order_parameters.index, "RS")
    goal = np.array([{"Q": 1.0, "R": 1.0}.get(name, 0.0) for name in risk.order_parameters])
    for difference in differences:
        values = {**START, "R": START["S"] + difference}
        start = np.array([values[name] for name in risk.order_parameters])
        flow, half = flow_from(risk, K, start)
        row = {
            "K": K,
            "difference": difference,
            **middle(risk, K, flow, half, lambda state: state[R] - state[S]),
            "end": float(np.abs(flow.final - goal).max()),
        }
        flows.append((difference, flow, row))
    return flows


def delays(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the delays of the flows with ten times smaller differences, over log(10) / rate."""
    return [
        {
            "K": late["K"],
            "difference": late["difference"],
            "delay": (late["half"] - early["half"])
            * escape_rate(late["K"])
            / math.log(early["difference"] / late["difference"]),
        }
        for early, late in zip(rows, rows[1:])
        if early["K"] == late["K"]
    ]


def separate_units(K: int) -> OverlapRisk:
    """Return the risk of K units and K units of the teacher with all overlaps of their own."""
    d = Size("d")
    space = Euclidean("coordinate", d)
    x = Normal("x", space)
    students = tuple(Vectors(f"J{i}", space) for i in range(K))
    teachers = tuple(Directions(f"B{n}", space) for n in range(K))

    def loss(x: Any) -> Any:
        units = [((w @ x) / sqrt(2)).erf() for w in (*students, *teachers)]
        return (sum(units[1:K], units[0]) - sum(units[K + 1 :], units[K])) ** 2 / 2

    theory = OverlapTheory(
        "separate units", "Saad, Solla (PRE 1995)", sizes=(d,), parameters=students,
        directions=teachers, data=(x,), loss=loss,
    )  # fmt: skip
    return risk_of(theory, {"d": 2.0 * K})


def random_row(risk: OverlapRisk, run: int, seed: int) -> dict[str, Any]:
    """Return the row of a random start in the table `RANDOM`."""
    rng, names = np.random.default_rng(seed), risk.order_parameters
    norms = {f"J{i}.J{i}" for i in range(FREE)}
    start = np.array([rng.uniform(0.0, NORM if name in norms else SMALL) for name in names])
    index = [[names.index(f"J{i}.B{n}") for n in range(FREE)] for i in range(FREE)]

    def spread(state: np.ndarray) -> float:
        """Return the part of R that is neither common to a row nor to a column."""
        R = state[index]
        rows, columns = R.mean(axis=1, keepdims=True), R.mean(axis=0, keepdims=True)
        return float(np.linalg.norm(R - rows - columns + R.mean()))

    flow, half = flow_from(risk, FREE, start)
    R = np.array(flow.final)[index]
    return {
        "run": run,
        **middle(risk, FREE, flow, half, spread),
        "end": float(np.abs(R - np.eye(FREE)[np.argmax(R, axis=1)]).max()),
        "teachers": len(set(np.argmax(R, axis=1).tolist())),
    }


def measure(context: Context) -> Measurement:
    """Evaluate the plateau, and integrate flows from equivalent and from random units."""
    theory = patchdyn.load_theory(FILE)
    plateaus = [plateau_row(theory.risk(K=K, d=2 * K), K) for K in UNITS]
    units = context.choose(quick=FLOWS_OF[:2], full=FLOWS_OF)
    differences = context.choose(quick=DIFFERENCES[1:], full=DIFFERENCES)
    flows = {K: symmetric_flows(theory, K, differences) for K in context.track(units, 0.0, 0.5)}
    rows = [row for K in units for *_, row in flows[K]]
    seeds = seeds_of(context.seed, context.choose(quick=2, full=10))
    separate = separate_units(FREE)
    free = [random_row(separate, run, seed) for run, seed in enumerate(context.track(seeds, 0.5))]
    return Measurement(
        {
            "plateaus": PLATEAUS.frame(plateaus),
            "flows": FLOWS.frame(rows),
            "delays": DELAYS.frame(delays(rows)),
            "random starts": RANDOM.frame(free),
        },
        {"K": UNITS, "start": START, "K of random starts": FREE, "largest overlap": SMALL},
        (_figure(theory, flows, plateaus),),
    )


def _figure(theory: Any, flows: Mapping[int, Any], plateaus: list[dict[str, Any]]) -> Figure:
    scaled = np.linspace(0.0, 2.0, 401)
    curves, half, line = [], [], []
    for K, runs in flows.items():
        difference, flow, _ = runs[-1]
        unit = math.log(1.0 / difference) / escape_rate(K)
        risk = theory.risk(K=K, d=2 * K)
        curves.append([risk.loss(flow.at(t)) for t in scaled * unit])
        half.append([row["half"] * escape_rate(K) for *_, row in runs])
        line.append([half[-1][0] + math.log(runs[0][0] / difference) for difference, *_ in runs])
    units = list(flows)
    data = xarray.Dataset(
        {
            "loss": (("K", "scaled"), np.array(curves)),
            "rests": ("K", [plateau_loss(K) for K in units]),
            "half": (("K", "difference"), np.array(half)),
            "line": (("K", "difference"), np.array(line)),
            "plateau": ("units", [row["loss"] for row in plateaus]),
            "rate": ("units", [row["rate"] for row in plateaus]),
            "plateau_formula": ("units", [plateau_loss(K) for K in UNITS]),
            "rate_formula": ("units", [escape_rate(K) for K in UNITS]),
        },
        coords={
            "K": units,
            "scaled": scaled,
            "difference": [difference for difference, *_ in flows[units[0]]],
            "units": list(UNITS),
        },
    )
    return report_figure(
        "saad-solla",
        "A soft committee machine leaves its symmetric plateau at the computed rate",
        "(a) Loss of flows of K units from an initial difference R - S = 1e-6 against flow time "
        "times escape rate over log(1e6); dotted: the plateau's loss by formula. (b) Time at which "
        "half of this loss is left, times the escape rate, against the initial difference; dashed: "
        "the logarithm of the difference decreases it by 1. (c) Loss and escape rate of the plateau; lines: formulas.",
        draw,
        data,
        (11.0, 3.9),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers in the sentence of the claim."""
    rows, late, free = (tables[name].data for name in ("plateaus", "delays", "random starts"))
    return {
        "loss": rows.loss_off.abs().max(),
        "rate": rows.rate_off.abs().max(),
        "delay": 100.0 * (late.delay - 1.0).abs().max(),
        "runs": int((free.end <= END).sum()),
        "starts": len(free),
    }


_MIDDLE = {
    "half": Column("time to half the plateau's loss", "flow time", rtol=1e-5),
    "rests": Column("loss at half of this time / plateau's loss, - 1", atol=1e-6),
    "growth": Column("growth of the differences there / escape rate, - 1", atol=1e-5),
    "end": Column("largest distance of R (or of any overlap) from the teacher's", atol=END),
}
PLATEAUS = Table(
    index=("K",),
    columns={
        "residual": Column("largest velocity", atol=RESIDUAL),
        "loss": Column("loss"),
        "bound": Column("its certified bound", atol=1e-13),
        "loss_off": Column("loss / formula, - 1", atol=LOSS),
        "rate": Column("largest growth rate", "1 / flow time"),
        "rate_off": Column("rate / formula, - 1", atol=RATE),
        "positive": Column("positive growth rates"),
    },
    strict={
        "it is stationary": lambda t: t.residual <= RESIDUAL,
        "its loss is the formula": lambda t: t.loss_off.abs() <= LOSS,
        "its largest growth rate is the formula": lambda t: t.rate_off.abs() <= RATE,
    },
)
FLOWS = Table(
    index=("K", "difference"),
    columns=_MIDDLE,
    predicates={
        "the flow rests at the plateau": lambda t: t.rests.abs() <= FLOW,
        "the differences grow at the escape rate": lambda t: t.growth.abs() <= FLOW,
        "the units become the teacher's": lambda t: t.end <= END,
    },
)
DELAYS = Table(
    index=("K", "difference"),
    columns={"delay": Column("delay against a ten times larger difference, over log(10) / rate")},
    predicates={
        "a smaller start delays by log / rate": lambda t: (t.delay - 1.0).abs() <= FLOW,
    },
)
RANDOM = Table(
    index=("run",),
    columns={
        **{
            name: Column(column.label, column.unit, rtol=math.inf)
            for name, column in _MIDDLE.items()
        },
        "teachers": Column("different units of the teacher that are learned", rtol=math.inf),
    },
    predicates={
        "the flow rests at the plateau": lambda t: t.rests.abs() <= RANDOM_FLOW,
        "the differences grow at the escape rate": lambda t: t.growth.abs() <= RANDOM_FLOW,
        "the units become the teacher's": lambda t: (t.end <= END) & (t.teachers == FREE),
    },
)

CLAIM = Claim(
    id="saad-solla",
    place="Symmetric plateau for small learning rates, its loss, and the escape from it",
    statement=(
        "A soft committee machine of K units that learns another one with orthonormal units is "
        "trapped at Q = C = 1/(2K-1), R = S = 1/sqrt(K(2K-1)), where the loss is (K/pi)(pi/6 - K "
        "arcsin(1/(2K))). It escapes at the rate (2/pi) K / ((2K-1)^(1/2) (2K+1)^(3/2)), so that "
        "the time grows with the logarithm of the initial differences, and then learns the teacher."
    ),
    method=(
        "The theory derived from a file: velocity, loss and largest eigenvalue at the plateau for "
        "K = 2 to 8; flows of equivalent units from differences R - S of 1e-3 to 1e-6; flows of "
        "three units with all 15 overlaps free, from random starts as in the paper, with 1e-6 in "
        "place of 1e-12. Times and growth on dense output."
    ),
    criterion=(
        "Identities, otherwise it fails: the velocity is at most 1e-14, the loss is the formula "
        "to 1e-12 and the largest growth rate to 1e-9. Of the flows, otherwise a finding: in the "
        "middle of the time to half the plateau's loss, the loss is within 1 % of the plateau's "
        "(3 % for random starts), and the differences grow at the escape rate to 1 % (3 %); a ten "
        "times smaller difference delays this time by log(10) / rate to 1 %; at the end all units "
        "are the teacher's to 1e-6."
    ),
    tables={"plateaus": PLATEAUS, "flows": FLOWS, "delays": DELAYS, "random starts": RANDOM},
    measure=measure,
    headline=headline,
    finding=(
        "Plateau by formula to {loss!u:.0e}, rate to {rate!u:.0e}, delays to {delay:.2g} %; "
        "{runs} of {starts} random starts learn all units."
    ),
    quick_note="K = 2 and 3 instead of 2, 3, 5 and 8; two random starts instead of ten",
    assumptions=(
        "gradient flow, the limit of small learning rates; statement as in notes on the paper; "
        "public code of the equations: github.com/sgoldt/nn2pp"
    ),
)
