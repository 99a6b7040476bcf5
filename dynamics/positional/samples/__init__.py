"""Finite samples: the empirical problem (E) of Jelassi, Sander, Li (2022) and its training."""

from dynamics.positional.samples.curvature import Stability, stability
from dynamics.positional.samples.data import (
    disagreement,
    labelling_function,
    random_feature,
    sample,
)
from dynamics.positional.samples.flow import train_by_flow
from dynamics.positional.samples.gradient import EmpiricalRisk, Gradient, empirical_gradient
from dynamics.positional.samples.held_out import ErrorRate, HeldOut
from dynamics.positional.samples.history import History, TrainingInterrupted, TrainingResult
from dynamics.positional.samples.partitions import (
    association_gap,
    contiguous,
    patch_association,
    random_partition,
    set_of,
    squares,
)
from dynamics.positional.samples.training import initial_weights, train

__all__ = [
    "EmpiricalRisk",
    "ErrorRate",
    "Gradient",
    "HeldOut",
    "History",
    "Stability",
    "TrainingInterrupted",
    "TrainingResult",
    "association_gap",
    "contiguous",
    "disagreement",
    "empirical_gradient",
    "initial_weights",
    "labelling_function",
    "patch_association",
    "random_feature",
    "random_partition",
    "sample",
    "set_of",
    "squares",
    "stability",
    "train",
    "train_by_flow",
]
