"""Optimizers on order parameters: momentum, Adam and sign descent, with decoupled weight decay.

An optimizer of the entries of the parameters acts in the same way on order parameters if it
commutes with the symmetry group of the theory: equal entries then stay equal. All of them commute
with permutations and changes of sign, but Adam and sign descent do not commute with rotations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynamics.core.checks import finite, require
from dynamics.core.errors import ParameterError
from dynamics.core.jit import kernel

NAMES = ("gd", "momentum", "adam", "sign")
_GD, _MOMENTUM, _ADAM, _SIGN = range(4)
#: Decay rate of the squared gradient and regularization of Adam.
_SECOND, _EPSILON = 0.999, 1e-8


@dataclass(frozen=True)
class Optimizer:
    r"""An update rule for entries x with gradient g and learning rate :math:`\eta`.

    ``"gd"``: :math:`x \leftarrow x - \eta g`. ``"momentum"`` (heavy ball):
    :math:`v \leftarrow \mu v + g,\ x \leftarrow x - \eta v`. ``"adam"``: Kingma and Ba (2015) with
    decay rates :math:`\mu` and 0.999 and :math:`\epsilon = 10^{-8}`. ``"sign"``:
    :math:`x \leftarrow x - \eta \operatorname{sign}(g)`. Weight decay :math:`\lambda` is decoupled:
    x is multiplied by :math:`1 - \eta\lambda` first.

    Parameters
    ----------
    name
        One of the four.
    momentum
        :math:`\mu`, in [0, 1).
    weight_decay
        :math:`\lambda`, at least 0.

    Raises
    ------
    ParameterError
        If a value is not allowed.
    """

    name: str = "gd"
    momentum: float = 0.9
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        require(self.name in NAMES, "optimizer", self.name, f"one of {', '.join(NAMES)}")
        momentum = finite("momentum", self.momentum)
        require(0.0 <= momentum < 1.0, "momentum", momentum, "at least 0 and below 1")
        decay = finite("weight_decay", self.weight_decay)
        require(decay >= 0.0, "weight_decay", decay, "at least 0")

    @property
    def is_plain(self) -> bool:
        """Whether it is gradient descent without weight decay."""
        return self.name == "gd" and self.weight_decay == 0.0

    @property
    def is_isotropic(self) -> bool:
        """Whether it commutes with rotations of the parameters."""
        return self.name in ("gd", "momentum")

    def code(self, trained: np.ndarray) -> tuple[int, float, np.ndarray]:
        """Return rule, momentum and the weight decay of each order parameter, for `step`.

        Parameters
        ----------
        trained
            1 for each trained order parameter, 0 for each fixed one, (n,).
        """
        return NAMES.index(self.name), float(self.momentum), self.weight_decay * trained

    def settings(self) -> dict[str, str | float]:
        """Return what a trajectory records: nothing of plain gradient descent."""
        if self.is_plain:
            return {}
        used = {"momentum": self.momentum} if self.name in ("momentum", "adam") else {}
        return {"optimizer": self.name, **used, "weight_decay": self.weight_decay}

    def require_symmetric(self, rotated: str) -> None:
        """Raise ParameterError if the optimizer does not commute with the group of a theory.

        Parameters
        ----------
        rotated
            The parameters that a rotation may mix; empty if there are none.
        """
        if rotated and not self.is_isotropic:
            raise ParameterError(
                f"optimizer = {self.name} is not allowed: {rotated} can be rotated, and only gd "
                "and momentum commute with rotations"
            )


def optimizer_of(name: str, constants: Mapping[str, float]) -> Optimizer:
    """Return the optimizer of a name and constants.

    Raises
    ------
    ParameterError
        If the name or a constant is unknown or not allowed, or of another optimizer.
    """
    allowed = {"weight_decay"} | ({"momentum"} if name in ("momentum", "adam") else set())
    for constant in constants:
        if constant not in allowed:
            others = ", ".join(sorted(allowed))
            raise ParameterError(f"{constant} is not allowed with optimizer = {name}: set {others}")
    return Optimizer(name, **constants)


@kernel
def step(theta, gradient, learning_rate, number, code, moments):
    """Update theta (n,) and the moments (2, n) of the optimizer in place; ``number`` from 0."""
    rule, momentum, decay = code
    theta *= 1.0 - learning_rate * decay
    if rule == _SIGN:
        theta -= learning_rate * np.sign(gradient)
        return
    if rule == _GD:
        theta -= learning_rate * gradient
        return
    if rule == _MOMENTUM:
        moments[0] = momentum * moments[0] + gradient
        theta -= learning_rate * moments[0]
        return
    moments[0] = momentum * moments[0] + (1.0 - momentum) * gradient
    moments[1] = _SECOND * moments[1] + (1.0 - _SECOND) * gradient * gradient
    first = 1.0 - math.pow(momentum, number + 1)
    second = 1.0 - math.pow(_SECOND, number + 1)
    theta -= learning_rate * (moments[0] / first) / (np.sqrt(moments[1] / second) + _EPSILON)
