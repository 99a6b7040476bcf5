"""Figure 5: on permuted images a ViT learns as before, a CNN does not, association follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from simulations.reproduction.measured import measured_at
from simulations.reproduction.outcome import Claim, Context, Figure, Headline, Outcome, Verdict
from simulations.vision.extra import needs_extra

if TYPE_CHECKING:
    import numpy as np

    from simulations.vision.runs import Plan, Run

#: Largest difference of two runs in double precision that counts as none.
TOLERANCE = 1e-14
#: Steps over which they are compared.
COMPARED = 30
#: Largest p that counts as local, and mean |z| that counts as not local.
LOCAL, CALM = 0.005, 2.0


class Found(NamedTuple):
    """What the three statements come to.

    ``deviation`` of ViTs in double precision with P(0) permuted along, ``apart`` without; errors
    (runs,) of ViT and CNN by cell, 0 where nothing is permuted; p and z of the precision of P
    (runs,) in the order of the image and in the order shown; ``blind`` the error of the mean of
    the visible pixels.
    """

    deviation: float
    apart: float
    vit: Mapping[int, np.ndarray]
    cnn: Mapping[int, np.ndarray]
    p: np.ndarray
    shuffled_z: np.ndarray
    blind: float

    @property
    def smallest(self) -> int:
        """The smallest cell that is permuted."""
        return min(cell for cell in self.cnn if cell)

    @property
    def collapses(self) -> bool:
        """Whether the CNN with the smallest cells does no better than the mean, in every run."""
        return bool((self.cnn[self.smallest] >= 0.95 * self.blind).all())

    @property
    def follows(self) -> bool:
        """Whether P is local in every run once un-shuffled, and not before."""
        return bool((self.p <= LOCAL).all() and abs(self.shuffled_z.mean()) < CALM)


@needs_extra
def run(context: Context) -> Outcome:
    """Train on permuted photographs, and compare runs in double precision."""
    from simulations.vision import runs

    count = 2 if context.quick else 5
    vits, cnns = _plans(context)
    trained = runs.trained(context, [*vits.values(), *cnns.values()], count)
    deviation, apart = _in_double(context)
    found = look(
        {cell: trained[plan] for cell, plan in vits.items()},
        {cell: trained[plan] for cell, plan in cnns.items()},
        deviation, apart, runs.mean_of_visible(context.seed),
    )  # fmt: skip
    measured = measured_at(
        {},
        ("runs", "runs of each", count),
        ("deviation", "largest difference of losses and of P, ViT, P(0) permuted along", deviation),
        ("apart", "largest difference of losses, P(0) not permuted along", apart),
        ("visible_mean", "error of the mean of the visible pixels", found.blind),
        ("largest_p", "largest p of the precision of un-shuffled P", float(found.p.max())),
        ("shuffled_z", "z of the precision of P in the order shown, mean",
         float(found.shuffled_z.mean())),
    )  # fmt: skip
    for name, errors in (("positional ViT", found.vit), ("CNN", found.cnn)):
        for cell, error in errors.items():
            at = {"model": name, "cell": cell or "not permuted"}
            measured += measured_at(
                at,
                ("test_error", "squared error on masked pixels, mean", float(error.mean())),
                ("least_error", "the same, lowest run", float(error.min())),
                ("largest_error", "the same, highest run", float(error.max())),
            )
    verdict, summary = judge(found)
    plans = [*vits.values(), *cnns.values()]
    figure = _figure(context, trained, vits, cnns, found)
    return Outcome(verdict, measured, TOLERANCE, runs.parameters(plans, count, context.seed),
                   summary, (figure,))  # fmt: skip


def look(
    vits: Mapping[int, Sequence[Run]], cnns: Mapping[int, Sequence[Run]],
    deviation: float, apart: float, blind: float,
) -> Found:  # fmt: skip
    """Return what runs by cell show."""
    import numpy as np

    from dynamics.locality import encoding_locality

    some = vits[min(cell for cell in vits if cell)]
    back = [encoding_locality(one.encodings).precision for one in some]
    shown = [encoding_locality(one.encodings[one.order]).precision for one in some]
    vit, cnn = (
        {cell: np.array([one.error for one in runs]) for cell, runs in by_cell.items()}
        for by_cell in (vits, cnns)
    )
    p = np.array([float(one.p) for one in back])
    shuffled_z = np.array([float(one.z) for one in shown])
    return Found(deviation, apart, vit, cnn, p, shuffled_z, blind)


def judge(found: Found) -> tuple[Verdict, str]:
    """Return HOLDS if ViTs are equivariant, the CNN collapses and association follows.

    FAILS if ViTs are not equivariant.
    """
    cell = found.smallest
    plain, moved = found.vit[0].mean(), found.vit[cell].mean()
    verdict = Verdict.HOLDS if found.collapses and found.follows else Verdict.FINDING
    if not found.deviation <= TOLERANCE:
        verdict = Verdict.FAILS
    return verdict, (
        f"Permuted patches give the same run of a ViT to {found.deviation:.1g} ({COMPARED} steps "
        f"in double precision, P(0) permuted along; {found.apart:.1g} if not): an identity of the "
        f"architecture, so that this checks the code; with a start of its own its mean error in "
        f"these runs is {moved:.3f} (cells of {cell} pixels) against {plain:.3f}; the CNN goes "
        f"from {_range(found.cnn[0])} over runs to {_range(found.cnn[cell])}, where the mean of "
        f"the visible pixels has {found.blind:.3f}; un-shuffled P is local in "
        f"{(found.p <= LOCAL).sum()} of {found.p.size} runs, in the order shown it is not (mean z "
        f"{found.shuffled_z.mean():.1f})."
    )


def _range(errors: np.ndarray) -> str:
    return f"{errors.min():.3f} to {errors.max():.3f}"


def _plans(context: Context) -> tuple[dict[int, Plan], dict[int, Plan]]:
    """Return the plans of ViT and CNN by cell, 0 where nothing is permuted."""
    from simulations.vision.runs import (
        CELLS,
        IMAGE,
        STEPS_OF_CNN,
        STEPS_ON_PHOTOGRAPHS,
        photographs,
    )

    steps = 150 if context.quick else 1500 if context.thorough else STEPS_ON_PHOTOGRAPHS
    of_cnn = 100 if context.quick else 600 if context.thorough else STEPS_OF_CNN
    cells = (0, 2) if context.quick else (0, 2, 4, 8) if context.thorough else (0, 2, 4)

    def plan(kind: str, steps: int, cell: int) -> Plan:
        return photographs(kind, steps, CELLS if cell else IMAGE, cell)

    vits = {cell: plan("position", steps, cell) for cell in (0, 2)}
    return vits, {cell: plan("cnn", of_cnn, cell) for cell in cells}


def _in_double(context: Context) -> tuple[float, float]:
    """Return how far runs on permuted patches are apart, with P(0) moved along and without."""
    import numpy as np

    from simulations.vision.equivariance import deviation
    from simulations.vision.models import Model
    from simulations.vision.runs import image_set
    from simulations.vision.tasks import Settings

    images = image_set("photographs", context.seed, 0)
    settings = Settings(steps=COMPARED, batch=16)
    order = np.random.default_rng(context.seed).permutation(64)
    along: list[float] = []
    apart: list[float] = []
    for kind in ("content", "position"):
        model = Model(kind, width=16, depth=1, hidden=16)
        along += deviation(images, model, settings, order, seed=context.seed)
        other = deviation(images, model, settings, order, seed=context.seed, moved=False)
        apart.append(other.loss)
    return max(along), min(apart)


def _figure(
    context: Context,
    trained: Mapping[Plan, Sequence[Run]],
    vits: Mapping[int, Plan],
    cnns: Mapping[int, Plan],
    found: Found,
) -> Figure:
    from simulations.figures import report_figure
    from simulations.vision.data_of_figures import permuted
    from simulations.vision.figures import permuted as drawn
    from simulations.vision.runs import image_set

    picture = image_set("photographs", context.seed, 0).test.pixels
    return report_figure(
        "figure-5",
        "Figure 5 on masked photographs: permuted patches",
        "(a) Squared error on masked pixels of test crops against the side of the cells that are "
        "permuted, mean and range over runs; dashed: not permuted; dotted: the mean of the visible "
        "pixels. The ViT is positional and trained at cells of 2 pixels only: with P(0) permuted "
        "along it is the same run at any. (b) A crop, and the same with cells of 2 and of 4 pixels "
        "permuted. (c) Cosines of the encodings of three patches with all others after training on "
        "permuted patches (cells of 2 pixels, first run): in the order shown, and below with the "
        "permutation undone. (d) The same encodings along their two principal directions, joined "
        "as the patches are in the image before it is permuted.",
        drawn.draw,
        permuted({cell: trained[plan] for cell, plan in vits.items()}, found.cnn, found.blind,
                 picture),
        (11.0, 4.3),
    )  # fmt: skip


def _finding(outcome: Outcome) -> str:
    ends = zip(*(outcome.values(f"{end}_error", model="CNN") for end in ("least", "largest")))
    plain, moved, *_ = (f"{least:.2f} to {largest:.2f}" for least, largest in ends)
    return (
        f"CNN error {plain} over runs, {moved} on permuted patches; a ViT's stays, an identity "
        "of its architecture."
    )


CLAIM = Claim(
    id="figure-5",
    place="Figure 5 (Section 6)",
    statement=(
        "ViTs perform equally on images whose patches are permuted, since they are permutation "
        "invariant, while CNNs struggle to generalize; with the permutation undone the "
        "similarities of positional encodings are spatially localized again."
    ),
    method=(
        "Runs of ViTs in double precision on photographs and on the same with permuted patches; "
        "error of a positional ViT and of a CNN on permuted cells of several sizes; locality of P "
        "in the order shown and with the permutation undone."
    ),
    criterion=(
        "HOLDS if (a) a ViT, vanilla or positional, on permuted patches with P(0) permuted along "
        "has the same losses and the permuted P to 1e-14 (an identity of the architecture, which "
        "only a wrong implementation could miss; no evidence for the paper); the CNN on permuted "
        "cells of 2 pixels does no better than 5 % below the mean of the visible pixels in every "
        "run; (c) P is local in every run with the permutation undone (precision, p <= .005) and "
        "not in the order shown (mean |z| < 2). FAILS if (a) does not hold for the ViT. Otherwise "
        "a finding. Five runs."
    ),
    headline=Headline("deviation"),
    finding=_finding,
    run=run,
    quick_note="150 and 100 steps instead of 400 and 120, two runs, cells of 2 pixels only",
    thorough_note="1,500 and 600 steps instead of 400 and 120, cells of 8 pixels too",
    assumptions=(
        "crops that packages ship (not CIFAR-100); a CNN of six convolutions of width 16; "
        "dynamics.locality and its null"
    ),
    group="vision",
    alone_if_quick=True,
)
