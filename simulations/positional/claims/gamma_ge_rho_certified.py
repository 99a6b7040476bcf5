"""gamma >= rho is forward invariant on a box: proved or refuted in ball arithmetic."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from simulations.figures import report_figure
from simulations.positional.data import certified_map as certified_map_data
from simulations.positional.figures import certified_map
from simulations.positional.invariance.box import Box, Witness, read_box
from simulations.positional.invariance.certified import (
    Answer,
    Certificate,
    certify,
    population_drift,
)
from simulations.reproduction.measured import Measured, Row, measured_at
from simulations.reproduction.outcome import Claim, Context, Headline, Outcome, Verdict
from simulations.seeds import seed_at

#: Population gradients check the certificates up to this alpha: far beyond, F exceeds a double.
MOST_ALPHA = 1.0


class Checked(NamedTuple):
    """A certificate, and the population gradient at points of its box (at its witness).

    ``least`` is the lowest drift found; ``contradictions`` counts points whose drift has the other
    sign beyond its error.
    """

    certificate: Certificate
    points: int
    least: float
    contradictions: int


def boxes(D: int) -> dict[str, str]:
    """Return the boxes: what is special about each, and the box as the command line reads it."""
    C = 4
    return {
        "few features": f"D={D}, C={C}, qD=0..2, alpha=0..0.3, x=-1..0.95, nu=0..0.01, beta=1",
        "few features, all constants": f"D={D}, C={C}, qD=0..2, alpha=0..0.2, x=-1..0.45, "
        f"nu=0..0.1, beta=0.5..2, tau=0.5..2, kappa={D // 2}..{D}",
        "qD up to C^2, small alpha": f"D={D}, C={C}, qD=0..{C * C}, alpha=0..0.06, x=-1..1, "
        "nu=0..0.01, beta=1",
        "qD up to C^2, alpha(0) included": f"D={D}, C={C}, qD=0..{C * C}, alpha=0..0.12, x=0, "
        "nu=0..0.01, beta=1",
        "two sets": "D=8, C=4, q=0..1, alpha=0..100, x=-3..0, nu=0..1, beta=0..3, tau=0.5..2, "
        "kappa=1..100",
        "gamma above beta": f"D={D}, C={C}, qD=1, alpha=0..0.2, x=0..1.1, beta=1",
        "p = 5": "D=32, C=4, p=5, qD=0..2, alpha=0..0.3, x=-1..0.9, beta=1",
    }


def run(context: Context) -> Outcome:
    """Certify the boxes, check them with the population gradient, and map (alpha, qD)."""
    D = 16 if context.quick else 64
    points = 3 if context.quick else 12
    texts = boxes(D)
    results = {}
    for number, (name, text) in enumerate(texts.items(), start=1):
        certificate = certify(read_box(text))
        results[name] = _check(certificate, points, seed_at(context.seed, number))
        context.progress(0.5 * number / len(texts))
    data = certified_map_data.gather(
        D, 4, levels=4 if context.quick else 5,
        progress=lambda fraction: context.progress(0.5 + 0.5 * fraction),
    )  # fmt: skip
    measured: list[Measured] = []
    for name, one in results.items():
        rows: list[Row] = [
            ("answer", "answer", str(one.certificate.answer)),
            ("cells", "boxes examined", one.certificate.cells),
            ("contradictions", "population gradients that contradict it", one.contradictions),
        ]
        if one.certificate.witness is not None:
            rows.append(("witness_drift", "d(gamma - rho)/dt at the witness", one.least))
        measured += measured_at({"box": name}, *rows)
    for answer, share in certified_map_data.shares(data).items():
        measured += measured_at(
            {"answer": str(answer)}, ("share", "share of the map of (alpha, qD)", share)
        )
    verdict, summary = judge(results)
    figure = report_figure(
        "gamma-ge-rho-certified",
        "Where gamma >= rho is proved forward invariant",
        f"Boxes of (alpha, qD) at D = {D}, C = 4, p = 3, nu = 0.01, beta = 1, for all gamma = rho "
        "in [-1/4, 1/4]. Blue: d(gamma - rho)/dt >= 0 is proved for every point of the box; "
        "orange: < 0 is proved for every point; white: neither at this size. Lines: where the "
        "drift vanishes, from an independent sum in floating-point numbers, at both ends of the "
        "interval; between them the sign depends on gamma = rho. Dotted: alpha(0) of "
        "Parametrization 3.1.",
        certified_map.draw,
        data,
        (7.0, 4.0),
    )
    return Outcome(
        verdict,
        measured,
        None,
        {"boxes": texts, "points per box": points, "seed": context.seed},
        summary,
        (figure,),
    )


def judge(results: Mapping[str, Checked]) -> tuple[Verdict, str]:
    """Return HOLDS if every box is proved, FAILS if one is refuted or a check contradicts."""
    contradicted = [name for name, one in results.items() if one.contradictions]
    if contradicted:
        return Verdict.FAILS, (
            f"The population gradient contradicts the certificate of {'; '.join(contradicted)}."
        )
    by_answer: dict[str, list[str]] = {}
    for name, one in results.items():
        by_answer.setdefault(str(one.certificate.answer), []).append(name)
    proved = by_answer.pop("proved", [])
    points = sum(one.points for one in results.values())
    checked = f"{points} population gradients agree."
    if not by_answer:
        return Verdict.HOLDS, f"Proved on all {len(results)} boxes; {checked}"
    rest = ", ".join(f"{answer} on ({'; '.join(names)})" for answer, names in by_answer.items())
    witnesses = [
        f"{name}: " + ", ".join(f"{k} = {v}" for k, v in one.certificate.witness.describe().items())
        for name, one in results.items()
        if one.certificate.witness is not None
    ]
    if witnesses:
        checked += f" Counterexamples, {'; '.join(witnesses)}."
    return (Verdict.FAILS if witnesses else Verdict.FINDING), (
        f"Forward invariance of gamma >= rho is proved on {len(proved)} of {len(results)} boxes "
        f"({'; '.join(proved) or 'none'}), {rest}; {checked}"
    )


def _check(certificate: Certificate, points: int, seed: int) -> Checked:
    """Compare a certificate with the population gradient, which shares no code with it."""
    if certificate.witness is not None:
        drift, error = population_drift(certificate.witness)
        return Checked(certificate, 1, drift, int(drift > error))
    if certificate.answer is not Answer.PROVED:
        return Checked(certificate, 0, 0.0, 0)
    rng = np.random.default_rng(seed)
    drifts = [population_drift(_draw(certificate.box, rng)) for _ in range(points)]
    return Checked(
        certificate, points, min(drift for drift, _ in drifts),
        sum(drift < -error for drift, error in drifts),
    )  # fmt: skip


def _draw(box: Box, rng: Any) -> Witness:
    """Return a point of the box, uniform; q and nu are not 0, alpha is at most `MOST_ALPHA`."""

    def within(name: str, least: float = 0.0, most: float = 1.0) -> Fraction:
        low, high = box.ends(name)
        part = Fraction(max(float(rng.uniform()), least))
        return low + part * (min(high, low + Fraction(most) * (high - low)) - low)

    share = 1.0 if box.ends("alpha")[1] <= MOST_ALPHA else MOST_ALPHA / float(box.ends("alpha")[1])
    return Witness(
        box.D, box.C, box.p, within("q", 1e-6), within("nu", 1e-9), within("beta"), within("tau"),
        within("kappa"), within("alpha", most=share), within("x"),
    )  # fmt: skip


def _finding(outcome: Outcome) -> str:
    answers = [one.value for one in outcome.numbers("answer")]
    return (
        f"Forward invariance of gamma >= rho is proved on {answers.count('proved')} of "
        f"{len(answers)} boxes and refuted on {answers.count('refuted')}."
    )


CLAIM = Claim(
    id="gamma-ge-rho-certified",
    place="after Lemma 4.3 (Section 4.1)",
    statement=(
        "gamma(t) >= rho(t) for all t >= 0; here: the half plane gamma >= rho is forward invariant "
        "on stated boxes of parameters and states, d(gamma - rho)/dt >= 0 wherever gamma = rho."
    ),
    method=(
        "The sign of d(gamma - rho)/dt on gamma = rho over whole boxes, in ball arithmetic with "
        "the sum over all states, checked with population gradients at random points."
    ),
    amended=(
        "A refuted box was a finding. A statement without exceptions now fails by a confirmed "
        "counterexample, for every claim alike; what is measured is as it was."
    ),
    headline=Headline("share", {"answer": "proved >= 0"}),
    finding=_finding,
    run=run,
    quick_note="D = 16 instead of 64, 3 random points per box instead of 12, coarser map",
    assumptions="the drift on gamma = rho, proved in symbolic; Arb through python-flint",
    criterion=(
        "The statement is about every point of the boxes: it holds if every box is proved and "
        "fails by a point at which it is refuted, which is shown; an undecided box makes it a "
        "finding. A proof or refutation is a sign in ball arithmetic and hangs on no sample. It "
        "fails, too, if a population gradient contradicts a certificate beyond its own bound, "
        "which would mean an error here. That invariance fails does not mean that a flow crosses "
        "there."
    ),
)
