"""Attention by meaning or by position: which of them training learns first."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, minimize
from scipy.special import expit
from scipy.stats import norm

from dynamics.theory.data import Array
from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import rng_at
from simulations.stated.figures.semantic_positional import draw
from simulations.stated.overlaps import UserOverlapTheory
from simulations.stated.user_theory import load_theory

FILE = Path(__file__).parents[1] / "examples" / "semantic_positional.py"
#: Preference of the teacher for the first position, norms of w*, and overlaps that are learned.
TAU, NORMS, LEVELS = 0.8, (1.0, 2.0, 4.0), (0.1, 0.05, 0.025)
#: Norm, level, dimension and learning rate of the runs of SGD, and their latest flow time.
NORM, LEVEL, DIMENSION, LEARNING_RATE, LATEST = 2.0, 0.1, 30, 0.02, 3.0
#: Samples per step, and mixtures of the map.
SAMPLES, MIXTURES = (1, 4, 16, 64), np.linspace(0.1, 0.7, 25)
#: Tolerances: derived theory; boundary of flows, times its level; boundary and width of runs.
SAME, FIRST_ORDER, CENTRE, WIDTH = 1e-10, 4.0, 0.05, 1.4
#: Nodes along w* and along p.
_ALONG, _ACROSS = np.arange(-9.0, 9.05, 0.1)[:, None], np.arange(-9.0, 9.2, 0.4)


class Attention(NamedTuple):
    """Gradient flow of w = m w*/c + n p from small w, by quadrature over x_1 - x_2.

    Attributes
    ----------
    omega, tau, c
        Mixture, preference for the first position, and norm of w*.
    """

    omega: float
    tau: float = TAU
    c: float = NORM

    @property
    def _weights(self) -> tuple[Array, Array]:
        return _density(_ALONG, 0.1), _density(_ACROSS, 0.4)

    def _mean(self, values: Array) -> float:
        along, across = self._weights
        return float(np.sum(along * values * across))

    @property
    def teacher(self) -> Array:
        """Attention of the teacher to the first token, at the nodes along w*."""
        by_meaning = expit(math.sqrt(2.0) * self.c * _ALONG)
        return np.asarray((1.0 - self.omega) * by_meaning + self.omega * (1.0 + self.tau) / 2.0)

    def student(self, state: Array) -> Array:
        """Return the attention of the student to the first token, at the nodes."""
        m, n = state
        return np.asarray(expit(math.sqrt(2.0) * (m * _ALONG + n * _ACROSS) + 2.0 * n))

    def loss(self, state: Array) -> float:
        """Return the loss; u (x_1 - x_2) has variance 2 and is independent of the rest."""
        return self._mean((self.student(state) - self.teacher) ** 2)

    def velocity(self, _: float, state: Array) -> Array:
        """Return the velocity of (m, n)."""
        student = self.student(state)
        slope = 2.0 * (self.teacher - student) * student * (1.0 - student)
        root = math.sqrt(2.0)
        return np.array([self._mean(slope * root * _ALONG),
                         self._mean(slope * (root * _ACROSS + 2.0))])  # fmt: skip

    @property
    def slope(self) -> float:
        """Mean slope g of the logistic function at the scores of the teacher."""
        score = expit(math.sqrt(2.0) * self.c * _ALONG)
        return float(np.sum(self._weights[0] * score * (1.0 - score)))

    @property
    def speeds(self) -> Array:
        """Initial speeds (1 - omega) c g of m, and omega tau / 2 of n."""
        return np.array([(1.0 - self.omega) * self.c * self.slope, self.omega * self.tau / 2.0])

    @property
    def total(self) -> float:
        """Decrease of the difference of the speeds with omega, c g + tau / 2."""
        return self.c * self.slope + self.tau / 2.0

    @property
    def boundary(self) -> float:
        """The omega of equal speeds, c g / (c g + tau / 2)."""
        return self.c * self.slope / self.total

    def shifted(self, level: float) -> float:
        """Return the omega at which m and n reach a level together, to first order in the level.

        Linearized, m and n relax at rates 1/4 and 3/4, so that n is later by level / 4.
        """
        return self.boundary + 0.25 * level / self.total

    def width(self, level: float) -> float:
        """Return the standard deviation of the boundary of runs times (samples / rate)^(1/2).

        After the time T = level / speed, the noise of m - n has variance rate T V / samples, with
        V the variance of a gradient at w = 0, and the mean changes with omega by T (c g + tau / 2).
        """
        at = self._replace(omega=self.boundary)
        teacher, root = at.teacher, math.sqrt(2.0)
        squares = (0.5 - teacher) ** 2 * ((root * _ALONG - 2.0) ** 2 + 2.0)
        variance = 12.0 / 16.0 * float(np.sum(self._weights[0] * squares))  # E u^4 = 12
        time = level / at.speeds[0]
        return math.sqrt(variance / time) / self.total

    def flow(self, level: float, last: float = 10.0) -> Any:
        """Return the flow from w = 0 until m or n reaches a level."""

        def reached(_: float, state: Array) -> float:
            return float(max(state)) - level

        reached.terminal = True  # type: ignore[attr-defined]
        return solve_ivp(
            self.velocity, (0.0, last), np.zeros(2), rtol=1e-7, atol=1e-9, events=reached,
            dense_output=True,
        )  # fmt: skip

    def crossing(self, level: float) -> float:
        """Return the omega at which m and n of the flow reach a level together."""

        def lead(omega: float) -> float:
            m, n = self._replace(omega=omega).flow(level).y[:, -1]
            return float(m - n)

        return float(brentq(lead, self.boundary - 0.1, self.boundary + 0.3, xtol=1e-6))


def _density(nodes: Array, step: float) -> Array:
    return step * np.exp(-0.5 * nodes**2) / math.sqrt(2.0 * math.pi)


@dataclass(frozen=True)
class Counts:
    """Runs in which m is first, of ``runs`` at each mixture, and runs that reach no level."""

    mixtures: Array
    semantic: Array
    runs: int
    unfinished: int

    @cached_property
    def boundary(self) -> tuple[float, float]:
        """Centre and width s of the probability Phi((centre - omega) / s) by maximum likelihood."""

        def cost(x: Array) -> float:
            z = (x[0] - self.mixtures) / math.exp(x[1])
            other = self.runs - self.semantic
            return -float(np.sum(self.semantic * norm.logcdf(z) + other * norm.logcdf(-z)))

        middle = float(np.sum(self.semantic) / self.runs) * (self.mixtures[1] - self.mixtures[0])
        best = minimize(cost, [self.mixtures[0] + middle, math.log(0.1)], method="Nelder-Mead")
        return float(best.x[0]), math.exp(best.x[1])


def counts(samples: int, mixtures: Array, runs: int, rng: np.random.Generator) -> Counts:
    """Return in how many runs of SGD from w = 0 the semantic overlap reaches the level first."""
    own, count = Attention(0.0), mixtures.size * runs
    omega, unit = np.repeat(mixtures, runs)[:, None], np.eye(DIMENSION)
    w, first = np.zeros((count, DIMENSION)), np.zeros(count)
    for _ in range(round(LATEST / LEARNING_RATE)):
        x = math.sqrt(2.0) * rng.standard_normal((count, samples, DIMENSION))  # x_1 - x_2
        student = expit(np.einsum("rsd,rd->rs", x, w) + 2.0 * w[:, 1:2])
        teacher = (1.0 - omega) * expit(own.c * x[:, :, 0]) + omega * (1.0 + own.tau) / 2.0
        slope = (student - teacher) * student * (1.0 - student) * x[:, :, 2] ** 2 / samples
        gradient = np.einsum("rs,rsd->rd", slope, x) + 2.0 * slope.sum(axis=1)[:, None] * unit[1]
        w -= LEARNING_RATE * gradient
        decided = (first == 0.0) & (w[:, :2].max(axis=1) >= LEVEL)
        first[decided] = np.sign(w[decided, 0] - w[decided, 1])
        if first.all():
            break
    semantic = (first.reshape(mixtures.size, runs) > 0.0).sum(axis=1)
    return Counts(mixtures, semantic, runs, int((first == 0.0).sum()))


def derived_row(theory: UserOverlapTheory, c: float, seed: int) -> dict[str, Any]:
    """Return the row of the table `DERIVED`: derived risk and velocity against quadrature."""
    rng, worst = rng_at(seed, 1), {"loss": 0.0, "velocity": 0.0, "start": 0.0}
    for omega in (0.2, 0.5):
        own = Attention(omega, c=c)
        risk = theory.risk(omega=omega, tau=TAU, c=c, d=DIMENSION)
        for state in (np.zeros(2), *0.8 * rng.uniform(-1.0, 1.0, size=(2, 2))):
            m, n = state
            speed = own.velocity(0.0, state)
            moved = {"q": 2.0 * state @ speed, "semantic": c * speed[0], "positional": speed[1]}
            values = {"q": state @ state, "semantic": c * m, "positional": n}
            gram = [values.get(name, 0.0) for name in risk.order_parameters]
            expected = [moved.get(name, 0.0) for name in risk.order_parameters]
            velocity = float(np.abs(risk.gradient(gram) + expected).max())
            worst["velocity"] = max(worst["velocity"], velocity)
            worst["loss"] = max(worst["loss"], abs(risk.loss(gram) / own.loss(state) - 1.0))
        start = own.velocity(0.0, np.zeros(2)) - own.speeds
        worst["start"] = max(worst["start"], float(np.abs(start).max()))
    return {"c": c, **worst}


def boundary_row(c: float, level: float) -> dict[str, Any]:
    """Return the row of the table `BOUNDARIES`."""
    own = Attention(0.0, c=c)
    crossing = own.crossing(level)
    shift = (crossing - own.boundary) / (own.shifted(level) - own.boundary) - 1.0
    return {
        "c": c,
        "level": level,
        "speeds": own.boundary,
        "crossing": crossing,
        "shift": shift,
        "allowed": FIRST_ORDER * level,
    }


def runs_row(samples: int, result: Counts) -> dict[str, Any]:
    """Return the row of the table `RUNS`."""
    own = Attention(0.0)
    centre, width = result.boundary
    noise = own.width(LEVEL) * math.sqrt(LEARNING_RATE / samples)
    return {
        "samples": samples,
        "runs": result.runs * result.mixtures.size,
        "unfinished": result.unfinished,
        "centre": centre,
        "off": centre - own.shifted(LEVEL),
        "width": width,
        "ratio": width / noise,
    }


def measure(context: Context) -> Measurement:
    """Compare the derived theory, the boundary of flows, and runs of SGD with the derivation."""
    theory = load_theory(FILE)
    assert isinstance(theory, UserOverlapTheory)
    norms = context.choose(quick=(NORM,), full=NORMS)
    derived = [derived_row(theory, c, context.seed) for c in norms]
    cases = [(c, level) for c in norms for level in context.choose(quick=LEVELS[:1], full=LEVELS)]
    boundaries = [boundary_row(c, level) for c, level in context.track(cases, 0.1, 0.2)]
    samples = context.choose(quick=SAMPLES[1:3], full=SAMPLES)
    mixtures, runs = context.choose(quick=(MIXTURES[::2], 8), full=(MIXTURES, 20))
    results = {
        number: counts(number, mixtures, runs, rng_at(context.seed, 2, number))
        for number in context.track(samples, 0.2)
    }
    rows = [runs_row(number, result) for number, result in results.items()]
    return Measurement(
        {
            "derived": DERIVED.frame(derived),
            "boundaries": BOUNDARIES.frame(boundaries),
            "runs": RUNS.frame(rows),
        },
        {"tau": TAU, "c": NORM, "level": LEVEL, "d": DIMENSION, "learning rate": LEARNING_RATE},
        (_figure(results),),
    )


def _figure(results: dict[int, Counts]) -> Figure:
    own, times = Attention(0.0), np.linspace(0.0, 4.0, 81)
    shown = [0.2, round(own.boundary, 3), 0.6]
    flows = [Attention(omega).flow(math.inf, times[-1]).sol(times) for omega in shown]
    first = next(iter(results.values()))
    widths = [own.width(LEVEL) * math.sqrt(LEARNING_RATE / number) for number in results]
    data = xarray.Dataset(
        {
            "overlap": (("shown", "mechanism", "time"), np.array(flows)),
            "semantic": (
                ("samples", "omega"),
                np.array([result.semantic / result.runs for result in results.values()]),
            ),
            "centre": ("samples", [result.boundary[0] for result in results.values()]),
            "noise": ("samples", widths),
        },
        coords={
            "shown": shown,
            "mechanism": ["semantic", "positional"],
            "time": times,
            "samples": list(results),
            "omega": first.mixtures,
        },
        attrs={"boundary": own.boundary, "shifted": own.shifted(LEVEL)},
    )
    return report_figure(
        "semantic-positional",
        "Meaning or position: initial speeds decide what is learned first",
        "(a) Overlaps m with w*/c (solid) and n with p (dashed) of gradient flows from w = 0. "
        "(b) Fraction of runs of SGD in which m reaches .1 first, against the mixture omega and "
        "the samples per step; dashed: equal initial speeds; solid: the same with the first-order "
        "shift, and one standard deviation of the noise on either side; dots: fitted centres.",
        draw,
        data,
        (9.0, 4.0),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers in the sentence of the claim."""
    runs, boundaries = tables["runs"].data, tables["boundaries"].data
    return {
        "omega": float(boundaries.speeds.xs(NORM, level="c").iloc[0]),
        "off": runs.off.abs().max(),
        "low": runs.ratio.min(),
        "high": runs.ratio.max(),
    }


DERIVED = Table(
    index=("c",),
    columns={
        "loss": Column("derived loss / quadrature, - 1", atol=SAME),
        "velocity": Column("largest difference of velocities", atol=SAME),
        "start": Column("velocity at w = 0 less the formula", atol=SAME),
    },
    strict={
        "the derived theory is the quadrature": lambda t: (t.loss <= SAME) & (t.velocity <= SAME),
        "the initial speeds are the formula": lambda t: t.start <= SAME,
    },
)
BOUNDARIES = Table(
    index=("c", "level"),
    columns={
        "speeds": Column("omega of equal initial speeds"),
        "crossing": Column("omega at which both reach the level together"),
        "shift": Column("difference / level / (4 (c g + tau / 2)), - 1", atol=1e-4),
        "allowed": Column("the same, largest value in the criterion"),
    },
    predicates={
        "the boundary is that of the speeds, with its first-order shift": lambda t: (
            t["shift"].abs() <= t.allowed
        ),
    },
)
RUNS = Table(
    index=("samples",),
    columns={
        "runs": Column("runs", rtol=math.inf),
        "unfinished": Column("runs that reach no level", rtol=math.inf),
        "centre": Column("omega at which half of the runs are semantic first", rtol=math.inf),
        "off": Column("the same less the boundary of the flow", rtol=math.inf),
        "width": Column("width in omega", rtol=math.inf),
        "ratio": Column("width / that of the noise", rtol=math.inf),
    },
    predicates={
        "all runs decide": lambda t: t.unfinished == 0,
        "samples per step do not move the boundary": lambda t: t.off.abs() <= CENTRE,
        "its width is that of the noise": lambda t: np.log(t.ratio).abs() <= math.log(WIDTH),
    },
)

CLAIM = Claim(
    id="semantic-positional",
    place="Positional and semantic mechanisms of attention, two tokens, after the paper",
    statement=(
        "Trained from small weights, attention learns the meaning first if omega is below c g / "
        "(c g + tau / 2), g = E sigma', and the position first above. The number of samples per "
        "step does not move this boundary, but single runs blur it as its power -1/2."
    ),
    method=(
        "Own derivation: at w = 0 the gradient flow is w' = (1 - omega) g w* + (omega tau / 2) p. "
        "First means that an overlap of w with w*/c or p reaches a level. The theory derived from "
        "a file against a quadrature; the mixture at which both reach .1, .05, .025 together in a "
        "flow; 20 runs of one-pass SGD at each of 25 mixtures, for 1 to 64 samples per step."
    ),
    criterion=(
        "Identities, otherwise it fails: derived loss, velocity and initial speeds are those of "
        "the quadrature to 1e-10. Otherwise a finding: the flow's boundary exceeds the omega of "
        "equal speeds by level / (4 (c g + tau / 2)), the first order in the level, up to a "
        "relative error of four times the level; half of the runs are semantic first within .05 "
        "of this omega for each number of samples, and the width of the transition is that of "
        "the noise, (rate V / (samples T))^(1/2) / (c g + tau / 2), up to a factor of 1.4."
    ),
    tables={"derived": DERIVED, "boundaries": BOUNDARIES, "runs": RUNS},
    measure=measure,
    headline=headline,
    finding=(
        "Equal speeds at omega = {omega:.3f} (c = 2); boundary of runs off by at most "
        "{off!u:.2g}, widths {low:.2g} to {high:.2g} of the noise."
    ),
    quick_note="4 and 16 samples, 13 mixtures, 8 runs each; the level .1 and c = 2 only",
    assumptions=(
        "two tokens and gradients of the population or one-pass SGD; the paper compares minima of "
        "the empirical loss with longer sentences, and states no time order; statement as in the "
        "abstract, arXiv 2402.03902, of which no public code is known to us"
    ),
)
