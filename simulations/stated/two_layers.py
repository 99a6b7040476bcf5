"""Two layers of attention that should find a label in their context, with every entry of them.

N pairs of an item and its label, then the last item once more as the query; a token sees what
stands before it. A token t is (x, p), item and position; M p of an item is p of its label,
M^2 = -1. With h = (t, what the first layer's attention brings to t) and scores t W1 t and h W2 h,

    output = W3 (h_query, sum_s softmax_s(h_query W2 h_s) h_s),   loss = 1/2 E |output - label|^2.

Items and positions are d = 2 N + 2 orthonormal vectors each, turned at random. Two readings that
share no code: `Entries`, all 28 d^2 of them, for one turn of the inputs after another, and
`loss_of`, the 19 numbers of Musat et al. (arXiv 2511.01033, Theorem 1), by inner products of tokens
alone, for any N.
"""

from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Real, or complex where a loss is read off the real axis.
Array = NDArray[Any]
#: W1 = a1 I on items, a2 I + a3 M on positions. W2 by blocks, from what the query holds to what it
#: looks for, either of which is a token's own or brought (own-own, own-brought, brought-own,
#: brought-brought): b1 to b4 I on items, b5 to b8 I and b9 to b12 M on positions. W3 returns items:
#: g1, g2 of the query, own and brought, g3, g4 of what it sees.
NAMES = ("a1", "a2", "a3", *(f"b{i}" for i in range(1, 13)), "g1", "g2", "g3", "g4")
#: Those of which the paper says that they make the induction head.
HEAD = ("a3", "b2", "g3")
#: Step of a derivative along the imaginary axis: nothing is subtracted, so that none is too small.
_STEP = 1e-100


def loss_of(N: int, numbers: ArrayLike) -> Array:
    """Return the loss at 19 numbers in the order of `NAMES`, (..., 19) -> (...).

    Tokens are told by their inner products: items and positions are orthonormal, but that the query
    is the last item again. Complex numbers may be given: the loss is analytic in them.
    """
    x = np.asarray(numbers, complex)
    a, b, g = x[..., :3], x[..., 3:15, None], x[..., 15:, None]
    T, query = 2 * N + 1, 2 * N
    same = np.eye(T)  # inner products of items
    same[query, query - 2] = same[query - 2, query] = 1.0
    turned = np.zeros((T, T))  # p_t M p_s: 1 where t is the label of the item s
    for item in range(0, query, 2):
        turned[item + 1, item], turned[item, item + 1] = 1.0, -1.0
    a1, a2, a3 = (a[..., i, None, None] for i in range(3))
    first = _softmax(a1 * same + a2 * np.eye(T) + a3 * turned, np.tri(T, k=-1))
    last = first[..., query, :]  # what the query took over

    def scores(inner: Array) -> tuple[Array, ...]:
        own, brought = inner[query], last @ inner
        return (
            np.broadcast_to(own, brought.shape),
            np.einsum("t,...st->...s", own, first),
            brought,
            np.einsum("...t,...st->...s", brought, first),
        )

    terms = (*scores(same), *scores(np.eye(T)), *scores(turned))
    score = sum(b[..., i, :] * term for i, term in enumerate(terms))
    seen = _softmax(score, np.arange(T) < query)
    tokens = np.eye(T)[:, :query]  # which of the 2 N vectors a token is
    tokens[query, query - 2] = 1.0
    found = (
        g[..., 0, :] * tokens[query]
        + g[..., 1, :] * (last @ tokens)
        + g[..., 2, :] * (seen @ tokens)
        + g[..., 3, :] * np.einsum("...s,...st->...t", seen, first) @ tokens
    )
    return np.asarray(0.5 * ((found - np.eye(query)[query - 1]) ** 2).sum(axis=-1))


def slopes_of(N: int, numbers: ArrayLike) -> Array:
    """Return the derivative of the loss in each number, (19,), to rounding.

    Each number is d entries of one size, so that flow in units of d follows these: the entries
    move by 1/d of them.
    """
    x = np.asarray(numbers, float)
    return np.asarray(loss_of(N, x + 1j * _STEP * np.eye(len(NAMES))).imag / _STEP)


def _softmax(score: Array, seen: ArrayLike) -> Array:
    """Return e^score over its sum along the last axis, 0 where nothing is seen."""
    shift = np.where(seen, score.real, -np.inf).max(axis=-1, keepdims=True, initial=-1e300)
    raised = np.where(seen, np.exp(np.where(seen, score - shift, 0.0)), 0.0)
    total = raised.sum(axis=-1, keepdims=True)
    return np.asarray(raised / np.where(total == 0.0, 1.0, total))


class Entries:
    """Every entry of W1 (2 d, 2 d), W2 (4 d, 4 d) and W3 (d, 8 d), in one row.

    The mean over turned inputs is over two finite groups in place of O(d) and U(d / 2): cyclic
    exchanges with signs, and for positions quarter turns M beside. What they keep fixed is the
    same; `orbits` counts it by characters, `fixed` projects on it.
    """

    def __init__(self, N: int) -> None:
        self.N, self.d = N, 2 * N + 2
        d, T = self.d, 2 * N + 1
        self.shapes = ((2 * d, 2 * d), (4 * d, 4 * d), (d, 8 * d))
        self.size = sum(rows * columns for rows, columns in self.shapes)
        items = _monomials(d, (1, 1, 1, 1)).real
        turns = _as_real(_monomials(d // 2, (1, 1), quarter=True))
        slots = [*range(2 * N), 2 * N - 2]  # whose item each token is: the query repeats the last
        self.turns = [(x, p) for x, p in product(items, turns)]
        self.tokens = np.array(
            [np.concatenate([x[:, slots], p[:, :T]]).T for x, p in self.turns]
        )  # (turns, T, 2 d)
        self.label = np.array([x[:, 2 * N - 1] for x, _ in self.turns])

    def split(self, entries: ArrayLike) -> list[Array]:
        """Return W1, W2 and W3."""
        ends = np.cumsum([rows * columns for rows, columns in self.shapes])[:-1]
        return [w.reshape(s) for w, s in zip(np.split(np.asarray(entries), ends), self.shapes)]

    def loss(self, entries: ArrayLike) -> complex:
        """Return the risk; complex entries may be given."""
        return complex(0.5 * (self._forward(entries)[-1] ** 2).sum() / len(self.tokens))

    def _forward(self, entries: ArrayLike) -> tuple[Array, ...]:
        """Return first attention, h, second attention, what W3 is given, and output - label."""
        w1, w2, w3 = self.split(entries)
        t = self.tokens
        score = t @ w1 @ t.transpose(0, 2, 1)
        first = np.zeros_like(score)  # the first token sees nothing
        first[:, 1:] = _attention(np.where(np.tri(t.shape[1], k=-1)[1:], score[:, 1:], -np.inf))
        h = np.concatenate([t, first @ t], axis=2)
        second = _attention(np.einsum("ci,ij,ctj->ct", h[:, -1], w2, h[:, :-1], optimize=True))
        given = np.concatenate([h[:, -1], np.einsum("ct,cti->ci", second, h[:, :-1])], axis=1)
        return first, h, second, given, given @ w3.T - self.label

    def gradient(self, entries: ArrayLike) -> Array:
        """Return the derivative of the risk in every entry, going back through both layers."""
        _, w2, w3 = self.split(np.asarray(entries, float))
        first, h, second, given, error = self._forward(np.asarray(entries, float))
        query, keys, width = h[:, -1], h[:, :-1], h.shape[2]
        error = error / len(self.tokens)
        pull = error @ w3
        on_query, on_seen = pull[:, :width], pull[:, width:]
        weight = np.einsum("ci,cti->ct", on_seen, keys)
        weight = second * (weight - (second * weight).sum(axis=1, keepdims=True))
        wanted = np.einsum("ct,cti->ci", weight, keys)
        on_h = np.empty_like(h)
        sought = (query @ w2)[:, None]
        on_h[:, :-1] = second[..., None] * on_seen[:, None] + weight[..., None] * sought
        on_h[:, -1] = on_query + wanted @ w2.T
        back = on_h[:, :, width // 2 :] @ self.tokens.transpose(0, 2, 1)
        back = first * (back - (first * back).sum(axis=2, keepdims=True))
        one = np.tensordot(self.tokens, back @ self.tokens, axes=((0, 1), (0, 1)))
        return np.concatenate([x.ravel() for x in (one, query.T @ wanted, error.T @ given)])

    @cached_property
    def lift(self) -> Array:
        """The matrix (entries, 19) whose columns are the blocks I and M that the paper names."""
        d, columns = self.d, []
        eye, turn = np.eye(d), np.kron(np.eye(d // 2), [[0.0, -1.0], [1.0, 0.0]])
        places = [(0, 0, 0, eye), (0, 1, 1, eye), (0, 1, 1, turn)]
        blocks = tuple(product((0, 2), (0, 2)))  # own or brought, of items; positions stand after
        places += [(1, i, j, eye) for i, j in blocks]
        places += [(1, i + 1, j + 1, w) for w in (eye, turn) for i, j in blocks]
        places += [(2, 0, i, eye) for i in (0, 2, 4, 6)]
        for which, i, j, block in places:
            matrices = [np.zeros(shape) for shape in self.shapes]
            matrices[which][i * d : (i + 1) * d, j * d : (j + 1) * d] = block
            columns.append(np.concatenate([x.ravel() for x in matrices]))
        return np.array(columns).T

    @cached_property
    def orbits(self) -> int:
        """How many independent entries are the same for every turn, the mean of a character."""
        x = np.array([np.trace(x) for x, _ in self.turns])
        v = x + np.array([np.trace(p) for _, p in self.turns])
        return round(float((v**2 + 4.0 * v**2 + 4.0 * x * v).mean()))

    def fixed(self, entries: ArrayLike) -> Array:
        """Return the mean of entries over all turns: the part of them that every turn keeps."""
        matrices = self.split(np.asarray(entries, float))
        means = [np.zeros(shape) for shape in self.shapes]
        for x, p in self.turns:
            one = np.zeros(self.shapes[0])
            one[: self.d, : self.d], one[self.d :, self.d :] = x, p
            two, four = np.kron(np.eye(2), one), np.kron(np.eye(4), one)
            for mean, matrix, left, right in zip(means, matrices, (one, two, x), (one, two, four)):
                mean += left @ matrix @ right.T
        return np.concatenate([mean.ravel() for mean in means]) / len(self.turns)


def _attention(score: Array) -> Array:
    """Return e^score over its sum along the last axis; -inf: not seen."""
    raised = np.exp(score - score.real.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _monomials(n: int, word: tuple[int, ...], *, quarter: bool = False) -> Array:
    """Return a group of n x n matrices: cyclic exchanges with signs, (elements, n, n).

    Signs are -1 on the sums modulo 2 of cyclic shifts of a word. No two coordinates have the same
    sign in all of them, and exchanges bring each to each, so that what commutes with the group is a
    number (Schur). ``quarter``: with quarter turns i.
    """
    shifts = [np.roll(np.pad(word, (0, n - len(word))), k) for k in range(n)]
    codes = {(0,) * n}
    for shift in shifts:
        codes |= {tuple((np.array(code) + shift) % 2) for code in codes}
    signs = (-1.0) ** np.array(sorted(codes))
    # i^2 = -1 may be among the signs already
    phases = 1j ** np.arange((2 if (1,) * n in codes else 4) if quarter else 1)
    exchanges = [np.roll(np.eye(n), k, axis=0) for k in range(n)]
    return np.array([i * s[:, None] * e for i in phases for s in signs for e in exchanges])


def _as_real(matrices: Array) -> Array:
    """Return complex n x n matrices as real ones of twice the size, i as [[0, -1], [1, 0]]."""
    i = np.array([[0.0, -1.0], [1.0, 0.0]])
    return np.array([np.kron(m.real, np.eye(2)) + np.kron(m.imag, i) for m in matrices])
