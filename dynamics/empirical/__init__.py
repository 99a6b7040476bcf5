"""Finite samples: the empirical problem (E) of Jelassi, Sander, Li (2022) and its training."""

from dynamics.empirical.curvature import Stability, stability
from dynamics.empirical.data import disagreement, labelling_function, random_feature, sample
from dynamics.empirical.flow import train_by_flow
from dynamics.empirical.gradient import EmpiricalRisk, Gradient, empirical_gradient
from dynamics.empirical.held_out import ErrorRate, HeldOut
from dynamics.empirical.history import History, TrainingInterrupted, TrainingResult
from dynamics.empirical.partitions import (
    association_gap,
    at_random,
    contiguous,
    patch_association,
    set_of,
    squares,
)
from dynamics.empirical.training import initial_weights, train

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
    "at_random",
    "contiguous",
    "disagreement",
    "empirical_gradient",
    "initial_weights",
    "labelling_function",
    "patch_association",
    "random_feature",
    "sample",
    "set_of",
    "squares",
    "stability",
    "train",
    "train_by_flow",
]
