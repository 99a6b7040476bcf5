"""The full model (T) with symbolic entries, and its gradient, compiled to exact functions.

    F(X) = sum_i act(kappa sum_j S_ij <v, X_j>),   S_ij = e^{A_ij/tau} / sum_k e^{A_ik/tau},

act(x) = x^p + nu x (Jelassi et al. 2022, equation (T) with general scale kappa and temperature
tau). All off-diagonal A_ij and all v_k are independent symbols: the partition, the invariant
manifold and w* are not built in. In coordinates with w* as the first basis vector, X_j = (s_j,
xi_j2, ..., xi_jd) with symbolic s_j and noise xi_jk orthogonal to w*.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import sympy as sp

from symbolic.core.identity import Identity
from symbolic.core.zero import compile_exact
from symbolic.positional.symbols import kappa, nu, tau, weight, y

Matrix = list[list[Fraction]]
Pair = tuple[int, int]


@dataclass(frozen=True)
class OutputAndGradient:
    """Exact values of F and of its derivatives in the trained entries of A and v."""

    F: Fraction
    dA: dict[Pair, Fraction]
    dv: list[Fraction]


class FullModel:
    """The D x D model of degree ``p`` with ``d``-dimensional patches.

    Parameters
    ----------
    D
        Number of patches.
    p
        Degree of the activation.
    d
        Dimension of a patch.
    train_diagonal
        Whether the diagonal of A is trained; otherwise it is fixed (Simplification 3.1).

    Attributes
    ----------
    A, v, signs, noise
        Symbols of the entries of A (D, D), of v (d,), of the coefficients s_j (D,) and of the noise
        (D, d-1). Names are ``A_0_1`` (from 0) and ``v_1`` (from 1).
    F
        The output as a SymPy expression.
    pairs
        Indices of the trained entries of A.
    dA, dv
        Derivatives of F.
    """

    def __init__(self, D: int, p: int, d: int = 2, train_diagonal: bool = False) -> None:
        self.D, self.p, self.d = D, p, d
        self.A = sp.Matrix(D, D, lambda i, j: sp.Symbol(f"A_{i}_{j}", real=True))
        self.v = sp.symbols(f"v_1:{d + 1}", real=True)
        self.signs = sp.symbols(f"s_0:{D}", real=True)
        self.noise = [sp.symbols(f"xi_{j}_2:{d + 1}", real=True) for j in range(D)]
        self.F = sum(self._activation(self.margin(i)) for i in range(D))
        every = [(i, j) for i in range(D) for j in range(D)]
        self.pairs = [(i, j) for i, j in every if train_diagonal or i != j]

    @cached_property
    def dA(self) -> dict[Pair, sp.Expr]:
        """Derivatives of F in the trainable entries of A."""
        return {(i, j): self._derivative(self.A[i, j]) for i, j in self.pairs}

    @cached_property
    def dv(self) -> list[sp.Expr]:
        """Derivatives of F in the components of v."""
        return [self._derivative(v_k) for v_k in self.v]

    @cached_property
    def _terms(self) -> list[tuple[sp.Expr, set[sp.Symbol]]]:
        """Summands of F with their symbols, cached because SymPy would search them repeatedly."""
        return [(term, term.free_symbols) for term in sp.Add.make_args(self.F)]

    def _derivative(self, x: sp.Symbol) -> sp.Expr:
        """Return dF/dx."""
        return sp.Add(*(sp.diff(term, x) for term in self.terms_with(x)))

    def terms_with(self, x: sp.Symbol) -> list[sp.Expr]:
        """Return the summands of F that contain a symbol."""
        return [term for term, symbols in self._terms if x in symbols]

    def _activation(self, x: sp.Expr) -> sp.Expr:
        return x**self.p + nu * x

    def projection(self, j: int) -> sp.Expr:
        """Return <v, X_j>."""
        noise = sum(v * xi for v, xi in zip(self.v[1:], self.noise[j]))
        return self.v[0] * self.signs[j] + noise

    def margin(self, i: int) -> sp.Expr:
        """Return O_i = kappa sum_j S_ij <v, X_j>."""
        scores = [sp.exp(self.A[i, j] / tau) for j in range(self.D)]
        weighted = sum(score * self.projection(j) for j, score in enumerate(scores))
        return kappa * weighted / sum(scores)

    @cached_property
    def _exact(self) -> Callable[..., list[Fraction]]:
        """F and its gradient, compiled with e^{A_ij/tau} as independent unknowns."""
        unknowns = {sp.exp(entry / tau): sp.Symbol(f"x_{entry.name}") for entry in self.A}
        expressions = [self.F, *self.dA.values(), *self.dv]
        noise = [xi for row in self.noise for xi in row]
        arguments = [*unknowns.values(), *self.v, *self.signs, *noise, kappa, nu, tau]
        return compile_exact(arguments, [e.xreplace(unknowns) for e in expressions])

    def evaluate(
        self,
        scores: Matrix,
        v: Sequence[Fraction],
        signs: Sequence[int | Fraction],
        noise: Sequence[Sequence[Fraction]],
        constants: Mapping[str, Fraction],
    ) -> OutputAndGradient:
        """Return exact F, dF/dA_ij and dF/dv_k at one data point.

        Parameters
        ----------
        scores
            e^{A_ij/tau}, (D, D).
        v
            Value vector, (d,).
        signs
            Coefficients s_j, (D,).
        noise
            Noise orthogonal to w*, (D, d-1).
        constants
            Values of ``"kappa"``, ``"nu"`` and ``"tau"``.
        """
        flat = [x for row in scores for x in row]
        flat += [*v, *map(Fraction, signs), *(xi for row in noise for xi in row)]
        F, *rest = self._exact(*flat, *(constants[k] for k in ("kappa", "nu", "tau")))
        count = len(self.pairs)
        return OutputAndGradient(F, dict(zip(self.pairs, rest[:count])), rest[count:])


#: Derivative of log(1 + e^{-yF}) in F, with w = s(-yF); see `identities`.
LOSS_SLOPE = -y * weight


@cache
def full_model(D: int, p: int, d: int = 2, train_diagonal: bool = False) -> FullModel:
    """Return the model of a given size, cached."""
    return FullModel(D, p, d, train_diagonal)


def identities() -> dict[str, Identity]:
    """Return the identities of the closed form of the gradient of the loss.

    d loss/d theta = -y s(-yF) dF/d theta with the logistic sigmoid s, so s(-yF) is a common factor
    of the gradient at a data point; dF/dA_ij = (S_ij/tau) act'(O_i) (kappa <v, X_j> -
    O_i); dF/dv = kappa sum_i act'(O_i) sum_j S_ij X_j, compared row by row. (D = 3, d = 2, p = 3;
    all entries free.)
    """
    model = FullModel(3, 3)
    claims = {"d loss / d theta": _loss_identity()}
    slopes = [model.p * model.margin(i) ** (model.p - 1) + nu for i in range(model.D)]
    for i, j in model.pairs:
        S_ij = sp.exp(model.A[i, j] / tau) / sum(sp.exp(x / tau) for x in model.A[i, :])
        closed = S_ij / tau * slopes[i] * (kappa * model.projection(j) - model.margin(i))
        entry = model.A[i, j]
        claims[f"dF/dA_{i}_{j}"] = Identity(sp.Add(*model.terms_with(entry)), closed, entry)
    for k, v_k in enumerate(model.v):
        for i, slope in enumerate(slopes):
            O_i, unit = model.margin(i), {v: int(v == v_k) for v in model.v}
            claims[f"d act(O_{i})/dv_{k + 1}"] = Identity(
                O_i**model.p + nu * O_i, slope * O_i.subs(unit, simultaneous=True), v_k
            )
    return claims


def _loss_identity() -> Identity:
    """Return d loss / d theta = -y s(-yF) dF/d theta, with e^{-yF} and dF/d theta as unknowns."""
    theta = sp.Symbol("theta", real=True)
    F = sp.Function("F", real=True)(theta)
    loss = sp.log(1 + sp.exp(-y * F))
    sigmoid = 1 / (1 + sp.exp(y * F))
    unknown, slope = sp.symbols("e_F dF", positive=True)
    exponentials = {sp.exp(-y * F): unknown, sp.exp(y * F): 1 / unknown}
    chain = Identity(sp.diff(loss, theta), LOSS_SLOPE.subs(weight, sigmoid) * sp.diff(F, theta))
    return chain.map(lambda x: x.subs(sp.diff(F, theta), slope).subs(exponentials))
