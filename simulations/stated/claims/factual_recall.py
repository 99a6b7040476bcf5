"""Factual recall by linear attention: relation before subject, and a plateau between them."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray

from simulations.figures import report_figure
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import seeds_of
from simulations.stated.figures.factual_recall import draw
from simulations.stated.findings import examine
from simulations.stated.recall import Learned, Sizes, free_flow, losses, parts, reduced_flow
from simulations.stated.runs import risk
from symbolic.theory import load_theory

FILE = Path(__file__).parents[1] / "examples" / "factual_recall.py"
#: Numbers of subjects, of answers of a relation, and of relations. (12, 12, 8) has similar rates.
SIZES = (
    (16, 8, 4), (64, 8, 4), (32, 16, 2), (60, 12, 6), (256, 32, 8), (12, 12, 8), (2, 2, 32),
    (4, 4, 32),
)  # fmt: skip
#: Starts alpha of reduced flows. Sizes and standard deviation of the start of flows of every entry.
STARTS = (1e-3, 1e-4, 1e-5)
FREE, FREE_START = (64, 8, 4), 1e-5
#: Smallest ratio of rates at which one part should be learned before the other.
APART = 2.0
#: Tolerances: sum of the parts; half-loss times; delay by a smaller start; level of the plateau.
SAME, TIME, DELAY, LEVEL = 1e-12, 1e-6, 0.01, 0.05


def measure(context: Context) -> Measurement:
    """Derive the theory, and integrate reduced flows and flows of every entry."""
    theory = load_theory(FILE)
    sizes = context.choose(quick=(*SIZES[:3], *SIZES[-2:]), full=SIZES)
    findings = examine(theory, {"S": 4, "D": 2, "R": 3, "N": 2, "L": 2, "alpha": 0.5})
    reduction = {
        "order_parameters": len(theory.orders),
        "moving": findings.analysis.discovered,
        "difference": findings.check.largest,
        "agrees": findings.agrees,
        "parts": max(difference(theory, x, context.seed) for x in sizes),
    }
    context.progress(0.2)
    problems = [(x, alpha) for x in sizes for alpha in STARTS]
    flows = {
        problem: reduced_flow(theory, *problem) for problem in context.track(problems, 0.2, 0.6)
    }
    seeds = seeds_of(context.seed, context.choose(quick=2, full=4))
    free = [free_flow(FREE, FREE_START, seed) for seed in context.track(seeds, 0.6)]
    return Measurement(
        {
            "reduction": REDUCTION.frame([reduction]),
            "flows": FLOWS.frame(_of_flow(*key, flow) for key, flow in flows.items()),
            "smaller starts": DELAYS.frame(_delays(flows)),
            "random starts": RANDOM.frame(
                {"run": run, **_of_learned(flow, FREE)} for run, flow in enumerate(free)
            ),
        },
        {"sizes": sizes, "starts": STARTS, "every entry": FREE, "its start": FREE_START},
        (_figure(flows, free),),
    )


def difference(theory: Any, sizes: Sizes, seed: int) -> float:
    """Return the largest relative difference of the derived risk from the sum of two logarithms."""
    S, D, R = sizes
    population = risk(theory, S=S, D=D, R=R, N=1, L=1, alpha=1.0)
    states = np.random.default_rng(seed).normal(size=(5, 8))
    return float(
        max(abs(population.evaluate(x).loss / sum(losses(x, D, R).values()) - 1.0) for x in states)
    )


def _of_learned(flow: Learned, sizes: Sizes) -> dict[str, Any]:
    known, (_, D, R) = parts(*sizes), sizes
    faster = max(known, key=lambda part: known[part].rate)
    left = math.log(D if faster == "relation" else R)
    return {
        "relation": flow.relation,
        "subject": flow.subject,
        "in_order": flow.first == faster,
        "rest": flow.rest / left - 1.0,
    }


def _of_flow(sizes: Sizes, alpha: float, flow: Learned) -> dict[str, Any]:
    known = parts(*sizes)
    return {
        **dict(zip(("S", "D", "R", "alpha"), (*sizes, alpha))),
        "rates": known["relation"].rate / known["subject"].rate,
        **_of_learned(flow, sizes),
        "relation_off": flow.relation / known["relation"].half_time(alpha) - 1.0,
        "subject_off": flow.subject / known["subject"].half_time(alpha) - 1.0,
    }


def _delays(flows: Mapping[Any, Learned]) -> list[dict[str, Any]]:
    """Return the delay of each part by the smallest start, over the prediction."""
    before, after = STARTS[-2:]
    return [
        {
            **dict(zip(("S", "D", "R"), sizes)),
            "part": name,
            "delay": (getattr(flows[sizes, after], name) - getattr(flows[sizes, before], name))
            * part.rate
            / math.log(before / after),
        }
        for sizes in dict.fromkeys(sizes for sizes, _ in flows)
        for name, part in parts(*sizes).items()
    ]


def _figure(flows: Mapping[Any, Learned], free: list[Learned]) -> Figure:
    flow = flows[FREE, FREE_START]
    sizes = list(dict.fromkeys(sizes for sizes, _ in flows))
    known = [parts(*x) for x in sizes]
    ratio = np.array(
        [[flows[x, alpha].subject / flows[x, alpha].relation for x in sizes]
         for alpha in STARTS]
    )  # fmt: skip
    data = xarray.Dataset(
        {
            **{name: ("time", values) for name, values in flow.losses.items()},
            "loss": ("time", flow.loss),
            "random": (
                ("run", "time"),
                np.array([np.interp(flow.time, x.time, x.loss) for x in free]),
            ),
            "level": math.log(FREE[1]),
            "rates": ("problem", [x["relation"].rate / x["subject"].rate for x in known]),
            "times": (("start", "problem"), ratio),
        },
        coords={
            "time": flow.time,
            "start": list(STARTS),
            "problem": [f"S={S}, D={D}, R={R}" for S, D, R in sizes],
        },
    )
    return report_figure(
        "theory-factual-recall",
        "Facts are learned in two steps",
        "(a) Loss against flow time for S = 64 subjects, D = 8 answers of each of R = 4 "
        "relations, start 1e-5: the two parts of the reduced flow, their sum (dashed), and flows "
        "of every entry from normal random starts. (b) Ratio of the half-loss times against the "
        "ratio of the growth rates, for all sizes and starts; dashed: equal ratios, the limit of "
        "small starts. Above the horizontal line the relation is learned first.",
        draw,
        data,
        (9.0, 4.2),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers in the sentence of the claim."""
    flows, random = tables["flows"], tables["random starts"].data
    rows = flows.data[flows.judged]
    return {
        "ordered": int(rows.in_order.sum()),
        "rows": len(rows),
        "off": 100.0 * rows.rest.abs().max(),
        "random": 100.0 * random.rest.abs().max(),
    }


_IN_ORDER = "what grows faster is learned first"
_RESTS = "the loss rests at log of the number of answers left"
_COLUMNS = {
    "relation": Column("half-loss time of the relation", "flow time"),
    "subject": Column("half-loss time of the subject", "flow time"),
    "in_order": Column("the part with the larger rate is learned first"),
    "rest": Column("loss on the plateau / log of the number of answers left, - 1"),
}
REDUCTION = Table(
    index=(),
    columns={
        "order_parameters": Column("derived order parameters"),
        "moving": Column("values that move, detected from the gradient"),
        "difference": Column("largest relative difference from the full model", atol=1e-11),
        "agrees": Column("the reduction agrees with the full model"),
        "parts": Column(
            "relative difference of the risk from the sum of two logarithms", atol=SAME
        ),
    },
    strict={
        "eight order parameters": lambda t: t.order_parameters == 8,
        "the reduction is the full model": lambda t: t.agrees,
        "the loss is the sum of two logarithms": lambda t: t.parts <= SAME,
    },
)
FLOWS = Table(
    index=("S", "D", "R", "alpha"),
    columns={
        "rates": Column("growth rate of the relation over that of the subject"),
        **_COLUMNS,
        "relation_off": Column("time of the relation / its integral, - 1", atol=TIME),
        "subject_off": Column("time of the subject / its integral, - 1", atol=TIME),
    },
    strict={
        "both times are integrals of separate equations": lambda t: (
            (t.relation_off.abs() <= TIME) & (t.subject_off.abs() <= TIME)
        ),
    },
    predicates={
        _IN_ORDER: lambda t: t.in_order,
        _RESTS: lambda t: t.rest.abs() <= LEVEL,
    },
    judged=lambda t: (t.rates >= APART) | (t.rates <= 1.0 / APART),
)
DELAYS = Table(
    index=("S", "D", "R", "part"),
    columns={"delay": Column("delay by a ten times smaller start, over log 10 / growth rate")},
    strict={"a smaller start delays by log / rate": lambda t: (t.delay - 1.0).abs() <= DELAY},
)
RANDOM = Table(
    index=("run",),
    columns={
        name: Column(column.label, column.unit, rtol=math.inf) for name, column in _COLUMNS.items()
    },
    predicates={
        _IN_ORDER: lambda t: t.in_order,
        _RESTS: lambda t: t.rest.abs() <= LEVEL,
    },
)

CLAIM = Claim(
    id="theory-factual-recall",
    place="Gradient flow of linear attention on factual recall (sequential learning)",
    statement=(
        "Gradient flow from a small start learns the relation before the subject, if there are "
        "enough subjects. Between them the model hallucinates: every answer of the relation has "
        "the same probability, whatever the subject, and the loss rests at log D."
    ),
    method=(
        "The theory derived from a file: eight order parameters for all sizes. Its loss is "
        "log(1 + (D - 1) e^-x) + log(1 + (R - 1) e^-z), x of the subject and z of the relation, "
        "and each part has a separate equation, whose growth rates at 0 are sqrt((D - 1) / D) "
        "/ (S sqrt(R)) and sqrt((R - 1) / (R D)) / R. Half-loss times of derived flows against "
        "integrals of these equations, over sizes and starts; flows of every entry from random "
        "starts."
    ),
    criterion=(
        "The reduction is exact: 1e-11 against the full model, 1e-12 against the two logarithms, "
        "1e-6 for the half-loss times (the solver allows 1e-10 in each step). A ten times smaller "
        "start delays each by log 10 / rate, to 1 %. Order and plateau are for small starts, here "
        "at most 1e-3, and evaluated if one rate is at least twice the other: the part with the "
        "larger rate is learned first, and the loss, where it decreases slowest in log time "
        "between the half-loss times, is within 5 % of log of the number of answers left (D, or R "
        "if the subject is first). The same for random starts, with S = 64, D = 8, R = 4. The "
        "first three: fails, otherwise a finding."
    ),
    tables={
        "reduction": REDUCTION,
        "flows": FLOWS,
        "smaller starts": DELAYS,
        "random starts": RANDOM,
    },
    measure=measure,
    headline=headline,
    finding=(
        "What grows faster is first in {ordered} of {rows} flows; rests are off by {off:.2g} %, "
        "{random:.2g} % from random starts."
    ),
    tolerance=LEVEL,
    quick_note="five sizes instead of eight, two random starts instead of four",
    assumptions=(
        "model, statement and names of public notes, not of the paper; all entries start at "
        "alpha; one noise token"
    ),
)
