"""Statistical induction heads: first the statistics of single tokens, then those of pairs."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import rng_at
from simulations.stated.check import agreement
from simulations.stated.figures.statistical_induction import draw
from simulations.stated.in_context import CountingRisk, Stages, random_repetition
from simulations.stated.runs import risk
from symbolic.theory import load_theory

FILE = Path(__file__).parents[1] / "examples" / "statistical_induction.py"
#: Number of tokens seen in the file.
T = 6
#: Numbers of symbols and of tokens seen.
SIZES = ((2, 6), (2, 8), (2, 10), (3, 6), (4, 6), (8, 6))
THOROUGH = ((2, 6), (2, 8), (2, 10), (2, 11), (3, 6), (3, 9), (4, 6), (8, 6))
QUICK = ((2, 6), (2, 8), (3, 6))
#: Starts of v and of the diagonal of W: that of the file, and one with a small second layer.
STARTS = ((0.01, 1.0), (0.1, 0.01))
#: Tolerances: formula; rate at the shoulder, over that of the smaller peak.
SAME, SHOULDER = 1e-12, 0.5
#: Relative accuracy of numbers of flows: their ends and records depend on rounding.
FLOW = 1e-3
#: Largest T for which the delay is measured.
LONGEST = 10


def measure(context: Context) -> Measurement:
    """Compare derived risk and formula, and integrate the flows of all sizes."""
    theory = load_theory(FILE)
    check = agreement(theory)
    reduction = {
        "order_parameters": len(theory.orders),
        "difference": check.largest,
        "agrees": check.agrees,
        "formula": difference(theory, context.seed),
    }
    context.progress(0.1)
    sizes = context.choose(quick=QUICK, full=SIZES, thorough=THOROUGH)
    risks = {size: CountingRisk(*size) for size in sizes}
    problems = [(size, start) for size in sizes for start in STARTS]
    flows = {
        (size, start): risks[size].flow(*start) for size, start in context.track(problems, 0.1, 0.7)
    }
    without = {
        (size, start): (
            CountingRisk(*size, random_repetition).flow(*start),
            risks[size].flow(*start, centred=True),
        )
        for size, start in context.track(problems, 0.7)
        if size[0] == 2 and size[1] <= LONGEST
    }
    return Measurement(
        {
            "reduction": REDUCTION.frame([reduction]),
            "stages": STAGES.frame(
                _index(*key) | _of_flow(risks[key[0]], flow) for key, flow in flows.items()
            ),
            "delay": DELAY.frame(
                _index(*key) | _of_delay(flows[key], *runs) for key, runs in without.items()
            ),
        },
        {"sizes": sizes, "starts": STARTS},
        (_figure(risks, flows, without),),
    )


def _index(size: tuple[int, int], start: tuple[float, float]) -> dict[str, Any]:
    return dict(zip(("S", "T", "v", "W"), (*size, *start)))


def difference(theory: Any, seed: int) -> float:
    """Return the largest relative difference of derived loss and slopes from the formula."""
    worst = 0.0
    for S in (2, 3, 8):
        population, formula = risk(theory, S=S), CountingRisk(S, T)
        state = rng_at(seed, 11004, S).normal(size=T + 2)
        loss, slopes = formula.value(state)
        off = np.abs(population.gradient(state) - slopes).max() / np.abs(slopes).max()
        worst = max(worst, abs(population.loss(state) / loss - 1.0), float(off))
    return worst


def _of_flow(population: CountingRisk, flow: Stages) -> dict[str, Any]:
    levels = {name: getattr(population, name) for name in ("uniform", "unigram", "bigram")}

    def nearest(loss: float) -> str:
        return min(levels, key=lambda name: abs(loss - levels[name]))

    index, depth = flow.shoulder
    has_shoulder = not math.isnan(depth)
    return {
        **levels,
        "first": nearest(float(flow.loss[0])),
        "depth": depth,
        "level": float(flow.loss[index]) if has_shoulder else math.nan,
        "between": nearest(float(flow.loss[index])) if has_shoulder else "no shoulder",
        "end": float(flow.loss[-1]),
        "last": nearest(float(flow.loss[-1])),
        "share": float(flow.share[-1]),
        "stationary": flow.stationary,
    }


def _of_delay(flow: Stages, data: Stages, model: Stages) -> dict[str, Any]:
    return {
        "formed": flow.formed,
        "by_data": data.formed / flow.formed,
        "by_model": model.formed / flow.formed,
    }


def _figure(
    risks: Mapping[Any, CountingRisk], flows: Mapping[Any, Stages], without: Mapping[Any, Any]
) -> Figure:
    longest = max(size for size in risks if size[0] == 2)
    compared = max(size for size, _ in without)
    names, lengths = ("uniform", "unigram", "bigram"), [T for S, T in risks if S == 2]
    shown = [flows[longest, start] for start in STARTS]
    runs = [flows[compared, STARTS[1]], *without[compared, STARTS[1]]]
    at = [flow.shoulder[0] for flow in shown]
    data = xarray.Dataset(
        {
            "time": (("start", "record"), np.array([flow.time for flow in shown])),
            "loss": (("start", "record"), np.array([flow.loss for flow in shown])),
            "shoulder_time": ("start", [flow.time[i] for flow, i in zip(shown, at)]),
            "shoulder_loss": ("start", [flow.loss[i] for flow, i in zip(shown, at)]),
            "level": ("name", [getattr(risks[longest], name) for name in names]),
            "depth": (("start", "T"), np.array(
                [[flows[(2, T), start].shoulder[1] for T in lengths] for start in STARTS]
            )),
            "run_time": (("run", "record"), np.array([run.time for run in runs])),
            "share": (("run", "record"), np.array([run.share for run in runs])),
        },
        coords={
            "start": [f"v={v:g}, W={W:g}" for v, W in STARTS],
            "T": lengths,
            "run": ["random matrices", "no unigram statistics", "no unigram solution"],
            "name": list(names),
        },
    )  # fmt: skip
    return report_figure(
        "theory-statistical-induction",
        "In-context statistics of single tokens come before those of pairs",
        f"(a) Loss against flow time for S = 2 symbols and T = {longest[1]} tokens, from two "
        "starts; dots: shoulders; dashed: least losses of equal probabilities, of counts of tokens "
        "(unigram) and of all tokens (bigram). (b) Rate of decrease per log time at the shoulder "
        "over that of the smaller peak, against T at S = 2: 1 is no shoulder; dashed: 1/2. "
        f"(c) Share of lag 1 in v at T = {compared[1]} from v = .1, W = .01, for random matrices, "
        "for doubly stochastic ones, and for a W with rows of sum 0.",
        draw,
        data,
        (11.0, 3.9),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers in the sentence of the claim."""
    stages, delay = tables["stages"], tables["delay"].data
    return {
        "shoulders": stages.count("a shoulder near the unigram loss"),
        "depth": stages.rows.depth.min(),
        "ends": stages.count("the end is near the bigram loss"),
        "by_data": delay.by_data.max(),
        "by_model": delay.by_model.min(),
    }


REDUCTION = Table(
    index=(),
    columns={
        "order_parameters": Column("derived order parameters"),
        "difference": Column("largest relative difference from the full model", atol=1e-11),
        "agrees": Column("the reduction agrees with the full model"),
        "formula": Column("relative difference of loss and slopes from the formula", atol=SAME),
    },
    strict={
        "T + 2 order parameters": lambda t: t.order_parameters == T + 2,
        "the reduction is the full model": lambda t: t.agrees,
        "the derived loss is the formula": lambda t: t.formula <= SAME,
    },
)
STAGES = Table(
    index=("S", "T", "v", "W"),
    columns={
        "uniform": Column("loss of equal probabilities"),
        "unigram": Column("least loss of counts of tokens"),
        "bigram": Column("least loss"),
        "first": Column("loss nearest to the initial one"),
        "depth": Column(
            "rate at the shoulder over that of the smaller peak", missing="none", rtol=FLOW
        ),
        "level": Column("loss at the shoulder", missing="none", rtol=FLOW),
        "between": Column("loss nearest to that of the shoulder"),
        "end": Column("final loss", rtol=FLOW),
        "last": Column("loss nearest to the final one"),
        "share": Column("final share of lag 1 in v", rtol=FLOW),
        "stationary": Column("the gradient vanishes at the end"),
    },
    predicates={
        "the first loss is near the uniform one": lambda t: t["first"] == "uniform",
        "a shoulder near the unigram loss": lambda t: (
            (t.depth <= SHOULDER) & (t.between == "unigram")
        ),
        "the end is near the bigram loss": lambda t: t.stationary & (t["last"] == "bigram"),
        "the first layer looks one token back": lambda t: t.share >= 0.5,
    },
    judged=lambda t: t.index.get_level_values("T") >= t.index.get_level_values("S") ** 2,
)
DELAY = Table(
    index=("S", "T", "v", "W"),
    columns={
        "formed": Column(
            "time at which lag 1 has half of v", "flow time", missing="never", rtol=FLOW
        ),
        "by_data": Column("without unigram statistics, over that time", missing="never", rtol=FLOW),
        "by_model": Column(
            "without the unigram solution, over that time", missing="never", rtol=FLOW
        ),
    },
    predicates={
        "sooner without unigram statistics": lambda t: t.by_data < 1.0,
        "sooner without the unigram solution": lambda t: t.by_model < 1.0,
    },
)

CLAIM = Claim(
    id="theory-statistical-induction",
    place="Training phases of statistical induction heads in the minimal model",
    statement=(
        "Training passes through phases: predictions are uniform at first, then they use the "
        "in-context statistics of single tokens, and then there is a rapid transition to those of "
        "pairs. The presence of the simpler unigram solution may delay the bigram solution."
    ),
    method=(
        "The theory derived from a file, and its logits by hand for any number T of tokens. Flows "
        "until the gradient is below 1e-6, with exact weights of all patterns of equal tokens: "
        "loss, and its decrease per unit of log time. Least losses of equal probabilities, of the "
        "counts of tokens, and of all tokens. The time at which lag 1 has half of v, also for "
        "doubly stochastic matrices, and for a W whose rows have the sum 0, which cannot count "
        "tokens."
    ),
    criterion=(
        "The reduction is exact: 1e-11 against the full model, 1e-12 against the formula; "
        "otherwise: fails. The phases are evaluated for T >= S^2, where a sequence can contain "
        "each pair: the initial loss is nearer to the uniform one than to the other two least "
        "losses; between two peaks the rate of decrease falls to at most half of the smaller one, "
        "and the loss is nearest to the unigram one there; the final loss is nearest to the bigram "
        "one, and v has at least half of its absolute value at lag 1. That happens sooner without "
        "unigram statistics in the data, and without the unigram solution in the model. Otherwise "
        "a finding."
    ),
    tables={"reduction": REDUCTION, "stages": STAGES, "delay": DELAY},
    measure=measure,
    headline=headline,
    finding=(
        "Unigram shoulder in {shoulders}, bigram end in {ends}; time without unigrams: x "
        "{by_data!u:.2g} at most (data), {by_model!d:.2g} at least (model)."
    ),
    tolerance=SHOULDER,
    quick_note="three sizes instead of six",
    thorough_note="eight sizes instead of six",
    amended=(
        "After the first quick run, from v = .01, W = 1 alone, and a search over starts: a second "
        "start, with a small second layer, because the depth of the shoulder depends on it. After "
        "a full run that took too long: T is at most 11, and 10 for the delay, at S = 2."
    ),
    assumptions=(
        "model and names of the public code, not of the paper; the first token is uniform instead "
        "of stationary; two starts with equal v and diagonal W; at most eleven tokens, the largest "
        "number that runs in time"
    ),
)
