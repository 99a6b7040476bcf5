"""Training runs shared by several claims; each run is trained once in a process.

Learning rates were chosen on the validation part of runs with other seeds (100 and beyond),
separately for each data set and model: :mod:`simulations.vision.tuning`. The seed of the claim and
the number of a run determine its split of the images, initialization, batches, masks and
permutation.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from simulations.reproduction.claim import Context
from simulations.seeds import rng_at
from simulations.vision.data import ImageSet, load
from simulations.vision.evaluation import evaluation_batches
from simulations.vision.models import Model
from simulations.vision.patches import cell_permutation, inverse_permuted
from simulations.vision.tasks import Settings, squared_error
from simulations.vision.training import start, task_of, train

K = TypeVar("K", bound=Hashable)

#: Orders of the patches: unchanged, one permutation for all images, or one for each image.
IMAGE, CELLS, EACH = "order of the image", "one permutation", "another permutation per image"

#: Name of each type of attention, and its architecture.
ATTENTION = {"positional": "position", "vanilla": "content"}

#: Learning rates by data set and model.
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
    """A data set, a model, its training, and the order of its patches.

    Attributes
    ----------
    data
        Name of the data set.
    model, settings
        Model and settings of the training.
    order
        ``IMAGE``, ``CELLS`` or ``EACH``.
    cell
        Side length in pixels of the permuted cells; 0: a patch.
    """

    data: str
    model: Model
    settings: Settings
    order: str = IMAGE
    cell: int = 0


class Run(NamedTuple):
    """A trained model; its patches are in the order of the image.

    Attributes
    ----------
    error
        On test images: share of wrong labels, or squared error on masked pixels.
    start, encodings
        P before and after training (D, width); empty for the CNN.
    attention
        Mean over the test images (depth, heads, D, D); empty for the CNN.
    order
        Patch shown at each position (D,).
    losses
        Training loss at every step (steps,).
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


def photographs(architecture: str, steps: int, order: str = IMAGE, cell: int = 0) -> TrainingConfig:
    """Return the prediction of masked patches of 2 x 2 pixels of 16 x 16 crops of photographs."""
    settings = Settings(steps=steps, batch=32, rate=RATES["photographs"][architecture])
    return TrainingConfig("photographs", Model(architecture), settings, order, cell)


def digits(architecture: str, steps: int, shift: int = 1, noise: float = 0.0) -> TrainingConfig:
    """Return the classification of 8 x 8 digits with patches of 2 x 2 pixels."""
    rate = RATES["digits"][architecture]
    settings = Settings(steps=steps, batch=64, rate=rate, shift=shift, noise=noise)
    return TrainingConfig("digits", Model(architecture), settings)


def mnist(architecture: str, steps: int) -> TrainingConfig:
    """Return the classification of 28 x 28 digits with patches of 4 x 4 pixels."""
    settings = Settings(steps=steps, batch=32, rate=RATES["mnist-5k"][architecture], shift=2)
    return TrainingConfig("mnist-5k", Model(architecture, patch=4), settings)


def configurations_of_comparison(context: Context) -> dict[tuple[str, str], TrainingConfig]:
    """Return positional and vanilla attention for each data set; all else is equal."""
    digit_steps = context.choose(quick=150, full=500, thorough=1200)
    photograph_steps = context.choose(quick=150, full=STEPS_ON_PHOTOGRAPHS, thorough=1500)
    mnist_steps = context.choose(quick=0, full=150, thorough=2500)
    data_sets: dict[str, tuple[Callable[..., TrainingConfig], tuple[int, ...]]] = {
        "masked photographs": (photographs, (photograph_steps,)),
        "digits with shifts": (digits, (digit_steps,)),
        "digits without": (digits, (digit_steps, 0)),
    }
    if mnist_steps:
        data_sets["5,000 MNIST digits"] = (mnist, (mnist_steps,))
    return {
        (data, attention): make(architecture, *options)
        for data, (make, options) in data_sets.items()
        for attention, architecture in ATTENTION.items()
    }


_finished: dict[tuple[TrainingConfig, int, int], Run] = {}


def trained(
    context: Context, configurations: Mapping[K, TrainingConfig], count: int
) -> tuple[dict[K, list[Run]], dict[str, Any]]:
    """Train each configuration ``count`` times, unless that was done in this process.

    Parameters
    ----------
    context
        Seed, progress and folder for checkpoints.
    configurations
        Configurations by any key.
    count
        Runs of each configuration.

    Returns
    -------
    runs
        Runs of each configuration by its key.
    settings
        All settings, for the report.
    """
    runs: dict[K, list[Run]] = {key: [] for key in configurations}
    total, done = count * sum(_cost(entry) for entry in configurations.values()), 0.0
    for key, configuration in configurations.items():
        cost = _cost(configuration)
        for number in range(count):

            def progress(fraction: float, before: float = done, cost: float = cost) -> None:
                context.progress((before + cost * fraction) / total)

            entry = (configuration, context.seed, number)
            if entry not in _finished:
                _finished[entry] = _train(context, configuration, number, progress)
            runs[key].append(_finished[entry])
            done += cost
            context.progress(done / total)
    described = [_described(configuration) for configuration in configurations.values()]
    return runs, {"runs": count, "seed": context.seed, "configurations": dict(described)}


def _cost(configuration: TrainingConfig) -> float:
    """Return the approximate relative cost of a run."""
    factor = 2.0 if configuration.model.architecture == "content" else 1.0
    return configuration.settings.steps * factor


def _train(
    context: Context, configuration: TrainingConfig, number: int, progress: Callable[[float], None]
) -> Run:
    model, settings = configuration.model, configuration.settings
    images = image_set(configuration.data, context.seed, number)
    seed = 1000 * context.seed + number
    rng = rng_at(context.seed, number)
    task = task_of(images, model, settings)
    order = orders = np.arange(task.shape.D)
    if configuration.order == CELLS:
        cell = (configuration.cell or model.patch) // model.patch
        order = orders = cell_permutation(task.grid, rng, cell)
    elif configuration.order == EACH:
        orders = np.argsort(rng.random((len(images.train), task.shape.D)), axis=1)
    file = None
    if context.scratch is not None:
        file = context.scratch / f"{configuration.data}-{model.architecture}-{number}.npz"
    result = train(
        images, model, settings, (seed,), orders=orders[None], progress=progress, checkpoint=file
    )
    P0 = P = attention = np.zeros(0)
    if result.attention is not None:
        P0 = inverse_permuted(start(task, seed)["P"], order, (0,))
        P = inverse_permuted(result.encodings[0], order, (0,))
        attention = inverse_permuted(result.attention[0], order, (2, 3))
    error, losses = float(result.error[0]), result.losses[0]
    return Run(error, P0, P, attention, order, losses, result.seconds)


@lru_cache(maxsize=16)
def image_set(data: str, seed: int, number: int) -> ImageSet:
    """Return the images of a run, split by its own seed."""
    return load(data, seed=1000 * seed + number)


def _described(configuration: TrainingConfig) -> tuple[str, dict[str, Any]]:
    """Return the name of a configuration and its settings, for the report."""
    model, settings = configuration.model, configuration.settings
    name = (
        f"{configuration.data}, {model.architecture}, {configuration.order}, steps "
        f"{settings.steps}, shift {settings.shift}, noise {settings.noise:g}, cell "
        f"{configuration.cell}"
    )
    return name, {"model": asdict(model), "settings": asdict(settings)}


def mean_of_visible(seed: int) -> float:
    """Return the error on masked photographs of predicting the mean of the visible pixels.

    Images and masks are the test images of the first run.
    """
    configuration = photographs("position", 1)
    images = image_set(configuration.data, seed, 0)
    task = task_of(images, configuration.model, configuration.settings)
    errors = []
    for shown in evaluation_batches(task, images.test, np.arange(task.shape.D)):
        visible = ~shown.masked[..., None]
        count = visible.sum(axis=(1, 2)) * task.shape.pixels
        mean = (shown.patches * visible).sum(axis=(1, 2)) / count
        errors.append(squared_error(mean[:, None, None], shown))
    return float(np.concatenate(errors).mean())
