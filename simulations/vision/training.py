"""Training of seeds side by side, with checkpoints, and what is read off a trained model."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.experimental
import numpy as np

from dynamics.core.adam import Moments, adam, clipped, initial_moments
from dynamics.core.checkpoint import Checkpoint, fingerprint
from dynamics.core.checks import require
from simulations.vision.data import Images, ImageSet
from simulations.vision.models import Model, Shape, Tree, initial
from simulations.vision.patches import grid_of
from simulations.vision.tasks import Batch, Settings, Task, batch, loss, score

_CHECKPOINT_SECONDS = 30.0
_SHOWN = 256
_HELD_OUT_SEED = 20220

#: JAX 0.8 moved and renamed it.
_double_precision: Any = (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64


@dataclass(frozen=True)
class Trained:
    """Models trained side by side, one a seed.

    Attributes
    ----------
    task
        Model, shapes and settings.
    seeds, orders
        Of each model: its seed, and the order of its patches (seeds, D), or (seeds, N, D) where
        every image has its own.
    parameters
        Tree of arrays with a leading axis of seeds.
    losses
        Training loss at every step (seeds, steps).
    error
        Share of wrong labels or squared error on masked pixels of the test images (seeds,); the
        masks are the same in every run.
    attention
        Attention of every seed, mean over the test images, (seeds, depth, heads, D, D), in the
        order shown; ``None`` of the CNN.
    seconds
        Processor time of a step of one seed without compiling.
    """

    task: Task
    seeds: tuple[int, ...]
    orders: np.ndarray
    parameters: Tree
    losses: np.ndarray
    error: np.ndarray
    attention: np.ndarray | None
    seconds: float

    @property
    def encodings(self) -> np.ndarray:
        """P of every seed (seeds, D, width), in the order shown."""
        return np.asarray(self.parameters["P"], dtype=float)


class State(NamedTuple):
    """All parameters in one vector, and what Adam keeps of them."""

    parameters: np.ndarray
    kept: Moments


def train(
    images: ImageSet,
    model: Model,
    settings: Settings,
    seeds: Sequence[int] = (0,),
    *,
    orders: np.ndarray | None = None,
    tested: str = "test",
    progress: Callable[[float], None] | None = None,
    checkpoint: Path | None = None,
) -> Trained:
    """Train a model on the images of a set, once a seed, and test it.

    Parameters
    ----------
    images
        Images; they are classified, or masked where the set has no classes.
    model, settings
        What is trained and how.
    seeds
        Seeds of parameters, order of the images, masks and augmentation, one a model.
    orders
        Which patch is shown where, (seeds, D), or (seeds, N, D) for each of the N training images
        in turn; default: the order of the image.
    tested
        ``"test"``, or ``"validation"`` while settings are chosen.
    progress
        Is told the fraction done.
    checkpoint
        File that an interrupted run goes on from; removed at the end.

    Raises
    ------
    ParameterError
        If the patch does not divide the images, there are fewer than a batch, or a checkpoint is
        damaged or of another run.
    RuntimeError
        If the loss is no longer finite.
    """
    task = task_of(images, model, settings)
    count = len(images.train.labels)
    require(
        settings.batch <= count, "batch", settings.batch, f"at most {count}, the images there are"
    )
    if orders is None:
        orders = np.broadcast_to(np.arange(task.shape.D), (len(seeds), task.shape.D))
    run = _Run(task, images.train, tuple(seeds), np.asarray(orders), np.float32)
    described = (repr(task), State._fields, run.seeds)
    mark = fingerprint(described, run.orders, run.pixels, run.labels)
    file = None if checkpoint is None else Checkpoint(checkpoint, mark, _CHECKPOINT_SECONDS)
    begun = [start(task, seed) for seed in seeds]
    trees, losses, seconds = run.to_the_end(begun, file, progress or (lambda fraction: None))
    images_tested = getattr(images, tested)
    found = [evaluate(task, tree, order, images_tested) for tree, order in zip(trees, run.orders)]
    looked = [attention for _, attention in found if attention is not None]
    maps = np.stack(looked) if looked else None
    if file is not None:
        file.path.unlink(missing_ok=True)
    error = np.array([error for error, _ in found])
    tree = jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
    return Trained(task, run.seeds, run.orders, tree, losses, error, maps, seconds)


def task_of(images: ImageSet, model: Model, settings: Settings) -> Task:
    """Return the task of a model on the images of a set."""
    pixels = images.train.pixels
    rows, columns = grid_of(pixels.shape, model.patch)
    shape = Shape(rows * columns, model.patch**2 * pixels.shape[3], images.classes)
    return Task(model, shape, (rows, columns), settings)


def rates(settings: Settings) -> np.ndarray:
    """Return the learning rate of every step (steps,)."""
    step = np.arange(settings.steps)
    warm = max(settings.steps // 10, 1)
    after = np.clip((step - warm) / max(settings.steps - warm, 1), 0.0, 1.0)
    return settings.rate * np.minimum((step + 1) / warm, 1.0) * 0.5 * (1.0 + np.cos(np.pi * after))


def batches(seed: int, count: int, settings: Settings) -> np.ndarray:
    """Return the images of every step (steps, batch): every image once an epoch."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    each = count // settings.batch
    epochs = -(-settings.steps // each)
    drawn = [rng.permutation(count)[: each * settings.batch] for _ in range(epochs)]
    return np.concatenate(drawn).reshape(-1, settings.batch)[: settings.steps].astype(np.int32)


def start(task: Task, seed: int) -> Tree:
    """Return the parameters that a seed begins with, in double precision."""
    return initial(task.model, task.shape, _rng(seed, 0))


def step(task: Task, state: State, gradient: np.ndarray, rate: Any, done: int) -> State:
    """Take a step of AdamW, the step after ``done`` of them, down a gradient that is clipped."""
    direction, kept = adam(clipped(gradient, 1.0), state.kept, done, (0.9, 0.99))
    decay = task.settings.decay * decayed(task) * state.parameters
    return State(state.parameters - rate * (direction + decay), kept)


@lru_cache(maxsize=16)
def decayed(task: Task) -> np.ndarray:
    """Return which parameters decay, 0 or 1 for each: those of matrices, P left out."""

    def told(name: str, branch: Any) -> Any:
        matrix = name not in ("P", "mask")
        return jax.tree.map(
            lambda leaf: np.full(leaf.shape, matrix and leaf.ndim == 2, np.float32), branch
        )

    return joined({name: told(name, branch) for name, branch in start(task, 0).items()})


def joined(tree: Tree) -> np.ndarray:
    """Return all numbers of a tree in one vector."""
    return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(tree)])


def parted(vector: np.ndarray, like: Tree) -> Tree:
    """Return the tree with the shapes of another whose numbers are in a vector."""
    leaves, structure = jax.tree.flatten(like)
    ends = np.cumsum([leaf.size for leaf in leaves])
    parts = np.split(vector, ends[:-1])
    return jax.tree.unflatten(
        structure, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves)]
    )


def _compiled(task: Task) -> tuple[Any, Any]:
    """Return loss with gradient and score of one seed, compiled; settings do not matter to them."""
    return _compiled_once(task._replace(settings=Settings()))


@lru_cache(maxsize=16)
def _compiled_once(task: Task) -> tuple[Any, Any]:
    """Return loss with gradient, and score, of one seed, compiled.

    Seeds take their steps in turn: on a CPU that is quicker than one step mapped over seeds (1.4
    times at three seeds, 4 times for the CNN). The step itself is not compiled: with the optimizer
    in it, which is nothing to NumPy, compiling takes nearly twice as long.
    """
    return jax.jit(jax.value_and_grad(partial(loss, task))), jax.jit(partial(score, task))


def trajectory(
    task: Task, images: Images, begun: Tree, seed: int, order: np.ndarray
) -> tuple[Tree, np.ndarray]:
    """Return the parameters at the end and the losses (steps,) of one run in double precision.

    To be called where JAX has double precision enabled.
    """
    run = _Run(task, images, (seed,), order[None], np.float64)
    trees, losses, _ = run.to_the_end([begun], None, lambda fraction: None)
    return trees[0], losses[0]


def permutation_deviation(
    images: ImageSet,
    model: Model,
    settings: Settings,
    order: np.ndarray,
    seed: int = 0,
    *,
    permute_encodings: bool = True,
) -> tuple[float, float]:
    """Train on images and on the same with permuted patches in double precision, and compare.

    Section 6, Figure 5a: both runs are the same if P(0) is permuted along.

    Parameters
    ----------
    images, model, settings
        A transformer and its task.
    order
        Patch shown at each position (D,).
    seed
        Seed of both runs.
    permute_encodings
        Whether P(0) is permuted along. If not, the second run has another initialization.

    Returns
    -------
    tuple
        Largest differences of the losses at any step, and of P at the end.
    """
    task = task_of(images, model, settings)
    with _double_precision(True):
        first = start(task, seed)
        tree, losses = trajectory(task, images.train, first, seed, np.arange(task.shape.D))
        other = first | {"P": first["P"][order] if permute_encodings else first["P"]}
        permuted, permuted_losses = trajectory(task, images.train, other, seed, order)
    difference = abs(tree["P"][order] - permuted["P"])
    return float(abs(losses - permuted_losses).max()), float(difference.max())


def _rng(seed: int, purpose: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose,)))


class _Run:
    """Seeds trained side by side: where they begin, and what each step is shown."""

    def __init__(
        self, task: Task, images: Images, seeds: tuple[int, ...], orders: np.ndarray, dtype: Any
    ) -> None:
        self.task, self.seeds, self.orders, self.dtype = task, seeds, orders, dtype
        self.pixels, self.labels = images.pixels.astype(dtype), images.labels
        count = len(images.labels)
        self.chosen = [batches(seed, count, task.settings) for seed in seeds]
        self.rates = rates(task.settings).astype(dtype)

    def shown(self, place: int, number: int) -> Batch:
        """Return what a seed is shown at a step, which does not depend on the steps before it."""
        seed, order, own = self.seeds[place], self.orders[place], self.chosen[place][number]
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2, number)))
        if order.ndim == 2:
            order = order[own]
        return batch(self.task, self.pixels[own], self.labels[own], order, rng, augment=True)

    def to_the_end(
        self, begun: Sequence[Tree], file: Checkpoint | None, progress: Callable[[float], None]
    ) -> tuple[list[Tree], np.ndarray, float]:
        """Return the parameters at the end, the losses, and the processor time of a step."""
        vectors = [joined(tree).astype(self.dtype) for tree in begun]
        states = [State(vector, initial_moments(vector)) for vector in vectors]
        total = self.task.settings.steps
        losses, done = np.zeros((len(self.seeds), total)), 0
        if file is not None and (stored := file.read()) is not None:
            losses, done = stored["losses"], int(stored["done"])
            leaves = [stored[f"leaf {n}"] for n in range(len(jax.tree.leaves(states)))]
            states = jax.tree.unflatten(jax.tree.structure(states), leaves)
        spent = []
        for number in range(done, total):
            clock = time.process_time()
            for place, state in enumerate(states):
                states[place], losses[place, number] = self.advanced(state, begun[0], place, number)
            spent.append(time.process_time() - clock)
            if not np.isfinite(losses[:, number]).all():
                raise RuntimeError(f"the loss is no longer finite at step {number}")
            progress((number + 1) / total)
            if file is not None and file.is_due():
                arrays: dict[str, Any] = {"losses": losses, "done": number + 1}
                arrays |= {f"leaf {n}": leaf for n, leaf in enumerate(jax.tree.leaves(states))}
                file.write(arrays)
        seconds = float(np.median(spent or [0.0])) / len(self.seeds)
        return [parted(state.parameters, begun[0]) for state in states], losses, seconds

    def advanced(self, state: State, like: Tree, place: int, number: int) -> tuple[State, float]:
        """Return the state of a seed after a step, and the loss before it."""
        differentiated = _compiled(self.task)[0]
        value, gradient = differentiated(parted(state.parameters, like), self.shown(place, number))
        with np.errstate(over="ignore", invalid="ignore"):  # the loss will tell
            after = step(self.task, state, joined(gradient), self.rates[number], number)
        return after, float(value)


def evaluate(
    task: Task, tree: Tree, order: np.ndarray, images: Images
) -> tuple[float, np.ndarray | None]:
    """Return the mean error of a model on images, and its mean attention (depth, heads, D, D).

    ``order`` is (D,), or (N, D) where every training image had its own; then so has every image
    here. The masks are the same in every call.
    """
    scored, total = _compiled(task)[1], len(images.labels)
    error, maps = 0.0, None
    for shown in held_out(task, images, order):
        full = filled(shown, min(_SHOWN, total))
        own = (np.arange(len(full.labels)) < len(shown.labels)).astype(np.float32)
        each, attention = scored(tree, full, own)
        error += float(np.asarray(each, dtype=float)[: len(shown.labels)].sum())
        if attention is not None:
            share = np.asarray(attention, dtype=float) / total
            maps = share if maps is None else maps + share
    return error / total, maps


def filled(shown: Batch, size: int) -> Batch:
    """Return a batch of this size, its first image repeated: what is compiled needs one size."""
    lacking = size - len(shown.labels)

    def repeated(array: np.ndarray) -> np.ndarray:
        return np.concatenate([array, np.repeat(array[:1], lacking, axis=0)])

    return jax.tree.map(repeated, shown) if lacking else shown


def held_out(task: Task, images: Images, order: np.ndarray) -> Iterator[Batch]:
    """Yield all images in order, masked alike in every call."""
    for first in range(0, len(images.labels), _SHOWN):
        own = slice(first, first + _SHOWN)
        pixels, labels = images.pixels[own], images.labels[own]
        rng = np.random.default_rng(np.random.SeedSequence(_HELD_OUT_SEED, spawn_key=(first,)))
        orders = order
        if order.ndim == 2:
            orders = np.argsort(rng.random((len(labels), order.shape[1])), axis=1)
        yield batch(task, pixels, labels, orders, rng, augment=False)
