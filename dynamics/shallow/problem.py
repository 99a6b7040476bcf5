"""The learning problem of Li, Wang, Liu, Chen (2023): a shallow vision transformer without noise.

A sample has L tokens, each equal to one of M orthonormal patterns (tau = 0). Patterns 0 and 1 are
discriminative: the label is determined by the more frequent of the two.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from dynamics.core.annotations import (
    Choices,
    Condition,
    Doc,
    Draw,
    Ticks,
    Unreported,
    above,
    at_least,
    at_most,
    decades,
    evenly,
)
from dynamics.core.checks import integer, require
from dynamics.core.errors import ParameterError
from dynamics.core.parameters import Parameters
from dynamics.shallow.symmetry import Layout, layout

BACKGROUNDS = ("tokens", "single")
ATTENTIONS = ("trained", "frozen", "none")
SHARES = Ticks(*evenly(0.05, 0.95, 0.05))
_KINK = "at 0 every neuron is at the kink of its ReLU"


@dataclass(frozen=True)
class ShallowProblem(Parameters):
    r"""Constants of the data, the network and the symmetric initial state.

    .. math:: F(X)=\frac1{|S|}\sum_{l\in S}a^T\mathrm{relu}
       (W_OW_VX\,\mathrm{softmax}(X^TW_K^TW_Qx_l)),\qquad \mathrm{loss}=E\max(0,1-yF)

    Parameters
    ----------
    M, L
        Number of patterns (3 to 100), and of tokens of a sample (2 to 10^4).
    alpha_relevant, alpha_confusion
        Fractions alpha_* > alpha_# of tokens with the pattern of the label and with the other
        discriminative one: multiples of 1/L with a sum of at most 1.
    background
        ``"tokens"``: the irrelevant tokens have independent patterns; ``"single"``: those of a
        sample have the same pattern.
    queried
        Number of sampled tokens \|S\|; ``None``: all L.
    neurons
        m, a multiple of 2M: equally many along each pattern for each sign of a_r.
    output_scale
        a; the fixed output weights are +-a / sqrt m.
    value_scale
        v in V(0) = v 1.
    key_query, overlap
        kappa^2 and rho_0 in S_K(0) = S_Q(0) = kappa^2 1 and A(0) = rho_0 kappa^2 1.
    xi, spread
        Entry of W_O(0) of a neuron along its pattern, and the other entries relative to it. Both
        are nonzero, since at 0 neurons are at the kink of their ReLU.
    attention_rate
        eta_KQ / eta, 0 or more.
    attention
        ``"trained"``, ``"frozen"`` (K and Q are constant) or ``"none"`` (all keys have the same
        weight).
    train_value
        Whether V is trained.

    Raises
    ------
    ParameterError
        If a constant is outside its domain, or constants are not compatible.
    """

    M: Annotated[
        int, at_least(3), at_most(100), Doc("number of patterns"), Ticks(3, 4, 5, 6, 8, 10, 15, 20)
    ] = 5
    L: Annotated[
        int, at_least(2), at_most(10**4), Doc("tokens of a sample"), Ticks(20, 40, 60, 80, 100)
    ] = 20
    alpha_relevant: Annotated[
        float,
        at_least(0),
        at_most(1),
        SHARES,
        Doc(
            "fraction of tokens with the pattern of the label",
            allowed="a multiple of 1/L, greater than alpha_confusion",
        ),
    ] = 0.4
    alpha_confusion: Annotated[
        float,
        at_least(0),
        at_most(1),
        SHARES,
        Doc("fraction with the other discriminative pattern", allowed="a multiple of 1/L"),
    ] = 0.1
    background: Annotated[
        str,
        Choices(*BACKGROUNDS),
        Draw(among=BACKGROUNDS[::-1]),
        Doc("irrelevant tokens: with independent patterns, or with a single one per sample"),
    ] = "tokens"
    queried: Annotated[
        int | None,
        at_least(1),
        Unreported(),
        Doc("number of sampled tokens |S|", default="all L", allowed="from 1 to L"),
    ] = None
    neurons: Annotated[int, at_most(10**7), Doc("m", allowed="a multiple of 2 M")] = 40
    output_scale: Annotated[
        float, above(0), Doc("a: output weights are +-a/sqrt m"), Ticks(*decades(-1, 1))
    ] = 1.0
    value_scale: Annotated[float, above(0), Doc("v: V(0) = v 1"), Ticks(*decades(-1, 1))] = 1.0
    key_query: Annotated[
        float,
        above(0),
        Doc("kappa^2: K^T K = Q^T Q = kappa^2 1 at the start"),
        Ticks(*decades(-1, 1)),
    ] = 1.0
    overlap: Annotated[
        float,
        at_least(-1),
        at_most(1),
        Doc("rho_0: K^T Q = rho_0 kappa^2 1 at the start"),
        Ticks(*evenly(-0.9, 1, 0.1)),
        Draw(among=(1.0, 0.5, 0.0)),
    ] = 1.0
    xi: Annotated[
        float,
        Condition(lambda xi: xi > 0, f"greater than 0 ({_KINK}: perturb it)"),
        Doc("entry of a row of W_O(0) along its pattern", allowed="greater than 0"),
        Ticks(*decades(-3, 0)),
        Draw(1e-3, 0.3, log=True),
    ] = 0.01
    spread: Annotated[
        float,
        at_least(-1),
        at_most(1),
        Draw(among=(0.1, 0.5, -0.1)),
        Doc("other entries of the row, relative to xi", allowed="in [-1, 1], not 0"),
    ] = 0.1
    attention_rate: Annotated[
        float,
        at_least(0),
        Doc("eta_KQ / eta"),
        Ticks(0.0, *decades(-1, 3)),
        Draw(0.1, 100, log=True),
    ] = 1.0
    attention: Annotated[
        str, Choices(*ATTENTIONS), Doc("K and Q trained or frozen, or no attention")
    ] = "trained"
    train_value: Annotated[bool, Doc("whether V is trained")] = True

    derived: ClassVar[tuple[str, ...]] = ("plateau", "rho")

    def check(self) -> None:
        """Check that the fractions are whole numbers of tokens, and the number of neurons."""
        for name in ("alpha_relevant", "alpha_confusion"):
            value = getattr(self, name)
            tokens = value * self.L
            allowed = f"a whole number of the L = {self.L} tokens (here {tokens:g})"
            require(abs(tokens - round(tokens)) < 1e-6, name, value, allowed)
        total = self.alpha_relevant + self.alpha_confusion
        fits = self.relevant + self.confusion <= self.L
        require(fits, "alpha_relevant + alpha_confusion", total, "at most 1")
        allowed = f"greater than alpha_confusion = {self.alpha_confusion:g}"
        require(self.relevant > self.confusion, "alpha_relevant", self.alpha_relevant, allowed)
        if self.queried is not None:
            integer("queried", self.queried, 1, self.L)
        integer("neurons", self.neurons, 2 * self.M, 10**7)
        allowed = f"a multiple of 2 M = {2 * self.M}"
        require(self.neurons % (2 * self.M) == 0, "neurons", self.neurons, allowed)
        if self.spread == 0.0:
            raise ParameterError(
                "spread = 0 is not allowed: a neuron along a pattern that is missing in a sample "
                "is at the kink of its ReLU; perturb it, for example spread = 0.01"
            )

    @property
    def relevant(self) -> int:
        """Number of tokens with the pattern of the label, alpha_* L."""
        return round(self.alpha_relevant * self.L)

    @property
    def confusion(self) -> int:
        """Number of tokens with the other discriminative pattern, alpha_# L."""
        return round(self.alpha_confusion * self.L)

    @property
    def irrelevant(self) -> int:
        """Number of irrelevant tokens."""
        return self.L - self.relevant - self.confusion

    @property
    def plateau(self) -> float:
        """Attention without irrelevant keys, alpha_* / (alpha_* + alpha_#)."""
        return self.relevant / (self.relevant + self.confusion)

    @property
    def rho(self) -> float:
        """Scale of the parameter rho of the two-equation model, kappa^2 eta_KQ / (a^2 v^2 eta)."""
        return self.key_query * self.attention_rate / (self.output_scale * self.value_scale) ** 2

    @property
    def layout(self) -> Layout:
        """Assignment of matrix entries to order parameters."""
        return layout(self.M, 1 if self.overlap == 1.0 else 2)

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """Names of the entries of a state."""
        return self.layout.names

    @property
    def initial_state(self) -> np.ndarray:
        """The symmetric initial state, (28,) or, if ``overlap`` is not 1, (40,); fewer if M = 3."""
        eye, kappa = np.eye(self.M), math.sqrt(self.key_query)
        angle = math.acos(self.overlap) / 2.0
        cos, sin = kappa * math.cos(angle) * eye, kappa * math.sin(angle) * eye
        split = self.overlap < 1.0
        W = self.xi * np.vstack([np.where(eye == 1.0, 1.0, self.spread)] * 2)
        return self.layout.pack(
            W,
            self.value_scale * eye,
            np.vstack([cos, sin]) if split else cos,
            np.vstack([cos, -sin]) if split else cos,
        )

    def matrices(self, state: Any) -> tuple[np.ndarray, ...]:
        """Return W_O (2M, M), V (M, M), K and Q (M or 2M, M) of a state.

        A row of W_O represents a class of equal neurons.
        """
        return self.layout.unpack(np.asarray(state, float))

    def all_neurons(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return W_O (m, M) and a (m,) of a state, with a row for each neuron."""
        copies = self.neurons // (2 * self.M)
        size = self.output_scale / math.sqrt(self.neurons)
        W = np.repeat(self.matrices(state)[0], copies, axis=0)
        return W, np.repeat([size, -size], self.M * copies)

    def replace(self, **changes: Any) -> ShallowProblem:
        """Return a copy with some fields changed, validated again."""
        return dataclasses.replace(self, **changes)
