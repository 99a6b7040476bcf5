"""One step of full-Q gradient descent: ours in NumPy, against PyTorch autograd of the raw loss.

P = 10 patches, two clusters, all 252 masks; the reduced step of one query is there for scale.
"""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.masked.oracle import FullMaskedModel
from tests.closeness import close

PROBLEM = MaskedProblem.from_sizes([5, 3, 2], [4, 4, 2], query=6, seed=1, mask_ratio=0.5)


def torch_images(problem: MaskedProblem) -> tuple[Any, Any, Any, int]:
    """All targets, visible values, masks and the dimension, as tensors, written independently."""
    import torch

    assert problem.partitions is not None
    P = problem.P
    d = P + sum(len(areas) for areas in problem.partitions)
    targets, masks, column = [], [], P
    for areas in problem.partitions:
        X = torch.zeros(P, d, dtype=torch.float64)
        for area in areas:
            X[list(area), column] = problem.z_low
            column += 1
        for mask in combinations(range(P), problem.masked):
            hidden = torch.zeros(P, 1, dtype=torch.float64)
            hidden[list(mask)] = 1.0
            targets.append(X)
            masks.append(hidden)
    target, hidden = torch.stack(targets), torch.stack(masks)
    return target, target * (1.0 - hidden), hidden, d


def raw_loss(target: Any, seen: Any, hidden: Any, Q: Any, patch: int | None = None) -> Any:
    """L(Q), or the share of one query patch."""
    import torch

    P = target.shape[1]
    tokens = seen + torch.eye(P, Q.shape[0], dtype=torch.float64)
    weights = torch.softmax(tokens @ Q @ tokens.transpose(1, 2), dim=2)
    losses = 0.5 * (((target - weights @ seen) * hidden) ** 2).sum(dim=2).mean(dim=0)
    return losses.sum() if patch is None else losses[patch]


def torch_loss(problem: MaskedProblem, state: np.ndarray) -> tuple[Any, Any]:
    """The query's raw loss at a state and the Q that it is a function of."""
    import torch

    assert problem.partitions is not None
    target, seen, hidden, d = torch_images(problem)
    Q = torch.zeros(d, d, dtype=torch.float64)
    values = dict(zip(problem.order_parameters, state.tolist()))
    features = [name for name in problem.order_parameters if name.startswith("Phi")]
    for i, name in enumerate(features):
        Q[problem.patch, problem.P + i] = values[name]
    for q in range(problem.P):
        where = [next(m for m, a in enumerate(areas, 1) if q in a) for areas in problem.partitions]
        name = "self" if q == problem.patch else "_".join(map(str, where))
        Q[problem.patch, q] = values[f"Upsilon_{name}"]
    Q.requires_grad_(True)
    return raw_loss(target, seen, hidden, Q, problem.patch), Q


def dense(d: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(d, d))


def test_numpy_full_step(benchmark: Any) -> None:
    model = FullMaskedModel(PROBLEM)
    losses, dQ = benchmark(model.evaluate, dense(model.dimension))
    assert dQ.shape == (16, 16)
    assert losses.shape == (10,)


def test_torch_full_step(benchmark: Any) -> None:
    torch = pytest.importorskip("torch")
    target, seen, hidden, d = torch_images(PROBLEM)
    start = dense(d)

    def step() -> tuple[float, Any]:
        Q = torch.tensor(start, requires_grad=True)
        loss = raw_loss(target, seen, hidden, Q)
        loss.backward()
        return loss.item(), Q.grad.numpy()

    loss, grad = benchmark(step)
    losses, dQ = FullMaskedModel(PROBLEM).evaluate(start)
    close(loss, losses.sum(), rel=1e-13)
    assert grad == pytest.approx(dQ, abs=1e-15)


def test_reduced_step(benchmark: Any) -> None:
    population = MaskedPopulation(PROBLEM)
    state = np.random.default_rng(0).normal(size=len(PROBLEM.order_parameters))
    assert np.isfinite(benchmark(population.gradient, state)).all()
