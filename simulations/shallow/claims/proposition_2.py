"""Proposition 2: attention concentrates on relevant tokens; how far, how fast, and when not."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray
from scipy.stats import binomtest

from dynamics.shallow import ShallowProblem, sample, train_on_counts
from simulations.figures import report_figure
from simulations.reproduction.intervals import of_mean
from simulations.reproduction.measured import Measured, interval, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict
from simulations.shallow.figures import attractor, concentration
from simulations.shallow.runs import descend, random_start, side_by_side, symmetric_start
from simulations.shallow.theory import SLIDES

#: The slides' figure, read off its axes, and how well it can be read.
ITERATIONS = (0, 10, 20, 30, 50, 100)
READ = (0.54, 0.66, 0.78, 0.85, 0.90, 0.91)
READING, BETWEEN = 0.02, 0.1
#: Runs behind the mean curve.
SEEDS = 40
PLATEAUS = ((0.5, 0.05), (0.4, 0.1), (0.3, 0.1), (0.3, 0.2))
#: At alpha_*, alpha_# = .3, .2 steps of eta_KQ = 2 already end elsewhere than the flow.
PLATEAU_RATIO, PLATEAU_ETA, BELOW = 100.0, 0.005, 0.05
ETAS = (0.01, 0.03, 0.1, 0.3)
RATIOS = (10.0, 30.0, 100.0, 300.0)
#: Above this exponent of eta in 1 - attention the limit would be one of small eta.
FLAT = 0.1
MAP_RATIOS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
MAP_TOKENS = (1, 2, 4, 8)  # relevant ones of 20
NOISE, QUIET, MAP_HINGE = 1.0, 0.03, 0.05
#: Rates of the map: eta is lowered so that eta_KQ stays at most this.
MAP_ETA, MAP_ETA_KQ = 0.05, 0.5


def run(context: Context) -> Outcome:
    """Measure the slides' curve, plateaus, the rate, the limit and the wrong attractor."""
    curve = slides_curve(SEEDS, context.seed)
    context.progress(0.3)
    ends = np.array([irrelevant_attention(*place) for place in PLATEAUS])
    plateaus = np.array([a / (a + b) for a, b in PLATEAUS])
    rate, course = rise()
    left = np.array([1.0 - _quiet(30.0, eta=eta).attention[-1] for eta in ETAS])
    by_rho = np.array([1.0 - _quiet(ratio, eta=ETAS[0]).attention[-1] for ratio in RATIOS])
    C = float(np.polyfit(np.log(ETAS), np.log(left), 1)[0])
    context.progress(0.5)
    table = wrong_map(context)
    means = np.array([of_mean(column) for column in curve.T])
    found = Found(means, ends, plateaus, rate, C, left, by_rho, table)
    measured: list[Measured] = []
    for step, column, read, (low, high) in zip(ITERATIONS, curve.T, READ, means.tolist()):
        measured += measured_at(
            {"iteration": step},
            ("attention", "attention, mean over seeds", float(column.mean())),
            *interval("attention", "attention, mean over seeds", low, high),
            ("read", "attention read off the slides", read),
        )
    for (a, b), end, plateau in zip(PLATEAUS, ends, plateaus):
        measured += measured_at(
            {"alpha": a, "confusion": b},
            (
                "end",
                f"attention of irrelevant queries at the end, eta_KQ/eta = {PLATEAU_RATIO:g}",
                float(end),
            ),
            ("plateau", "alpha_*/(alpha_* + alpha_#)", float(plateau)),
        )
    measured += [Measured("missing", "1 - attention at the end", {"eta": eta, "ratio": 30.0},
                          float(one)) for eta, one in zip(ETAS, left)]  # fmt: skip
    measured += [
        Measured(
            "missing", "1 - attention at the end", {"eta": ETAS[0], "ratio": ratio}, float(one)
        )
        for ratio, one in zip(RATIOS, by_rho)
        if ratio != 30.0
    ]
    measured += measured_at(
        {},
        ("rate", "exponent of 1 - attention in time since one half", rate),
        ("C", "exponent of eta in 1 - attention at the end", C),
    )
    measured += _of_table(table)
    verdict, summary = judge(found)
    return Outcome(
        verdict, measured, READING,
        {"iterations": list(ITERATIONS), "seeds": SEEDS, "xi sqrt m": [NOISE, QUIET],
         "map eta_KQ/eta": table.ratios, "map alpha_*": table.alpha},
        summary, (_figure(curve, found, course), _map_figure(table)),
    )  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Final attention (alpha, ratio, seed) at large noise of H; wrong ends, and with little."""

    alpha: list[float]
    ratios: list[float]
    attention: np.ndarray
    wrong: np.ndarray
    quiet: np.ndarray  # wrong ends at little noise, (ratio, seed), at alpha_* = .1


@dataclass(frozen=True)
class Found:
    """What the verdict looks at."""

    curve: np.ndarray  # 95 % interval of the mean attention, (iteration, 2)
    ends: np.ndarray
    plateaus: np.ndarray
    rate: float
    C: float
    by_eta: np.ndarray
    by_rho: np.ndarray
    table: Table


def slides_curve(seeds: int, root: int) -> np.ndarray:
    """Return the attention in the slides' setting at their iterations, (seeds, iterations)."""
    problem = ShallowProblem(**SLIDES)

    def one(seed: int) -> np.ndarray:
        rng = np.random.default_rng(np.random.SeedSequence(root, spawn_key=(2, seed)))
        drawn = sample(problem, 200, rng)
        batches = np.array([rng.permutation(200).reshape(4, 50) for _ in range(25)])
        run = train_on_counts(
            drawn.counts, drawn.labels, **random_start(problem, rng, sigma=0.1, delta=0.2),
            steps=100, learning_rate=0.12, learning_rate_KQ=0.12 * problem.attention_rate,
            batches=batches.reshape(100, 50), records=ITERATIONS,
        )  # fmt: skip
        return run.history.attention

    return np.array(side_by_side(one, range(seeds)))


def _quiet(
    ratio: float, relevant: float = 0.4, confusion: float = 0.0, *, L: int = 20, eta: float = 0.1
) -> Any:
    """Return the population descent from a small symmetric start until the loss is small."""
    problem = _problem(ratio, relevant, confusion, L, xi=0.01, neurons=10)
    return descend(problem, symmetric_start(problem), eta, 1e-2, most=10**5)


def irrelevant_attention(relevant: float, confusion: float) -> float:
    """Return the attention of an irrelevant query at the end of `_quiet`.

    The exchange of the two discriminative patterns gives it the same logit for both, hence at most
    alpha_*/(alpha_* + alpha_#); a query that carries one of them may tell them apart.
    """
    end = _quiet(PLATEAU_RATIO, relevant, confusion, eta=PLATEAU_ETA).weights
    logits = end["K"].T @ end["Q"][:, 2]
    keys = np.array([relevant, confusion, 1.0 - relevant - confusion]) * np.exp(logits[:3])
    return float(keys[0] / keys.sum())


def _problem(
    ratio: float, relevant: float, confusion: float, L: int, xi: float, neurons: int
) -> ShallowProblem:
    return ShallowProblem(
        L=L, alpha_relevant=relevant, alpha_confusion=confusion, background="single",
        neurons=neurons, overlap=0.0, xi=xi, attention_rate=ratio, train_value=False,
    )  # fmt: skip


def rise() -> tuple[float, tuple[np.ndarray, np.ndarray]]:
    """Return the exponent of 1 - attention in the time since attention was one half.

    Where attention is above 0.6 and the hinge loss above 0.1, at alpha_* = 0.1, ratio 30.
    """
    run = _quiet(30.0, 0.1, eta=0.02)
    half = np.interp(0.5, run.attention, run.time)
    chosen = (run.attention > 0.6) & (run.hinge > 0.1)
    time, left = run.time[chosen] - half, 1.0 - run.attention[chosen]
    return float(np.polyfit(np.log(time), np.log(left), 1)[0]), (time, left)


def wrong_map(context: Context) -> Table:
    """Return where attention ends from random starts over alpha_* and eta_KQ/eta."""
    tokens = MAP_TOKENS[1::2] if context.quick else MAP_TOKENS
    ratios = MAP_RATIOS[1::2] if context.quick else MAP_RATIOS
    seeds = range(10 if context.quick else 12)

    def one(place: tuple[float, int, float, int]) -> tuple[float, bool]:
        noise, relevant, ratio, seed = place
        problem = _problem(ratio, relevant / 20, 0.0, 20, noise / 40**0.5, 40)
        rng = np.random.default_rng(np.random.SeedSequence(context.seed, spawn_key=(3, seed)))
        eta = min(MAP_ETA, MAP_ETA_KQ / ratio)
        end = descend(problem, random_start(problem, rng), eta, MAP_HINGE, most=50_000)
        start = float(end.attention[0])
        behind = end.attention[-1] < (start + 1.0) / 2.0
        return float(end.attention[-1]), bool(behind and end.hinge[-1] < MAP_HINGE)

    places = [(NOISE, n, r, s) for n in tokens for r in ratios for s in seeds]
    quiet = [(QUIET, 2, r, s) for r in ratios for s in seeds]
    every = np.array(side_by_side(one, places + quiet))
    shape = len(tokens), len(ratios), len(seeds)
    large = every[: len(places)].reshape(*shape, 2)
    return Table(
        [n / 20 for n in tokens], list(ratios), large[..., 0], large[..., 1],
        every[len(places) :, 1].reshape(shape[1:]),
    )  # fmt: skip


def _of_table(table: Table) -> list[Measured]:
    measured: list[Measured] = []
    rows = [(NOISE, a, table.wrong[i]) for i, a in enumerate(table.alpha)]
    rows.append((QUIET, 0.1, table.quiet))
    for noise, a, row in rows:
        for ratio, wrong in zip(table.ratios, row):
            ends = binomtest(int(wrong.sum()), wrong.size).proportion_ci()
            label = "share of seeds that end in a wrong attractor"
            measured += measured_at(
                {"xi_sqrt_m": noise, "alpha": a, "ratio": ratio},
                ("wrong", label, float(wrong.mean())),
                *interval("wrong", label, float(ends.low), float(ends.high)),
            )
    return measured


def judge(found: Found) -> tuple[Verdict, str]:
    """Return the verdict: the statement's parts, and whether eta or rho sets the limit."""
    nearest, farthest = deviations(found.curve)
    allowed = np.full(len(READ), BETWEEN)
    allowed[[0, -1]] = READING
    below = found.plateaus - found.ends
    plateau = bool((below > -1e-9).all() and (below <= BELOW).all())
    worst = int(farthest.argmax())
    text = (
        f"Mean attention is off the slides' curve by {nearest[worst]:.3f} to "
        f"{farthest[worst]:.3f} (95 %) at iteration {ITERATIONS[worst]}, where most, and at the "
        f"ends by {max(farthest[0], farthest[-1]):.3f} at most, that of irrelevant queries ends at "
        f"most {below.max():.3f} below alpha_*/(alpha_* + alpha_#), and 1 - attention falls as "
        f"(t - t_half)^{found.rate:.1f}"
    )
    if (nearest > allowed).any() or not plateau or not found.rate <= -1.0:
        return Verdict.FAILS, text + "."
    wrong, quiet = found.table.wrong.sum(axis=2), found.table.quiet.sum(axis=1)
    text += (
        f"; of {found.table.wrong.shape[2]} starts at one alpha_* and eta_KQ/eta up to "
        f"{wrong.max():.0f} end in a wrong attractor at xi sqrt m = {NOISE:g} and up to "
        f"{quiet.max():.0f} at {QUIET:g}"
    )
    if not (farthest <= allowed).all():
        return Verdict.FINDING, f"{text}; whether the curve agrees is undecided."
    if found.C < FLAT and found.by_rho[-1] < 0.5 * found.by_rho[0]:
        return Verdict.FINDING, (
            f"{text}. What is missing at the end is set by eta_KQ/eta ({found.by_rho[0]:.3f} at "
            f"{RATIOS[0]:g}, {found.by_rho[-1]:.4f} at {RATIOS[-1]:g}), not by eta: C = "
            f"{found.C:.3f}."
        )
    return Verdict.HOLDS, f"{text}; C = {found.C:.2f}."


def deviations(curve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest distance of an interval (iteration, 2) from the slides."""
    off = curve - np.array(READ)[:, None]
    inside = (off[:, 0] <= 0.0) & (off[:, 1] >= 0.0)
    return np.where(inside, 0.0, np.abs(off).min(axis=1)), np.abs(off).max(axis=1)


def _figure(curve: np.ndarray, found: Found, course: tuple[np.ndarray, np.ndarray]) -> Any:
    low, high = found.curve.T
    data = xarray.Dataset(
        {"attention": ("iteration", curve.mean(axis=0)),
         "low": ("iteration", low), "high": ("iteration", high),
         "read": ("iteration", list(READ)),
         "end": ("place", found.ends), "plateau": ("place", found.plateaus),
         "left": ("record", course[1]), "since": ("record", course[0]),
         "by_eta": ("eta", found.by_eta), "by_ratio": ("ratio", found.by_rho)},
        coords={"iteration": list(ITERATIONS), "eta": list(ETAS), "ratio": list(RATIOS),
                "place": [f"{a:g}, {b:g}" for a, b in PLATEAUS]},
    )  # fmt: skip
    return report_figure(
        "li-concentration", "How attention concentrates on relevant tokens",
        "(a) The slides' setting (N = 200, L = 60 tokens 30/3/27, batches of 50), mean of "
        f"{SEEDS} seeds with 95 % intervals, and the slides' values as read. (b) Attention of "
        "irrelevant queries at the end against alpha_*/(alpha_* + alpha_#), eta_KQ/eta = "
        f"{PLATEAU_RATIO:g}; numbers are alpha_*, alpha_#. (c) 1 - attention since attention "
        "was one half, alpha_* = 0.1, until the hinge stops it; dashed: 1/t. What is missing at "
        "the end (d) against eta at eta_KQ/eta = 30, (e) against eta_KQ/eta at eta = 0.01; "
        "dashed: slope -1.",
        concentration.draw, data, (9.6, 6.6),
    )  # fmt: skip


def _map_figure(table: Table) -> Any:
    dims = ("alpha", "ratio")
    data = xarray.Dataset(
        {"attention": (dims, np.median(table.attention, axis=2)),
         "wrong": (dims, table.wrong.mean(axis=2)),
         "quiet": ("ratio", table.quiet.mean(axis=1))},
        coords={"alpha": table.alpha, "ratio": table.ratios},
    )  # fmt: skip
    return report_figure(
        "li-wrong-attractor", "Where attention ends, and where a wrong attractor wins",
        "Population descent from random W_O (entries of deviation xi), alpha_# = 0, until the "
        f"hinge loss is {MAP_HINGE:g}; rho = kappa^2 eta_KQ/(a^2 v^2 eta), kappa = a = v = 1. (a) "
        f"Median attention at the end over seeds, xi sqrt m = {NOISE:g}; numbers: the share of "
        "seeds that end in a wrong attractor (loss small, attention nearer to its start than to "
        "1), hatched where it is one half or more. (b) That share at alpha_* = 0.1, also for "
        f"xi sqrt m = {QUIET:g}.",
        attractor.draw, data, (9.0, 3.8),
    )  # fmt: skip


def _finding(outcome: Outcome) -> str:
    ends = [outcome.values(f"attention_{end}") for end in ("low", "high")]
    nearest, farthest = deviations(np.array(ends, float).T)
    worst = int(farthest.argmax())
    below = max(one.value - outcome.number("end", **one.at) for one in outcome.numbers("plateau"))
    return (
        f"Mean attention is off the slides' curve by {nearest[worst]:.2f} to {farthest[worst]:.2f} "
        f"at worst, {below:.3f} below its plateau; C = {outcome.number('C'):.2f}."
    )


CLAIM = Claim(
    id="li-proposition-2",
    place="Proposition 2 and the slides' figure of attention against iterations",
    statement=(
        "The attention on label-relevant tokens tends to 1 - eta^C at rate O(1/t); the slides' "
        "figure shows it rise from .54 to .91 within 100 iterations."
    ),
    method=(
        "The slides' curve, mean over 40 seeds; attention of irrelevant queries at the end against "
        "alpha_*/(alpha_* + alpha_#); the exponent of 1 - attention in time; what is missing at "
        "the end against eta and against eta_KQ/eta; how often random starts end in a wrong "
        "attractor."
    ),
    criterion=(
        "The mean curve must agree with the figure at both ends to 0.02, as well as it can be "
        "read, and in between to 0.1, as scales of start and rates are not given there: its 95 % "
        "interval inside these; wholly outside, the claim fails, else it is a finding. Attention "
        "of irrelevant queries may not exceed the plateau and must come within 0.05 of it at "
        "eta_KQ/eta = 100. A rate O(1/t) asks for an exponent of -1 or less. A limit 1 - eta^C "
        "asks for C > 0: an exponent of eta below 0.1, while what is missing falls to less than "
        "half along eta_KQ/eta, makes the claim a finding."
    ),
    headline=Headline("rate"),
    finding=_finding,
    run=run,
    quick_note="a coarser map of the wrong attractor, ten seeds instead of twelve",
    amended=(
        "The mean curve was that of ten seeds, judged by its value; it is that of 40 and judged by "
        "its interval since runs with other root seeds were off by .063 to .090, near the 0.1 "
        "allowed."
    ),
    assumptions="sampled runs; population descent on all cells; scales of the start chosen here",
)
