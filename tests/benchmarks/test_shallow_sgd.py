"""SGD of the shallow transformer at the size of the slides, compared with NumPy and PyTorch.

N = 200 samples of L = 60 tokens (30 relevant, 3 confusion), M = 5 patterns, m = 100 neurons,
batches of 50, 100 steps. A sample-gradient on counts is about 3 M^2 m = 7500 multiplications and
additions; on tokens of dimension d = 10 it is about 3 L d (m + 3 L) = 504,000. The peers compute
the same run: NumPy on counts (vectorised over the batch), NumPy and PyTorch on tokens.
"""

import numpy as np
import pytest

from dynamics.shallow import ShallowProblem, draw_tokens, train_on_counts, train_on_tokens

PROBLEM = ShallowProblem(L=60, alpha_relevant=0.5, alpha_confusion=0.05, neurons=100)
STEPS, B, N, d = 100, 50, 200, 10
RATES = 0.12, 3.6
ROUNDS = dict(rounds=5, iterations=1, warmup_rounds=1)


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.normal(size=(d, 5)))[0]
    tokens = draw_tokens(PROBLEM, N, rng, patterns=U)
    m = PROBLEM.neurons
    half = np.sqrt(0.5)
    weights = dict(
        W_O=rng.normal(size=(m, d)) / np.sqrt(m),
        W_V=np.eye(d) + 0.1 * rng.normal(size=(d, d)) / np.sqrt(d),
        W_K=half * np.eye(d) + 0.2 * rng.normal(size=(d, d)) / np.sqrt(d),
        W_Q=half * np.eye(d) + 0.2 * rng.normal(size=(d, d)) / np.sqrt(d),
        a=np.where(np.arange(m) % 2, -1.0, 1.0) / np.sqrt(m),
    )
    return tokens, U, weights, rng.integers(0, N, (STEPS, B))


def on_counts(tokens, U, weights):
    counts = np.array([np.bincount(row, minlength=5) for row in tokens.pattern])
    start = {name: weights[f"W_{name}"] @ U for name in "VKQ"}
    return counts, tokens.labels, start | {name: weights[name] for name in ("W_O", "a")}


def with_numpy(counts, y, weights, batches):
    """The same run in NumPy on counts, all samples of a batch at once."""
    f, a = counts / counts.sum(axis=1, keepdims=True), weights["a"]
    W, V, K, Q = (weights[name] for name in ("W_O", "V", "K", "Q"))
    for batch in batches:
        A, H, F = K.T @ Q, W @ V, f[batch]
        P = F[:, :, None] * np.exp(A - A.max(axis=0))
        P /= P.sum(axis=1, keepdims=True)
        z = H @ P
        gates = a[:, None] * (z > 0.0)
        outputs = np.sum(np.sum(gates * z, axis=1) * F, axis=1)
        weight = y[batch] * (y[batch] * outputs < 1.0) / len(batch)
        back = gates * (weight[:, None] * F)[:, None, :]
        D = np.sum(back @ P.transpose(0, 2, 1), axis=0)
        h = H.T @ back
        G = np.sum(P * (h - np.sum(P * h, axis=1, keepdims=True)), axis=0)
        W, V = W + RATES[0] * D @ V.T, V + RATES[0] * W.T @ D
        K, Q = K + RATES[1] * Q @ G.T, Q + RATES[1] * K @ G
    return W


def with_torch(torch, tokens, weights, batches):
    """The same run in PyTorch on tokens, gradients by autograd."""
    X, y = torch.tensor(tokens.X), torch.tensor(tokens.labels)
    a = torch.tensor(weights["a"])
    moving = [
        torch.tensor(weights[name], requires_grad=True) for name in ("W_O", "W_V", "W_K", "W_Q")
    ]
    W, V, K, Q = moving
    sgd = torch.optim.SGD([dict(params=[W, V], lr=RATES[0]), dict(params=[K, Q], lr=RATES[1])])
    for batch in torch.tensor(batches):
        x = X[batch]
        P = torch.softmax((x @ K.T) @ (x @ Q.T).transpose(1, 2), dim=1)
        z = P.transpose(1, 2) @ x @ V.T @ W.T
        F = (torch.relu(z) @ a).mean(dim=1)
        sgd.zero_grad()
        torch.relu(1.0 - y[batch] * F).mean().backward()
        sgd.step()
    return W.detach().numpy()


@pytest.fixture(scope="module")
def reference(run):
    counts, y, start = on_counts(*run[:3])
    return train_on_counts(
        counts,
        y,
        **start,
        steps=STEPS,
        learning_rate=RATES[0],
        learning_rate_KQ=RATES[1],
        batches=run[3],
    ).W_O


@pytest.mark.benchmark(group="100 steps of SGD, N, L, m, B = 200, 60, 100, 50")
class TestShallowSGD:
    def compare(self, benchmark, reference, train):
        """Time a peer, and see that it computes the same."""
        assert np.abs(benchmark.pedantic(train, **ROUNDS) - reference).max() < 1e-9

    def test_patchdyn(self, benchmark, run, reference):
        counts, y, start = on_counts(*run[:3])
        self.compare(
            benchmark,
            reference,
            lambda: (
                train_on_counts(
                    counts,
                    y,
                    **start,
                    steps=STEPS,
                    learning_rate=RATES[0],
                    learning_rate_KQ=RATES[1],
                    batches=run[3],
                ).W_O
            ),
        )

    def test_numpy_on_counts(self, benchmark, run, reference):
        data = on_counts(*run[:3])
        self.compare(benchmark, reference, lambda: with_numpy(*data, run[3]))

    def test_numpy_on_tokens(self, benchmark, run, reference):
        tokens, _, weights, batches = run
        self.compare(
            benchmark,
            reference,
            lambda: (
                train_on_tokens(
                    tokens,
                    **weights,
                    steps=STEPS,
                    learning_rate=RATES[0],
                    learning_rate_KQ=RATES[1],
                    batches=batches,
                ).W_O
            ),
        )

    def test_torch_on_tokens(self, benchmark, run, reference):
        torch = pytest.importorskip("torch")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            self.compare(benchmark, reference, lambda: with_torch(torch, run[0], run[2], run[3]))
        finally:
            torch.set_num_threads(threads)
