"""Train models with AdamW, once per seed, and evaluate them."""

import time
from collections.abc import Callable, Sequence
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
from simulations.seeds import rng_at
from simulations.vision.data import Images, ImageSet
from simulations.vision.evaluation import evaluate
from simulations.vision.models import Model, Shape, Tree, initial
from simulations.vision.patches import grid_of
from simulations.vision.tasks import Batch, Settings, Task, batch, loss

_CHECKPOINT_SECONDS = 30.0

#: JAX 0.8 moved and renamed it.
_double_precision: Any = (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64


@dataclass(frozen=True)
class Trained:
    """Trained models, one per seed.

    Attributes
    ----------
    task
        Model, sizes and settings.
    seeds, orders
        Seed of each model, and the order of its patches: (seeds, D), or (seeds, N, D) with an order
        per image.
    parameters
        Tree of arrays with a leading axis of seeds.
    losses
        Training loss at every step (seeds, steps).
    error
        Share of wrong labels, or squared error on masked pixels, of the tested images (seeds,). The
        masks are the same in every run.
    attention
        Mean attention over the tested images (seeds, depth, heads, D, D), in the order shown;
        ``None`` for the CNN.
    seconds
        Processor time of a step of one seed, without compilation.
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
    """All parameters in one vector, and the moments of Adam."""

    parameters: np.ndarray
    moments: Moments


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
    """Train a model once per seed, and evaluate it.

    Parameters
    ----------
    images
        Data set; its images are classified, or masked if it has no classes.
    model, settings
        Model and numerical settings.
    seeds
        Seeds of parameters, order of the images, masks and augmentation.
    orders
        Patch shown at each position, (seeds, D), or (seeds, N, D) with an order for each of the N
        training images; default: the order of the image.
    tested
        Part of the data set that is evaluated: ``"test"``, or ``"validation"`` to choose settings.
    progress
        Function that receives the fraction done.
    checkpoint
        File from which an interrupted run continues; removed at the end.

    Raises
    ------
    ParameterError
        If the batch is larger than the data set, a patch does not divide the images, or the
        checkpoint is damaged or of another run.
    RuntimeError
        If the loss is no longer finite.
    """
    task = task_of(images, model, settings)
    count = len(images.train)
    require(
        settings.batch <= count, "batch", settings.batch, f"at most {count}, the images there are"
    )
    if orders is None:
        orders = np.broadcast_to(np.arange(task.shape.D), (len(seeds), task.shape.D))
    runs = _Runs(task, images.train, tuple(seeds), np.asarray(orders))
    file = None
    if checkpoint is not None:
        described = (repr(task), State._fields, runs.seeds)
        mark = fingerprint(described, runs.orders, images.train.pixels, images.train.labels)
        file = Checkpoint(checkpoint, mark, _CHECKPOINT_SECONDS)
    trees, losses, seconds = runs.train([start(task, seed) for seed in seeds], file, progress)
    errors, attention = zip(
        *(
            evaluate(task, tree, order, getattr(images, tested))
            for tree, order in zip(trees, runs.orders)
        )
    )
    if file is not None:
        file.path.unlink(missing_ok=True)
    return Trained(
        task,
        runs.seeds,
        runs.orders,
        jax.tree.map(lambda *leaves: np.stack(leaves), *trees),
        losses,
        np.array(errors),
        None if attention[0] is None else np.stack(attention),
        seconds,
    )


def task_of(images: ImageSet, model: Model, settings: Settings) -> Task:
    """Return the task of a model on a data set."""
    pixels = images.train.pixels
    rows, columns = grid_of(pixels.shape, model.patch)
    shape = Shape(rows * columns, model.patch**2 * pixels.shape[3], images.classes)
    return Task(model, shape, (rows, columns), settings)


def rates(settings: Settings) -> np.ndarray:
    """Return the learning rate of every step (steps,)."""
    number = np.arange(settings.steps)
    warm_up = max(settings.steps // 10, 1)
    fraction = np.clip((number - warm_up) / max(settings.steps - warm_up, 1), 0.0, 1.0)
    rise = np.minimum((number + 1) / warm_up, 1.0)
    return settings.rate * rise * 0.5 * (1.0 + np.cos(np.pi * fraction))


def batches(seed: int, count: int, settings: Settings) -> np.ndarray:
    """Return the indices of the images of every step (steps, batch): each once per epoch."""
    rng = rng_at(seed, 1)
    per_epoch = count // settings.batch
    epochs = -(-settings.steps // per_epoch)
    sampled = [rng.permutation(count)[: per_epoch * settings.batch] for _ in range(epochs)]
    return np.concatenate(sampled).reshape(-1, settings.batch)[: settings.steps].astype(np.int32)


def start(task: Task, seed: int) -> Tree:
    """Return the initial parameters of a seed, in double precision."""
    return initial(task.model, task.shape, rng_at(seed, 0))


def step(task: Task, state: State, gradient: np.ndarray, rate: Any, steps_done: int) -> State:
    """Return the state after a step of AdamW along the clipped gradient."""
    direction, moments = adam(clipped(gradient, 1.0), state.moments, steps_done, (0.9, 0.99))
    decay = task.settings.decay * _decays(task) * state.parameters
    return State(state.parameters - rate * (direction + decay), moments)


@lru_cache(maxsize=16)
def _decays(task: Task) -> np.ndarray:
    """Return 1 for each parameter that decays, an entry of a matrix other than P, and 0 else."""
    tree = {
        name: jax.tree.map(
            lambda leaf, name=name: np.full(
                leaf.shape, name not in ("P", "mask") and leaf.ndim == 2, np.float32
            ),
            branch,
        )
        for name, branch in start(task, 0).items()
    }
    return flatten(tree)


def flatten(tree: Tree) -> np.ndarray:
    """Return all numbers of a tree as one vector."""
    return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(tree)])


def unflatten(vector: np.ndarray, like: Tree) -> Tree:
    """Return a tree with the numbers of a vector and the shapes of another tree."""
    leaves, structure = jax.tree.flatten(like)
    parts = np.split(vector, np.cumsum([leaf.size for leaf in leaves])[:-1])
    return jax.tree.unflatten(
        structure, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves)]
    )


@lru_cache(maxsize=16)
def _compiled(task: Task) -> Any:
    """Return loss with gradient, compiled for one seed.

    On a CPU, a step per seed is faster than one step mapped over seeds (1.4 times at three seeds, 4
    times for the CNN). The optimizer is not compiled: it takes little time in NumPy, and compiling
    it too takes nearly twice as long.
    """
    return jax.jit(jax.value_and_grad(partial(loss, task)))


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
        second = first | {"P": first["P"][order] if permute_encodings else first["P"]}
        ends = []
        for tree, shown in ((first, np.arange(task.shape.D)), (second, order)):
            run = _Runs(task, images.train, (seed,), shown[None], np.float64)
            trees, losses, _ = run.train([tree])
            ends.append((trees[0]["P"], losses[0]))
    (P, losses), (permuted_P, permuted_losses) = ends
    difference = abs(P[order] - permuted_P)
    return float(abs(losses - permuted_losses).max()), float(difference.max())


class _Runs:
    """Runs of a task on training images, one per seed, with an order of the patches each."""

    def __init__(
        self,
        task: Task,
        images: Images,
        seeds: tuple[int, ...],
        orders: np.ndarray,
        dtype: Any = np.float32,
    ) -> None:
        self.task, self.seeds, self.orders, self.dtype = task, seeds, orders, dtype
        self.pixels, self.labels = images.pixels.astype(dtype), images.labels
        self.chosen = [batches(seed, len(images), task.settings) for seed in seeds]
        self.rates = rates(task.settings).astype(dtype)

    def batch(self, index: int, number: int) -> Batch:
        """Return the batch of a run at a step; it does not depend on the steps before."""
        order, chosen = self.orders[index], self.chosen[index][number]
        if order.ndim == 2:
            order = order[chosen]
        rng = rng_at(self.seeds[index], 2, number)
        return batch(self.task, self.pixels[chosen], self.labels[chosen], order, rng, augment=True)

    def train(
        self,
        trees: Sequence[Tree],
        file: Checkpoint | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> tuple[list[Tree], np.ndarray, float]:
        """Train from initial parameters, one tree per run.

        Returns
        -------
        tuple
            Parameters at the end, losses (seeds, steps), and processor time of a step.
        """
        vectors = [flatten(tree).astype(self.dtype) for tree in trees]
        states = [State(vector, initial_moments(vector)) for vector in vectors]
        steps = self.task.settings.steps
        losses, done = np.zeros((len(self.seeds), steps)), 0
        if file is not None and (stored := file.read()) is not None:
            losses, done = stored["losses"], int(stored["done"])
            leaves = [stored[f"leaf {n}"] for n in range(len(jax.tree.leaves(states)))]
            states = jax.tree.unflatten(jax.tree.structure(states), leaves)
        seconds = []
        for number in range(done, steps):
            clock = time.process_time()
            for index, state in enumerate(states):
                states[index], losses[index, number] = self._step(state, trees[0], index, number)
            seconds.append(time.process_time() - clock)
            if not np.isfinite(losses[:, number]).all():
                raise RuntimeError(f"the loss is no longer finite at step {number}")
            if progress is not None:
                progress((number + 1) / steps)
            if file is not None and file.is_due():
                arrays: dict[str, Any] = {"losses": losses, "done": number + 1}
                file.write(
                    arrays | {f"leaf {n}": leaf for n, leaf in enumerate(jax.tree.leaves(states))}
                )
        median = float(np.median(seconds or [0.0])) / len(self.seeds)
        return [unflatten(state.parameters, trees[0]) for state in states], losses, median

    def _step(self, state: State, like: Tree, index: int, number: int) -> tuple[State, float]:
        """Return the state of a run after a step, and the loss before it."""
        tree = unflatten(state.parameters, like)
        value, gradient = _compiled(self.task.without_settings)(tree, self.batch(index, number))
        with np.errstate(over="ignore", invalid="ignore"):  # the next loss is not finite then
            after = step(self.task, state, flatten(gradient), self.rates[number], number)
        return after, float(value)
