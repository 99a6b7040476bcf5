"""Where locality comes from on centred digits: from training on shifted images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from simulations.reproduction.effects import Effect, effect, verdict_of
from simulations.reproduction.measured import measured_at, spread
from simulations.reproduction.outcome import Claim, Context, Figure, Headline, Outcome, Verdict
from simulations.vision.extra import needs_extra

if TYPE_CHECKING:
    import numpy as np

    from simulations.vision.runs import Plan, Run

VANILLA, POSITIONAL = "vanilla", "positional"
SHIFTS, NONE, NOISE = "shifts", "none", "noise"
#: Smallest mean z that counts as local: that at which a single run would, at about 95 %.
LEAST = 2.0
#: Standard deviation of the noise on pixels, in units of that of the pixels.
_NOISE = 0.35


class Found(NamedTuple):
    """What P shows in the runs of one model and augmentation, each entry (runs,).

    ``z`` is that of the rank correlation with closeness, ``ring_z`` against the null that moves
    patches in their rings only, ``precision_z`` that of the precision.
    """

    mantel: np.ndarray
    z: np.ndarray
    ring_z: np.ndarray
    precision: np.ndarray
    precision_z: np.ndarray
    lift: np.ndarray
    error: np.ndarray
    loss: np.ndarray

    @property
    def interval(self) -> tuple[float, float]:
        """The interval at 95 % of the mean of ``z``."""
        from simulations.reproduction.intervals import of_mean

        return of_mean(self.z)

    @property
    def local(self) -> Effect:
        """Whether P is local: the interval above 0; below `LEAST` it is not."""
        return effect(*self.interval, none=0.0, least=LEAST)


@needs_extra
def run(context: Context) -> Outcome:
    """Train on digits with shifts, without, and with noise instead, and look at P."""
    from simulations.vision import runs

    count = 3 if context.quick else 5
    plans = _plans(context)
    trained = runs.trained(context, list(plans.values()), count)
    models = {key: trained[plan] for key, plan in plans.items()}
    found = {key: look(some) for key, some in models.items()}
    measured = measured_at({}, ("runs", "runs of each", count))
    for (kind, augmentation), one in found.items():
        measured += measured_at(
            {"model": kind, "augmentation": augmentation},
            *spread("z", "z of the rank correlation of similarity and closeness",
                    (float(one.z.mean()), *one.interval)),
            ("mantel", "rank correlation, mean", float(one.mantel.mean())),
            ("ring_z", "z against patches moved in their ring, mean", float(one.ring_z.mean())),
            ("precision", "neighbours among the most similar encodings, mean",
             float(one.precision.mean())),
            ("precision_z", "z of it, mean", float(one.precision_z.mean())),
            ("lift", "attention to a neighbour over attention to another, mean",
             float(one.lift.mean())),
            ("accuracy", "test accuracy, mean", float(1.0 - one.error.mean())),
            ("training_loss", "training loss of the last 20 steps, mean", float(one.loss.mean())),
        )  # fmt: skip
    verdict, summary = judge(found)
    return Outcome(
        verdict, measured, 0.0, runs.parameters(list(plans.values()), count, context.seed),
        summary, (_figure(models, found),),
    )  # fmt: skip


def look(some: Sequence[Run]) -> Found:
    """Return what P and attention show in runs on the grid of 4 x 4 patches."""
    import numpy as np

    from dynamics.locality import attention_locality, encoding_locality

    rows = []
    for one in some:
        anywhere = encoding_locality(one.encodings)
        ring = encoding_locality(one.encodings, null="ring")
        lift = attention_locality(one.attention, draws=1).lift
        assert lift is not None
        rows.append((
            anywhere.mantel.value, anywhere.mantel.z, ring.mantel.z, anywhere.precision.value,
            anywhere.precision.z, lift.value.mean(), one.error, one.losses[-20:].mean(),
        ))  # fmt: skip
    return Found(*np.array(rows, dtype=float).T)


def judge(found: Mapping[tuple[str, str], Found]) -> tuple[Verdict, str]:
    """Return HOLDS if P is local with and without shifts, a finding if with shifts only.

    FAILS if it is not local with shifts either. Both kinds of attention are asked.
    """
    kinds = dict.fromkeys(kind for kind, _ in found)
    verdict = verdict_of(found[kind, SHIFTS].local for kind in kinds)
    if any(one.local is not Effect.SHOWN for one in found.values()) and verdict is Verdict.HOLDS:
        verdict = Verdict.FINDING
    parts = []
    for kind in kinds:
        cases = [key for key in found if key[0] == kind]
        parts.append(f"{kind} {', '.join(_told(found[key], key[1]) for key in cases)}")
    text = "z of the rank correlation of similar encodings and close patches on digits: "
    return verdict, f"{text}{'; '.join(parts)}."


def _told(one: Found, augmentation: str) -> str:
    low, high = one.interval
    accuracy = 1.0 - one.error.mean()
    mean = f"{one.z.mean():.1f} ({low:.1f} to {high:.1f}; accuracy {accuracy:.3f})"
    return f"{mean} with {_NAMES[augmentation]}"


_NAMES = {SHIFTS: "shifts of a pixel", NONE: "no augmentation", NOISE: "noise instead"}


def _plans(context: Context) -> dict[tuple[str, str], Plan]:
    from simulations.vision.runs import digits

    steps = 150 if context.quick else 1200 if context.thorough else 500
    plans: dict[tuple[str, str], Plan] = {}
    for name, kind in ((VANILLA, "content"), (POSITIONAL, "position")):
        plans[name, SHIFTS] = digits(kind, steps, 1)
        plans[name, NONE] = digits(kind, steps, 0)
        if context.thorough or (name == VANILLA and not context.quick):
            plans[name, NOISE] = digits(kind, steps, 0, _NOISE)
    return plans


def _figure(
    models: Mapping[tuple[str, str], Sequence[Run]], found: Mapping[tuple[str, str], Found]
) -> Figure:
    from simulations.figures import report_figure
    from simulations.vision.data_of_figures import augmented
    from simulations.vision.figures import augmented as drawn

    return report_figure(
        "augmentation-makes-locality",
        "Locality of P on digits comes from shifted images",
        "(a) z of the rank correlation between cosines of encodings and closeness of patches, one "
        "dot a run, the bar its mean with the 95 % interval; grey: within two standard deviations "
        "of patches put anywhere. (b, c) Mean cosines over the runs, vanilla attention, for each "
        "of the 4 x 4 patches a tile with all others, trained with shifts of up to one pixel and "
        "without augmentation.",
        drawn.draw,
        augmented(models, {key: one.z for key, one in found.items()},
                  {key: one.interval for key, one in found.items()}),
        (10.0, 4.0),
    )  # fmt: skip


def _finding(outcome: Outcome) -> str:
    shifted, without = (
        " and ".join(
            f"{outcome.number('z_low', model=kind, augmentation=name):.1f} to "
            f"{outcome.number('z_high', model=kind, augmentation=name):.1f}"
            for kind in (VANILLA, POSITIONAL)
        )
        for name in (SHIFTS, NONE)
    )
    return f"z of P (95 %; vanilla, positional): {shifted} on shifted digits, {without} without."


CLAIM = Claim(
    id="augmentation-makes-locality",
    place="Section 6, beside Figure 1a",
    statement=(
        "After training, closer patches have more similar positional encodings (Figure 1a); the "
        "models are trained with standard augmentation techniques, and nothing is said of their "
        "part in it."
    ),
    method=(
        "Locality of P after training on centred digits of 8 x 8 pixels with shifts of up to one "
        "pixel, without augmentation, and with noise instead (which keeps the training error up "
        "and moves nothing), for vanilla and positional attention."
    ),
    criterion=(
        "P is local where the 95 % interval over runs of the z of the rank correlation between "
        "similarity and closeness, against patches put anywhere, is above 0, not local where it "
        "ends below 2. HOLDS if it is local with every augmentation and without, for both kinds of "
        "attention: the statement makes no reservation. FAILS if it is not local with shifts for "
        "either. Otherwise a finding. Five runs, each with its own split."
    ),
    headline=Headline("z", {"model": VANILLA, "augmentation": SHIFTS}),
    finding=_finding,
    run=run,
    quick_note="150 steps instead of 500, three runs, no noise",
    thorough_note="1,200 steps instead of 500, and noise for positional attention too",
    amended=(
        "An interval that reached below 0 counted as not local at first. It must now also end "
        "below 2, and is undecided otherwise, since an interval that is merely wide shows nothing."
    ),
    assumptions="the digits of scikit-learn (not CIFAR); dynamics.locality and its nulls",
    group="vision",
)
