"""Softmax attention that learns to select a token: the plateau and its length in T and d."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray
from scipy.integrate import solve_ivp
from scipy.special import erfcx

from dynamics import Trajectory, gradient_flow
from dynamics.core.crossing import first_passage
from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import seeds_of
from simulations.stated.figures.sparse_attention import draw
from simulations.stated.findings import examine
from simulations.stated.runs import risk
from symbolic.theory import load_theory

FILE = Path(__file__).parents[1] / "examples" / "sparse_attention.py"
#: Tokens and coordinates of the flows.
TOKENS, COORDINATES = (64, 256, 1024, 4096), (16, 64, 256)
#: Problems in the figure.
SHOWN = ((64, 16), (256, 16), (256, 64), (1024, 64))
#: Tokens and coordinates of flows of every entry, and standard deviation of their initial scores.
FREE, SCORES = (256, 16), 0.01
#: Smallest T / sqrt(d) of the flows that are evaluated: the statement is for many tokens.
LONG = 16.0
#: Fraction of the half-loss time at which the plateau is examined; largest decrease of the loss,
#: and largest attention to the last token in units of 1 / T, at that time.
LATE, FALLEN, ATTENTION = 0.9, 0.1, 10.0
#: Tolerances: derived loss against the formula; half-loss times of the two flows; exponents;
#: half-loss times against their limit, from 0 and from random starts.
SAME, TIME, EXPONENT, LIMIT, RANDOM_LIMIT = 1e-12, 1e-6, 0.05, 0.1, 0.15


class Formula:
    """Loss 1/(2 d) (|W|^2 sum p_t^2 - 2 p_T tr W + d) in every entry; p is the attention."""

    def __init__(self, T: int, d: int) -> None:
        self.T, self.d = T, d

    def split(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return attention (T,) and W (d, d) at a state of scores and entries."""
        raised = np.exp(state[: self.T] - state[: self.T].max())
        return raised / raised.sum(), state[self.T :].reshape(self.d, self.d)

    def loss(self, state: np.ndarray) -> float:
        """Return the loss at a state (T + d^2,)."""
        p, W = self.split(state)
        return float(((W**2).sum() * (p**2).sum() - 2.0 * p[-1] * np.trace(W)) / self.d + 1.0) / 2.0

    def slope(self, state: np.ndarray) -> np.ndarray:
        """Return minus the gradient of the loss (T + d^2,)."""
        p, W = self.split(state)
        by_p = (W**2).sum() * p
        by_p[-1] -= np.trace(W)
        by_W = (p**2).sum() * W - p[-1] * np.eye(self.d)
        return -np.concatenate([p * (by_p - p @ by_p), by_W.ravel()]) / self.d

    def flow(self, start: np.ndarray, end: float) -> dict[str, float]:
        """Return the half-loss time, and decrease of the loss and attention at `LATE` times it."""
        initial = self.loss(start)

        def half(_: float, state: np.ndarray) -> float:
            return self.loss(state) - 0.5 * initial

        half.terminal = True  # type: ignore[attr-defined]
        run = solve_ivp(
            lambda _, state: self.slope(state), (0.0, end), start, method="DOP853", rtol=1e-9,
            atol=1e-11, events=half, dense_output=True,
        )  # fmt: skip
        if not len(run.t_events[0]):
            return dict.fromkeys(("half", "fallen", "attention"), math.nan)
        time = float(run.t_events[0][0])
        late = run.sol(LATE * time)
        return {
            "half": time,
            "fallen": 1.0 - self.loss(late) / initial,
            "attention": float(self.split(late)[0][-1]) * self.T,
        }


def expected(d: int, mean: float = 0.0) -> float:
    """Return the half-loss time over T sqrt(d) for T -> infinity, and then d -> infinity.

    Let w be sqrt(d) times the mean diagonal entry of W, and g the score of the last token. While
    attention is small, and with time in units of T sqrt(d), dw/dt = e^g - w / sqrt(d) and
    dg/dt = w e^g. From w = g = 0 the solution diverges at sqrt(pi / 2) + (1 - pi / 4) / sqrt(d), to
    first order in 1 / sqrt(d). From another w it diverges, to order 0, at the Mills ratio of the
    normal distribution at w.

    Parameters
    ----------
    d
        Number of coordinates.
    mean
        Initial mean diagonal entry of W.
    """
    start = mean * math.sqrt(d)
    mills = math.sqrt(math.pi / 2.0) * float(erfcx(start / math.sqrt(2.0)))
    return mills + (1.0 - math.pi / 4.0) / math.sqrt(d)


class Emergence(NamedTuple):
    """Reduced flow and its half-loss time."""

    T: int
    d: int
    flow: Trajectory
    half: float

    def row(self) -> dict[str, Any]:
        """Return the row of the flow in the table `FLOWS`."""
        formula = Formula(self.T, 1)
        unit = self.T * math.sqrt(self.d)
        late = np.array(self.flow.at(LATE * self.half))
        return {
            "T": self.T,
            "d": self.d,
            "length": self.T / math.sqrt(self.d),
            "half": self.half,
            "scaled": self.half / unit,
            "limit": self.half / unit / expected(self.d) - 1.0,
            "fallen": 1.0 - formula.loss(self.entries(late)) / 0.5,
            "attention": float(formula.split(self.entries(late))[0][-1]) * self.T,
        }

    def entries(self, state: np.ndarray) -> np.ndarray:
        """Return scores and one diagonal entry of W, which determine the loss for all d."""
        a, b, W = state
        return np.array([*[a] * (self.T - 1), b, W])


def emergence(theory: Any, T: int, d: int) -> Emergence:
    """Return the flow of the derived risk to a time far beyond the plateau."""
    population = risk(theory, T=T, d=d)
    end = 4.0 * (T * math.sqrt(d) + d)
    flow = gradient_flow(population, horizon=end, rtol=1e-10, atol=1e-12, records=400)
    half = first_passage(flow, lambda state: -population.evaluate(state).loss, -0.25)
    return Emergence(T, d, flow, half)


def random_start(seed: int) -> np.ndarray:
    """Return normal scores, and normal entries of W of variance 1 / d."""
    T, d = FREE
    rng = np.random.default_rng(seed)
    return np.concatenate([SCORES * rng.normal(size=T), rng.normal(size=d * d) / math.sqrt(d)])


def measure(context: Context) -> Measurement:
    """Derive the theory, and integrate reduced flows and flows of every entry."""
    theory = load_theory(FILE)
    findings = examine(theory, {"T": 4, "d": 3})
    tokens = context.choose(quick=TOKENS[:3], full=TOKENS)
    problems = [(T, d) for d in COORDINATES for T in tokens]
    flows = {x: emergence(theory, *x) for x in context.track(problems, 0.1, 0.5)}
    reduction = {
        "order_parameters": len(theory.orders),
        "conserved": "; ".join(findings.conserved),
        "difference": findings.check.largest,
        "agrees": findings.agrees,
        "formula": difference(theory, context.seed),
        "flow": flows[64, 16].half
        / Formula(64, 16).flow(np.zeros(64 + 16**2), 1e4)["half"] - 1.0,
    }  # fmt: skip
    seeds = seeds_of(context.seed, context.choose(quick=3, full=10))
    free = [random_row(run, seed) for run, seed in enumerate(context.track(seeds, 0.5))]
    return Measurement(
        {
            "reduction": REDUCTION.frame([reduction]),
            "flows": FLOWS.frame(flow.row() for flow in flows.values()),
            "exponents": EXPONENTS.frame(exponents(flows)),
            "random starts": RANDOM.frame(free),
        },
        {"T": tokens, "d": COORDINATES, "every entry": FREE, "scores at the start": SCORES},
        (_figure(theory, flows),),
    )


def difference(theory: Any, seed: int) -> float:
    """Return the largest relative difference of derived loss and slopes from the formula."""
    T, d, worst = 5, 3, 0.0
    population, formula = risk(theory, T=T, d=d), Formula(T, d)
    for a, b, W in np.random.default_rng(seed).normal(size=(5, 3)):
        entries = np.array([*[a] * (T - 1), b, *(W * np.eye(d)).ravel()])
        slopes = -formula.slope(entries)[[0, T - 1, T]]
        worst = max(
            worst,
            abs(population.evaluate([a, b, W]).loss / formula.loss(entries) - 1.0),
            np.abs(np.array(population.gradient([a, b, W])) - slopes).max() / np.abs(slopes).max(),
        )
    return float(worst)


def exponents(flows: Mapping[tuple[int, int], Emergence]) -> list[dict[str, Any]]:
    """Return local exponents of T and of d between problems that differ by a factor of four."""
    rows = []
    for (T, d), flow in flows.items():
        for name, other in (("T", (4 * T, d)), ("d", (T, 4 * d))):
            if other in flows:
                power = math.log(flows[other].half / flow.half) / math.log(4.0)
                exponent = 1.0 if name == "T" else 0.5
                length = min(n / math.sqrt(m) for n, m in ((T, d), other))
                rows.append(
                    {"of": name, "T": T, "d": d, "length": length, "power": power,
                     "off": power - exponent}
                )  # fmt: skip
    return rows


def random_row(run: int, seed: int) -> dict[str, Any]:
    """Return the row of a flow of every entry in the table `RANDOM`."""
    T, d = FREE
    start = random_start(seed)
    mean = float(np.trace(start[T:].reshape(d, d)) / d)
    flow = Formula(T, d).flow(start, 20.0 * T * math.sqrt(d))
    limit = flow["half"] / (T * math.sqrt(d) * expected(d, mean)) - 1.0
    return {"run": run, "mean": mean, **flow, "limit": limit}


def _figure(theory: Any, flows: Mapping[tuple[int, int], Emergence]) -> Figure:
    scaled = np.linspace(0.0, 2.0, 401)
    curves: dict[str, list[Any]] = {"loss": [], "attention": []}
    for T, d in SHOWN:
        flow = flows[T, d].flow
        states = np.array([flow.at(t) for t in scaled * T * math.sqrt(d)])
        population = risk(theory, T=T, d=d)
        curves["loss"].append([population.evaluate(state).loss for state in states])
        curves["attention"].append(1.0 / (1.0 + (T - 1) * np.exp(states[:, 0] - states[:, 1])))
    tokens = list(dict.fromkeys(T for T, _ in flows))
    half = [[flows[T, d].half / (T * math.sqrt(d)) for T in tokens] for d in COORDINATES]
    data = xarray.Dataset(
        {
            **{name: (("problem", "scaled"), np.array(rows)) for name, rows in curves.items()},
            "half": (("d", "T"), np.array(half)),
            "expected": ("d", [expected(d) for d in COORDINATES]),
            "limit": math.sqrt(math.pi / 2.0),
        },
        coords={
            "problem": [f"T={T}, d={d}" for T, d in SHOWN],
            "scaled": scaled,
            "T": tokens,
            "d": list(COORDINATES),
        },
    )
    return report_figure(
        "theory-sparse-attention",
        "Sparse attention emerges after a plateau of length T sqrt(d)",
        "(a) Loss and (b) attention to the last of T tokens of d coordinates against flow time "
        "over T sqrt(d). (c) Half-loss time over T sqrt(d); dotted: its limit for many tokens, "
        "to first order in 1 / sqrt(d). Dashed lines: sqrt(pi/2), the limit for many tokens and "
        "coordinates.",
        draw,
        data,
        (11.0, 3.9),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers in the sentence of the claim."""
    rows, powers = (tables[name].data[tables[name].judged] for name in ("flows", "exponents"))
    of_T, of_d = powers.power.xs("T", level="of"), powers.power.xs("d", level="of")
    return {
        "low": of_T.min(),
        "high": of_T.max(),
        "low_d": of_d.min(),
        "high_d": of_d.max(),
        "least": rows.scaled.min(),
        "most": rows.scaled.max(),
    }


_LATE_COLUMNS = {
    "fallen": Column(f"relative decrease of the loss at {LATE:g} times that time"),
    "attention": Column(f"attention to the last token at {LATE:g} times that time", "1 / T"),
}
_PLATEAU = {
    "nothing is seen at 9/10 of the time": lambda t: t.fallen <= FALLEN,
    "attention is still spread out then": lambda t: t.attention <= ATTENTION,
}
REDUCTION = Table(
    index=(),
    columns={
        "order_parameters": Column("derived order parameters"),
        "conserved": Column("conserved forms"),
        "difference": Column("largest relative difference from the full model", atol=1e-11),
        "agrees": Column("the reduction agrees with the full model"),
        "formula": Column("relative difference of loss and slopes from the formula", atol=SAME),
        "flow": Column("half-loss time, reduced / every entry, - 1", atol=TIME),
    },
    strict={
        "three order parameters": lambda t: t.order_parameters == 3,
        "the scores keep their sum, and nothing else is conserved": lambda t: (
            t.conserved == "a + 0.333333 b"
        ),
        "the reduction is the full model": lambda t: t.agrees,
        "the derived loss is the formula": lambda t: t.formula <= SAME,
        "their flows agree": lambda t: t.flow.abs() <= TIME,
    },
)
FLOWS = Table(
    index=("T", "d"),
    columns={
        "length": Column("T / sqrt(d)"),
        "half": Column("half-loss time", "flow time"),
        "scaled": Column("half-loss time over T sqrt(d)"),
        "limit": Column("half-loss time / its limit, - 1"),
        **_LATE_COLUMNS,
    },
    predicates={
        "half-loss times are near their limit": lambda t: t.limit.abs() <= LIMIT,
        **_PLATEAU,
    },
    judged=lambda t: t.length >= LONG,
)
EXPONENTS = Table(
    index=("of", "T", "d"),
    columns={
        "length": Column("T / sqrt(d), the smaller of the two"),
        "power": Column("local exponent of the half-loss time"),
        "off": Column("exponent - 1 (of T) or - 1/2 (of d)"),
    },
    predicates={"time is proportional to T sqrt(d)": lambda t: t.off.abs() <= EXPONENT},
    judged=lambda t: t.length >= LONG,
)
RANDOM = Table(
    index=("run",),
    columns={
        "mean": Column("initial mean diagonal entry of W", rtol=math.inf),
        "half": Column("half-loss time", "flow time", rtol=math.inf),
        "limit": Column("half-loss time / its limit for this mean, - 1", rtol=math.inf),
        **{name: replace(column, rtol=math.inf) for name, column in _LATE_COLUMNS.items()},
    },
    predicates={
        "half-loss times are near their limit": lambda t: t.limit.abs() <= RANDOM_LIMIT,
        **_PLATEAU,
    },
)

CLAIM = Claim(
    id="theory-sparse-attention",
    place="Toy model of one softmax attention: length of the plateau",
    statement=(
        "The loss stays on a plateau while attention is uniform, and then falls suddenly, when "
        "attention to the one token that matters emerges. The plateau has a length proportional to "
        "T sqrt(d) for T tokens of d coordinates."
    ),
    method=(
        "The theory derived from a file, three order parameters for all T and d; half-loss times "
        "of its flow from 0, and local exponents of T and of d over factors of four; flows of "
        "every entry of the scores and of W from random starts. The limit of many tokens is "
        "derived here: sqrt(pi / 2) + (1 - pi / 4) / sqrt(d) + O(1 / d), in units of T sqrt(d)."
    ),
    criterion=(
        "The reduction is exact: 1e-11 against the full model, 1e-12 against a formula by hand, "
        "1e-6 for the half-loss times of their flows. The rest is for many tokens, evaluated at "
        "T >= 16 sqrt(d): local exponents are 1 and 1/2 to .05 (the correction in sqrt(d) is .02 "
        "at d = 16, and W takes an additional time of order d); half-loss times are within 10 % of "
        "the limit. Suddenly: at 9/10 of the half-loss time the loss has decreased by at most 10 "
        "%, and attention to the token is at most 10 / T (the limit is 3.9 / T). The same for "
        "random starts, W of variance 1 / d, with times within 15 % of the limit for the initial "
        "mean diagonal entry. A false exact statement: fails, otherwise a finding."
    ),
    tables={
        "reduction": REDUCTION,
        "flows": FLOWS,
        "exponents": EXPONENTS,
        "random starts": RANDOM,
    },
    measure=measure,
    headline=headline,
    finding=(
        "Half-loss time: {least:.3g} to {most:.3g} T sqrt(d); exponents {low:.3f} to {high:.3f} "
        "(T), {low_d:.3f} to {high_d:.3f} (d)."
    ),
    tolerance=EXPONENT,
    quick_note="T up to 1024 instead of 4096, three random starts instead of ten",
    assumptions="model, statement and names of public notes, not of the paper",
)
