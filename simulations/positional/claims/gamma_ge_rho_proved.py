"""gamma > rho along whole trajectories, proved: a tube around each, and a floor of the loss."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

from dynamics import Problem
from simulations.figures import report_figure, tube
from simulations.positional import proved_runs, runs
from simulations.positional.proved_runs import Beside
from simulations.positional.runs import describe, or_word, place
from simulations.reproduction.measured import Measured, interval, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict
from simulations.validated import Checked


class Judged(NamedTuple):
    """What the checker derives of one flow to a horizon, and a solver's run next to it."""

    checked: Checked
    beside: Beside
    horizon: float

    @property
    def holds(self) -> bool:
        """Whether gamma > rho is proved for all t > 0."""
        checked, reached = self.checked, self.checked.time >= self.horizon
        return reached and checked.gap_positive_from == 0.0 and checked.forever


def run(context: Context) -> Outcome:
    """Enclose the flows and judge what follows."""
    problems = (proved_runs.SQUARE, *(() if context.quick else (runs.BASE,)))
    found = {}
    for number, problem in enumerate(problems, start=1):
        found[problem] = judged(problem, context.quick)
        context.progress(number / len(problems))
    verdict, summary = judge(found)
    shown = proved_runs.flow(proved_runs.SQUARE, context.quick)
    figure = report_figure(
        "gamma-ge-rho-proved",
        "A proof that gamma > rho",
        f"Flow at {runs.describe(shown.problem)}. (a) Proved bounds of the distance of alpha, "
        "gamma and rho from the polynomials in the middle of the tube. (b) Proved bounds of gamma "
        "- rho, linear within a millionth of the largest.",
        tube.draw,
        shown.to_dataset(),
        (7.0, 4.6),
    )
    return Outcome(
        verdict,
        _numbers(found),
        None,
        {"problems": [asdict(problem) for problem in problems],
         "plans": [proved_runs.PLANS[problem]._asdict() for problem in problems]},
        summary,
        (figure,),
    )  # fmt: skip


def judged(problem: Problem, quick: bool) -> Judged:
    """Return what is derived of a flow, and a solver's run next to it."""
    return Judged(
        proved_runs.checked_flow(problem, quick),
        proved_runs.reduced_flow(problem, quick),
        proved_runs.horizon(problem, quick),
    )


def judge(found: Mapping[Problem, Judged]) -> tuple[Verdict, str]:
    """Return HOLDS if gamma > rho is proved for all t > 0 of every flow."""
    outside = [problem for problem, one in found.items() if not one.beside.inside]
    if outside:
        return Verdict.FAILS, f"A solver's run leaves the tube at {describe(outside[0])}."
    texts = []
    for problem, one in found.items():
        end = f"enclosed to time {one.checked.time:g}"
        if one.holds:
            texts.append(
                f"for all t > 0 at {describe(problem)} ({end}, where the loss is at most "
                f"{one.checked.loss[1]:.3g} and on gamma = rho it is at least "
                f"{one.checked.floor:.3g})"
            )
        else:
            since = one.checked.gap_positive_from
            order = f"from time {since:.6g} on" if since <= one.checked.time else "not at the end"
            texts.append(f"{order} at {describe(problem)} ({end})")
    holds = bool(found) and all(one.holds for one in found.values())
    return (
        Verdict.HOLDS if holds else Verdict.FINDING,
        f"gamma > rho is proved {'; '.join(texts)}.",
    )


def _numbers(found: Mapping[Problem, Judged]) -> list[Measured]:
    measured: list[Measured] = []
    for problem, one in found.items():
        checked = one.checked
        _, low, high = checked.gap[-1]
        measured += measured_at(
            place(problem),
            ("enclosed_until", "end of the tube", checked.time, "flow time"),
            ("positive_from", "gamma > rho from", or_word(checked.gap_positive_from, "never"),
             "flow time"),
            ("forever", "and for ever", checked.forever),
            *interval("gap", "gamma - rho in the last part", low, high),
            *interval("loss", "loss at the end", *checked.loss),
            ("floor", "the loss on gamma = rho is at least", checked.floor),
            ("radius", "largest radius where a solver's run is compared", one.beside.radius),
            ("share", "its largest distance, in radii", float(one.beside.share.max())),
            ("pieces", "polynomial pieces", checked.pieces),
        )  # fmt: skip
    return measured


def _finding(outcome: Outcome) -> str:
    ever, ends = outcome.values("forever"), outcome.values("enclosed_until")
    return (
        f"gamma > rho is proved for all times in {sum(ever)} of {len(ever)} problems, from tubes "
        f"that end at {min(ends):.2g} to {max(ends):.2g}."
    )


CLAIM = Claim(
    id="gamma-ge-rho-proved",
    place="after Lemma 4.3 (Section 4.1)",
    statement=(
        "gamma(t) >= rho(t) for all t >= 0; here proved, strictly and for all t > 0, along the "
        "trajectories of stated problems."
    ),
    method=(
        "A tube around the flow, with truncation, rounding and time stepping enclosed; the sign "
        "of gamma - rho on each part of it; and whether the loss at its end lies below the floor "
        "that it has on the plane gamma = rho: all derived by the independent checker."
    ),
    criterion=(
        "Holds if for every problem gamma > rho is proved from time 0 (in the first parts by its "
        "velocity, as both begin at 0) to the end of the tube, and for ever after: the loss never "
        "grows along the flow, and on gamma = rho it is at least log 2 P[C + R <= 0]. What is "
        "not proved makes it a finding. It fails if a solver's run at a millionth of "
        "its tolerance leaves a tube, which would mean an error here."
    ),
    run=run,
    headline=Headline("enclosed_until", pick=max),
    finding=_finding,
    quick_note="D = 16 only, to time 9000",
    assumptions="IEEE arithmetic and Arb; the reduction, which is proved in symbolic",
    group="proved",
)
