"""Definition 2.1: how fast P[y f* <= 0] falls with D, exactly, and for which sizes of a set."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray

from dynamics import Problem
from dynamics.positional.labelling import label_error
from simulations.figures import report_figure
from simulations.positional.figures import labelling_function
from simulations.reproduction.measured import Measured, Value, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict

#: Exponents k of q = C^k / D.
DENSITIES = (1, 2, 3)
#: Decades of D, in halves: 10^2 to 10^9 (quick: to 10^6).
DECADES, QUICK_DECADES = (2.0, 9.0), (2.0, 6.0)
#: Relative accuracy to which the decay at fixed C must be the power D^-(C-1) at the largest D.
POWER = 0.01
#: Powers of D for which the first D is sought from which P[y f* <= 0] stays below.
SOUGHT = (1, 2, 3)


class Law(NamedTuple):
    """How the size of a set grows with the number of patches."""

    name: str
    size: Callable[[float], int]
    grows: bool


def _fixed(C: int) -> Law:
    return Law(f"C = {C}", lambda D: C, False)


LAWS = (
    _fixed(2),
    _fixed(4),
    _fixed(8),
    Law("C = sqrt(log D)", lambda D: max(2, round(math.sqrt(math.log(D)))), True),
    Law("C = log D", lambda D: round(math.log(D)), True),
)


class Course(NamedTuple):
    """``P[y f* <= 0]`` along D for one law of C and one k."""

    D: tuple[int, ...]
    C: tuple[int, ...]
    errors: tuple[float, ...]

    @property
    def exponents(self) -> list[float]:
        """``-log P / log D``: the power of D that P is."""
        return [-math.log(error) / math.log(D) for D, error in zip(self.D, self.errors)]

    @property
    def slopes(self) -> list[float]:
        """``-d log P / d log D`` between neighbouring D."""
        pairs = itertools.pairwise(zip(self.D, self.errors))
        return [math.log(p / r) / math.log(E / D) for (D, p), (E, r) in pairs]

    def stays_below(self, power: int) -> float:
        """Return the first D of the grid from which on P <= D^-power, inf if there is none."""
        above = [i for i, e in enumerate(self.exponents) if e < power]
        first = above[-1] + 1 if above else 0
        return float(self.D[first]) if first < len(self.D) else math.inf


def problem_of(law: Law, k: int, D: float) -> Problem | None:
    """Return the problem with about D patches, sets by ``law`` and q = C^k / D (None: q > 0.5)."""
    C = law.size(D)
    whole = C * math.floor(D / C * (1.0 + 1e-12))
    q = C**k / whole
    return Problem(D=whole, C=C, q=q) if q <= 0.5 else None


def course(law: Law, k: int, decades: tuple[float, float]) -> Course:
    """Return the exact errors along half decades of D, from the first D with q <= 0.5 on."""
    low, high = decades
    grid = [10.0 ** (low + i / 2) for i in range(round(2 * (high - low)) + 1)]
    problems = [one for D in grid if (one := problem_of(law, k, D)) is not None]
    errors = tuple(label_error(one).error for one in problems)
    return Course(tuple(one.D for one in problems), tuple(one.C for one in problems), errors)


def run(context: Context) -> Outcome:
    """Follow the exact error along D for every law of C and density."""
    decades = QUICK_DECADES if context.quick else DECADES
    found: dict[tuple[Law, int], Course] = {}
    pairs = list(itertools.product(LAWS, DENSITIES))
    for number, (law, k) in enumerate(pairs, start=1):
        found[law, k] = course(law, k, decades)
        context.progress(number / len(pairs))
    measured: list[Measured] = []
    for (law, k), one in found.items():
        at: dict[str, Value] = {"law": law.name, "k": k}
        measured += measured_at(
            {**at, "D": one.D[-1]},
            ("error", "P[y f* <= 0]", one.errors[-1]),
            ("local_exponent", "local exponent -d log P / d log D", one.slopes[-1]),
        )
        for place in (0, -1):
            measured += measured_at(
                {**at, "D": one.D[place]}, ("power", "as a power of D", one.exponents[place])
            )
        for power in SOUGHT:
            D = one.stays_below(power)
            measured += measured_at(
                {**at, "power": power},
                ("stays_below_from", "D from which P <= D^-power",
                 D if math.isfinite(D) else "none"),
            )  # fmt: skip
    verdict, summary = judge(found)
    return Outcome(
        verdict,
        measured,
        POWER,
        {"D": list(decades), "D in": "half decades (exponents of ten given)",
         "C": [law.name for law in LAWS], "q": "C^k / D, at most 0.5", "k": list(DENSITIES)},
        summary,
        (_figure(found),),
    )  # fmt: skip


def judge(found: Mapping[tuple[Law, int], Course]) -> tuple[Verdict, str]:
    """Return the verdict by the criterion of the claim."""
    growing = {key: one for key, one in found.items() if key[0].grows}
    fixed = {key: one for key, one in found.items() if not key[0].grows}
    stuck = [key for key, one in growing.items() if not _climbs(one)]
    if stuck:
        law, k = stuck[0]
        return Verdict.FAILS, (
            f"With {law.name}, q = C^{k}/D the exponent of P[y f* <= 0] does not grow with C: "
            f"{_shown(growing[law, k].exponents)}."
        )
    last = [one for (law, _), one in growing.items() if law.name == "C = log D"] or [
        *growing.values()
    ]
    text = (
        f"Where C grows, P[y f* <= 0] falls faster and faster: D^-{last[0].exponents[0]:.2g} to "
        f"D^-{last[0].exponents[-1]:.3g} at C = log D, q = C/D (D = {last[0].D[0]:.0e} to "
        f"{last[0].D[-1]:.0e})"
    )
    powers = [key for key, one in fixed.items() if _is_power(one)]
    if not powers:
        return Verdict.HOLDS, text + "."
    slope = max(abs(one.slopes[-1] / (one.C[-1] - 1) - 1.0) for one in (fixed[k] for k in powers))
    never = [law.name for law, k in powers if not math.isfinite(fixed[law, k].stays_below(1))]
    text += (
        f"; at fixed C, which C = polylog(d) allows, it is the power D^-(C-1) (to {slope:.1g} in "
        f"the exponent, {len(powers)} of {len(fixed)} cases), so Definition 2.1 holds only if C "
        "grows"
    )
    if never:
        where = ", ".join(dict.fromkeys(never))
        text += f"; P never falls below 1/D in {len(never)} of these cases ({where})"
    return Verdict.FINDING, text + "."


def _climbs(one: Course) -> bool:
    """Whether at each growth of C the exponent rises, and more steeply than a power would."""
    steps = [i for i in range(1, len(one.C)) if one.C[i] > one.C[i - 1]]
    before = one.exponents[0]
    rises = bool(steps)
    for i in steps:
        rises &= one.exponents[i] > one.exponents[i - 1] and one.exponents[i] > before
        before = one.exponents[i]
    return rises and one.slopes[-1] > one.slopes[0]


def _is_power(one: Course) -> bool:
    """Whether the decay at the largest D is D^-(C-1)."""
    return abs(one.slopes[-1] / (one.C[-1] - 1) - 1.0) <= POWER


def _shown(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in values)


def _figure(found: Mapping[tuple[Law, int], Course]) -> Any:
    return report_figure(
        "labelling-function",
        "Definition 2.1: how fast the labelling function becomes right",
        "(a) Exact P[y f* <= 0] against D at q = C^2/D for several laws of C (ties count as "
        "errors; points at half decades, C rounded). Grey: powers of D. (b) The same as a power of "
        "D, -log P / log D, at q = C/D, C^2/D, C^3/D (light to dark): d^(-omega(1)) needs it to "
        "grow without bound, dotted: C - 1, its limit at fixed C.",
        labelling_function.draw,
        gather_labelling_function({(law.name, k): one for (law, k), one in found.items()}),
        (7.0, 3.8),
    )


def gather_labelling_function(found: Mapping[tuple[str, int], Any]) -> xarray.Dataset:
    """Return errors, sizes and exponents (law, k, place); nan where there is no such D."""
    laws = list(dict.fromkeys(law for law, _ in found))
    ks = sorted({k for _, k in found})
    places = max(len(one.D) for one in found.values())

    def table(values: Any) -> tuple[tuple[str, ...], np.ndarray]:
        filled = np.full((len(laws), len(ks), places), np.nan)
        for (law, k), one in found.items():
            column = values(one)
            filled[laws.index(law), ks.index(k), places - len(column) :] = column
        return ("law", "k", "place"), filled

    return xarray.Dataset(
        {
            "D": table(lambda one: one.D),
            "C": table(lambda one: one.C),
            "error": table(lambda one: one.errors),
            "exponent": table(lambda one: one.exponents),
        },
        coords={"law": laws, "k": ks},
    )


def _finding(outcome: Outcome) -> str:
    growing = outcome.numbers("power", law="C = log D", k=1)
    fixed = outcome.number("local_exponent", law="C = 2", k=1)
    first, last = growing[0], growing[-1]
    return (
        f"P[y f* <= 0] falls as D^-{first.value:.2g} to D^-{last.value:.3g} at C = log D (D = "
        f"{first.at['D']:,} to {last.at['D']:,}), as D^-{fixed:.3g} at C = 2."
    )


CLAIM = Claim(
    id="labelling-function",
    place="Definition 2.1, Assumptions 1 and 2 (Sections 2 and 3)",
    statement=(
        "The distribution of Assumption 1 admits the labelling function f*, the sum of "
        "Threshold_0.9C over the sets, with P[y f*(X) > 0] = 1 - d^(-omega(1)); C = polylog(d), "
        "q = poly(C)/D."
    ),
    method=(
        "P[y f* <= 0] exactly, for D from 100 to 10^9, sets of fixed and of growing size and q = "
        "C, C^2, C^3 over D, against powers of D."
    ),
    criterion=(
        "d^(-omega(1)) lies below every power of d, and d = D (Simplification 3.1): where C grows "
        "(log D, sqrt(log D)), the exponent -log P / log D must reach a new maximum each time C "
        "grows and the local exponent must end steeper than it began, for q = C^k/D at k = 1, 2 "
        "and 3: else the claim fails. C = polylog(d) also allows C fixed; there one negated set "
        "costs about (D/C)(q/2)^C = O(D^(1-C)). If the local exponent at the largest D is C - 1 "
        "within 1 % for some fixed C, the decay is a power, Definition 2.1 is not met, and the "
        "claim is a finding. Nothing is sampled."
    ),
    headline=Headline("power", {"law": "C = log D", "k": 1}, max),
    finding=_finding,
    run=run,
    quick_note="D up to 10^6 instead of 10^9",
    assumptions="the exact law of f* alone",
)
