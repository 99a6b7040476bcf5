"""Theorem 4.1 at finite size, proved: where the flow ends, what it has learned, for how long."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import NamedTuple

from dynamics import Problem
from dynamics.positional.labelling import label_error
from simulations.figures import report_figure, tube
from simulations.positional import proved_runs, runs
from simulations.positional.proved_runs import Beside
from simulations.positional.runs import describe, or_word, place
from simulations.reproduction.measured import Measured, Row, interval, measured_at
from simulations.reproduction.outcome import Claim, Context, Figure, Headline, Outcome, Verdict
from simulations.validated import Proof


class Learned(NamedTuple):
    """What is proved of one flow, and the error of the labelling function itself.

    Not ``judged`` is a flow whose tube ends, for its cost, before training does.
    """

    proof: Proof
    label_error: float
    judged: bool

    @property
    def most(self) -> float:
        """The test error of a model that has learned f*: P[y f* <= 0] + 1/d."""
        return self.label_error + 1.0 / self.proof.problem.dimension

    @property
    def failing(self) -> str:
        """The first conclusion that is not proved at the end, "" if all are."""
        if not self.proof.proved:
            return self.proof.sentence
        if not self.proof.association:
            return "patch association is not proved at the end"
        if not self.proof.test_error[1] <= self.most:
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
            proved_runs.flow(problem, context.quick),
            error.error + error.bound,
            judged=problem != proved_runs.SQUARE_OF_FOUR,
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
        (_figure(found[problems[0 if context.quick else 1]].proof),),
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
        proof = one.proof
        low, high = proof.test_error
        told = "" if one.judged else " (as far as the tube goes, not judged)"
        text = f"at {describe(problem)}, time {proof.time:g}{told}: " + (
            f"not all ({one.failing})" if one.failing else "all"
        )
        if proof.association:
            text += f", association {_lasting(proof)}, test error in [{low:.4g}, {high:.4g}]"
        texts.append(text)
    judged = [one for one in found.values() if one.judged]
    proved = sum(not one.failing for one in judged)
    summary = (
        f"The conclusions of Theorem 4.1 are proved at the end of {proved} of {len(judged)} "
        f"tubes: {'; '.join(texts)}. All {len(trained)} trainings, full matrices and three "
        "scalars, flow and descent, stay inside."
    )
    return (Verdict.HOLDS if judged and proved == len(judged) else Verdict.FINDING), summary


def _lasting(proof: Proof) -> str:
    """Return for how long association is proved, in words."""
    until = proof.association_until
    if not math.isfinite(until):
        return "for ever"
    return f"at least to time {until:.2g}" if until > proof.time else "there"


def _numbers(found: Mapping[Problem, Learned], trained: Mapping[str, Beside]) -> list[Measured]:
    measured: list[Measured] = []
    for problem, one in found.items():
        proof = one.proof
        rows: list[Row] = [("enclosed_until", "end of the tube", proof.time, "flow time")]
        for name, (low, high) in proof.enclosure._asdict().items():
            rows += interval(name, f"{name} there", low, high)
        rows += [
            ("associates", "item 1: patch association there", proof.association),
            ("associates_until", "item 1: and until", or_word(proof.association_until, "for ever"),
             "flow time"),
            ("leads_for_ever", "gamma > rho for ever", proof.forever),
            *interval("test_error", "item 2: test error there", *proof.test_error),
            *interval("loss", "loss there", *proof.loss),
            ("error_for_ever", "the test error never exceeds, from there on",
             min(1.0, proof.loss[1] / math.log(2.0) * (1.0 + 1e-15))),
            ("label_error", "error of f* itself, P[y f* <= 0]", one.label_error),
            ("most", "item 2: a test error that counts as learned", one.most),
            ("failing", "what is not proved", one.failing or "nothing"),
            ("pieces", "polynomial pieces", len(proof.tube.pieces)),
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
    errors, sets = outcome.values("test_error_high"), outcome.values("associates")
    return (
        f"Proved: association at {sum(sets)} of {len(sets)} ends, test errors {min(errors):.2g} to "
        f"{max(errors):.2g}; trainings within {max(outcome.values('share')):.2g} radii."
    )


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
        "the tube is taken to time 1000, long before that: it is told and not judged. Whether "
        "association lasts for ever is told and does not enter: gamma > rho does where the loss "
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
