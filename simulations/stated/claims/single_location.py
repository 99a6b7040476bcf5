"""Single-location regression: an invariant manifold, convergence on it, and ends off it."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import erf

from dynamics.overlaps.risk import OverlapRisk
from dynamics.theory.data import Array
from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import rng_at
from simulations.stated.figures.single_location import draw
from simulations.stated.overlaps import UserOverlapTheory
from simulations.stated.user_theory import load_theory

FILE = Path(__file__).parents[1] / "examples" / "single_location.py"
#: Dimension, tokens, and constants of the experiments of the paper.
PROBLEM = {"d": 400, "L": 10, "gamma": math.sqrt(0.5), "lam": 0.1}
#: Order of the overlaps here.
NAMES = ("kappa", "nu", "theta", "eta", "rho")
#: Step size on the manifold, largest number of steps, and steps between records.
LEARNING_RATE, STEPS, EVERY = 0.05, 40_000, 10
#: Latest end of a flow, and records of it.
HORIZON, RECORDS = 1e4, 1_000
#: A run rests if no overlap moves faster than this; ends closer than `NEAR` count as the same.
REST, NEAR = 1e-6, 1e-4
#: Starts on the manifold and on the spheres, as in the paper, and in a quick run.
STARTS, QUICK_STARTS = 30, 8
#: Tolerances: derived loss and step against the formula; distance from the manifold; growth rate.
SAME, DRIFT, STABLE = 1e-11, 1e-12, -1e-3


class Formula:
    """Risk of vectors k and v on spheres, by a quadrature over the score of the first token.

    With m = sqrt(d / 2), the score is kappa m + b, b normal of variance gamma^2. Given b, the value
    v x_1 has mean s = theta m + rho b and variance gamma^2 (1 - rho^2), and its product with the
    label has mean s eta b + gamma^2 (nu - rho eta). Other tokens contribute functions of rho.

    Parameters
    ----------
    d, L, gamma, lam
        Dimension, number of tokens, standard deviation of the first token, scale of the scores.
    """

    def __init__(self, d: float, L: float, gamma: float, lam: float) -> None:
        self.L, self.variance, self.lam, self.mean = L, gamma**2, lam, math.sqrt(d / 2.0)
        nodes, weights = np.polynomial.hermite_e.hermegauss(24)
        weights = weights / weights.sum()
        self.b = gamma * nodes
        self.weights = np.stack([weights * self.b**power for power in range(3)], axis=1)
        squares = weights * erf(lam * nodes) ** 2
        self.alone, self.tilted = float(squares.sum()), float(squares @ (nodes**2 - 1.0))
        self.other = 2.0 * lam / math.sqrt(math.pi * (1.0 + 2.0 * lam**2))

    def moments(self, kappa: Array) -> tuple[Array, ...]:
        """Return means of e, e^2, e' and 2 e e' times powers of b; e is the attention (n, 3)."""
        score = self.lam * (kappa[:, None] * self.mean + self.b)
        e = erf(score)
        slope = 2.0 * self.lam / math.sqrt(math.pi) * np.exp(-(score**2))
        return tuple(x @ self.weights for x in (e, e**2, slope, 2.0 * e * slope))

    def loss(self, overlaps: Array) -> Array:
        """Return the risk at overlaps (n, 5)."""
        kappa, nu, theta, eta, rho = overlaps.T
        e, square, _, _ = self.moments(kappa)
        first, others = self._squared(square, theta, rho), self.L - 1.0
        mixed = self._label(e, nu, theta, eta, rho)
        value = e[:, 0] * theta * self.mean + e[:, 1] * rho  # mean of the first token's output
        rest = self.alone + self.tilted * rho**2 + (others - 1.0) * (self.other * rho) ** 2
        cross = 2.0 * value * self.other * rho
        return first - 2.0 * mixed + self.variance + others * (rest + cross)

    def _squared(self, moments: Array, theta: Array, rho: Array) -> Array:
        """Return the mean of a function of the score times the square of v x_1."""
        level = theta * self.mean
        constant = level**2 + self.variance * (1.0 - rho**2)
        return moments[:, 0] * constant + 2.0 * level * rho * moments[:, 1] + rho**2 * moments[:, 2]

    def _label(self, moments: Array, nu: Array, theta: Array, eta: Array, rho: Array) -> Array:
        """Return the mean of a function of the score times v x_1 and the label."""
        constant = self.variance * (nu - rho * eta)
        return moments[:, 0] * constant + eta * (
            theta * self.mean * moments[:, 1] + rho * moments[:, 2]
        )

    def slopes(self, overlaps: Array) -> Array:
        """Return the derivatives of the risk in the overlaps (n, 5)."""
        kappa, nu, theta, eta, rho = overlaps.T
        e, square, slope, double = self.moments(kappa)
        level, others, other = theta * self.mean, self.L - 1.0, self.other * rho
        by_kappa = self.mean * (
            self._squared(double, theta, rho)
            - 2.0 * self._label(slope, nu, theta, eta, rho)
            + 2.0 * others * other * (level * slope[:, 0] + rho * slope[:, 1])
        )
        by_theta = (
            2.0
            * self.mean
            * (level * square[:, 0] + rho * square[:, 1] - eta * e[:, 1] + others * other * e[:, 0])
        )
        by_eta = -2.0 * (level * e[:, 1] + rho * e[:, 2] - self.variance * rho * e[:, 0])
        by_rho = 2.0 * (
            level * square[:, 1] + rho * square[:, 2] - self.variance * rho * square[:, 0]
            - eta * (e[:, 2] - self.variance * e[:, 0])
            + others * (other * e[:, 1] + self.other * (level * e[:, 0] + rho * e[:, 1]))
            + others * rho * (self.tilted + (others - 1.0) * self.other**2)
        )  # fmt: skip
        return np.stack([by_kappa, -2.0 * self.variance * e[:, 0], by_theta, by_eta, by_rho], 1)

    def motion(self, overlaps: Array) -> tuple[Array, Array]:
        """Return the Gram matrix of k, v, k*, v* (4, 4, n), and minus the gradients (2, 4, n).

        Row 0 contains the coefficients of k, v, k*, v* in minus the projected gradient in k, row 1
        those in minus the projected gradient in v.
        """
        kappa, nu, theta, eta, rho = overlaps.T
        ones, zero = np.ones_like(rho), np.zeros_like(rho)
        gram = np.array([
            [ones, rho, kappa, eta], [rho, ones, theta, nu],
            [kappa, theta, ones, zero], [eta, nu, zero, ones],
        ])  # fmt: skip
        by_kappa, by_nu, by_theta, by_eta, by_rho = self.slopes(overlaps).T
        k = by_kappa * kappa + by_eta * eta + by_rho * rho
        v = by_nu * nu + by_theta * theta + by_rho * rho
        return gram, np.array([[k, -by_rho, -by_kappa, -by_eta], [-by_rho, v, -by_theta, -by_nu]])

    def velocity(self, overlaps: Array) -> Array:
        """Return the velocity of overlaps under projected gradient flow (n, 5)."""
        gram, motion = self.motion(overlaps)
        moved = np.einsum("ija,jka->ika", motion, gram)
        (_, kv, kappa, eta), (vk, _, theta, nu) = moved
        return np.stack([kappa, nu, theta, eta, kv + vk], axis=1)

    def step(self, overlaps: Array, rate: float) -> Array:
        """Return the overlaps after a step of projected gradient descent on k and v (n, 5)."""
        gram, motion = self.motion(overlaps)
        matrix = np.eye(2, 4)[:, :, None] + rate * motion
        moved = np.einsum("ija,jka->ika", matrix, gram)
        products = np.einsum("ija,kja->ika", moved, matrix)
        k, v = np.sqrt(products[0, 0]), np.sqrt(products[1, 1])
        (_, _, kappa, eta), (_, _, theta, nu) = moved
        scaled = [kappa / k, nu / v, theta / v, eta / k, products[0, 1] / (k * v)]
        return np.stack(scaled, axis=1)


class Runs(NamedTuple):
    """Runs until they rest.

    Attributes
    ----------
    records
        Overlaps (records, n, 5) on the way.
    end, velocity
        Overlaps (n, 5) and largest velocity (n,) at the end.
    """

    records: Array
    end: Array
    velocity: Array

    @property
    def solved(self) -> NDArray[np.bool_]:
        """Whether kappa = nu = 1 or both are -1 (n,)."""
        common = np.sign(self.end[:, :1]) * self.end[:, :2]
        return np.asarray(np.abs(common - 1.0).max(axis=1) <= NEAR)

    @property
    def drift(self) -> float:
        """Largest distance from the manifold at the records."""
        return float(np.sqrt((self.records[:, :, 2:] ** 2).sum(axis=2)).max())


def descend(formula: Formula, start: Array) -> Runs:
    """Return runs of projected descent until all rest, at most `STEPS` steps."""
    state, records, velocity = start, [start], np.full(len(start), math.inf)
    for step in range(1, STEPS + 1):
        state = formula.step(state, LEARNING_RATE)
        if step % EVERY == 0:
            records.append(state)
            velocity = np.abs(formula.velocity(state)).max(axis=1)
            if velocity.max() <= REST:
                break
    return Runs(np.array(records), state, velocity)


def flow(formula: Formula, start: Array) -> Any:
    """Return the flow of SciPy from a start (5,) until it rests."""

    def velocity(_: float, state: Array) -> Array:
        return formula.velocity(state[None])[0]

    def rests(_: float, state: Array) -> float:
        return float(np.abs(velocity(0.0, state)).max()) - 0.5 * REST

    rests.terminal = True  # type: ignore[attr-defined]
    return solve_ivp(
        velocity, (0.0, HORIZON), start, method="BDF", rtol=1e-6, atol=1e-9, events=rests,
        dense_output=True,
    )  # fmt: skip


def flows(formula: Formula, starts: Array, context: Context) -> Runs:
    """Return gradient flows from given starts."""
    runs = [flow(formula, start) for start in context.track(starts, 0.4)]
    end = np.array([run.y[:, -1] for run in runs])
    times = np.linspace(0.0, max(float(run.t[-1]) for run in runs) ** 0.5, RECORDS) ** 2
    records = np.array([run.sol(np.minimum(times, run.t[-1])).T for run in runs])
    velocity = np.abs(formula.velocity(end)).max(axis=1)
    return Runs(records.swapaxes(0, 1), end, velocity)


def on_spheres(rng: np.random.Generator, count: int, d: int) -> Array:
    """Return overlaps (n, 5) of k and v that are uniform on the spheres."""
    k, v = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in rng.normal(size=(2, count, d)))
    return np.stack([k[:, 0], v[:, 1], v[:, 0], k[:, 1], (k * v).sum(axis=1)], axis=1)


def on_manifold(rng: np.random.Generator, count: int, d: int) -> Array:
    """Return overlaps (n, 5) of k and v that are uniform on spheres of dimension d - 2.

    k is orthogonal to v*, and v to k* and k. Unlike k, v has one dimension less.
    """
    k, v = rng.normal(size=(count, d - 1)), rng.normal(size=(count, d - 2))
    rows = [x[:, 0] / np.linalg.norm(x, axis=1) for x in (k, v)]
    return np.stack([*rows, *np.zeros((3, count))], axis=1)


def derived_row(theory: UserOverlapTheory, formula: Formula, seed: int) -> dict[str, Any]:
    """Return the row of the table `DERIVED`: risk and step against the formula."""
    risk, rng = theory.risk(**PROBLEM), rng_at(seed, 1)
    order = [NAMES.index(name) for name in risk.order_parameters]
    states = 0.4 * rng.uniform(-1.0, 1.0, size=(6, 5))
    loss, moved, still = 0.0, 0.0, 0.0
    losses, steps, velocities = (
        formula.loss(states),
        formula.step(states, 0.05),
        formula.velocity(states),
    )
    for row, expected, after, velocity in zip(states, losses, steps, velocities):
        loss = max(loss, abs(risk.loss(row[order]) / expected - 1.0))
        off = (
            risk.step(row[order], 0.05) - after[order],
            risk.gradient(row[order]) + velocity[order],
        )
        moved = max(moved, float(np.abs(off).max()))
        slope = risk.gradient((row * [1, 1, 0, 0, 0])[order])  # on the manifold
        still = max(still, float(np.abs(slope[[k for k, n in enumerate(order) if n > 1]]).max()))
    return {"loss": loss, "step": moved, "still": still}


def other_ends(risk: OverlapRisk, formula: Formula, runs: Runs) -> list[dict[str, Any]]:
    """Return a row for each end that is not the solution, up to the sign of both vectors."""
    order = [NAMES.index(name) for name in risk.order_parameters]
    rows: list[dict[str, Any]] = []
    ends = runs.end[~runs.solved & (runs.velocity <= REST)]
    ends = ends * np.where(ends[:, [0]] + ends[:, [3]] < 0.0, [-1, -1, -1, -1, 1], 1)
    best = float(formula.loss(np.array([[1.0, 1.0, 0.0, 0.0, 0.0]]))[0])
    while len(ends):
        same = np.abs(ends - ends[0]).max(axis=1) <= 10.0 * NEAR
        rates = -np.linalg.eigvals(risk.jacobian(ends[0][order])).real
        rows.append(
            {
                "end": len(rows) + 1,
                "runs": int(same.sum()),
                **dict(zip(NAMES, ends[0].tolist())),
                "excess": float(formula.loss(ends[:1])[0]) - best,
                "growth": float(rates.max()),
            }
        )
        ends = ends[~same]
    return rows


def measure(context: Context) -> Measurement:
    """Compare the derived theory with a formula, and run descent on and off the manifold."""
    theory = load_theory(FILE)
    assert isinstance(theory, UserOverlapTheory)
    formula = Formula(**PROBLEM)
    derived = derived_row(theory, formula, context.seed)
    count, d = context.choose(quick=QUICK_STARTS, full=STARTS), int(PROBLEM["d"])
    runs = {
        "manifold": descend(formula, on_manifold(rng_at(context.seed, 2), count, d)),
        "spheres": flows(formula, on_spheres(rng_at(context.seed, 3), count, d), context),
    }
    summary = {
        name: {
            "starts": count,
            "rest": int((run.velocity <= REST).sum()),
            "solved": int(run.solved.sum()),
            "drift": run.drift,
        }
        for name, run in runs.items()
    }
    ends = other_ends(theory.risk(**PROBLEM), formula, runs["spheres"])
    return Measurement(
        {
            "derived": DERIVED.frame([derived]),
            "manifold": MANIFOLD.frame([summary["manifold"]]),
            "spheres": SPHERES.frame([summary["spheres"]]),
            "other ends": ENDS.frame(ends),
        },
        {**PROBLEM, "learning rate": LEARNING_RATE, "steps": STEPS},
        (_figure(runs),),
    )


def _figure(runs: Mapping[str, Runs]) -> Figure:
    time = LEARNING_RATE * EVERY * np.arange(len(runs["manifold"].records))
    data = xarray.Dataset(
        {
            "manifold": (("time", "run", "overlap"), runs["manifold"].records),
            "spheres": (("record", "run", "overlap"), runs["spheres"].records),
            "solved": ("run", runs["spheres"].solved.astype(int)),
        },
        coords={"time": time, "overlap": list(NAMES)},
    )
    return report_figure(
        "single-location",
        "Projected descent on the manifold finds the token, off it not always",
        "(a) kappa = k k* and nu = v v* of descents on the manifold from random starts (dots). "
        "(b) Their absolute values against time; thick: means. (c) |k v*| against |k k*| of flows "
        "from random starts on the spheres; black: those that do not end at k* and v*.",
        draw,
        data,
        (10.0, 3.9),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers in the sentence of the claim."""
    manifold, spheres = (tables[name].data.iloc[0] for name in ("manifold", "spheres"))
    return {
        "solved": int(manifold.solved),
        "starts": int(manifold.starts),
        "off": int(spheres.solved),
        "others": int(spheres.starts),
        "ends": len(tables["other ends"].data),
    }


_COUNTS = {
    "starts": Column("random starts"),
    "rest": Column("runs that rest at the end"),
    "solved": Column("runs that end at (k*, v*) or (-k*, -v*)", rtol=math.inf),
    "drift": Column("largest distance from the manifold on the way", rtol=math.inf),
}
DERIVED = Table(
    index=(),
    columns={
        "loss": Column("derived loss / formula, - 1", atol=SAME),
        "step": Column(
            "largest difference of velocities, and of overlaps after a step of 0.05", atol=SAME
        ),
        "still": Column("largest velocity of theta, eta, rho on the manifold", atol=DRIFT),
    },
    strict={
        "the derived risk is the formula": lambda t: t.loss <= SAME,
        "velocity and exact step are those of the formula": lambda t: t.step <= SAME,
        "theta, eta and rho do not move on the manifold": lambda t: t.still <= DRIFT,
    },
)
MANIFOLD = Table(
    index=(),
    columns={**_COUNTS, "drift": replace(_COUNTS["drift"], rtol=1e-6, atol=DRIFT)},
    strict={
        "all runs stay on the manifold": lambda t: t.drift <= DRIFT,
        "all runs end at the solution": lambda t: t.solved == t.starts,
    },
)
SPHERES = Table(
    index=(),
    columns=_COUNTS,
    predicates={
        "all runs come to rest": lambda t: t.rest == t.starts,
        "some end at the solution": lambda t: t.solved >= 1,
        "some end elsewhere": lambda t: t.solved <= t.starts - 1,
    },
)
ENDS = Table(
    index=("end",),
    columns={
        "runs": Column("runs that end there", rtol=math.inf),
        **{name: Column(name, atol=10.0 * NEAR) for name in NAMES},
        "excess": Column("loss less that of the solution", rtol=1e-3),
        "growth": Column("largest growth rate", "1 / flow time", rtol=1e-3),
    },
    predicates={
        "it is a local minimum": lambda t: t.growth <= STABLE,
        "its loss is larger": lambda t: t.excess > 0.0,
    },
)

CLAIM = Claim(
    id="single-location",
    place="Gradient descent on single-location regression: invariant manifold and convergence",
    statement=(
        "The manifold of k orthogonal to v*, and v orthogonal to k* and k, is invariant under "
        "projected gradient descent on the spheres. From a random start on it k and v converge to "
        "k* and v*, up to a common sign. From a start on the spheres they need not."
    ),
    method=(
        "The theory derived from a file, five overlaps for every d and L, against a quadrature of "
        "the risk. Projected descent with the exact step from 30 random starts on the manifold, "
        "and gradient flow, the limit of small steps, from 30 on the spheres, until they rest; "
        "growth rates at ends that are not the solution, by the derived Jacobian."
    ),
    criterion=(
        "Exact, otherwise it fails: derived risk, velocity and step are those of the quadrature to "
        "1e-11, the other three overlaps have no velocity on the manifold (1e-12), all runs stay "
        "on it to 1e-12, and all of them end with kappa = nu = 1 or both -1 to 1e-4 (a theorem "
        "with probability one). For starts on the spheres, otherwise a finding: all runs rest, "
        "some end at the solution, some elsewhere; every other end is a local minimum (growth "
        "rates at most -.001) of larger loss, so that an open set of starts ends there."
    ),
    tables={"derived": DERIVED, "manifold": MANIFOLD, "spheres": SPHERES, "other ends": ENDS},
    measure=measure,
    headline=headline,
    finding=(
        "{solved} of {starts} runs on the manifold end at k*, v*; from the spheres {off} of "
        "{others}; number of other ends: {ends}."
    ),
    tolerance=NEAR,
    quick_note="8 starts of each type instead of 30",
    assumptions=(
        "d = 400, L = 10, gamma^2 = .5, lambda = .1 as in the paper, steps of .05 instead of .004; "
        "statement as in notes on the paper and in its public code, "
        "github.com/PierreMarion23/single-location-regression"
    ),
    amended=(
        "after the first run: descent with steps of .02 is unstable off the manifold, so that "
        "flows start from the spheres, and steps on it are .05; 30 starts as in the paper instead "
        "of 200; runs rest at a velocity of 1e-6 instead of 1e-7, below the integrator's errors"
    ),
)
