"""Trained models that several claims look at, each trained once in a process.

Learning rates were chosen on the validation part of runs with other seeds (100 and beyond), for
each data set and kind of model by itself: :mod:`simulations.vision.tuning`. Every run has a split
of the images, parameters, batches, masks and permutation of its own, from the seed of the claim and
its number.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from simulations.reproduction.claim import Context
from simulations.vision.data import ImageSet, load
from simulations.vision.models import Model
from simulations.vision.patches import restored, shuffled
from simulations.vision.tasks import Settings
from simulations.vision.training import held_out, start, task_of, train

#: What is done to the patches: nothing, one permutation for all images, or one for each.
IMAGE, CELLS, EACH = "order of the image", "one permutation", "another permutation per image"


#: Learning rates by data set and kind of model.
RATES = {
    "photographs": {"position": 0.04, "content": 0.04, "cnn": 0.01},
    "digits": {"position": 0.01, "content": 0.01},
    "mnist-5k": {"position": 0.01, "content": 0.005},
}
#: Steps on photographs in the full report: at 250 vanilla attention is still on its plateau.
STEPS_ON_PHOTOGRAPHS = 400
#: Steps of the CNN in the full report: it learns faster.
STEPS_OF_CNN = 120


@dataclass(frozen=True)
class Plan:
    """A data set, a model, how it is trained, and what is done to its patches.

    ``cell`` is the side in pixels of the cells that are permuted.
    """

    data: str
    model: Model
    settings: Settings
    shown: str = IMAGE
    cell: int = 0


class Run(NamedTuple):
    """A trained model, its patches back in the order of the image.

    Attributes
    ----------
    error
        On test images: share of wrong labels, or squared error on masked pixels.
    start, encodings
        P before and after training (D, width); empty of the CNN.
    attention
        Mean over the test images (depth, heads, D, D); empty of the CNN.
    order
        Which patch was shown where (D,).
    losses
        Training loss at every step.
    seconds
        Processor time of a step.
    """

    error: float
    start: np.ndarray
    encodings: np.ndarray
    attention: np.ndarray
    order: np.ndarray
    losses: np.ndarray
    seconds: float


def photographs(kind: str, steps: int, shown: str = IMAGE, cell: int = 0) -> Plan:
    """Return masked patches of 2 x 2 pixels of 16 x 16 crops of photographs."""
    settings = Settings(steps=steps, batch=32, rate=RATES["photographs"][kind])
    return Plan("photographs", Model(kind), settings, shown, cell)


def digits(kind: str, steps: int, shift: int = 1, noise: float = 0.0) -> Plan:
    """Return classification of 8 x 8 digits, patches of 2 x 2 pixels."""
    rate = RATES["digits"][kind]
    settings = Settings(steps=steps, batch=64, rate=rate, shift=shift, noise=noise)
    return Plan("digits", Model(kind), settings)


def mnist(kind: str, steps: int) -> Plan:
    """Return classification of 28 x 28 digits, patches of 4 x 4 pixels."""
    settings = Settings(steps=steps, batch=32, rate=RATES["mnist-5k"][kind], shift=2)
    return Plan("mnist-5k", Model(kind, patch=4), settings)


def plans_of_comparison(quick: bool, long: bool) -> dict[str, tuple[Plan, Plan]]:
    """Return positional and vanilla attention by data set, all else alike."""
    of_digits = 150 if quick else 1200 if long else 500
    of_photographs = 150 if quick else 1500 if long else STEPS_ON_PHOTOGRAPHS

    def both(make: Callable[[str], Plan]) -> tuple[Plan, Plan]:
        return make("position"), make("content")

    plans = {
        "masked photographs": both(lambda kind: photographs(kind, of_photographs)),
        "digits with shifts": both(lambda kind: digits(kind, of_digits)),
        "digits without": both(lambda kind: digits(kind, of_digits, 0)),
    }
    if not quick:
        plans["5,000 MNIST digits"] = both(lambda kind: mnist(kind, 2500 if long else 150))
    return plans


_finished: dict[tuple[Plan, int, int], Run] = {}


def trained(context: Context, plans: Sequence[Plan], runs: int) -> dict[Plan, list[Run]]:
    """Return so many runs of each plan; what was trained before is not trained again."""
    found: dict[Plan, list[Run]] = {plan: [] for plan in plans}
    total, done = runs * sum(_cost(plan) for plan in found), 0.0
    for plan in found:
        for number in range(runs):

            def part(fraction: float, before: float = done, own: float = _cost(plan)) -> None:
                context.progress((before + own * fraction) / total)

            key = (plan, context.seed, number)
            if key not in _finished:
                _finished[key] = _trained(context, plan, number, part)
            found[plan].append(_finished[key])
            done += _cost(plan)
            context.progress(done / total)
    return found


def _cost(plan: Plan) -> float:
    """Return about how long a run takes, for the progress."""
    return plan.settings.steps * (2.0 if plan.model.kind == "content" else 1.0)


def _trained(context: Context, plan: Plan, number: int, progress: Any) -> Run:
    images, seed = image_set(plan.data, context.seed, number), 1000 * context.seed + number
    rng = np.random.default_rng(np.random.SeedSequence(context.seed, spawn_key=(number,)))
    task = task_of(images, plan.model, plan.settings)
    order = orders = np.arange(task.shape.D)
    if plan.shown == CELLS:
        order = orders = shuffled(
            task.grid, rng, (plan.cell or plan.model.patch) // plan.model.patch
        )
    elif plan.shown == EACH:
        orders = np.argsort(rng.random((len(images.train), task.shape.D)), axis=1)
    name = f"{plan.data}-{plan.model.kind}-{number}.npz"
    file = None if context.scratch is None else context.scratch / name
    result = train(
        images,
        plan.model,
        plan.settings,
        (seed,),
        orders=orders[None],
        progress=progress,
        checkpoint=file,
    )
    empty = np.zeros(0)
    if not plan.model.encodes:
        return Run(
            float(result.error[0]), empty, empty, empty, order, result.losses[0], result.seconds
        )
    assert result.attention is not None
    return Run(
        float(result.error[0]),
        restored(start(task, seed)["P"], order, (0,)),
        restored(result.encodings[0], order, (0,)),
        restored(result.attention[0], order, (2, 3)),
        order,
        result.losses[0],
        result.seconds,
    )


@lru_cache(maxsize=16)
def image_set(data: str, seed: int, number: int) -> ImageSet:
    """Return the images of a run, split by its own seed."""
    return load(data, seed=1000 * seed + number)


def parameters(plans: Sequence[Plan], runs: int, seed: int) -> dict[str, Any]:
    """Return everything that defines the runs, for the report."""
    said = {}
    for plan in plans:
        name = f"{plan.data}, {plan.model.kind}, {plan.shown}, steps {plan.settings.steps}"
        name += f", shift {plan.settings.shift}, noise {plan.settings.noise:g}, cell {plan.cell}"
        said[name] = {"model": asdict(plan.model), "settings": asdict(plan.settings)}
    return {"runs": runs, "seed": seed, "plans": said}


def mean_of_visible(seed: int) -> float:
    """Return the error on masked photographs of guessing the mean of the visible pixels.

    The images and masks are those that the first run is tested on.
    """
    plan = photographs("position", 1)
    images = image_set(plan.data, seed, 0)
    task = task_of(images, plan.model, plan.settings)
    found = []
    for shown in held_out(task, images.test, np.arange(task.shape.D)):
        seen = ~shown.masked[..., None]
        mean = (shown.patches * seen).sum(axis=(1, 2)) / (seen.sum(axis=(1, 2)) * task.shape.pixels)
        squares = ((shown.patches - mean[:, None, None]) ** 2).mean(axis=2)
        found.append((squares * shown.masked).sum(axis=1) / shown.masked.sum(axis=1))
    return float(np.concatenate(found).mean())
