"""Huang et al., Section 5.3: rapid growth of the target correlation, then convergence."""

import math

import numpy as np
import pandas as pd

from dynamics.masked import MaskedProblem
from simulations.masked import runs

#: Speed of Phi_n at its peak over that at the switch ("rapid"), and over every other speed ("small").
LEAD = 3.0
#: Attention of constant order at the peak.
CONSTANT = 0.1
#: Relative change between records that counts as rounding.
ROUNDING = 1e-6

SIZES, QUICK_SIZES = (10**6, 10**9, 10**12), (10**6, 10**12)
REGIMES = (runs.WIDE_GAP, runs.NARROW_GAP, runs.NEGATIVE_GAP, runs.IN_GLOBAL)


def measure(quick: bool) -> pd.DataFrame:
    """Return one row per regime and number of patches."""
    rows = [
        {"regime": regime.name, "P": P, "within": regime in runs.TWO_PHASES}
        | stages(regime.problem(P))
        for regime in REGIMES
        for P in (QUICK_SIZES if quick else SIZES)
    ]
    return pd.DataFrame(rows).set_index(["regime", "P"])


def stages(problem: MaskedProblem) -> dict[str, float]:
    """Return speeds and attention of the two stages of Phase II on one flow."""
    events, run, speeds = runs.events(problem), runs.flow(problem), runs.speeds(problem)
    population = runs.population(problem)
    start = events.switch.time if events.phases == 2 else 0.0
    during = (speeds.time >= start) & (speeds.time <= events.learned.time)
    own = speeds.features[during, speeds.own]
    others = np.delete(np.abs(speeds.features[during]), speeds.own, axis=1)
    others = np.hstack([others, np.abs(speeds.positions[during])])
    lead = own / np.nanmax(others, axis=1)
    peak = int(np.argmax(own))
    attention = [
        float(population.own_attention(state)[0][0])
        for state in (run.at(start), run.states[during][peak], run.at(events.learned.time))
    ]
    change = np.diff(own) / own[:-1]
    return {
        "phases": events.phases,
        "attention_start": attention[0],
        "attention_peak": attention[1],
        "attention_end": attention[2],
        "boost": float(own[peak] / own[0]),
        "fall_before": float(max(-change[:peak].min(initial=0.0), 0.0)),
        "rise_after": float(max(change[peak:].max(initial=0.0), 0.0)),
        "slowdown": float(own[peak] / own[-1]),
        "lead_peak": float(lead[peak]),
        "lead_after": float(lead[peak:].min()),
        "lead_start": float(lead[0]),
    }


PREDICATES = {
    "rapid growth: the speed of Phi_n rises to a peak": lambda t: (
        (t["fall_before"] <= ROUNDING) & (t["boost"] >= LEAD)
    ),
    "at the peak attention is of constant order": lambda t: t["attention_peak"] >= CONSTANT,
    "convergence: the speed falls after the peak": lambda t: (
        (t["rise_after"] <= ROUNDING) & (t["slowdown"] >= LEAD)
    ),
    "all other speeds are small from the peak on": lambda t: t["lead_after"] >= LEAD,
}
