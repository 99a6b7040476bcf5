"""Two attention layers that learn to retrieve a label from their context (arXiv 2511.01033).

The prompt consists of N pairs of an item and its label, and of the last item again as the query.
Attention is causal: a token attends to earlier tokens only. A token t = (x, p) is an item vector x
and a position vector p. The matrix M, with M^2 = -1, maps the position of an item to that of its
label. The first layer has scores t W1 t and appends its result to each token, h = (t, result). Then

    output = W3 (h_query, sum_s softmax_s(h_query W2 h_s) h_s),   loss = 1/2 E |output - label|^2.

Items and positions are d = 2 N + 2 orthonormal vectors each, rotated at random. Two implementations
share no code. `Entries` computes with all 28 d^2 entries and every rotation of the inputs.
`loss_of` computes with the 19 order parameters of Theorem 1 of Musat et al. and with inner products
of tokens only, for any N.
"""

from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Real, or complex for derivatives by complex steps.
Array = NDArray[Any]
#: Names of the 19 order parameters. W1 is a1 I on items and a2 I + a3 M on positions. W2 has blocks
#: from the query to the key, and each of the two is a token's own part or the result of the first
#: layer (own-own, own-result, result-own, result-result): b1 to b4 I on items, b5 to b8 I and b9 to
#: b12 M on positions. W3 returns items: g1 and g2 times own part and result of the query, g3 and g4
#: times own part and result of the tokens that the query attends to.
NAMES = ("a1", "a2", "a3", *(f"b{i}" for i in range(1, 13)), "g1", "g2", "g3", "g4")
#: The order parameters that form the induction head according to the paper.
HEAD = ("a3", "b2", "g3")
#: Imaginary step of a derivative. It may be tiny, because no difference is computed.
_STEP = 1e-100


def loss_of(N: int, numbers: ArrayLike) -> Array:
    """Return the loss at order parameters in the order of `NAMES`, (..., 19) -> (...).

    Tokens enter by their inner products: items and positions are orthonormal, except that the query
    repeats the last item. The loss is analytic, and complex order parameters are allowed.
    """
    x = np.asarray(numbers, complex)
    a, b, g = x[..., :3], x[..., 3:15, None], x[..., 15:, None]
    T, query = 2 * N + 1, 2 * N
    same = np.eye(T)  # inner products of items
    same[query, query - 2] = same[query - 2, query] = 1.0
    rotated = np.zeros((T, T))  # p_t M p_s: 1 where t is the label of the item s
    for item in range(0, query, 2):
        rotated[item + 1, item], rotated[item, item + 1] = 1.0, -1.0
    a1, a2, a3 = (a[..., i, None, None] for i in range(3))
    first = _softmax(a1 * same + a2 * np.eye(T) + a3 * rotated, np.tri(T, k=-1))
    last = first[..., query, :]  # attention of the query in the first layer

    def scores(inner: Array) -> tuple[Array, ...]:
        own, result = inner[query], last @ inner
        return (
            np.broadcast_to(own, result.shape),
            np.einsum("t,...st->...s", own, first),
            result,
            np.einsum("...t,...st->...s", result, first),
        )

    terms = (*scores(same), *scores(np.eye(T)), *scores(rotated))
    score = sum(b[..., i, :] * term for i, term in enumerate(terms))
    second = _softmax(score, np.arange(T) < query)
    tokens = np.eye(T)[:, :query]  # the item vector of each token
    tokens[query, query - 2] = 1.0
    output = (
        g[..., 0, :] * tokens[query]
        + g[..., 1, :] * (last @ tokens)
        + g[..., 2, :] * (second @ tokens)
        + g[..., 3, :] * np.einsum("...s,...st->...t", second, first) @ tokens
    )
    return np.asarray(0.5 * ((output - np.eye(query)[query - 1]) ** 2).sum(axis=-1))


def slopes_of(N: int, numbers: ArrayLike) -> Array:
    """Return the derivative of the loss in each order parameter (19,), up to rounding.

    An order parameter is the value of d entries, and the derivative in each of them is 1/d of this
    one. Gradient flow of the entries for time d t is therefore the flow along these slopes for
    time t.
    """
    x = np.asarray(numbers, float)
    return np.asarray(loss_of(N, x + 1j * _STEP * np.eye(len(NAMES))).imag / _STEP)


def _softmax(score: Array, mask: ArrayLike) -> Array:
    """Return the softmax along the last axis over the entries of a mask; 0 if it is empty."""
    shift = np.where(mask, score.real, -np.inf).max(axis=-1, keepdims=True, initial=-1e300)
    raised = np.where(mask, np.exp(np.where(mask, score - shift, 0.0)), 0.0)
    total = raised.sum(axis=-1, keepdims=True)
    return np.asarray(raised / np.where(total == 0.0, 1.0, total))


class Entries:
    """Model with every entry of W1 (2 d, 2 d), W2 (4 d, 4 d) and W3 (d, 8 d), as one vector.

    The mean over rotated inputs uses finite subgroups of O(d) for items and of U(d / 2) for
    positions: signed cyclic permutations and, for positions, also the quarter turn M. They have the
    same invariants as the full groups. `orbits` counts these by characters, and `fixed` projects
    onto them.

    Parameters
    ----------
    N
        Number of pairs in the prompt.
    """

    def __init__(self, N: int) -> None:
        self.N, self.d = N, 2 * N + 2
        d, T = self.d, 2 * N + 1
        self.shapes = ((2 * d, 2 * d), (4 * d, 4 * d), (d, 8 * d))
        self.size = sum(rows * columns for rows, columns in self.shapes)
        items = _monomials(d, (1, 1, 1, 1)).real
        turns = _as_real(_monomials(d // 2, (1, 1), quarter=True))
        item_of = [*range(2 * N), 2 * N - 2]  # item of each token: the query repeats the last one
        self.turns = [(x, p) for x, p in product(items, turns)]
        self.tokens = np.array(
            [np.concatenate([x[:, item_of], p[:, :T]]).T for x, p in self.turns]
        )  # (turns, T, 2 d)
        self.label = np.array([x[:, 2 * N - 1] for x, _ in self.turns])

    def split(self, entries: ArrayLike) -> list[Array]:
        """Return W1, W2 and W3."""
        ends = np.cumsum([rows * columns for rows, columns in self.shapes])[:-1]
        return [w.reshape(s) for w, s in zip(np.split(np.asarray(entries), ends), self.shapes)]

    def loss(self, entries: ArrayLike) -> complex:
        """Return the risk; complex entries are allowed."""
        return complex(0.5 * (self._forward(entries)[-1] ** 2).sum() / len(self.tokens))

    def _forward(self, entries: ArrayLike) -> tuple[Array, ...]:
        """Return first attention, h, second attention, the input of W3, and output - label."""
        w1, w2, w3 = self.split(entries)
        t = self.tokens
        score = t @ w1 @ t.transpose(0, 2, 1)
        first = np.zeros_like(score)  # the first token attends to nothing
        first[:, 1:] = _attention(np.where(np.tri(t.shape[1], k=-1)[1:], score[:, 1:], -np.inf))
        h = np.concatenate([t, first @ t], axis=2)
        second = _attention(np.einsum("ci,ij,ctj->ct", h[:, -1], w2, h[:, :-1], optimize=True))
        given = np.concatenate([h[:, -1], np.einsum("ct,cti->ci", second, h[:, :-1])], axis=1)
        return first, h, second, given, given @ w3.T - self.label

    def gradient(self, entries: ArrayLike) -> Array:
        """Return the derivative of the risk in every entry, by backpropagation."""
        _, w2, w3 = self.split(np.asarray(entries, float))
        first, h, second, given, error = self._forward(np.asarray(entries, float))
        query, keys, width = h[:, -1], h[:, :-1], h.shape[2]
        error = error / len(self.tokens)
        pull = error @ w3
        on_query, on_keys = pull[:, :width], pull[:, width:]
        weight = np.einsum("ci,cti->ct", on_keys, keys)
        weight = second * (weight - (second * weight).sum(axis=1, keepdims=True))
        weighted = np.einsum("ct,cti->ci", weight, keys)
        on_h = np.empty_like(h)
        projected = (query @ w2)[:, None]
        on_h[:, :-1] = second[..., None] * on_keys[:, None] + weight[..., None] * projected
        on_h[:, -1] = on_query + weighted @ w2.T
        back = on_h[:, :, width // 2 :] @ self.tokens.transpose(0, 2, 1)
        back = first * (back - (first * back).sum(axis=2, keepdims=True))
        slope = np.tensordot(self.tokens, back @ self.tokens, axes=((0, 1), (0, 1)))
        return np.concatenate([x.ravel() for x in (slope, query.T @ weighted, error.T @ given)])

    @cached_property
    def lift(self) -> Array:
        """Matrix (entries, 19) from order parameters to entries: its columns are blocks I and M."""
        d, columns = self.d, []
        eye, turn = np.eye(d), np.kron(np.eye(d // 2), [[0.0, -1.0], [1.0, 0.0]])
        blocks = [(0, 0, 0, eye), (0, 1, 1, eye), (0, 1, 1, turn)]
        items = tuple(product((0, 2), (0, 2)))  # own part or result; positions follow items
        blocks += [(1, i, j, eye) for i, j in items]
        blocks += [(1, i + 1, j + 1, w) for w in (eye, turn) for i, j in items]
        blocks += [(2, 0, i, eye) for i in (0, 2, 4, 6)]
        for matrix, i, j, block in blocks:
            matrices = [np.zeros(shape) for shape in self.shapes]
            matrices[matrix][i * d : (i + 1) * d, j * d : (j + 1) * d] = block
            columns.append(np.concatenate([x.ravel() for x in matrices]))
        return np.array(columns).T

    @cached_property
    def orbits(self) -> int:
        """Dimension of the space of entries that every rotation fixes: the mean of a character."""
        x = np.array([np.trace(x) for x, _ in self.turns])
        v = x + np.array([np.trace(p) for _, p in self.turns])
        return round(float((v**2 + 4.0 * v**2 + 4.0 * x * v).mean()))

    def fixed(self, entries: ArrayLike) -> Array:
        """Return the projection of entries on those that every rotation fixes."""
        item, position = (np.array(rows) for rows in zip(*self.turns))
        token = np.zeros((len(item), 2 * self.d, 2 * self.d))
        token[:, : self.d, : self.d], token[:, self.d :, self.d :] = item, position
        means = []
        for matrix, left in zip(self.split(np.asarray(entries, float)), (token, token, item)):
            shape = (-1, left.shape[1], matrix.shape[1] // token.shape[1], token.shape[1])
            blocks = matrix.reshape(shape).swapaxes(1, 2)
            back = token.transpose(0, 2, 1)
            fixed = [[(left @ block @ back).mean(axis=0) for block in row] for row in blocks]
            means.append(np.block(fixed).ravel())
        return np.concatenate(means)


def _attention(score: Array) -> Array:
    """Return the softmax along the last axis; scores of masked tokens are -inf."""
    raised = np.exp(score - score.real.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _monomials(n: int, word: tuple[int, ...], *, quarter: bool = False) -> Array:
    """Return a group of signed cyclic permutation matrices, (elements, n, n).

    The signs are -1 on sums modulo 2 of cyclic shifts of a code word. Any two coordinates differ in
    some sign, and the cyclic permutations are transitive. By Schur's lemma only multiples of the
    identity commute with the group.

    Parameters
    ----------
    n
        Size of the matrices.
    word
        First digits of the code word; the others are 0.
    quarter
        Whether the group contains the multiples by i.
    """
    shifts = [np.roll(np.pad(word, (0, n - len(word))), k) for k in range(n)]
    codes = {(0,) * n}
    for shift in shifts:
        codes |= {tuple((np.array(code) + shift) % 2) for code in codes}
    signs = (-1.0) ** np.array(sorted(codes))
    # i^2 = -1 may already be one of the signs
    phases = 1j ** np.arange((2 if (1,) * n in codes else 4) if quarter else 1)
    cycles = [np.roll(np.eye(n), k, axis=0) for k in range(n)]
    return np.array([i * s[:, None] * cycle for i in phases for s in signs for cycle in cycles])


def _as_real(matrices: Array) -> Array:
    """Return complex n x n matrices as real matrices of twice the size; i is [[0, -1], [1, 0]]."""
    i = np.array([[0.0, -1.0], [1.0, 0.0]])
    return np.array([np.kron(m.real, np.eye(2)) + np.kron(m.imag, i) for m in matrices])
