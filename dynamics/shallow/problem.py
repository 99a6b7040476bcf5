"""The learning problem of Li, Wang, Liu, Chen (2023): a shallow vision transformer, tau = 0.

A sample has L tokens, each one of M orthonormal patterns; patterns 0 and 1 are discriminative and
the label is the majority of the two.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.core.checks import finite, integer, require
from dynamics.core.errors import ParameterError
from dynamics.shallow.symmetry import Layout, layout

BACKGROUNDS = ("tokens", "single")
ATTENTIONS = ("trained", "frozen", "none")


@dataclass(frozen=True)
class ShallowProblem:
    r"""Constants of data, network and symmetric start; alpha_* is the fraction of relevant tokens.

    .. math:: F(X)=\frac1{|S|}\sum_{l\in S}a^T\mathrm{relu}
       (W_OW_VX\,\mathrm{softmax}(X^TW_K^TW_Qx_l)),\qquad \mathrm{loss}=E\max(0,1-yF)

    Parameters
    ----------
    M, L
        Patterns (3 to 100) and tokens of a sample (2 to 10^4).
    alpha_relevant, alpha_confusion
        Fractions alpha_* > alpha_# of tokens with the pattern of the label and with the other
        discriminative one; times L they are whole numbers, and their sum is at most 1.
    background
        ``"tokens"``: each irrelevant token has a pattern of its own; ``"single"``: all of a sample
        share one.
    queried
        Number of sampled tokens \|S\|; ``None``: all L.
    neurons
        m, a multiple of 2M: for each sign of a_r as many along each pattern.
    output_scale
        a: the fixed output weights are +-a / sqrt m.
    value_scale
        v: V(0) = v 1.
    key_query, overlap
        kappa^2 and rho_0: S_K(0) = S_Q(0) = kappa^2 1 and A(0) = rho_0 kappa^2 1.
    xi, spread
        Row of W_O(0) of a neuron along its pattern, and along any other relative to that. Neither
        is 0: neurons would stand at the kink of their ReLU.
    attention_rate
        eta_KQ / eta, 0 or more.
    attention
        ``"trained"``, ``"frozen"`` (K and Q stay) or ``"none"`` (every key weighs the same).
    train_value
        False: V stays.

    Raises
    ------
    ParameterError
        If a constant is outside its domain.
    """

    M: int = 5
    L: int = 20
    alpha_relevant: float = 0.4
    alpha_confusion: float = 0.1
    background: str = "tokens"
    queried: int | None = None
    neurons: int = 40
    output_scale: float = 1.0
    value_scale: float = 1.0
    key_query: float = 1.0
    overlap: float = 1.0
    xi: float = 0.01
    spread: float = 0.1
    attention_rate: float = 1.0
    attention: str = "trained"
    train_value: bool = True

    def __post_init__(self) -> None:
        def fix(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        fix("M", integer("M", self.M, 3, 100))
        fix("L", integer("L", self.L, 2, 10**4))
        for name in ("alpha_relevant", "alpha_confusion"):
            value = finite(name, getattr(self, name))
            require(0.0 <= value <= 1.0, name, value, "from 0 to 1")
            tokens = value * self.L
            require(abs(tokens - round(tokens)) < 1e-6, name, value,
                    f"a whole number of the L = {self.L} tokens (here {tokens:g})")  # fmt: skip
            fix(name, value)
        total = self.alpha_relevant + self.alpha_confusion
        require(self.relevant + self.confusion <= self.L, "alpha_relevant + alpha_confusion",
                total, "at most 1")  # fmt: skip
        require(self.relevant > self.confusion, "alpha_relevant", self.alpha_relevant,
                f"greater than alpha_confusion = {self.alpha_confusion:g}")  # fmt: skip
        if self.queried is not None:
            fix("queried", integer("queried", self.queried, 1, self.L))
        fix("neurons", integer("neurons", self.neurons, 2 * self.M, 10**7))
        require(self.neurons % (2 * self.M) == 0, "neurons", self.neurons,
                f"a multiple of 2 M = {2 * self.M}")  # fmt: skip
        for name in ("output_scale", "value_scale", "key_query", "xi"):
            value = finite(name, getattr(self, name))
            kink = " (at 0 every neuron stands at the kink of its ReLU: perturb it)"
            note = kink if name == "xi" else ""
            require(value > 0.0, name, value, f"greater than 0{note}")
            fix(name, value)
        for name in ("overlap", "spread"):
            value = finite(name, getattr(self, name))
            require(-1.0 <= value <= 1.0, name, value, "from -1 to 1")
            fix(name, value)
        if self.spread == 0.0:
            raise ParameterError(
                "spread = 0 is not allowed: a neuron along a pattern that a sample lacks stands at "
                "the kink of its ReLU; perturb it, say spread = 0.01"
            )
        fix("attention_rate", finite("attention_rate", self.attention_rate))
        require(self.attention_rate >= 0.0, "attention_rate", self.attention_rate, "0 or more")
        for name, words in (("background", BACKGROUNDS), ("attention", ATTENTIONS)):
            value = getattr(self, name)
            require(value in words, name, repr(value), " or ".join(map(repr, words)))
        require(isinstance(self.train_value, bool), "train_value", repr(self.train_value),
                "True or False")  # fmt: skip

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
        """alpha_* / (alpha_* + alpha_#): the attention once irrelevant keys are gone."""
        return self.relevant / (self.relevant + self.confusion)

    @property
    def rho(self) -> float:
        r"""kappa^2 eta_KQ / (a^2 v^2 eta): the scale of the one parameter of the minimal model."""
        return self.key_query * self.attention_rate / (self.output_scale * self.value_scale) ** 2

    @property
    def layout(self) -> Layout:
        """Which entries of the matrices share an order parameter."""
        return layout(self.M, 1 if self.overlap == 1.0 else 2)

    @property
    def order_parameters(self) -> tuple[str, ...]:
        """Names of the entries of a state."""
        return self.layout.names

    @property
    def initial_state(self) -> np.ndarray:
        """The symmetric start (28 or 40 numbers from M = 4 on)."""
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
        """Return W_O (2M, M), one row a neuron class, V (M, M), K and Q (M or 2M, M) of a state."""
        return self.layout.unpack(np.asarray(state, float))

    def all_neurons(self, state: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return W_O (m, M) and a (m,) of a state, with all neurons written out."""
        copies = self.neurons // (2 * self.M)
        size = self.output_scale / math.sqrt(self.neurons)
        W = np.repeat(self.matrices(state)[0], copies, axis=0)
        return W, np.repeat([size, -size], self.M * copies)

    def replace(self, **changes: Any) -> ShallowProblem:
        """Return a copy with some fields changed, validated again."""
        return dataclasses.replace(self, **changes)
