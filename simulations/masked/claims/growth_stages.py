"""Huang et al., Section 5.3: rapid growth of the target correlation, then convergence."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray

from dynamics.masked import MaskedProblem
from simulations.figures import report_figure
from simulations.figures.style import PROBLEM_STYLES, REFERENCE, panel_letters, styled
from simulations.masked import runs
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: Smallest ratio of the speed of Phi_n at its peak to its speed at the switch ("rapid") and at the
#: end ("decelerates"), and to all other speeds ("small"), as in `huang-two-phases`.
LEAD = 3.0
#: Attention "of constant order" at the peak.
CONSTANT = 0.1
#: Relative change between records that counts as rounding.
ROUNDING = 1e-6

SIZES, QUICK_SIZES = (10**6, 10**9, 10**12), (10**6, 10**12)
REGIMES = (runs.WIDE_GAP, runs.NARROW_GAP, runs.NEGATIVE_GAP, runs.IN_GLOBAL)


def measure(context: Context) -> Measurement:
    """Measure the speed of the target correlation from the switch until p has learned."""
    sizes = context.choose(quick=QUICK_SIZES, full=SIZES)
    cases = [(regime, P) for regime in REGIMES for P in sizes]
    table = TABLE.frame(
        {"regime": regime.name, "P": P, "within": regime in runs.TWO_PHASES}
        | stages(regime.problem(P))
        for regime, P in context.track(cases)
    )
    return Measurement(
        {"stages": table},
        {"mask_ratio": 0.5, "z": 1.0, "eps": runs.EPS, "rtol": runs.RTOL},
        (_figure(sizes[-1]),),
    )


def stages(problem: MaskedProblem) -> dict[str, float]:
    """Return speeds and attention in Phase II of one flow."""
    own, lead, attention = second_phase(problem)
    peak = int(np.argmax(own))
    change = np.diff(own) / own[:-1]
    return {
        "attention_start": attention[0],
        "attention_peak": attention[peak],
        "boost": own[peak] / own[0],
        "fall_before": max(-change[:peak].min(initial=0.0), 0.0),
        "rise_after": max(change[peak:].max(initial=0.0), 0.0),
        "slowdown": own[peak] / own[-1],
        "lead_start": lead[0],
        "lead_after": lead[peak:].min(),
    }


def second_phase(problem: MaskedProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the speed of Phi_n, its ratio to the fastest other one, and a_n, (n,) each.

    The records are from the switch (time 0 without one) until p has learned. Position correlations
    are averaged over areas.
    """
    events, run, speeds = runs.events(problem), runs.flow(problem), runs.speeds(problem)
    start = events.switch.time if events.phases == 2 else 0.0
    during = (speeds.time >= start) & (speeds.time <= events.learned.time)
    own = speeds.features[during, speeds.own]
    others = np.delete(np.abs(speeds.features[during]), speeds.own, axis=1)
    others = np.hstack([others, np.abs(speeds.positions[during])])
    population = runs.population(problem)
    attention = [float(population.own_attention(state)[0][0]) for state in run.states[during]]
    return own, own / np.nanmax(others, axis=1), np.array(attention)


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    table = tables["stages"]
    return {
        "grows": table.count("rapid growth: the speed of Phi_n rises to a peak"),
        "falls": table.count("convergence: the speed falls after the peak"),
        "boost": table.rows.boost.min(),
        "lead": table.rows.lead_after.min(),
    }


def _figure(P: int) -> Figure:
    phases = {regime.name: second_phase(regime.problem(P)) for regime in REGIMES}
    length = max(own.size for own, _, _ in phases.values())
    data = np.full((3, len(phases), length), np.nan)
    for number, (own, lead, attention) in enumerate(phases.values()):
        for row, values in enumerate((own / own.max(), lead, attention)):
            data[row, number, : values.size] = values
    return report_figure(
        "masked-growth-stages",
        "Phase II: rapid growth, then convergence",
        f"Gradient flow at P = {runs.power(P)}, from the switch (one phase: from the start) until "
        "p has learned, against the attention to p's own area. (a) Speed of Phi_n over its largest "
        "value: it grows until a_n is about 1/3 (grey), where a(1-a)^2 is largest, and falls "
        "after that. (b) Speed of Phi_n over that of the fastest other correlation; dashed: 3.",
        draw,
        xarray.Dataset(
            {
                name: (("regime", "record"), values)
                for name, values in zip(("speed", "lead", "attention"), data)
            },
            coords={"regime": list(phases)},
        ),
        (7.4, 3.8),
    )


@styled
def draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw speed and lead of the target correlation against the attention."""
    panels = figure.subplots(1, 2)
    artists = {}
    for number, name in enumerate(data["regime"].values.tolist()):
        part = data.sel(regime=name)
        label = ", ".join(rf"$\{text}$" if "=" in text else text for text in name.split(", "))
        for ax, quantity in zip(panels, ("speed", "lead")):
            artists[name] = ax.plot(
                part["attention"], part[quantity], label=label, **PROBLEM_STYLES[number]
            )[0]
    for ax in panels:
        ax.set(xscale="log", yscale="log", xlabel="attention $a_n$")
        ax.axvline(1.0 / 3.0, color="#BBBBBB", linewidth=1.0, zorder=-1)
    panels[1].axhline(LEAD, **REFERENCE)
    panels[0].set_ylabel(r"$\dot\Phi_n$ / largest $\dot\Phi_n$")
    panels[1].set_ylabel(r"$\dot\Phi_n$ / fastest other")
    panel_letters(panels)
    figure.legend(handles=list(artists.values()), loc="outside upper center", ncols=2)
    return artists


TABLE = Table(
    index=("regime", "P"),
    columns={
        "within": Column("local, positive gap"),
        "attention_start": Column("attention at the start of Phase II", rtol=1e-2),
        "attention_peak": Column("attention at the peak", rtol=0.1),
        "boost": Column("speed of Phi_n at its peak over that at the start", rtol=1e-2),
        "fall_before": Column("largest relative fall of the speed before the peak", atol=ROUNDING),
        "rise_after": Column("largest relative rise of the speed after it", atol=ROUNDING),
        "slowdown": Column("speed at the peak over that at the end", rtol=0.1),
        "lead_start": Column("speed over the fastest other one at the start", rtol=0.1),
        "lead_after": Column("least such ratio from the peak on", rtol=0.1),
    },
    predicates={
        "rapid growth: the speed of Phi_n rises to a peak": lambda t: (
            (t.fall_before <= ROUNDING) & (t.boost >= LEAD)
        ),
        "attention is of constant order at the peak": lambda t: t.attention_peak >= CONSTANT,
        "convergence: the speed falls after the peak": lambda t: (
            (t.rise_after <= ROUNDING) & (t.slowdown >= LEAD)
        ),
        "all other speeds are small from the peak on": lambda t: t.lead_after >= LEAD,
    },
    judged=lambda t: t.within,
)

CLAIM = Claim(
    id="huang-growth-stages",
    place="Section 5.3, Appendices C.3 and C.4",
    statement=(
        "Phase II has two stages. Rapid growth: the growth of Phi_{p->v_n} increases the attention "
        "to p's own area, and thereby its own gradient. Convergence: once this attention is of "
        "constant order, the growth decelerates. All other correlations have small gradients."
    ),
    method=(
        "The speed of Phi_n, its ratio to the fastest other correlation (positions averaged over "
        "areas) and the attention at the records of flows from P = 10^6 to 10^12, from the switch "
        "until (1 - a_n)^2 is 1e-4."
    ),
    criterion=(
        "For local patches with a positive gap (two exponents at each P), the speed must rise from "
        "the switch to a peak, by a factor of at least 3, and then fall by at least 3, each "
        "monotonically (1e-6 is rounding). The attention at the peak must be at least 0.1 at every "
        "P ('constant order'). From the peak on Phi_n must be at least 3 times as fast as any "
        "other correlation ('small', as in huang-two-phases). At the switch itself the ratio is 1 "
        "by definition. The text is qualitative: a violation is a finding. Other patches do not "
        "decide."
    ),
    quick_note="two sizes instead of three",
    assumptions="the mean-field limit, whose error is estimated along the run",
    tables={"stages": TABLE},
    measure=measure,
    headline=headline,
    finding=(
        "The speed of Phi_n grows {boost:.0f}-fold or more to one peak in {grows} and then falls "
        "in {falls}; its lead is {lead:.0f} or more."
    ),
    group="masked",
)
