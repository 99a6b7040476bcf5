"""Training runs that several claims share, each trained once in a process.

Learning rates were chosen on the validation part of runs with other seeds (100 and beyond),
separately for each data set and type of model: :mod:`simulations.vision.tuning`. The seed of the
claim and the number of a run determine its split of the images, initialization, batches, masks and
permutation.
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

#: Order of the patches: unchanged, one permutation for all images, or one for each image.
IMAGE, CELLS, EACH = "order of the image", "one permutation", "another permutation per image"

#: Learning rates by data set and type of model.
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
class TrainingConfig:
    """A data set, a model, how it is trained, and how its patches are permuted.

    Attributes
    ----------
    data
        Name of the data set.
    model, settings
        The model, and how it is trained.
    shown
        ``IMAGE``, ``CELLS`` or ``EACH``.
    cell
        Side in pixels of the cells that are permuted; 0: a patch.
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


def photographs(kind: str, steps: int, shown: str = IMAGE, cell: int = 0) -> TrainingConfig:
    """Return the prediction of masked patches of 2 x 2 pixels of 16 x 16 crops of photographs."""
    settings = Settings(steps=steps, batch=32, rate=RATES["photographs"][kind])
    return TrainingConfig("photographs", Model(kind), settings, shown, cell)


def digits(kind: str, steps: int, shift: int = 1, noise: float = 0.0) -> TrainingConfig:
    """Return the classification of 8 x 8 digits, patches of 2 x 2 pixels."""
    rate = RATES["digits"][kind]
    settings = Settings(steps=steps, batch=64, rate=rate, shift=shift, noise=noise)
    return TrainingConfig("digits", Model(kind), settings)


def mnist(kind: str, steps: int) -> TrainingConfig:
    """Return the classification of 28 x 28 digits, patches of 4 x 4 pixels."""
    settings = Settings(steps=steps, batch=32, rate=RATES["mnist-5k"][kind], shift=2)
    return TrainingConfig("mnist-5k", Model(kind, patch=4), settings)


def configurations_of_comparison(
    context: Context,
) -> dict[str, tuple[TrainingConfig, TrainingConfig]]:
    """Return positional and vanilla attention for each data set, all else equal."""
    digit_steps = context.choose(quick=150, full=500, thorough=1200)
    photograph_steps = context.choose(quick=150, full=STEPS_ON_PHOTOGRAPHS, thorough=1500)
    mnist_steps = context.choose(quick=0, full=150, thorough=2500)

    def both(make: Callable[[str], TrainingConfig]) -> tuple[TrainingConfig, TrainingConfig]:
        return make("position"), make("content")

    configurations = {
        "masked photographs": both(lambda kind: photographs(kind, photograph_steps)),
        "digits with shifts": both(lambda kind: digits(kind, digit_steps)),
        "digits without": both(lambda kind: digits(kind, digit_steps, 0)),
    }
    if mnist_steps:
        configurations["5,000 MNIST digits"] = both(lambda kind: mnist(kind, mnist_steps))
    return configurations


_finished: dict[tuple[TrainingConfig, int, int], Run] = {}


def trained(
    context: Context, configurations: Sequence[TrainingConfig], runs: int
) -> dict[TrainingConfig, list[Run]]:
    """Return ``runs`` runs of each configuration, each trained once in a process."""
    results: dict[TrainingConfig, list[Run]] = {entry: [] for entry in configurations}
    total, done = runs * sum(_cost(entry) for entry in results), 0.0
    for configuration, finished in results.items():
        cost = _cost(configuration)
        for number in range(runs):

            def progress(fraction: float, before: float = done, cost: float = cost) -> None:
                context.progress((before + cost * fraction) / total)

            key = (configuration, context.seed, number)
            if key not in _finished:
                _finished[key] = _train(context, configuration, number, progress)
            finished.append(_finished[key])
            done += cost
            context.progress(done / total)
    return results


def _cost(configuration: TrainingConfig) -> float:
    """Return the approximate relative cost of a run."""
    return configuration.settings.steps * (2.0 if configuration.model.kind == "content" else 1.0)


def _train(
    context: Context, configuration: TrainingConfig, number: int, progress: Callable[[float], None]
) -> Run:
    data, model, settings, shown, cell = (
        configuration.data,
        configuration.model,
        configuration.settings,
        configuration.shown,
        configuration.cell,
    )
    images, seed = image_set(data, context.seed, number), 1000 * context.seed + number
    rng = np.random.default_rng(np.random.SeedSequence(context.seed, spawn_key=(number,)))
    task = task_of(images, model, settings)
    order = orders = np.arange(task.shape.D)
    if shown == CELLS:
        order = orders = shuffled(task.grid, rng, (cell or model.patch) // model.patch)
    elif shown == EACH:
        orders = np.argsort(rng.random((len(images.train), task.shape.D)), axis=1)
    name = f"{data}-{model.kind}-{number}.npz"
    file = None if context.scratch is None else context.scratch / name
    result = train(
        images, model, settings, (seed,), orders=orders[None], progress=progress, checkpoint=file
    )
    P0 = P = attention = np.zeros(0)
    if model.encodes:
        assert result.attention is not None
        P0 = restored(start(task, seed)["P"], order, (0,))
        P = restored(result.encodings[0], order, (0,))
        attention = restored(result.attention[0], order, (2, 3))
    error, losses = float(result.error[0]), result.losses[0]
    return Run(error, P0, P, attention, order, losses, result.seconds)


@lru_cache(maxsize=16)
def image_set(data: str, seed: int, number: int) -> ImageSet:
    """Return the images of a run, split by its own seed."""
    return load(data, seed=1000 * seed + number)


def parameters(configurations: Sequence[TrainingConfig], runs: int, seed: int) -> dict[str, Any]:
    """Return all settings of the runs, for the report."""
    described = {
        f"{entry.data}, {entry.model.kind}, {entry.shown}, steps {entry.settings.steps}, "
        f"shift {entry.settings.shift}, noise {entry.settings.noise:g}, cell {entry.cell}": {
            "model": asdict(entry.model),
            "settings": asdict(entry.settings),
        }
        for entry in configurations
    }
    return {"runs": runs, "seed": seed, "configurations": described}


def mean_of_visible(seed: int) -> float:
    """Return the error on masked photographs of predicting the mean of the visible pixels.

    Images and masks are the test images of the first run.
    """
    configuration = photographs("position", 1)
    images = image_set(configuration.data, seed, 0)
    task = task_of(images, configuration.model, configuration.settings)
    errors = []
    for shown in held_out(task, images.test, np.arange(task.shape.D)):
        visible = ~shown.masked[..., None]
        count = visible.sum(axis=(1, 2)) * task.shape.pixels
        mean = (shown.patches * visible).sum(axis=(1, 2)) / count
        squares = ((shown.patches - mean[:, None, None]) ** 2).mean(axis=2)
        errors.append((squares * shown.masked).sum(axis=1) / shown.masked.sum(axis=1))
    return float(np.concatenate(errors).mean())
