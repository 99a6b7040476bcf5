"""Figures of masked image modelling: each draws a dataset and computes nothing."""

import re


def regime_label(name: str) -> str:
    """Return the name of a regime or of a problem in mathematical type."""
    name = re.sub(r"(kappa_[cs]|Delta)=(-?[\d.]+)", r"$\\\1=\2$", name)
    return re.sub(r"P=10\^(\d+)", r"$P=10^{\1}$", name)
