"""Huang et al., Sections 5.2 and 5.3: two phases of a local patch if the gap is positive."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray

from dynamics.masked import MaskedProblem
from simulations.figures import regime_map, report_figure
from simulations.maps import Sweep, map_data
from simulations.masked import runs
from simulations.masked.figures import trajectories
from simulations.masked.maps import MAPS
from simulations.masked.runs import LEAD
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import seeds_of
from simulations.sweep.compute import compute, grid

#: The theory requires a gap away from zero; cells with a smaller |Delta| are counted separately.
CLOSE = 0.1
#: Seeds of random masks.
SEEDS = 5


def measure(context: Context) -> Measurement:
    """Measure local patches with a positive gap, and count phases over a plane of exponents."""
    problems = _problems(context.quick)
    phases = [
        {"problem": runs.describe(problem)} | phases_of(problem)
        for problem in context.track(problems, stop=0.6)
    ]
    sampled = with_random_masks(context.seed)
    sweep = exponents(context, lambda part: context.progress(0.6 + 0.4 * part))
    return Measurement(
        {
            "runs": RUNS.frame(phases),
            "plane": PLANE.frame([mismatches(sweep.data)]),
            "random masks": RANDOM_MASKS.frame([sampled]),
        },
        {"mask_ratio": 0.5, "eps": runs.EPS, "rtol": runs.RTOL, "plane": sweep.config.plain()},
        (_figure([regime.problem() for regime in runs.TWO_PHASES]), _map_figure(sweep)),
    )


def _problems(quick: bool) -> list[MaskedProblem]:
    sizes = (10**6, 10**12) if quick else (10**6, 10**9, 10**12)
    problems = [regime.problem(P) for regime in runs.TWO_PHASES for P in sizes]
    if not quick:
        problems += [
            runs.WIDE_GAP.problem(z_low=1.0, z_high=1.5),
            runs.WIDE_GAP.problem(K=2),
        ]
    return problems


def with_random_masks(root: int) -> dict[str, Any]:
    """Return phases and Phi_1 at the switch with random masks at a small P, and in mean field."""
    regime = runs.WIDE_GAP
    events = [runs.sampled(regime, seed)[1] for seed in seeds_of(root, SEEDS)]
    switches = [event.rival_at_switch for event in events]
    return {
        "regime": regime.name,
        "P": runs.SMALL_P,
        "two_phases_sampled": sum(event.phases == 2 for event in events),
        "switch_sampled_least": min(switches),
        "switch_sampled_greatest": max(switches),
        "switch_mean_field": runs.events(regime.problem(runs.SMALL_P)).rival_at_switch,
    }


def phases_of(problem: MaskedProblem) -> dict[str, float]:
    """Return the quantities of Lemma 5.3 and of the second phase in one run."""
    events, run = runs.events(problem), runs.flow(problem)
    areas = problem.layout.clusters[0]
    gain = run.at(events.learned.time) - run.at(events.switch.time)
    law = -runs.log_gap(problem)
    return {
        "phases": events.phases,
        "initial_ratio": events.initial_ratio,
        "rival_at_switch": events.rival_at_switch,
        "law_low": law / problem.z_low,
        "law_high": law / problem.z_top,
        "others_at_switch": max(events.own_at_switch, events.others_at_switch),
        "own_gain": float(gain[areas.own_slot]),
        "rival_loss": abs(float(gain[areas.global_slot])),
    }


def exponents(context: Context, progress: Callable[[float], None] | None = None) -> Sweep:
    """Return the runs of a local patch over (kappa_c, kappa_s), P = 10^6."""
    across, up = context.choose(quick=(4, 5), full=(7, 8), thorough=(11, 12))
    axes = {
        "kappa_c": np.linspace(0.5, 0.97, up).round(4).tolist(),
        "kappa_s": np.linspace(0.1, 0.6, across).round(4).tolist(),
    }
    config = grid("masked", axes, P=10**6, rtol=1e-6)
    return Sweep(compute(config, progress), config)


def mismatches(data: xarray.Dataset) -> dict[str, int]:
    """Count the cells whose number of phases contradicts the sign of the gap."""
    gap = (1.0 - data["kappa_s"]) - 2.0 * (1.0 - data["kappa_c"])
    completed = data["status"] == "completed"
    other = completed & ((data["phases"] == 2.0) != (gap > 0.0))
    close = abs(gap) <= CLOSE
    return {
        "cells": int(completed.sum()),
        "mismatches": int((other & ~close).sum()),
        "close_mismatches": int((other & close).sum()),
    }


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    table, (cells, wrong, _) = tables["runs"].data, tables["plane"].data.iloc[0]
    return {
        "lead": (table.rival_at_switch.abs() / table.others_at_switch).min(),
        "cells": cells,
        "wrong": wrong,
        "close": CLOSE,
    }


def _figure(problems: list[MaskedProblem]) -> Figure:
    return report_figure(
        "masked-two-phases",
        "Two phases of a local patch",
        "Gradient flow at P = 10^6, z = 1, mask ratio 0.5 (mean-field counts). First the "
        "correlation with the global area falls (until the switch, grey) towards -Delta/2 log P "
        "(dashed). Then the correlation with p's own area grows, and the attention to this area "
        "tends to 1. Correlations with positions stay small.",
        trajectories.draw,
        runs.trajectory_dataset(problems, law=True),
        (7.4, 5.2),
    )


def _map_figure(sweep: Sweep) -> Figure:
    decrease = next(regime for regime in MAPS if regime.name == "global-falls")
    return report_figure(
        "masked-regimes",
        "One phase or two",
        "Decrease of the global correlation before p's own grows, for a local patch at P = 10^6, "
        "over the exponents of the areas; pale: its own correlation leads from the start. Dashed: "
        "information gap 0. Dotted: initial speeds are about equal at this P (m: mask ratio, C_1 "
        "and C_n patches in the global and in p's own area).",
        regime_map.draw,
        map_data(sweep, decrease, {}),
        (6.4, 5.0),
    )


RUNS = Table(
    index=("problem",),
    columns={
        "phases": Column("phases"),
        "initial_ratio": Column("initial |dPhi_1/dt| / dPhi_n/dt"),
        "rival_at_switch": Column("Phi_1 at the switch"),
        "law_low": Column("-Delta/2z log P, lower end"),
        "law_high": Column("-Delta/2z log P, upper end"),
        "others_at_switch": Column("largest other correlation at the switch"),
        "own_gain": Column("growth of Phi_n after it"),
        "rival_loss": Column("further fall of Phi_1"),
    },
    strict={
        "Phi_1 decreases first, then Phi_n takes over": lambda t: (
            (t.phases == 2) & (t.rival_at_switch < 0.0)
        ),
    },
    predicates={
        "all others hardly change before the switch": lambda t: (
            -t.rival_at_switch >= LEAD * t.others_at_switch
        ),
        "Phi_1 is nearly unchanged after the switch": lambda t: t.own_gain >= LEAD * t.rival_loss,
    },
)

PLANE = Table(
    index=(),
    columns={
        "cells": Column("cells of the plane"),
        "mismatches": Column(f"cells with the other number of phases, |Delta| > {CLOSE:g}"),
        "close_mismatches": Column(f"cells with the other number of phases, |Delta| <= {CLOSE:g}"),
    },
    predicates={
        f"the sign of Delta gives the number of phases where |Delta| > {CLOSE:g}": lambda t: (
            (t.cells > 0) & (t.mismatches == 0)
        ),
    },
)

RANDOM_MASKS = Table(
    index=("regime", "P"),
    columns={
        "two_phases_sampled": Column(
            f"runs with two phases, of {SEEDS} with {runs.SAMPLES} random masks"
        ),
        "switch_sampled_least": Column("Phi_1 at the switch, random masks, least", rtol=1e-3),
        "switch_sampled_greatest": Column("Phi_1 at the switch, random masks, greatest", rtol=1e-3),
        "switch_mean_field": Column("Phi_1 at the switch, mean field"),
    },
)

CLAIM = Claim(
    id="huang-two-phases",
    place="Sections 5.2 and 5.3, Lemma 5.3",
    statement=(
        "With a positive information gap, Phi_{p->v_1} of a local patch first decreases quickly "
        "while all others hardly change; then the increase of Phi_{p->v_n} takes over until "
        "convergence, all others nearly unchanged."
    ),
    method=(
        "All correlations at the switch (when Phi_n becomes faster than Phi_1) and when p has "
        "learned, on gradient flows from P = 10^6 to 10^12, and the number of phases over the "
        "plane (kappa_c, kappa_s)."
    ),
    criterion=(
        "In every run |Phi_1| must be at least 3 times all other correlations at the switch, and "
        "afterwards Phi_n must grow by at least 3 times the change of Phi_1 (3, half an order of "
        "magnitude, is a generous reading of 'nearly'). Over the plane the sign of Delta must give "
        "the number of phases wherever |Delta| > 0.1, as the theorem requires |Delta| = Omega(1). "
        "'Nearly' is qualitative and Omega(1) asymptotic, so that a violation is a finding. Random "
        "masks at P = 1024 do not decide."
    ),
    tables={"runs": RUNS, "plane": PLANE, "random masks": RANDOM_MASKS},
    measure=measure,
    headline=headline,
    finding=(
        "|Phi_1| is at least {lead!d:.2g} times all else at the switch; {wrong} of {cells} cells "
        "contradict the sign of Delta beyond {close}."
    ),
    tolerance=LEAD,
    quick_note="two sizes instead of three, no random z and K = 1 only, a coarser plane",
    thorough_note="a finer plane",
    amended=(
        "At first a violation of the factor 3 or over the plane was a failure; by the rule of "
        "verdicts it is a finding. This was changed after runs without a violation."
    ),
    assumptions="the mean-field limit, whose error is estimated along the run",
    group="masked",
)
