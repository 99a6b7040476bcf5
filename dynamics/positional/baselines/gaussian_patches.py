r"""One-layer attention on Gaussian patches with convolutional labels (Figure 2 of the paper).

Patches ``X_j ~ N(0, I_d)`` are independent: the data have no spatial structure. The label is the
sign of a one-hidden-layer CNN with cubic activation,

.. math:: y=\mathrm{sign} \sum_{\ell=1}^L \Big(\sum_{c=1}^C \langle w_c, X_{\ell,c}\rangle\Big)^3,

``X_{l,c}`` patch ``c`` of set ``S_l`` (contiguous blocks). The student is positional attention,

.. math:: F(X)=\sum_{i=1}^D\Big(\sum_{h=1}^H\sum_j S^{(h)}_{ij}\langle v_h,X_j\rangle\Big)^3,
   \qquad S^{(h)}=\mathrm{softmax}(A^{(h)})\text{ by rows},

trained with the logistic loss by Adam on fresh samples. The scores have one of three types:

- ``"gram"``: ``A = P^T P``, Simplification 3.1;
- ``"free"``: every off-diagonal entry of ``A`` is a parameter, the diagonal is fixed;
- ``"heads"``: :math:`A^{(h)}=P^\top Q_h K_h^\top P/\sqrt{m}`, Definition 3.2 with ``P`` (m, D).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize
from scipy.cluster import hierarchy

from dynamics.core.adam import Moments, adam, initial_moments
from dynamics.core.checks import require

Array = NDArray[np.float64]
Parameters = dict[str, Array]

SCORE_TYPES = ("gram", "free", "heads")
#: Default number of samples of :func:`linear_level`.
_LEVEL_SAMPLES = 2_000_000


@dataclass(frozen=True)
class Task:
    """Distribution of the data.

    Attributes
    ----------
    D, C, d
        Number of patches, size of a set, and dimension of a patch.
    shared_filter
        Whether all positions of a set have the same filter ``w_c``.
    """

    D: int
    C: int
    d: int
    shared_filter: bool

    def __post_init__(self) -> None:
        require(self.D >= 2, "D", self.D, "at least 2")
        require(1 <= self.C <= self.D, "C", self.C, f"between 1 and D = {self.D}")
        require(self.D % self.C == 0, "C", self.C, f"a divisor of D = {self.D}")
        require(self.d >= 1, "d", self.d, "at least 1")

    def filters(self, rng: np.random.Generator) -> Array:
        """Return random unit filters (C, d), all equal if they are shared."""
        w = rng.normal(size=(1 if self.shared_filter else self.C, self.d))
        w /= np.linalg.norm(w, axis=1, keepdims=True)
        return np.repeat(w, self.C, axis=0) if self.shared_filter else w

    def sample(
        self, filters: Array, count: int, rng: np.random.Generator
    ) -> tuple[Array, NDArray[np.float64]]:
        """Return random images ``X`` (count, D, d) and their labels (count,)."""
        X = rng.standard_normal((count, self.D, self.d))
        return X, self.labels(filters, X)

    def labels(self, filters: Array, X: Array) -> Array:
        """Return the label of each image."""
        hidden = self.hidden(filters, X)
        return np.where((hidden * hidden * hidden).sum(axis=1) > 0.0, 1.0, -1.0)

    def hidden(self, filters: Array, X: Array) -> Array:
        """Return the response of every set to the filters, (N, L)."""
        return np.asarray(X.reshape(len(X), -1, filters.size) @ filters.ravel())


@dataclass(frozen=True)
class Student:
    """Parametrization of the scores; see the module docstring.

    Attributes
    ----------
    score_type
        ``"gram"``, ``"free"`` or ``"heads"``.
    heads
        Number H of heads.
    encoding
        Dimension m of the positional encodings.
    init
        Size of the initial scores; for ``"free"`` their standard deviation.
    diagonal
        Fixed diagonal of ``"free"``.
    """

    score_type: str
    heads: int = 1
    encoding: int = 16
    init: float = 1.0
    diagonal: float = 0.0

    def __post_init__(self) -> None:
        valid = self.score_type in SCORE_TYPES
        require(valid, "score_type", self.score_type, f"one of {', '.join(SCORE_TYPES)}")
        require(self.heads >= 1, "heads", self.heads, "at least 1")
        require(
            self.heads == 1 or self.score_type == "heads",
            "heads",
            self.heads,
            "1 unless score_type is heads",
        )

    def initial(self, task: Task, rng: np.random.Generator) -> Parameters:
        """Return random initial parameters: encodings of norm about ``init``, values of norm 1/10.

        Ten times larger values fit the linear part of the labels at once, and training often
        remains there.
        """
        D, d, m, H = task.D, task.d, self.encoding, self.heads
        parameters = {"v": rng.normal(size=(H, d)) * (0.1 / math.sqrt(d))}
        if self.score_type == "free":
            A = rng.normal(size=(D, D)) * self.init
            np.fill_diagonal(A, self.diagonal)
            return parameters | {"A": A}
        parameters["P"] = rng.normal(size=(m, D)) * (self.init / math.sqrt(m))
        if self.score_type == "heads":
            for name in ("Q", "K"):
                parameters[name] = rng.normal(size=(H, m, m)) / math.sqrt(m)
        return parameters

    def scores(self, parameters: Parameters) -> Array:
        """Return the scores ``A`` (H, D, D)."""
        if self.score_type == "free":
            return parameters["A"][None]
        P = parameters["P"]
        if self.score_type == "gram":
            return (P.T @ P)[None]
        queries, keys = P.T @ parameters["Q"], P.T @ parameters["K"]
        return np.asarray(queries @ keys.transpose(0, 2, 1) / math.sqrt(len(P)))

    def scores_gradient(self, parameters: Parameters, dA: Array) -> Parameters:
        """Return the gradient in the parameters of the scores, given ``dA`` (H, D, D)."""
        if self.score_type == "free":
            dA = dA[0].copy()
            np.fill_diagonal(dA, 0.0)
            return {"A": dA}
        P = parameters["P"]
        if self.score_type == "gram":
            return {"P": P @ (dA[0] + dA[0].T)}
        Q, K = parameters["Q"], parameters["K"]
        dA = dA / math.sqrt(len(P))
        left, right = P @ dA, P @ dA.transpose(0, 2, 1)  # (H, m, D)
        dP = (Q @ (K.transpose(0, 2, 1) @ right) + K @ (Q.transpose(0, 2, 1) @ left)).sum(axis=0)
        return {"Q": left @ P.T @ K, "K": right @ P.T @ Q, "P": dP}

    def encodings_gram(self, parameters: Parameters) -> Array:
        """Return ``P^T P`` (D, D), or ``A`` for ``"free"``."""
        if self.score_type == "free":
            return parameters["A"]
        return np.asarray(parameters["P"].T @ parameters["P"])


def softmax(A: Array) -> Array:
    """Return the softmax along the last axis."""
    shift = np.max(A.real, axis=-1, keepdims=True)
    weights = np.exp(A - shift)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def output(student: Student, parameters: Parameters, X: Array) -> Array:
    """Return ``F`` (N,) for images ``X`` (N, D, d)."""
    S = softmax(student.scores(parameters))
    U = _values(parameters["v"], X)
    O = sum(u @ s.T for u, s in zip(U, S))  # noqa: E741 - the paper's name
    return np.asarray((O * O * O).sum(axis=1))


def _values(v: Array, X: Array) -> Array:
    """Return ``<v_h, X_j>`` (H, N, D)."""
    U = X.reshape(-1, X.shape[2]) @ v.T
    return np.ascontiguousarray(U.reshape(len(X), X.shape[1], -1).transpose(2, 0, 1))


def loss_and_gradient(
    student: Student, parameters: Parameters, X: Array, y: Array
) -> tuple[float, Parameters]:
    """Return the mean logistic loss of a batch and its gradient, one array per parameter."""
    N = len(X)
    S = softmax(student.scores(parameters))
    U = _values(parameters["v"], X)
    O = sum(u @ s.T for u, s in zip(U, S))  # noqa: E741 - the paper's name
    margin = y * (O * O * O).sum(axis=1)
    small = np.exp(-np.abs(margin))
    loss = float((np.log1p(small) + np.maximum(-margin, 0.0)).mean())
    wrong = np.where(margin > 0.0, small, 1.0) / (1.0 + small)  # sigmoid(-yF)
    G = (-(y * wrong) / N)[:, None] * (3.0 * O * O)  # dL/dO, (N, D)
    dS = np.stack([G.T @ u for u in U])
    dA = S * (dS - (S * dS).sum(axis=2, keepdims=True))
    dv = np.stack([(G @ s).ravel() @ X.reshape(-1, X.shape[2]) for s in S])
    return loss, {"v": dv} | student.scores_gradient(parameters, dA)


def adam_step(
    parameters: Parameters,
    gradient: Parameters,
    moments: dict[str, Moments],
    done: int,
    rate: float,
) -> tuple[Parameters, dict[str, Moments]]:
    """Return the parameters and the moments of Adam after step number ``done``."""
    new_parameters, new_moments = {}, {}
    for name, value in parameters.items():
        direction, new_moments[name] = adam(gradient[name], moments[name], done)
        new_parameters[name] = value - rate * direction
    return new_parameters, new_moments


@dataclass(frozen=True)
class Result:
    """A trained student.

    Attributes
    ----------
    task, student, filters
        Arguments, and the filters of the labels.
    start, parameters
        Parameters at the start and at the end.
    step, test_error
        Recorded steps, and the test error at these steps, (T,).
    linear_error
        Error of the best linear rule, ``sign(sum_j <w_j, X_j>)``, on the test set.
    """

    task: Task
    student: Student
    filters: Array
    start: Parameters
    parameters: Parameters
    step: NDArray[np.int64]
    test_error: Array
    linear_error: float


def train(
    task: Task,
    student: Student,
    *,
    steps: int,
    rate: float,
    seed: int,
    batch: int = 1024,
    test: int = 20_000,
    records: int = 30,
    progress: Callable[[float], None] = lambda fraction: None,
) -> Result:
    """Train with Adam on fresh samples, with a cosine schedule from ``rate`` to 0.

    Parameters
    ----------
    task, student
        Data and parametrization.
    steps, rate, batch
        Number of steps, initial learning rate, and samples per step.
    seed, test, records
        Root seed, number of test samples, and number of intervals between records.
    progress
        Called with the completed fraction.
    """
    require(steps >= 1, "steps", steps, "at least 1")
    seeds = np.random.SeedSequence(seed).spawn(4)
    rng_filters, rng_start, rng_batches, rng_test = map(np.random.default_rng, seeds)
    filters = task.filters(rng_filters)
    parameters = student.initial(task, rng_start)
    start = parameters
    X_test, y_test = task.sample(filters, test, rng_test)
    linear = task.hidden(filters, X_test).sum(axis=1)
    moments = {name: initial_moments(value) for name, value in parameters.items()}
    recorded = np.unique(np.linspace(0, steps, records + 1).astype(int))
    errors: list[float] = []
    for step in range(steps + 1):
        if step in recorded:
            wrong = output(student, parameters, X_test) * y_test <= 0.0
            errors.append(float(np.mean(wrong)))
            progress(step / steps)
        if step < steps:
            X, y = task.sample(filters, batch, rng_batches)
            _, gradient = loss_and_gradient(student, parameters, X, y)
            step_rate = rate * 0.5 * (1.0 + math.cos(math.pi * step / steps))
            parameters, moments = adam_step(parameters, gradient, moments, step, step_rate)
    return Result(
        task,
        student,
        filters,
        start,
        parameters,
        recorded,
        np.array(errors),
        float(np.mean(linear * y_test <= 0.0)),
    )


def association(gram: Any, C: int) -> tuple[float, float]:
    """Return two measures of the agreement of ``P^T P`` (D, D) with contiguous sets of size C.

    Returns
    -------
    share : float
        Fraction of rows with Top_C equal to their set, diagonal included (Definition 2.2).
    auc : float
        Probability that a pair in one set has a larger entry than a pair in two sets (area under
        the ROC curve: 1/2 for a random matrix).
    """
    gram = np.asarray(gram, dtype=float)
    D = len(gram)
    owner = np.arange(D) // C
    same = owner[:, None] == owner
    top = np.argsort(-gram, axis=1, kind="stable")[:, :C]
    share = float(np.mean((owner[top] == owner[:, None]).all(axis=1)))
    inside = gram[same & ~np.eye(D, dtype=bool)]
    across = gram[~same]
    above = (inside[:, None] > across).mean() + 0.5 * (inside[:, None] == across).mean()
    return share, float(above)


class Matching(NamedTuple):
    """Agreement of attention with the sets, up to a permutation of the rows.

    Attributes
    ----------
    own
        Fraction of the attention of a row to its own set.
    matched
        Fraction of the attention of a row to the set with the largest fraction.
    attended
        Fraction of the sets that have the largest fraction for some row.
    auc
        Area under the ROC curve for pairs within one set, by the similarity of columns.
    accuracy
        Fraction of correctly assigned patches after clustering the columns into L clusters and
        matching clusters to sets.
    """

    own: float
    matched: float
    attended: float
    auc: float
    accuracy: float


def match_to_sets(S: Any, weights: Any, C: int) -> Matching:
    r"""Match attention (H, D, D) of H heads of given weights (H,) to contiguous sets of size C.

    Row i mixes the patches with weights :math:`M_{ij}=\sum_h w_h S^{(h)}_{ij}/\sum_h w_h`. The
    model sums over rows, so that the order of the rows does not matter. Two patches are similar if
    the same rows attend to them, measured by the cosine of the centred columns of M. Average
    linkage groups them into L clusters, and an optimal assignment matches the clusters to the sets.
    """
    S, weights = np.asarray(S, dtype=float), np.asarray(weights, dtype=float)
    M = np.tensordot(weights / weights.sum(), S, axes=1)
    D = len(M)
    L, owner = D // C, np.arange(D) // C
    per_set = M.reshape(D, L, C).sum(axis=2)
    columns = M - M.mean(axis=0)
    columns = columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    similarity = columns.T @ columns
    distance = np.maximum(1.0 - similarity, 0.0)
    pairs = distance[np.triu_indices(D, 1)]
    clusters = hierarchy.fcluster(hierarchy.linkage(pairs, "average"), L, "maxclust") - 1
    together = np.zeros((L, L))
    np.add.at(together, (clusters, owner), 1.0)
    best = optimize.linear_sum_assignment(-together)
    return Matching(
        float(per_set[np.arange(D), owner].mean()),
        float(per_set.max(axis=1).mean()),
        float(np.unique(per_set.argmax(axis=1)).size / L),
        association(similarity, C)[1],
        float(together[best].sum() / D),
    )


def linear_level(L: int, rng: np.random.Generator, count: int = _LEVEL_SAMPLES) -> float:
    """Estimate the error of the best linear rule from ``count`` samples.

    It is P[sign(sum n) != sign(sum n^3)] for L standard normal numbers n.
    """
    n = rng.standard_normal((count, L))
    return float(np.mean(n.sum(axis=1) * (n**3).sum(axis=1) <= 0.0))
