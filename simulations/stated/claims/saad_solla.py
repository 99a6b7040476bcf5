"""The soft committee machine of Saad and Solla: symmetric plateau, and the time of its escape."""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray
from scipy.integrate import solve_ivp

from dynamics import gradient_flow
from dynamics.core.crossing import every_step, first_passage
from dynamics.overlaps.risk import OverlapRisk
from dynamics.theory.data import Array
from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import rng_at
from simulations.stated.figures.saad_solla import draw
from simulations.stated.overlaps import UserOverlapTheory
from simulations.stated.overlaps import risk as risk_of
from simulations.stated.user_theory import load_theory
from symbolic.overlaps import Directions, Euclidean, Normal, OverlapTheory, Size, Vectors, sqrt

FILE = Path(__file__).parents[1] / "examples" / "saad_solla.py"
#: Hidden units of the plateaus and of the flows.
UNITS, FLOWS_OF = (2, 3, 4, 5, 6, 7, 8), (2, 4, 8)
#: Initial R - S of the flows.
DIFFERENCES = (1e-4, 1e-5, 1e-6)
#: Initial Q and S, and C of units that start like those of the paper.
NORM, SHARED, PRODUCT = 0.2, 0.01, 0.01
#: Hidden units of the random starts, their largest squared norm, and their largest other overlap.
FREE, LARGEST, SMALL = 3, 0.5, 1e-6
#: Latest end of a flow in units of 1 / rate; it ends when it has settled.
HORIZON = 400.0
#: Tolerances: velocity, loss and rate of the plateau; derived velocity against the equations, and
#: times of their flows; loss, growth and delays of flows; loss and growth of random starts;
#: distance from the teacher at the end.
RESIDUAL, LOSS, RATE, SAME, TIME = 1e-14, 1e-12, 1e-9, 1e-12, 1e-5
FLOW, RANDOM_FLOW, END = 0.01, 0.03, 1e-6


class Equations:
    """Equations of motion of the paper, with every overlap of K units and of their teacher.

    With E[g'(u) v g(w)] = (2 / pi) (c_vw (1 + c_uu) - c_uv c_uw) / ((1 + c_uu) Lambda^1/2) and
    Lambda = (1 + c_uu) (1 + c_ww) - c_uw^2, for g(x) = erf(x / sqrt 2) and covariances c.

    Parameters
    ----------
    K
        Number of hidden units.
    equivalent
        Whether states are (Q, C, R, S) of equivalent units, not all entries of Q and R (2 K^2).
    """

    def __init__(self, K: int, equivalent: bool = True) -> None:
        self.K, self.equivalent = K, equivalent
        self.sign, self.identity = np.repeat([1.0, -1.0], K), np.eye(K)

    def gram(self, state: Array) -> Array:
        """Return the overlaps of all vectors (2 K, 2 K)."""
        K, identity, result = self.K, self.identity, np.empty((2 * self.K, 2 * self.K))
        if self.equivalent:
            Q, C, R, S = state
            result[:K, :K], result[:K, K:] = C + (Q - C) * identity, S + (R - S) * identity
        else:
            result[:K, :K], result[:K, K:] = np.reshape(state, (2, K, K))
        result[K:, :K], result[K:, K:] = result[:K, K:].T, identity
        return result

    def loss(self, state: Array) -> float:
        """Return the generalization error at a state."""
        gram = self.gram(state)
        norm = np.sqrt(1.0 + np.diag(gram))
        return float(self.sign @ np.arcsin(gram / np.outer(norm, norm)) @ self.sign) / math.pi

    def velocity(self, state: Array) -> Array:
        """Return the velocity of a state."""
        gram, K = self.gram(state), self.K
        own, cross = 1.0 + np.diag(gram)[:K, None], gram[:K]
        root = np.sqrt(own * (1.0 + np.diag(gram)) - cross**2)
        weight = 2.0 / math.pi * self.sign / root
        slopes = -weight @ gram + (weight * cross).sum(axis=1, keepdims=True) * cross / own
        Q, R = slopes[:, :K] + slopes[:, :K].T, slopes[:, K:]
        if self.equivalent:
            return np.array([Q[0, 0], Q[0, 1], R[0, 0], R[0, 1]])
        return np.concatenate([Q.ravel(), R.ravel()])

    def distance(self, state: Array) -> float:
        """Return the largest distance of Q and R from those of units of the teacher."""
        gram, K = self.gram(state), self.K
        goal = self.identity[np.argmax(gram[:K, K:], axis=1)]
        return float(np.abs(gram[:K] - np.hstack([self.identity, goal])).max())

    def flow(self, start: Array) -> "Flow":
        """Return the flow from a start until it has settled."""
        half = 0.5 * plateau_loss(self.K)

        def settled(_: float, state: Array) -> float:
            return self.distance(state) - 0.1 * END

        settled.terminal = True  # type: ignore[attr-defined]
        run = solve_ivp(
            lambda _, state: self.velocity(state), (0.0, HORIZON / escape_rate(self.K)), start,
            method="LSODA", rtol=1e-8, atol=1e-11, dense_output=True,
            events=(lambda _, state: self.loss(state) - half, settled),
        )  # fmt: skip
        times = [float(time) for time in run.t_events[0]]
        return Flow(self, run.sol, (*times, math.nan)[0], float(run.t[-1]), run.y[:, -1])


class Flow(NamedTuple):
    """Flow, the time at which half of the plateau's loss is left, and the last time and state."""

    equations: Equations
    at: Any
    half: float
    last: float
    end: Array

    def spread(self, time: float) -> float:
        """Return the norm of the part of R that is neither common to a row nor to a column."""
        K = self.equations.K
        R = self.equations.gram(self.at(time))[:K, K:]
        rows, columns = R.mean(axis=1, keepdims=True), R.mean(axis=0, keepdims=True)
        return float(np.linalg.norm(R - rows - columns + R.mean()))

    def row(self) -> dict[str, Any]:
        """Return the columns `_MIDDLE` of the flow."""
        K, half = self.equations.K, self.half
        growth = math.log(self.spread(0.6 * half) / self.spread(0.4 * half)) / (0.2 * half)
        return {
            "half": half,
            "rests": self.equations.loss(self.at(0.5 * half)) / plateau_loss(K) - 1.0,
            "growth": growth / escape_rate(K) - 1.0,
            "end": self.equations.distance(self.end),
        }


def plateau_loss(K: int) -> float:
    """Return the loss of the symmetric plateau, (K / pi) (pi / 6 - K arcsin(1 / (2 K)))."""
    return K / math.pi * (math.pi / 6.0 - K * math.asin(0.5 / K))


def escape_rate(K: int) -> float:
    """Return the largest growth rate at the plateau, (2 / pi) K / ((2K-1)^1/2 (2K+1)^3/2)."""
    return 2.0 / math.pi * K / (math.sqrt(2.0 * K - 1.0) * (2.0 * K + 1.0) ** 1.5)


def plateau(K: int) -> Array:
    """Return (Q, C, R, S) of the plateau: Q = C = 1/(2K-1), R = S = 1/sqrt(K(2K-1))."""
    return np.repeat([1.0 / (2 * K - 1), 1.0 / math.sqrt(K * (2 * K - 1))], 2)


def plateau_row(risk: OverlapRisk, K: int) -> dict[str, Any]:
    """Return the row of the plateau in the table `PLATEAUS`."""
    value, rates = risk.evaluate(plateau(K)), -np.linalg.eigvals(risk.jacobian(plateau(K))).real
    power = slow_power(risk, K)
    return {
        "K": K,
        "residual": float(np.abs(value.gradient).max()),
        "loss": value.loss,
        "bound": value.bound,
        "loss_off": value.loss / plateau_loss(K) - 1.0,
        "rate": float(rates.max()),
        "rate_off": float(rates.max()) / escape_rate(K) - 1.0,
        "positive": int((rates > RATE).sum()),
        "power": power,
        "power_off": power * (4.0 * K - 2.0) / (3.0 * K - 2.0) - 1.0,
    }


def slow_power(risk: OverlapRisk, K: int) -> float:
    """Return p such that differences grow like t^-p exp(rate t) while Q - C decays like 1 / t.

    One direction of the plateau has rate 0. Along it Q - C = w moves as dw/dt = -a w^2, and R - S
    grows at the rate minus b w, so that p = b / a. Both are changes of the Jacobian along it.
    """
    rates, right = np.linalg.eig(-risk.jacobian(plateau(K)))
    left, slow, fast = np.linalg.inv(right), np.argmin(np.abs(rates)), np.argmax(rates)
    scale = right[0, slow] - right[1, slow]
    along = right[:, slow] / scale
    step = 1e-4 * along
    change = risk.jacobian(plateau(K) - step) - risk.jacobian(plateau(K) + step)
    curvature = 0.5 * (left[slow] @ change @ along) * scale
    return float((left[fast] @ change @ right[:, fast]) / curvature)


def start_of(difference: float, alike: bool) -> Array:
    """Return (Q, C, R, S) with R - S given; units that start alike have the largest possible C."""
    product = NORM - 2.0 * difference**2 if alike else PRODUCT
    return np.array([NORM, product, SHARED + difference, SHARED])


def delays(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the delays of the flows with ten times smaller differences, over log(10) / rate."""
    return [
        {
            **{name: late[name] for name in ("K", "start", "difference")},
            "delay": (late["half"] - early["half"])
            * escape_rate(late["K"])
            / math.log(early["difference"] / late["difference"]),
        }
        for early, late in pairwise(rows)
        if (early["K"], early["start"]) == (late["K"], late["start"])
    ]


def separate_units(K: int) -> OverlapRisk:
    """Return the derived risk of K units that are not equivalent."""
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


def disagreement(risk: OverlapRisk, state: Array, loss: float, velocity: Array) -> float:
    """Return the relative difference of a derived risk and its gradient from given values."""
    off = np.abs(risk.gradient(state) + velocity).max() / np.abs(velocity).max()
    return max(float(off), abs(risk.loss(state) / loss - 1.0))


def comparison(theory: UserOverlapTheory, seed: int) -> dict[str, Any]:
    """Return the row of the table `DERIVED`: derived risk against the equations of the paper."""
    K, rng, separate = FREE, rng_at(seed, 1), separate_units(FREE)
    risk, alike, free = theory.risk(K=K, d=2 * K), Equations(K), Equations(K, equivalent=False)
    worst = {"equivalent": 0.0, "separate": 0.0}
    for _ in range(3):
        state = np.array([0.5, 0.1, 0.3, 0.1]) * rng.uniform(0.5, 1.0)
        off = disagreement(risk, state, alike.loss(state), alike.velocity(state))
        worst["equivalent"] = max(worst["equivalent"], off)
        R, other = rng.normal(size=(2, K, K)) / 3.0  # components along the teacher's units, others
        state = np.array([R @ R.T + other @ other.T, R]).ravel()
        names = [f"J{i}.{x}{k}" for x in "JB" for i in range(K) for k in range(K)]
        order = [names.index(name) for name in separate.order_parameters]
        velocity = free.velocity(state)[order]
        off = disagreement(separate, state[order], free.loss(state), velocity)
        worst["separate"] = max(worst["separate"], off)
    start = start_of(0.1, alike=False)
    half = alike.flow(start).half
    flow = gradient_flow(risk, horizon=1.1 * half, initial=start, records=2)
    derived = first_passage(every_step(flow), lambda x: -risk.loss(x), -0.5 * plateau_loss(K))
    return {**worst, "flow": derived / half - 1.0}


def random_row(run: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return the row of a random start in the table `RANDOM`."""
    Q, R = rng.uniform(0.0, SMALL, size=(2, FREE, FREE))
    Q = np.triu(Q, 1) + np.triu(Q, 1).T + np.diag(rng.uniform(0.0, LARGEST, size=FREE))
    flow = Equations(FREE, equivalent=False).flow(np.array([Q, R]).ravel())
    learned = np.argmax(flow.equations.gram(flow.end)[:FREE, FREE:], axis=1)
    return {"run": run, **flow.row(), "teachers": len(set(learned.tolist()))}


def measure(context: Context) -> Measurement:
    """Evaluate the plateau, and integrate flows from equivalent and from random units."""
    theory = load_theory(FILE)
    assert isinstance(theory, UserOverlapTheory)
    plateaus = [plateau_row(theory.risk(K=K, d=2 * K), K) for K in UNITS]
    derived = comparison(theory, context.seed)
    units = context.choose(quick=FLOWS_OF[:1], full=FLOWS_OF)
    differences = context.choose(quick=DIFFERENCES[1:], full=DIFFERENCES)
    cases = [(K, alike, x) for K in units for alike in (False, True) for x in differences]
    flows = {
        (K, alike, difference): Equations(K).flow(start_of(difference, alike))
        for K, alike, difference in context.track(cases, 0.2, 0.7)
    }
    rows = [
        {"K": K, "start": "alike" if alike else "as stated", "difference": difference, **flow.row()}
        for (K, alike, difference), flow in flows.items()
    ]
    runs = range(context.choose(quick=1, full=8))
    free = [random_row(run, rng_at(context.seed, 2, run)) for run in context.track(runs, 0.7)]
    return Measurement(
        {
            "plateaus": PLATEAUS.frame(plateaus),
            "derived": DERIVED.frame([derived]),
            "flows": FLOWS.frame(rows),
            "delays": DELAYS.frame(delays(rows)),
            "random starts": RANDOM.frame(free),
        },
        {"K": UNITS, "Q": NORM, "C": PRODUCT, "S": SHARED, "K of random starts": FREE},
        (_figure(flows, plateaus),),
    )


def _figure(flows: Mapping[Any, Flow], plateaus: list[dict[str, Any]]) -> Figure:
    scaled = np.linspace(0.0, 2.0, 401)
    units, differences = (list(dict.fromkeys(case[n] for case in flows)) for n in (0, 2))
    unit = {K: math.log(1.0 / differences[-1]) / escape_rate(K) for K in units}
    shown = {K: flows[K, False, differences[-1]] for K in units}
    curves = [
        [flow.equations.loss(flow.at(t)) if t < flow.last else math.nan for t in scaled * unit[K]]
        for K, flow in shown.items()
    ]
    half = [
        [[flows[K, alike, x].half * escape_rate(K) for x in differences] for alike in (False, True)]
        for K in units
    ]
    data = xarray.Dataset(
        {
            "loss": (("K", "scaled"), np.array(curves)),
            "rests": ("K", [plateau_loss(K) for K in units]),
            "half": (("K", "start", "difference"), np.array(half)),
            "plateau": ("units", [row["loss"] for row in plateaus]),
            "rate": ("units", [row["rate"] for row in plateaus]),
            "plateau_formula": ("units", [plateau_loss(K) for K in UNITS]),
            "rate_formula": ("units", [escape_rate(K) for K in UNITS]),
        },
        coords={
            "K": units,
            "scaled": scaled,
            "start": ["as stated", "alike"],
            "difference": differences,
            "units": list(UNITS),
        },
    )
    return report_figure(
        "saad-solla",
        "A soft committee machine leaves its symmetric plateau",
        "(a) Loss of flows of K units from R - S = 1e-6 against flow time times escape rate over "
        "log(1e6); dotted: the plateau's loss by formula. (b) Time to half of this loss, times the "
        "escape rate, against the initial R - S; filled: start as stated, C = .01; open: units "
        "that start alike, C = Q - 2 (R - S)^2; dashed: log(1 / (R - S)) plus a constant. (c) Loss "
        "and escape rate of the plateau; lines: formulas.",
        draw,
        data,
        (11.0, 3.9),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers in the sentence of the claim."""
    rows, flows = tables["plateaus"].data, tables["flows"].data
    paper, alike = (flows.growth.xs(name, level="start") for name in ("as stated", "alike"))
    return {
        "loss": max(rows.loss_off.abs().max(), rows.rate_off.abs().max()),
        "low": 100.0 * paper.min(),
        "high": 100.0 * paper.max(),
        "alike": 100.0 * alike.abs().max(),
        "runs": tables["random starts"].count("the units become the teacher's"),
    }


_MIDDLE = {
    "half": Column("time to half the plateau's loss", "flow time", rtol=1e-5),
    "rests": Column("loss at half of this time / plateau's loss, - 1", atol=1e-5),
    "growth": Column("growth of the differences there / escape rate, - 1", atol=1e-4),
    "end": Column("distance from the teacher at the end", atol=END),
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
        "power": Column("differences grow like this power of 1 / t, times exp(rate t)", atol=1e-4),
        "power_off": Column("power / ((3 K - 2) / (4 K - 2)), - 1", atol=1e-4),
    },
    strict={
        "it is stationary": lambda t: t.residual <= RESIDUAL,
        "its loss is the formula": lambda t: t.loss_off.abs() <= LOSS,
        "its largest growth rate is the formula": lambda t: t.rate_off.abs() <= RATE,
    },
)
DERIVED = Table(
    index=(),
    columns={
        "equivalent": Column("loss and velocity / equations of the paper, - 1", atol=SAME),
        "separate": Column("the same for units that are not equivalent", atol=SAME),
        "flow": Column("time to half the plateau's loss / that of the equations, - 1", atol=TIME),
    },
    strict={
        "the derived theory is the paper's": lambda t: (
            (t.equivalent <= SAME) & (t.separate <= SAME)
        ),
        "their flows agree": lambda t: t.flow.abs() <= TIME,
    },
)
FLOWS = Table(
    index=("K", "start", "difference"),
    columns=_MIDDLE,
    predicates={
        "the flow rests at the plateau": lambda t: t.rests.abs() <= FLOW,
        "the differences grow at the escape rate": lambda t: t.growth.abs() <= FLOW,
        "the units become the teacher's": lambda t: t.end <= END,
    },
)
DELAYS = Table(
    index=("K", "start", "difference"),
    columns={
        "delay": Column(
            "delay against a ten times larger difference, over log(10) / rate", rtol=1e-4
        )
    },
    predicates={
        "a smaller start delays by log / rate": lambda t: (t.delay - 1.0).abs() <= FLOW,
    },
)
RANDOM = Table(
    index=("run",),
    columns={
        **{name: replace(column, rtol=math.inf) for name, column in _MIDDLE.items()},
        "teachers": Column("units of the teacher that are learned", rtol=math.inf),
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
        "K = 2 to 8. Flows of the paper's equations, equal to the derived theory: of equivalent "
        "units from R - S = 1e-4 to 1e-6, and of three units with all overlaps free from random "
        "starts as in the paper, with 1e-6 in place of 1e-12. Times and growth on dense output."
    ),
    criterion=(
        "Identities, otherwise it fails: the velocity is at most 1e-14, the loss is the formula "
        "to 1e-12 and the largest growth rate to 1e-9; the derived velocity is the paper's to "
        "1e-12, with the same times to 1e-5. Of the flows, otherwise a finding: in the middle of "
        "the time to half the plateau's loss, the loss is within 1 % of the plateau's (3 % for "
        "random starts), and the differences grow at the escape rate to 1 % (3 %); a ten times "
        "smaller difference delays this time by log(10) / rate to 1 %; at the end all units are "
        "the teacher's to 1e-6."
    ),
    tables={
        "plateaus": PLATEAUS,
        "derived": DERIVED,
        "flows": FLOWS,
        "delays": DELAYS,
        "random starts": RANDOM,
    },
    measure=measure,
    headline=headline,
    finding=(
        "Formulas to {loss!u:.0e}; growth {low:.2g} to {high:.2g} % off the rate, {alike:.2g} % "
        "if units start alike; {runs} runs learn."
    ),
    quick_note=(
        "flows of K = 2 instead of 2, 4 and 8; two differences instead of three; one random start "
        "instead of eight"
    ),
    assumptions=(
        "gradient flow, the limit of small learning rates; statement as in notes on the paper; "
        "public code of the equations: github.com/sgoldt/nn2pp"
    ),
    amended=(
        "after the first run, which took minutes, flows are those of the paper's equations, fewer "
        "of them; starts of units that are alike and the power of t were added, because one "
        "direction of the plateau has rate 0: Q - C decays like 1 / t and slows the escape"
    ),
)
