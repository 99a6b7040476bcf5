"""What is drawn in ``figures/gaussian_patches.py``."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray

from dynamics.positional.baselines.gaussian_patches import (
    Matching,
    Student,
    Task,
    association,
    match_to_sets,
    softmax,
    train,
)


class Architecture(NamedTuple):
    """A student on a task, how it is trained, and with which seeds."""

    name: str
    task: Task
    student: Student
    rate: float
    steps: int
    seeds: tuple[int, ...]


def gather(
    architectures: Sequence[Architecture],
    batch: int,
    records: int,
    progress: Callable[[float], None],
) -> xarray.Dataset:
    """Train every architecture with its seeds; return errors, measures of P^T P, and matrices."""
    most = max(len(one.seeds) for one in architectures)
    shape = (len(architectures), most)
    D = architectures[0].task.D
    error, linear, share, auc, chance = (np.full(shape, np.nan) for _ in range(5))
    matching = {name: np.full(shape, np.nan) for name in Matching._fields}
    course = np.full((*shape, records + 1), np.nan)
    step = np.zeros((len(architectures), records + 1))
    gram = np.full((len(architectures), D, D), np.nan)
    total, done = sum(len(one.seeds) * one.steps for one in architectures), 0
    for row, one in enumerate(architectures):
        for column, seed in enumerate(one.seeds):

            def follow(fraction: float, start: int = done, length: int = one.steps) -> None:
                progress((start + fraction * length) / total)

            run = train(
                one.task,
                one.student,
                steps=one.steps,
                rate=one.rate,
                seed=seed,
                batch=batch,
                records=records,
                progress=follow,
            )
            done += one.steps
            matrix = one.student.encodings_gram(run.parameters)
            error[row, column] = run.test_error[-1]
            linear[row, column] = run.linear_error
            share[row, column], auc[row, column] = association(matrix, one.task.C)
            for name, value in _matching(one, run.parameters)._asdict().items():
                matching[name][row, column] = value
            chance[row, column] = _matching(one, run.start).accuracy
            course[row, column] = run.test_error
            step[row] = run.step
            if column == 0:
                gram[row] = matrix
    per_seed = ("architecture", "run")
    return xarray.Dataset(
        {
            "error": (per_seed, error),
            "linear": (per_seed, linear),
            "share": (per_seed, share),
            "auc": (per_seed, auc),
            "accuracy at the start": (per_seed, chance),
            **{f"attention {name}": (per_seed, values) for name, values in matching.items()},
            "course": ((*per_seed, "record"), course),
            "step": (("architecture", "record"), step),
            "gram": (("architecture", "row", "column"), gram),
        },
        coords={"architecture": [one.name for one in architectures]},
        attrs={"C": architectures[0].task.C, "batch": batch},
    )


def _matching(one: Architecture, parameters: dict[str, Any]) -> Matching:
    """Match the attention to the sets, heads weighted by the norm of their values."""
    weights = np.linalg.norm(parameters["v"], axis=1)
    return match_to_sets(softmax(one.student.scores(parameters)), weights, one.task.C)
