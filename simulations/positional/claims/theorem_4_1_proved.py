"""Theorem 4.1 at finite size, proved: where the flow ends, what it has learned, for how long."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

from dynamics import Population, Problem
from dynamics.positional.labelling import label_error
from simulations.figures import report_figure, tube
from simulations.positional import proved_runs, runs
from simulations.positional.proved_runs import Beside
from simulations.positional.runs import describe, or_word, place
from simulations.reproduction.measured import Measured, Row, interval, measured_at
from simulations.reproduction.outcome import Claim, Context, Figure, Headline, Outcome, Verdict
from simulations.validated import Checked, Proof


class Learned(NamedTuple):
    """What the checker derives of one flow to a horizon, and the error of f* itself.

    Not ``judged`` is a flow whose tube ends, for its cost, before training does.
    """

    problem: Problem
    checked: Checked
    horizon: float
    label_error: float
    judged: bool
    start_loss: float

    @property
    def most(self) -> float:
        """The test error of a model that has learned f*: P[y f* <= 0] + 1/d."""
        return self.label_error + 1.0 / self.problem.dimension

    @property
    def failing(self) -> str:
        """The first conclusion that is not proved at the end, "" if all are."""
        if not self.checked.time >= self.horizon:
            return f"the tube ends before time {self.horizon:g}"
        if not self.checked.association:
            return "patch association is not proved at the end"
        if not self.checked.test_error[1] <= self.most:
            return f"the test error is not proved to be at most {self.most:.3g}"
        return ""


def run(context: Context) -> Outcome:
    """Enclose the flows; train full and reduced beside two tubes."""
    found = {}
    every = (proved_runs.SQUARE, runs.BASE, proved_runs.SQUARE_OF_FOUR)
    problems = every[:1] if context.quick else every
    for number, problem in enumerate(problems, start=1):
        error = label_error(problem)
        found[problem] = Learned(
            problem,
            proved_runs.checked_flow(problem, context.quick),
            proved_runs.horizon(problem, context.quick),
            error.error + error.bound,
            judged=problem != proved_runs.SQUARE_OF_FOUR,
            start_loss=Population(problem).evaluate(problem.initial_state).loss,
        )
        context.progress(0.8 * number / len(problems))
    trained = _trained(context) | {
        f"flow of three scalars, {runs.describe(problem)}": proved_runs.reduced_flow(
            problem, context.quick
        )
        for problem in problems
    }
    verdict, summary = judge(found, trained)
    return Outcome(
        verdict,
        _numbers(found, trained),
        None,
        {"problems": [asdict(problem) for problem in problems],
         "full matrices": asdict(proved_runs.SMALL), "steps of descent": proved_runs.STEPS,
         "plans": [proved_runs.PLANS[problem]._asdict() for problem in problems]},
        summary,
        (_figure(proved_runs.flow(problems[0 if context.quick else 1], context.quick)),),
    )  # fmt: skip


def _trained(context: Context) -> dict[str, Beside]:
    """Train full matrices and three scalars, by flow and by descent, beside the same two tubes."""
    rate = runs.safe_learning_rate(proved_runs.SMALL)
    flow, descent = (
        proved_runs.flow(proved_runs.SMALL, context.quick),
        proved_runs.descent(proved_runs.SMALL, rate),
    )
    where = runs.describe(proved_runs.SMALL)
    return {
        f"flow of full matrices, {where}": proved_runs.full_flow(flow, context.seed),
        f"flow of three scalars, {where}": proved_runs.reduced_flow(
            proved_runs.SMALL, context.quick
        ),
        f"descent on full matrices, {where}": proved_runs.full_descent(descent, rate, context.seed),
        f"descent on three scalars, {where}": proved_runs.reduced_descent(descent, rate),
    }


def judge(found: Mapping[Problem, Learned], trained: Mapping[str, Beside]) -> tuple[Verdict, str]:
    """Return HOLDS if all conclusions are proved at the end of every tube, else a finding."""
    outside = [name for name, one in trained.items() if not one.inside]
    if outside:
        return Verdict.FAILS, f"Training leaves its tube: {'; '.join(outside)}."
    texts = []
    for problem, one in found.items():
        checked = one.checked
        (low, high), (_, loss) = checked.test_error, checked.loss
        text = f"at {describe(problem)}, time {checked.time:g}: " + (
            f"not all ({one.failing})" if one.failing else "all"
        )
        if checked.association:
            text += f", association {_lasting(checked)}"
        text += f", test error in [{low:.4g}, {high:.4g}]"
        if not one.judged:
            text += (
                " (not judged: the tube stops before anything is learned, "
                f"loss {one.start_loss:.3g} at the start and {loss:.3g} at the end)"
            )
        texts.append(text)
    judged = [one for one in found.values() if one.judged]
    proved = sum(not one.failing for one in judged)
    summary = (
        f"The conclusions of Theorem 4.1 are proved at the end of {proved} of the {len(judged)} "
        f"tubes that are judged: {'; '.join(texts)}. All {len(trained)} trainings, full matrices "
        "and three scalars, flow and descent, stay inside."
    )
    return (Verdict.HOLDS if judged and proved == len(judged) else Verdict.FINDING), summary


def _lasting(checked: Checked) -> str:
    """Return for how long association is proved, as a phrase."""
    until = checked.association_until
    if not math.isfinite(until):
        return "for ever"
    return f"at least to time {until:.2g}" if until > checked.time else "there"


def _numbers(found: Mapping[Problem, Learned], trained: Mapping[str, Beside]) -> list[Measured]:
    measured: list[Measured] = []
    for problem, one in found.items():
        checked = one.checked
        rows: list[Row] = [("enclosed_until", "end of the tube", checked.time, "flow time")]
        for name, (low, high) in checked.enclosure._asdict().items():
            rows += interval(name, f"{name} there", low, high)
        rows += [
            ("associates", "item 1: patch association there", checked.association),
            ("associates_until", "item 1: and until",
             or_word(checked.association_until, "for ever"), "flow time"),
            ("leads_for_ever", "gamma > rho for ever", checked.forever),
            *interval("test_error", "item 2: test error there", *checked.test_error),
            *interval("loss", "loss there", *checked.loss),
            ("error_for_ever", "the test error never exceeds, from there on",
             min(1.0, checked.loss[1] / math.log(2.0) * (1.0 + 1e-15))),
            ("label_error", "error of f* itself, P[y f* <= 0]", one.label_error),
            ("most", "item 2: a test error that counts as learned", one.most),
            ("failing", "what is not proved", one.failing or "nothing"),
            ("proved", "all conclusions are proved there", not one.failing),
            ("judged", "training is over there", one.judged),
            ("pieces", "polynomial pieces", checked.pieces),
        ]  # fmt: skip
        measured += measured_at(place(problem), *rows)
    for name, training in trained.items():
        measured += measured_at(
            {"training": name},
            ("share", "largest distance from the middle, in radii", float(training.share.max())),
            ("radius", "largest radius of the tube", training.radius),
        )
    return measured


def _figure(proof: Proof) -> Figure:
    return report_figure(
        "theorem-4.1-proved",
        "A trajectory proved",
        f"Flow at {runs.describe(proof.problem)}. (a) Proved bounds of the distance of alpha, "
        "gamma and rho from the polynomials in the middle of the tube, part by part. (b) Proved "
        "bounds of gamma - rho.",
        tube.draw,
        proof.to_dataset(),
        (7.0, 4.6),
    )


def _finding(outcome: Outcome) -> str:
    proved, judged = outcome.values("proved"), outcome.values("judged")
    errors = [x for x, whole in zip(outcome.values("test_error_high"), proved) if whole]
    most = f", test error at most {max(errors):.3g}" if errors else ""
    early = "; the other stops before anything is learned" if not all(judged) else ""
    return f"Proved at the end of {sum(proved)} of {len(proved)} tubes{most}{early}."


CLAIM = Claim(
    id="theorem-4.1-proved",
    place="Theorem 4.1 (Section 4.1)",
    statement=(
        "After T iterations of GD on (P) the model (1) learns patch association and (2) learns "
        "the labelling function; here proved at finite size, for the flow of stated problems."
    ),
    method=(
        "Where alpha, gamma and rho are at the end of a tube with truncation, rounding and time "
        "stepping enclosed; patch association there and for how long after; intervals of the test "
        "error and of the loss. Full-matrix and reduced training beside the tubes."
    ),
    criterion=(
        "Proved at the end of every tube: min(beta, gamma) > rho, so that Top_C of every row of A "
        "is its set; and a test error P[y F <= 0] of at most P[y f* <= 0] + 1/d, which P[f* F <= "
        "0] = o(1) implies, o(1) being read as 1/d as in theorem-4.1. All of it at the problems "
        "whose training is over: holds, else a finding that says where not. At C = 4, qD = C^2 "
        "the tube is taken to time 1000, before anything is learned: it is not judged. Whether "
        "association lasts for ever is reported and does not enter: gamma > rho does if the loss "
        "is below its floor on gamma = rho, rho < beta too for C = 2, and else as long as the loss "
        "that is left cannot carry rho to beta. Fails if any training leaves its tube: at D = 8 "
        "full matrices and three scalars, flow and 300 steps of descent; else the flow of three "
        "scalars (solvers at a millionth of the tube's tolerance)."
    ),
    run=run,
    headline=Headline("test_error_high", pick=min),
    finding=_finding,
    quick_note="D = 16 only, to time 9000",
    assumptions="IEEE arithmetic and Arb; the reduction, which is proved in symbolic",
    group="proved",
)
