"""The learning problem of Jelassi, Sander, Li (2022): constants, their validation, presets."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from dynamics.core.annotations import (
    Alias,
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
from dynamics.core.parameters import Parameters
from dynamics.positional._sizes import multiplicity


class State(NamedTuple):
    """Order parameters of the reduced model (Lemmas 4.1 and 4.2).

    Also used for gradients and velocities, with one entry per order parameter.

    Attributes
    ----------
    alpha
        Coefficient of the value vector, ``v = alpha w*``.
    gamma, rho
        Attention logits ``A_ij`` of two different patches in the same set, and in different sets.
    """

    alpha: float
    gamma: float
    rho: float


@dataclass(frozen=True, slots=True)
class Problem(Parameters):
    r"""Constants of the data (Assumption 1), of the model (T) and of its fixed diagonal.

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
        1/sqrt(d), Assumption 2). The reduced dynamics does not depend on them (Lemma 4.2).

    Raises
    ------
    ParameterError
        If a constant is outside its range.
    """

    D: Annotated[
        int,
        at_least(4),
        at_most(10**9),
        Doc("number of patches", allowed="an integer, at least 4"),
        Ticks(*(2**k for k in range(4, 21))),
    ]
    C: Annotated[
        int,
        at_least(2),
        Doc("size of a set", allowed="a divisor of D, at least 2"),
        Ticks(2, 4, 8, 16),
    ]
    q: Annotated[
        float,
        above(0),
        at_most(1),
        Doc("probability of a feature outside the signal set"),
        Draw(0.01, 1, log=True),
        Alias(
            "qD",
            Doc("the same as q times D", allowed="in (0, D]"),
            lambda x, at: x / at["D"],
            lambda q, at: q * at["D"],
            ticks=Ticks(*decades(-2, 1.2)),
        ),
        Alias(
            "qD/C^2",
            Doc("the same relative to C^2, the paper's scaling", allowed="in (0, D/C^2]"),
            lambda x, at: x * at["C"] ** 2 / at["D"],
            lambda q, at: q * at["D"] / at["C"] ** 2,
        ),
    ]
    p: Annotated[
        int,
        Condition(lambda p: p % 2 == 1, "odd"),
        at_least(3),
        at_most(99),
        Doc("degree of the activation x^p + nu x"),
        Ticks(3, 5, 7),
        Draw(among=(3, 5, 7)),
    ] = 3
    nu: Annotated[
        float,
        above(0),
        Doc("linear part of the activation"),
        Ticks(*decades(-5, 0)),
        Draw(1e-4, 1, log=True),
    ] = 0.01
    beta: Annotated[
        float,
        Doc("diagonal of A, the paper's sigma_A"),
        Ticks(*evenly(-2, 8, 0.1)),
        Draw(-2, 3),
        Alias(
            "beta/tau",
            Doc("the same relative to the softmax temperature"),
            lambda x, at: x * at["temperature"],
        ),
    ] = 1.0
    temperature: Annotated[
        float,
        above(0),
        Doc("softmax temperature tau"),
        Ticks(*decades(-1, 1)),
        Draw(0.5, 3, default=True),
        Alias("tau", Doc("the same as temperature"), constant=True),
    ] = 1.0
    output_scale: Annotated[
        float | None,
        above(0),
        Doc("kappa", default="D"),
        Draw(0.5, 20, search=False),
        Alias("kappa", Doc("the same as output_scale"), constant=True),
    ] = None
    d: Annotated[
        int | None,
        at_least(1),
        at_most(10**15),
        Unreported(),
        Draw(1, 30, search=False),
        Doc("patch dimension, does not enter", default="D"),
    ] = None
    sigma: Annotated[
        float | None,
        at_least(0),
        Unreported(),
        Draw(0, 1, search=False),
        Doc("noise level, does not enter", default="1/sqrt(d)"),
    ] = None

    derived: ClassVar[tuple[str, ...]] = ("L",)

    def check(self) -> None:
        """Check that sets of C patches partition the D patches."""
        require(self.C < self.D, "C", self.C, f"at least 2 and less than D = {self.D}")
        require(self.D % self.C == 0, "C", self.C, f"a divisor of D = {self.D}")

    @property
    def L(self) -> int:
        """Number of sets."""
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
        """Number of equal entries that each order parameter describes: 1, D (C-1), D (D-C)."""
        return State(1.0, *multiplicity(float(self.C), float(self.D)))

    def replace(self, **changes: Any) -> Problem:
        """Return a copy with some fields changed, and validate it."""
        return dataclasses.replace(self, **changes)

    @classmethod
    def parametrization_3_1(cls, D: int, C: int, **overrides: Any) -> Problem:
        """Return the problem of Assumption 2 and Parametrization 3.1, with all constants 1.

        ``q = C^2 / D`` (the paper: poly(C)/D), ``nu = 1/d`` (1/poly(d)), ``d = D``
        (Simplification 3.1), ``beta = log log d`` (polyloglog(d)), ``tau = 1`` as in Section 4.
        """
        d = integer("d", overrides.pop("d", D))
        require(d >= 3, "d", d, "at least 3, so that log log d is positive")
        scalings = {"q": min(1.0, C**2 / D), "nu": 1.0 / d, "beta": math.log(math.log(d))}
        return cls(D=D, C=C, d=d, **(scalings | overrides))

    @classmethod
    def equation_T(cls, D: int, C: int, q: float, **overrides: Any) -> Problem:
        """Return the problem with the model as printed in (T): kappa = D and tau = sqrt(d)."""
        d = integer("d", overrides.pop("d", D))
        require(d >= 1, "d", d, "at least 1")
        return cls(D=D, C=C, q=q, d=d, **({"temperature": math.sqrt(d)} | overrides))

    @classmethod
    def section_4(cls, D: int, C: int, q: float, **overrides: Any) -> Problem:
        """Return the problem with the model of Section 4: ``kappa = D`` and ``tau = 1``."""
        return cls(D=D, C=C, q=q, **({"temperature": 1.0} | overrides))

    @classmethod
    def figure_4(cls, **overrides: Any) -> Problem:
        """Return the problem of Figure 4, from the published script where the paper gives no value.

        D = 10, d = 100, C = 2, p = 5, kappa = 1. The script gives each sign the probability q/4
        with q = log(d)/D, half of the paper's q/2. ``q`` here follows the paper: log(100)/20.
        """
        constants = {
            "D": 10,
            "C": 2,
            "q": math.log(100) / 20,
            "p": 5,
            "nu": 0.03,
            "beta": math.log(math.log(100)),
            "output_scale": 1.0,
            "d": 100,
        }
        return cls(**(constants | overrides))
