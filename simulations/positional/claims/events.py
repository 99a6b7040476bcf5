"""Events I, II and III of Section 4.1: when they happen, and where they do not."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray

from dynamics import Problem, Trajectory
from dynamics.core.schedule import thinned
from dynamics.positional.events import Events, attention_leads
from simulations.figures import report_figure
from simulations.figures.style import (
    COLOURS,
    LABELS,
    REFERENCE,
    line,
    log_time,
    panel_letter,
    shade_events,
    styled,
)
from simulations.positional import reference_runs as runs
from simulations.positional import theorem_4_1 as theorem
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: Flow times eta T up to which |rho| is compared with gamma in the named regimes. The events are
#: located up to the last one.
HORIZONS = (1e4, 1e6, 1e8)
#: D of the problems of the paper's parametrization with T1 at the horizons d^2, d^3, d^4.
D = 1024


def measure(context: Context) -> Measurement:
    """Locate the events on the flow of each named problem."""
    problems = context.choose(
        quick=(runs.BASE, runs.WIDE, runs.CROWDED),
        full=(*runs.REGIMES, runs.DENSE_REGIMES[0]),
        thorough=(*runs.REGIMES, *runs.DENSE_REGIMES),
    )
    rows, horizons = [], []
    for problem in context.track(problems):
        tolerance = runs.tolerance(context.quick, problem)
        flow, events = runs.flow(problem, tolerance), runs.events(problem, tolerance)
        name = runs.describe(problem)
        rows.append(
            {
                "problem": name,
                "start_alpha": problem.initial_state.alpha,
                "alpha_star": events.alpha_star,
                "T0": events.T0.time,
                "T1": events.T1.time,
                "after_event_I": events.alpha_after_event_I,
                "onset": events.onset.time,
                "end_of_rise": events.end_of_rise.time,
                "rise": events.rise,
                **flow.final._asdict(),
            }
        )
        horizons += [(name, f"{h:.0e}", attention_leads(flow, h).time) for h in HORIZONS]
    for problem in theorem.paper_problems(context.quick, context.thorough):
        if problem.D == D:
            flow = theorem.flow(problem, theorem.TOLERANCE)
            for power in theorem.HORIZONS:
                time = attention_leads(flow, theorem.horizon(problem, power)).time
                horizons.append((runs.describe(problem), f"d^{power}", time))
    names = ("problem", "horizon", "T1_by_horizon")
    shown = context.choose(quick=(runs.BASE,), full=(runs.BASE, runs.MANY_FEATURES))
    return Measurement(
        {
            "events": EVENTS.frame(rows),
            "T1 by horizon": T1.frame(dict(zip(names, row)) for row in horizons),
        },
        {
            "problems": [asdict(problem) for problem in problems],
            "horizon": runs.HORIZON,
            "population tolerances": [runs.tolerance(context.quick, p) for p in problems],
            "definitions": _definitions(events),
        },
        tuple(_figure(problem, runs.tolerance(context.quick, problem)) for problem in shown),
    )


def _definitions(events: Events) -> dict[str, str]:
    """Return the definition of each event by its name."""
    times = (events.T0, events.T1, events.onset, events.end_of_rise)
    return {time.name: time.definition for time in times}


def _figure(problem: Problem, tolerance: float) -> Figure:
    base = problem == runs.BASE
    return report_figure(
        "order-parameters" if base else "order-parameters-second-rise",
        "Events I, II, III: the order parameters"
        + ("" if base else " where alpha rises a second time"),
        f"Gradient flow on (P), {runs.describe(problem)}, from Parametrization 3.1. Shaded: Events "
        "I (until alpha reaches its quasi-steady value, T0), II (until gamma exceeds the largest "
        "|rho|, T1) and III.",
        draw_order_parameters,
        order_parameters(runs.flow(problem, tolerance), runs.events(problem, tolerance)),
        (7.0, 4.8),
    )


def order_parameters(run: Trajectory, events: Events) -> xarray.Dataset:
    """Return a trajectory with the times of its events as attributes, NaN if one is missing.

    Parameters
    ----------
    run, events
        A flow and its events (`find_events`).

    Returns
    -------
    xarray.Dataset
        At most 800 records of the flow; attributes ``T0``, ``T1``, ``onset``, ``end`` in flow time.
    """
    data = run.to_dataset().isel(time=thinned(run.time.size, 800))
    times = {"T0": events.T0, "T1": events.T1, "onset": events.onset, "end": events.end_of_rise}
    return data.assign_attrs({name: float(event.time) for name, event in times.items()})


@styled
def draw_order_parameters(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw `order_parameters`: alpha; gamma and rho; Lambda, Gamma, Xi; G, with shaded events."""
    panels = figure.subplots(2, 2, sharex=True)
    groups = (("alpha",), ("gamma", "rho"), ("Lambda", "Gamma", "Xi"), ("G",))
    artists: dict[str, Any] = {}
    later = data.isel(time=slice(1, None))  # a logarithmic axis has no time 0
    time = later["time"].values
    for letter, ax, names in zip("abcd", panels.flat, groups):
        for name in names:
            artists[name] = line(ax, name, time, later[name])
        ax.set_ylabel(", ".join(LABELS[name] for name in names))
        log_time(ax, time, first=1e-3, label=ax in panels[1])
        shade_events(ax, (data.attrs["T0"], data.attrs["T1"]), names=ax in panels[0])
        panel_letter(ax, letter)
    panels[0, 0].set_ylim(bottom=0.0)
    panels[0, 1].axhline(0.0, **REFERENCE)
    panels[1, 0].set_yscale("log")
    for ax, names in zip(panels.flat, groups):
        if len(names) > 1:
            artists[f"legend {names}"] = ax.legend(loc="best", labelcolor="linecolor")
    _mark_rise(panels[0, 0], data)
    return artists


def _mark_rise(ax: Any, data: xarray.Dataset) -> None:
    """Mark the beginning and the end of the second rise of alpha, if there is one."""
    for name in ("onset", "end"):
        time = data.attrs[name]
        if np.isfinite(time):
            alpha = float(np.interp(time, data["time"], data["alpha"]))
            ax.plot(time, alpha, "o", color=COLOURS["alpha"], markersize=4)


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    events = tables["events"]
    first, last = events.data.T1.min(), events.data.T1.max()
    return {
        "exists": events.count("II: gamma exceeds max |rho|"),
        "times": f" ({first:.2g} to {last:.2g})" if first == first else "",
        "again": events.data.onset.notna().sum(),
        "until_the_end": (events.data.onset.notna() & events.data.end_of_rise.isna()).sum(),
    }


EVENTS = Table(
    index=("problem",),
    columns={
        "start_alpha": Column("I: alpha(0)"),
        "alpha_star": Column("I: quasi-steady alpha"),
        "T0": Column("I: T0", "flow time", missing="never"),
        "T1": Column("II: T1", "flow time", missing="never", rtol=1e-4),
        "after_event_I": Column("III: alpha after Event I"),
        "onset": Column("III: onset of the rise", "flow time", missing="never"),
        "end_of_rise": Column("III: end of the rise", "flow time", missing="never"),
        "rise": Column("III: factor of the rise"),
        "alpha": Column("end: alpha", rtol=1e-4),
        "gamma": Column("end: gamma", rtol=1e-4),
        "rho": Column("end: rho", rtol=1e-4),
    },
    predicates={
        "I: alpha increases from its start": lambda t: t.start_alpha < t.alpha_star,
        "II: gamma exceeds max |rho|": lambda t: t.T1.notna(),
        "III: alpha increases again, until the end": lambda t: (
            t.onset.notna() & t.end_of_rise.isna()
        ),
    },
)
T1 = Table(
    index=("problem", "horizon"),
    columns={
        "T1_by_horizon": Column("II: T1 within a horizon", "flow time", missing="never", rtol=1e-4)
    },
)

CLAIM = Claim(
    id="events",
    place="Events I, II, III (Section 4.1)",
    statement=(
        "Event I: alpha increases until T0, where it reaches some threshold. Event II: gamma "
        "increases until a T1 with gamma(T1) > max_t |rho(t)|. Event III: alpha increases again "
        "until the population risk is o(1)."
    ),
    method=(
        "T0, T1 (at three horizons, because it depends on the horizon), and the onset, end and "
        "size of alpha's second rise, in named regimes."
    ),
    criterion=(
        "The three sentences, at every named regime up to flow time 1e8, each time located on the "
        "dense output. I: alpha(0) lies below the quasi-steady alpha*, so that alpha increases, "
        "and comes within 1 % of it. II: gamma exceeds the largest |rho| of the whole run. III: "
        "alpha* rises again after T0 and does so until the end of the run (until the risk is "
        "o(1)). All three in all regimes: holds; otherwise a finding with the counts, since the "
        "paper's regime is asymptotic. T1 waits for the largest |rho| up to the horizon T, so it "
        "is reported at three. Nothing is sampled."
    ),
    tables={"events": EVENTS, "T1 by horizon": T1},
    measure=measure,
    headline=headline,
    finding=(
        "T1 exists in {exists} regimes{times}; alpha rises again in {again}, until the end in "
        "{until_the_end}."
    ),
    quick_note="three regimes instead of seven, population tolerance 1e-5 instead of 1e-8",
    thorough_note="nine regimes instead of seven",
    assumptions="gradient flow under the certified expectation, events located by root finding",
    group="named-problems",
)
