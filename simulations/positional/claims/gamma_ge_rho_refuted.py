"""gamma >= rho is false in general: counterexamples that are theorems, not numerical findings."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

from dynamics import Problem
from simulations.figures import report_figure, tube
from simulations.positional import proved_runs, runs
from simulations.positional.proved_runs import Beside
from simulations.positional.runs import describe, or_word, place
from simulations.reproduction.measured import Measured, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict
from simulations.validated import Checked


class Refuted(NamedTuple):
    """What the checker derives of one flow, and a solver's run next to it."""

    checked: Checked
    beside: Beside

    @property
    def longest(self) -> tuple[float, float] | None:
        """The longest interval on which gamma < rho is proved, if there is one."""
        return max(self.checked.gap_negative, key=lambda ends: ends[1] - ends[0], default=None)


def run(context: Context) -> Outcome:
    """Enclose the flows and read off when gamma < rho."""
    found = {}
    for number, problem in enumerate(problems(), start=1):
        checked = proved_runs.checked_flow(problem, context.quick)
        found[problem] = Refuted(checked, proved_runs.reduced_flow(problem, context.quick))
        context.progress(number / len(problems()))
    verdict, summary = judge(found)
    shown = proved_runs.flow(runs.CROWDED, context.quick)
    figure = report_figure(
        "gamma-ge-rho-refuted",
        "A proof that gamma >= rho fails",
        f"Flow at {runs.describe(shown.problem)}. (a) Proved bounds of the distance of alpha, "
        "gamma and rho from the polynomials in the middle of the tube. (b) Proved bounds of gamma "
        "- rho: below zero where the claim gamma >= rho is refuted.",
        tube.draw,
        shown.to_dataset(),
        (7.0, 4.6),
    )
    return Outcome(
        verdict,
        _numbers(found),
        None,
        {"problems": [asdict(problem) for problem in found],
         "plans": [proved_runs.PLANS[problem]._asdict() for problem in found]},
        summary,
        (figure,),
    )  # fmt: skip


def problems() -> tuple[Problem, ...]:
    """Return the problem that fails longest, the simplest that does, and one at qD = C^2."""
    return runs.CROWDED, proved_runs.SIMPLEST, proved_runs.SQUARE_OF_FOUR


def judge(found: Mapping[Problem, Refuted]) -> tuple[Verdict, str]:
    """Return a finding if gamma < rho is proved somewhere along every flow."""
    outside = [problem for problem, one in found.items() if not one.beside.inside]
    if outside:
        return Verdict.FAILS, f"A solver's run leaves the tube at {describe(outside[0])}."
    open_ones = [problem for problem, one in found.items() if one.longest is None]
    if open_ones:
        end = f"enclosed to time {found[open_ones[0]].checked.time:g}"
        return Verdict.FAILS, f"gamma < rho is not proved at {describe(open_ones[0])}, {end}."
    texts = [
        f"from time {ends[0]:.4g} to {ends[1]:.5g} at {describe(problem)}"
        for problem, one in found.items()
        if (ends := one.longest)
    ]
    return Verdict.FINDING, f"gamma < rho is proved {'; '.join(texts)}."


def _numbers(found: Mapping[Problem, Refuted]) -> list[Measured]:
    measured: list[Measured] = []
    for problem, one in found.items():
        checked = one.checked
        since, until = one.longest or ("nowhere", "nowhere")
        depth = min(high for _, _, high in checked.gap)
        measured += measured_at(
            place(problem),
            ("enclosed_until", "end of the tube", checked.time, "flow time"),
            ("negative_from", "gamma < rho from", since, "flow time"),
            ("negative_until", "gamma < rho until", until, "flow time"),
            ("depth", "rho - gamma exceeds at some time", -depth),
            ("positive_from", "gamma > rho from", or_word(checked.gap_positive_from, "never"),
             "flow time"),
            ("radius", "largest radius where a solver's run is compared", one.beside.radius),
            ("share", "its largest distance, in radii", float(one.beside.share.max())),
            ("pieces", "polynomial pieces", checked.pieces),
        )  # fmt: skip
    return measured


def _finding(outcome: Outcome) -> str:
    begin, end = outcome.values("negative_from"), outcome.values("negative_until")
    longest = max(range(len(end)), key=lambda k: end[k] - begin[k])
    return (
        f"gamma < rho is proved in {len(begin)} problems, at the longest from time "
        f"{begin[longest]:.3g} to {end[longest]:.5g}."
    )


CLAIM = Claim(
    id="gamma-ge-rho-refuted",
    place="after Lemma 4.3 (Section 4.1)",
    statement=(
        "gamma(t) >= rho(t) for all t >= 0, which the paper says without conditions; here: that "
        "this is false at stated problems, proved."
    ),
    method=(
        "A tube around the flow, with truncation, rounding and time stepping enclosed, and the "
        "intervals of time on all of which gamma < rho in it, derived by the independent checker: "
        "at the named problem that fails longest, at the one that `patchdyn falsify 'gamma >= "
        "rho'` ends with, at qD = C^2."
    ),
    criterion=(
        "One interval of time on which gamma < rho is proved refutes the sentence as it stands, "
        "whatever the regime. A finding, not a failure, if there is one at every problem: none "
        "meets the hypotheses of Theorem 4.1. Fails if one of these counterexamples is not "
        "proved, or if a solver's run at a millionth of its tolerance leaves a tube: an error here."
    ),
    run=run,
    headline=Headline("negative_until", pick=max),
    finding=_finding,
    quick_note="D = 16 to time 2 instead of 32500",
    assumptions="IEEE arithmetic and Arb; the reduction, which is proved in symbolic",
    group="proved",
)
