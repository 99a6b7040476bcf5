"""Attention diversity: reference values, invariances, and comparison with the definition."""

import numpy as np
import pytest

from dynamics.core.errors import ParameterError
from dynamics.masked.diversity import attention_diversity
from tests.closeness import close, within

N, P = 14, 196
ROW, COLUMN = np.divmod(np.arange(P), N)


def by_definition(attention: np.ndarray, side: int, n: int) -> float:
    """Return the mean distance, pair by pair."""
    vectors = []
    for row in attention:
        top = sorted(range(len(row)), key=lambda q: (-row[q], q))[:n]
        vectors.append([x for q in top for x in divmod(q, side)])
    pairs = [(i, j) for i in range(len(vectors)) for j in range(i)]
    return float(np.mean([np.linalg.norm(np.subtract(vectors[i], vectors[j])) for i, j in pairs]))


def test_equals_definition() -> None:
    maps = np.random.default_rng(0).random((2, 3, 25, 25))
    diversity = attention_diversity(maps, n=4)
    assert diversity.shape == (2, 3)
    close(diversity, np.array([[by_definition(m, 5, 4) for m in row] for row in maps]), rel=1e-12)


class TestReferenceValues:
    rng = np.random.default_rng(1)

    def test_identical_maps(self) -> None:
        within(attention_diversity(np.tile(self.rng.random(P), (3, P, 1))), 0.0, 1e-12)

    def test_random_attention(self) -> None:
        within(attention_diversity(self.rng.random((12, P, P))).mean(), 25.3, 0.2)

    def test_attention_to_own_block(self) -> None:
        block = (ROW // 5) * N + COLUMN // 5
        inside = block[:, None] == block
        maps = inside + self.rng.random((6, P, P)) * np.where(inside, 1.0, 0.5)
        within(attention_diversity(maps).mean(), 23.8, 0.2)

    def test_one_shared_region_in_random_order(self) -> None:
        region = (ROW < 10) & (COLUMN < 4)
        maps = region * (1.0 + self.rng.random((6, P, P)))
        within(attention_diversity(maps).mean(), 13.8, 0.2)


def test_depends_on_order_of_weights_only() -> None:
    logits = np.random.default_rng(2).normal(size=(16, 16))
    weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert attention_diversity(weights, n=5) == attention_diversity(logits, n=5)


def test_accepts_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    maps = torch.softmax(torch.randn(2, 9, 9), dim=-1)
    assert attention_diversity(maps, n=3).shape == (2,)


@pytest.mark.parametrize(
    ("attention", "n", "message"),
    [
        (np.ones((4, 9)), 1, "of shape"),
        (np.ones((8, 8)), 1, "N >= 2"),
        (np.full((4, 4), np.nan), 1, "finite"),
        (np.ones((4, 4)), 5, "an integer from 1 to 4"),
        (np.ones((4, 4)), True, "an integer"),
        ([["a"]], 1, "real numbers"),
        (np.ones((4, 4), complex), 1, "real numbers"),
    ],
)
def test_rejects_bad_input(attention: object, n: int, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        attention_diversity(attention, n=n)
