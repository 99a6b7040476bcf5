"""How far two ways of summing over scenarios are apart: what estimates the error of a method."""

from dataclasses import dataclass

import numpy as np

from dynamics.masked.expectation import ScenarioPlan, moments


@dataclass(frozen=True)
class Control:
    """Plans whose difference from ``middle`` tells what it neglects, in groups.

    The error is ``factor`` times the largest entry of the sum over groups of
    |mean of the group - middle|.
    """

    middle: ScenarioPlan
    groups: list[list[ScenarioPlan]]
    factor: float = 1.0

    def estimate(self, theta: np.ndarray) -> float:
        """Return the estimated error of loss and gradient at a state."""
        middle, total = entries(self.middle, theta), np.zeros(1 + theta.size)
        for group in self.groups:
            mean = np.mean([entries(plan, theta) for plan in group], axis=0)
            total += np.abs(mean - middle)
        return self.factor * float(np.max(total))


def entries(plan: ScenarioPlan, theta: np.ndarray) -> np.ndarray:
    """Return loss and gradient, (1 + slots,)."""
    mean = plan.chance * all_moments(plan, theta)[0].mean(axis=0)
    mean[1:] /= plan.entries
    return mean


def change(coarse: ScenarioPlan, fine: ScenarioPlan, theta: np.ndarray) -> float:
    """Largest difference of loss and gradient, relative to the largest of them."""
    one, other = entries(coarse, theta), entries(fine, theta)
    return float(np.max(np.abs(one - other)) / np.max(np.abs(other)))


def all_moments(plan: ScenarioPlan, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means of (loss, derivatives) and of their squares, and attention, as `moments`."""
    shape = (plan.own.size, 1 + theta.size)
    first, second = np.zeros(shape), np.zeros(shape)
    attention = np.zeros((plan.own.size, 2, plan.copies.shape[1]))
    moments(plan, theta, first, second, attention)
    return first, second, attention
