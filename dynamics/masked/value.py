"""What one evaluation of the masked risk returns, whichever method computed it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class MaskedValue:
    """Loss of the query patch and its gradient, with the error they may carry.

    Attributes
    ----------
    loss
        ``L_p = (1/2K) sum_k E_k[1{p masked} |X_p - F_p|^2]``, equation (4.2).
    gradient
        Derivatives with respect to one entry of ``e_p^T Q`` per order parameter, (slots,).
    floor
        What no attention removes: all patches of p's area masked, under the method's own counts.
    attention
        Mean unmasked area attention per feature correlation and given that p is masked, (phi
        slots,); equal areas together.
    own_attention, shortfall
        Per cluster, given that p is masked: mean attention to p's own area, and mean of
        (1 - attention)^2 less the share of the masks that hide the whole area, (K,).
    bound
        Absolute error of loss and gradient: rounding and quadrature; with sampling three standard
        errors; with the mean field estimates of what fluctuations of the counts add (twice the
        second order) and masks that hide the whole area.
    bounds
        The named parts whose sum is ``bound``.
    """

    loss: float
    gradient: np.ndarray
    floor: float
    attention: np.ndarray
    own_attention: np.ndarray
    shortfall: np.ndarray
    bound: float
    bounds: Mapping[str, float]

    @property
    def excess(self) -> float:
        """Loss above its floor."""
        return self.loss - self.floor
