"""Figures of the shallow transformer: each draws a dataset and computes nothing."""

import re


def run_label(name: str) -> str:
    """Return the name of a run for a legend, with eta_KQ/eta in mathematical type."""
    name = re.sub(r"eta_KQ = (\S+) eta", r"eta_KQ/eta=\1", name)
    return name.replace("eta_KQ/eta=", r"$\eta_{KQ}/\eta$ = ")
