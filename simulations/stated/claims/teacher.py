"""A student of a teacher that averages over groups: two coefficients, and loss of order 1/t."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from dynamics import Trajectory, gradient_descent, gradient_flow
from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.stated.figures import teacher
from simulations.stated.findings import examine
from simulations.stated.runs import risk
from symbolic.theory import load_theory
from symbolic.theory.export.printed import latex_equations

FILE = Path(__file__).parents[1] / "examples" / "teacher.py"
#: D, K and nu = |V*| of each flow, and its final time in units of D K (D - K).
PROBLEMS = ((8, 2, 1.0), (16, 4, 1.0), (32, 4, 0.5), (64, 8, 2.0))
HORIZON = 1e6
#: Last decades of time in which the exponent is fitted, and in which loss x time is bounded.
FITTED, BOUNDED = 1.0, 2.0
#: Tolerances: exponent, ratio of loss x time, its limit, and change of the conserved sum.
SLOPE, RATIO, CONSTANT, DRIFT = 0.01, 1.1, 0.01, 1e-6
#: Learning rate and number of steps of gradient descent at D = 8, K = 2.
RATE, STEPS = 0.1, 20_000


def measure(context: Context) -> Measurement:
    """Derive the theory, check it against the full model, and integrate flows."""
    theory = load_theory(FILE)
    findings = examine(theory)
    problems = context.choose(quick=PROBLEMS[:3], full=PROBLEMS)
    rows, curves = [], []
    for D, K, nu in context.track(problems, stop=0.8):
        flow = _flow(risk(theory, D=D, K=K, nu=nu), HORIZON * D * K * (D - K))
        rows.append({"D": D, "K": K, "nu": nu, **late(flow, D, K)})
        curves.append(_curve(flow, D, K))
    population = risk(theory, D=8, K=2, nu=1.0)
    descent = gradient_descent(population, learning_rate=RATE, steps=STEPS)
    reduction = {
        "order_parameters": len(theory.orders),
        "conserved": len(findings.conserved),
        "difference": findings.check.largest,
        "agrees": findings.agrees,
        "descent": descent.loss[-1] / _flow(population, RATE * STEPS).loss[-1],
    }
    return Measurement(
        {"reduction": REDUCTION.frame([reduction]), "flows": FLOWS.frame(rows)},
        {
            "problems": [list(problem) for problem in problems],
            "horizon / D K (D - K)": HORIZON,
            "rate": RATE,
            "steps": STEPS,
        },
        (_figure(problems, curves),),
        latex_equations(theory),
    )


def _flow(population: Any, horizon: float) -> Trajectory:
    return gradient_flow(population, horizon=horizon, rtol=1e-9, atol=1e-12, records=400)


def late(run: Trajectory, D: int, K: int) -> dict[str, float]:
    """Return exponent of the loss, ratio and limit of loss x time, and drift of the sum."""
    time, loss = run.time[1:], run.loss[1:]
    last = time >= time[-1] * 10.0**-FITTED
    slope = np.polyfit(np.log(time[last]), np.log(loss[last]), 1)[0]
    bounded = (time * loss)[time >= time[-1] * 10.0**-BOUNDED]
    sums = K * run.column("c_in") + (D - K) * run.column("c_out")
    return {
        "slope": float(slope),
        "ratio": float(bounded.max() / bounded.min()),
        "constant": float(time[-1] * loss[-1] / (D * K * (D - K) / 4)),
        "drift": float(np.abs(sums - sums[0]).max()),
    }


def _curve(run: Trajectory, D: int, K: int) -> dict[str, np.ndarray]:
    time = np.geomspace(1.0, run.time[-1], 200)
    states = np.array([run.at(t) for t in time])
    gap = (states[:, 1] - states[:, 2]) / np.sqrt(D)
    missed = (D - K) / (D - K + K * np.exp(gap))
    loss = np.exp(np.interp(np.log(time), np.log(run.time[1:]), np.log(run.loss[1:])))
    return {"time": time, "missed": missed, "settled": time * loss / (D * K * (D - K) / 4)}


def _figure(problems: Any, curves: list[dict[str, np.ndarray]]) -> Figure:
    data = xarray.Dataset(
        {
            name: (("problem", "row"), np.array([curve[name] for curve in curves]))
            for name in curves[0]
        },
        coords={"problem": [f"D={D}, K={K}, nu={nu:g}" for D, K, nu in problems]},
    )
    return report_figure(
        "theory-teacher",
        "A student of a teacher that averages over groups",
        "(a) Loss times flow time over D K (D - K) / 4, its limit as derived here (dashed). (b) "
        "Attention outside the query's group; dashed: slope -1/2.",
        teacher.draw,
        data,
        (9.0, 4.2),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers in the sentence of the claim."""
    flows = tables["flows"].data
    return {
        "least": flows.slope.min(),
        "most": flows.slope.max(),
        "off": 100.0 * (flows.constant - 1.0).abs().max(),
    }


REDUCTION = Table(
    index=(),
    columns={
        "order_parameters": Column("derived order parameters"),
        "conserved": Column("conserved linear forms"),
        "difference": Column("largest relative difference from the full model", atol=1e-11),
        "agrees": Column("the reduction agrees with the full model"),
        "descent": Column(f"loss after {STEPS} steps of {RATE:g} over that of the flow"),
    },
    strict={
        "two coefficients are free": lambda t: t.order_parameters - t.conserved == 2,
        "the reduction is the full model": lambda t: t.agrees,
    },
)
FLOWS = Table(
    index=("D", "K", "nu"),
    columns={
        "slope": Column("exponent of time in the loss, last decade", rtol=1e-4),
        "ratio": Column("largest over smallest loss x time, last two decades", rtol=1e-3),
        "constant": Column("final loss x time over D K (D - K) / 4"),
        "drift": Column("largest change of K c_in + (D - K) c_out", atol=DRIFT),
    },
    strict={
        "the loss falls like 1/t": lambda t: (t.slope + 1.0).abs() <= SLOPE,
        "loss x time is constant over two decades": lambda t: t.ratio <= RATIO,
        "its limit is D K (D - K) / 4": lambda t: (t.constant - 1.0).abs() <= CONSTANT,
        "K c_in + (D - K) c_out is conserved": lambda t: t.drift <= DRIFT,
    },
)

CLAIM = Claim(
    id="theory-teacher",
    place="Main theorem (reduction to few coefficients, rate of convergence)",
    statement=(
        "A student that starts at 0 keeps W_V = C_1 V* and W_KQ = C_2 Sigma_in - C_3 Sigma_out, "
        "and its loss falls like 1/T, tight up to constants."
    ),
    method=(
        "Order parameters and conserved forms derived from simulations/stated/examples/teacher.py; "
        "exponent of time in the loss, in the last decade of flows up to 10^6 D K (D - K); loss x "
        "time over its limit D K (D - K) / 4 for t -> infinity, by the reduced equations."
    ),
    criterion=(
        "Two coefficients: three order parameters and one conserved sum, equal to the full model "
        "to 1e-11, the sum constant to 1e-6. Tight up to constants: the exponent is -1 +- 0.01, "
        "and loss x time remains within a factor 1.1 over two decades and within 1 % of its "
        "limit."
    ),
    tables={"reduction": REDUCTION, "flows": FLOWS},
    measure=measure,
    headline=headline,
    finding=(
        "The loss falls like t^{least:.4f} to t^{most:.4f}, towards D K (D - K) / (4 t) to "
        "{off:.2g} %."
    ),
    tolerance=SLOPE,
    quick_note="three problems instead of four",
    assumptions="the full model of the theory file; names and theorem of public notes",
)
