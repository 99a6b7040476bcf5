"""The learning problem of Jelassi, Sander, Li (2022): its constants, validated, and presets."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from dynamics.core.checks import finite, integer, require
from dynamics.positional._sizes import multiplicity


class State(NamedTuple):
    """Order parameters of Lemmas 4.1 and 4.2: ``v = alpha w*``, ``A_ij = gamma`` or ``rho``.

    Also used for a gradient or a velocity, one entry per order parameter.
    """

    alpha: float
    gamma: float
    rho: float


@dataclass(frozen=True, slots=True)
class Problem:
    r"""Constants of the data (Assumption 1), the model (T) and its fixed diagonal.

    The model is :math:`F(X)=\sum_i \mathrm{act}(\kappa \sum_j S_{ij}\langle v, X_j\rangle)` with
    :math:`S=\mathrm{softmax}(A/\tau)` by rows and :math:`\mathrm{act}(x)=x^p+\nu x`.

    Parameters
    ----------
    D, C
        Number of patches and size of each of the ``L = D / C`` sets; ``2 <= C < D``, C divides D.
    q
        Probability that a patch outside the signal set carries a feature (either sign), in (0, 1].
    p, nu
        Degree (odd, at least 3) and linear part (positive) of the activation.
    beta
        Diagonal of ``A`` (the paper's sigma_A), finite.
    temperature
        ``tau > 0``. Equation (T) has sqrt(d), Section 4 has 1 (the default).
    output_scale
        ``kappa > 0``. ``None`` means ``D``, as in equation (T).
    d, sigma
        Patch dimension (``None``: ``D``, Simplification 3.1) and noise level (``None``:
        1/sqrt(d), Assumption 2). They do not enter the idealized dynamics (Lemma 4.2).

    Raises
    ------
    ParameterError
        One sentence naming the parameter, its value and what is allowed.
    """

    D: int
    C: int
    q: float
    p: int = 3
    nu: float = 0.01
    beta: float = 1.0
    temperature: float = 1.0
    output_scale: float | None = None
    d: int | None = None
    sigma: float | None = None

    def __post_init__(self) -> None:
        for name in ("D", "C", "p"):
            object.__setattr__(self, name, integer(name, getattr(self, name)))
        for name in ("q", "nu", "beta", "temperature"):
            object.__setattr__(self, name, finite(name, getattr(self, name)))
        for name, convert in (("output_scale", finite), ("d", integer), ("sigma", finite)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, convert(name, getattr(self, name)))
        require(4 <= self.D <= 10**9, "D", self.D, "at least 4 and at most 10^9")
        require(2 <= self.C < self.D, "C", self.C, f"at least 2 and less than D = {self.D}")
        require(self.D % self.C == 0, "C", self.C, f"a divisor of D = {self.D}")
        require(0.0 < self.q <= 1.0, "q", self.q, "in (0, 1]")
        require(3 <= self.p <= 99 and self.p % 2 == 1, "p", self.p, "odd, at least 3, at most 99")
        require(self.nu > 0.0, "nu", self.nu, "greater than 0")
        require(self.temperature > 0.0, "temperature", self.temperature, "greater than 0")
        require(self.kappa > 0.0, "output_scale", self.output_scale, "greater than 0")
        require(1 <= self.dimension <= 10**15, "d", self.d, "at least 1 and at most 10^15")
        require(self.noise >= 0.0, "sigma", self.sigma, "at least 0")

    @property
    def L(self) -> int:
        """Number of sets, ``D / C``."""
        return self.D // self.C

    @property
    def tau(self) -> float:
        """Softmax temperature."""
        return self.temperature

    @property
    def kappa(self) -> float:
        """Output scale in front of the attention, ``D`` unless given."""
        return float(self.D) if self.output_scale is None else self.output_scale

    @property
    def dimension(self) -> int:
        """Patch dimension ``d``, ``D`` unless given."""
        return self.D if self.d is None else self.d

    @property
    def noise(self) -> float:
        """Noise level sigma, ``1/sqrt(d)`` unless given."""
        return 1.0 / math.sqrt(self.dimension) if self.sigma is None else self.sigma

    @property
    def initial_state(self) -> State:
        """Idealized start of Parametrization 3.1: ``(nu^(1/(p-1)), 0, 0)``."""
        return State(self.nu ** (1.0 / (self.p - 1)), 0.0, 0.0)

    @property
    def multiplicity(self) -> State:
        """How many entries of ``v`` (along w*) and of ``A`` each order parameter stands for."""
        return State(1.0, *multiplicity(float(self.C), float(self.D)))

    def replace(self, **changes: Any) -> Problem:
        """Return a copy with some fields changed, validated again."""
        return dataclasses.replace(self, **changes)

    @classmethod
    def parametrization_3_1(cls, D: int, C: int, **overrides: Any) -> Problem:
        """Return the scalings of Assumption 2 and Parametrization 3.1, all constants set to 1.

        ``q = C^2 / D`` (the paper: poly(C)/D), ``nu = 1/d`` (1/poly(d)), ``d = D``
        (Simplification 3.1), ``beta = log log d`` (polyloglog(d)), ``tau = 1`` as in Section 4.
        """
        d = integer("d", overrides.pop("d", D))
        require(d >= 3, "d", d, "at least 3, so that log log d is positive")
        scalings = {"q": min(1.0, C**2 / D), "nu": 1.0 / d, "beta": math.log(math.log(d))}
        return cls(D=D, C=C, d=d, **(scalings | overrides))

    @classmethod
    def equation_T(cls, D: int, C: int, q: float, **overrides: Any) -> Problem:
        """Return the model exactly as printed in (T): ``kappa = D`` and ``tau = sqrt(d)``."""
        d = integer("d", overrides.pop("d", D))
        require(d >= 1, "d", d, "at least 1")
        return cls(D=D, C=C, q=q, d=d, **({"temperature": math.sqrt(d)} | overrides))

    @classmethod
    def section_4(cls, D: int, C: int, q: float, **overrides: Any) -> Problem:
        """Return the model as analysed in Section 4: ``kappa = D`` and ``tau = 1``."""
        return cls(D=D, C=C, q=q, **({"temperature": 1.0} | overrides))

    @classmethod
    def figure_4(cls, **overrides: Any) -> Problem:
        """Return Figure 4 as far as public facts go: D = 10, d = 100, C = 2, p = 5, kappa = 1.

        The public script draws each sign with probability q/4 where q = log(d)/D, half of the
        paper's convention; ``q`` here is in the paper's convention, log(100)/20.
        """
        facts = {
            "D": 10,
            "C": 2,
            "q": math.log(100) / 20,
            "p": 5,
            "nu": 0.03,
            "beta": math.log(math.log(100)),
            "output_scale": 1.0,
            "d": 100,
        }
        return cls(**(facts | overrides))
