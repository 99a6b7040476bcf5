r"""The model of Huang et al. (2024) with all entries of Q free, and its loss and gradient.

Positions e_q and features v_{k,m} are orthonormal: coordinates 0 .. P-1 and P onwards. Given the
cluster k and the mask, M(X) is z_{k,m} v_{k,m} in the unmasked patches and 0 in the others,
X~ = M(X) + E, attn_{p->q} = softmax_q(X~_p^T Q X~_q), F_p = sum_q attn_{p->q} M(X)_q, and the loss
of a masked patch p is |X_p - F_p|^2 / 2 (equations (2.5) to (2.8)). Areas are not built in.

The mask enters as b_q = 1 for unmasked and 0 for masked patches, substituted after differentiation.
A logit is a sum of monomials in b, z and Q without a constant term. The exponentials of different
monomials are algebraically independent of each other and of b, z and Q, so each is replaced by an
independent unknown: identities between the unknowns and between the exponentials are equivalent.
"""

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import sympy as sp

from symbolic.core.zero import Point, compile_exact, random_point

Partition = tuple[tuple[int, ...], ...]
Mask = tuple[int, ...]


class RawModel:
    """The full model for given partitions.

    Parameters
    ----------
    partitions
        Partition of the patches into areas, one per cluster.

    Attributes
    ----------
    P, K, d
        Numbers of patches and clusters; dimension of a token.
    feature
        Coordinate of v_{k,m}, by (k, m).
    Q, b, z
        Symbols: Q (d, d), b (P,), and z by (k, m).
    """

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self.partitions = tuple(partitions)
        self.K = len(self.partitions)
        self.P = sum(len(area) for area in self.partitions[0])
        self.feature: dict[tuple[int, int], int] = {}
        for k, areas in enumerate(self.partitions):
            for m in range(len(areas)):
                self.feature[k, m] = self.P + len(self.feature)
        self.d = self.P + len(self.feature)
        self.Q = sp.Matrix(self.d, self.d, lambda i, j: sp.Symbol(f"Q_{i}_{j}", real=True))
        self.b = sp.symbols(f"b_0:{self.P}", real=True)  # 1 for unmasked patches, 0 for masked ones
        self.z = {key: sp.Symbol(f"z_{key[0]}_{key[1]}", positive=True) for key in self.feature}

    def area(self, k: int, patch: int) -> int:
        """Return the area of a patch in cluster k."""
        return next(m for m, area in enumerate(self.partitions[k]) if patch in area)

    def image(self, k: int) -> sp.Matrix:
        """Return X of cluster k, (P, d)."""
        X = sp.zeros(self.P, self.d)
        for patch in range(self.P):
            m = self.area(k, patch)
            X[patch, self.feature[k, m]] = self.z[k, m]
        return X

    def loss(self, k: int, p: int) -> sp.Expr:
        """Return the loss of p in one image if it is masked, a function of Q, z and b."""
        X = self.image(k)
        unmasked = sp.Matrix(self.P, self.d, lambda q, i: 0 if q == p else self.b[q] * X[q, i])
        tokens = unmasked + sp.eye(self.P, self.d)
        logits = tokens[p, :] * self.Q * tokens.T
        weights = sp.Matrix([[sp.exp(sp.expand(logit)) for logit in logits]])
        residual = X[p, :] - weights * unmasked / sum(weights)
        return sum(x**2 for x in residual) / 2

    def dependencies(self, k: int, p: int) -> set[tuple[int, int]]:
        """Return the indices of the entries of Q that this loss depends on."""
        free = self.loss(k, p).free_symbols
        return {(i, j) for i in range(self.d) for j in range(self.d) if self.Q[i, j] in free}

    def exponential(self, monomial: sp.Expr) -> sp.Symbol:
        """Return the unknown for e^monomial."""
        name = "_".join(sorted(str(x) for x in monomial.free_symbols))
        return sp.Symbol(f"exp_{name}", positive=True)

    def feature_exponential(self, p: int, k: int, m: int) -> sp.Symbol:
        """Return the unknown for e^(z_m Q_{p,v_m}), a factor of unmasked patches of area m."""
        return self.exponential(self.z[k, m] * self.Q[p, self.feature[k, m]])

    def position_exponential(self, p: int, q: int) -> sp.Symbol:
        """Return the unknown for e^(Q_{p,q})."""
        return self.exponential(self.Q[p, q])

    @cache  # noqa: B019 (few models per process)
    def gradient(self, k: int, p: int) -> Callable[..., list[Fraction]]:
        """Return the loss and its derivatives in row p of Q as a compiled exact function.

        Arguments: z of the cluster, then b_q, e^(b_q z Q) and e^(Q) of every patch q.
        """
        loss = self.loss(k, p)
        derivatives = [sp.diff(loss, entry) for entry in self.Q[p, :]]

        def unknown(argument: sp.Expr) -> sp.Expr:
            terms = [term.as_coeff_Mul() for term in sp.Add.make_args(sp.expand(argument))]
            return sp.Mul(*(self.exponential(monomial) ** power for power, monomial in terms))

        arguments = [self.z[k, m] for m in range(len(self.partitions[k]))]
        arguments += self.b
        for q in range(self.P):
            m = self.area(k, q)
            entry = self.Q[p, self.feature[k, m]]
            arguments.append(self.exponential(self.b[q] * self.z[k, m] * entry))
        arguments += [self.position_exponential(p, q) for q in range(self.P)]
        expressions = (sp.sympify(e, strict=True) for e in (loss, *derivatives))
        rational = [expression.replace(sp.exp, unknown) for expression in expressions]
        return compile_exact(arguments, rational)

    def evaluate(self, k: int, mask: Mask, p: int, point: Point) -> list[Fraction]:
        """Return the loss and its d derivatives in row p at a rational point, given the mask."""
        b = [Fraction(int(q not in mask)) for q in range(self.P)]
        areas = [self.area(k, q) for q in range(self.P)]
        lift = [
            point[self.feature_exponential(p, k, m)] if u else Fraction(1) for m, u in zip(areas, b)
        ]
        z = [point[self.z[k, m]] for m in range(len(self.partitions[k]))]
        base = [point[self.position_exponential(p, q)] for q in range(self.P)]
        return self.gradient(k, p)(*z, *b, *lift, *base)

    def unknowns(self, p: int) -> list[sp.Symbol]:
        """Return the unknowns of row p: z and the exponentials."""
        features = [self.feature_exponential(p, *key) for key in self.feature]
        positions = [self.position_exponential(p, q) for q in range(self.P)]
        return [*self.z.values(), *features, *positions]

    def point(self, p: int, rng: random.Random) -> Point:
        """Return random values of z and of the exponentials of row p."""
        return random_point(self.unknowns(p), rng)

    def attention(self, k: int, mask: Mask, p: int, point: Point) -> list[Fraction]:
        """Return attn_{p->q} for all q at a point."""
        weights = []
        for q in range(self.P):
            weight = point[self.position_exponential(p, q)]
            if q not in mask:
                weight *= point[self.feature_exponential(p, k, self.area(k, q))]
            weights.append(weight)
        total = sum(weights, Fraction(0))
        return [weight / total for weight in weights]


@cache
def raw_model(partitions: tuple[Partition, ...]) -> RawModel:
    """Return the model for given partitions, cached."""
    return RawModel(partitions)
