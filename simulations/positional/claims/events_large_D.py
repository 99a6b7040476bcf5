"""Times of the three events as D grows, and the second rise of alpha."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import xarray

from dynamics import Population, gradient_flow
from dynamics.positional.events import find_events
from simulations.figures import report_figure
from simulations.positional import large_D_flows as large
from simulations.positional.figures import large_D as figures
from simulations.positional.large_D_flows import LOSS_GOAL, TOLERANCE, Case, Run
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table


def measure(context: Context) -> Measurement:
    """Collect T0, T1 and the second rise for every scaling, qD and D; fit exponents in D."""
    flows = large.flows(context)
    events = EVENTS.frame(case.levels | _events(flow) for case, flow in flows.items())
    data = figure_data(events, [flow.predicted_T1 for flow in flows.values()])
    earlier = [
        {
            **case.levels,
            "ended at risk": risk,
            "T1_if_ended_earlier": flow.T1_if_ended_at(risk) / flow.events.T1.time,
        }
        for case, flow in flows.items()
        for risk in large.EARLIER_GOALS
    ]
    return Measurement(
        {
            "events": events,
            "ended earlier": EARLIER.frame(earlier),
            "exponents": large.exponents(data, ("alpha_star", "T0", "T1")),
            "longer runs": LONGER.frame(_longer_runs() if context.thorough else ()),
        },
        large.parameters(context),
        (_figure(data),),
    )


def _events(flow: Run) -> dict[str, Any]:
    """Return the events of a flow, and the risk at the end of the second rise."""
    events = flow.events
    return {
        "start_alpha": flow.path.problem.initial_state.alpha,
        "alpha_star": events.alpha_star,
        "T0": events.T0.time,
        "T1": events.T1.time,
        "T1_steps": events.T1.time / flow.stable_rate,
        "largest_rho": flow.largest_rho,
        "horizon": float(flow.path.time[-1]),
        "onset": events.onset.time,
        "end_of_rise": events.end_of_rise.time,
        "rise": events.rise,
        "risk_after_rise": flow.risk_after_rise,
    }


def figure_data(events: pd.DataFrame, predicted_T1: Sequence[float]) -> xarray.Dataset:
    """Return the numbers that the figure shows, with the predicted T1 of each flow."""
    names = ["alpha_star", "T0", "T1", "risk_after_rise", "end_of_rise"]
    return large.grid(events[names].assign(T1_theory=predicted_T1))


def _longer_runs() -> Iterator[dict[str, Any]]:
    """Yield T1 at D = 10^5, qD = 4, nu = 1/D in runs beyond the goal for the risk."""
    case = Case("nu=1/D", 3, 4, 100_000)
    for horizon in (3e8, 1e9, 3e9):
        population = Population(case.problem, method="fourier", tolerance=TOLERANCE)
        path = gradient_flow(population, horizon=horizon)
        yield {
            **case.levels,
            "horizon": horizon,
            "T1_longer": find_events(path, population).T1.time,
            "ended": float(path.time[-1]),
            "risk_longer": float(path.loss[-1]),
        }


def _figure(data: Any) -> Figure:
    return report_figure(
        "events-large-D",
        "Events II and III for D up to a million",
        "Flows at C = 4; beta = log log D and nu a power of D (the paper's parametrization), and "
        "nu = 0.01, beta = 1 as a contrast. (a, b) T1, the time at which gamma exceeds the largest "
        "|rho| of the run (points), and the scaling theory with the measured largest |rho| "
        "(lines). (c, d) Population risk at which the second rise of alpha ends; the paper: o(1). "
        "Open symbols: alpha still rises when the run ends at risk 1e-3.",
        figures.draw_events,
        data,
        (7.0, 5.8),
    )


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    events = tables["events"]
    growth = tables["exponents"].data.query("of == 'T1' and scaling == 'nu=1/D'").exponent
    risks = events.rows.risk_after_rise[events.rows.onset.notna()]
    return {
        "growth": growth.max(),
        "again": events.count("III: alpha increases again"),
        "until": f", until risk {risks.min():.2g} to {risks.max():.2g}" if len(risks) else "",
    }


EVENTS = Table(
    index=large.INDEX,
    columns={
        "start_alpha": Column("alpha(0)"),
        "alpha_star": Column("quasi-steady alpha"),
        "T0": Column("T0", "flow time", missing="never"),
        "T1": Column("T1", "flow time", missing="never"),
        "T1_steps": Column("T1 at the largest stable rate", "steps", missing="never"),
        "largest_rho": Column("largest |rho|"),
        "horizon": Column("horizon: time at the end", "flow time"),
        "onset": Column("onset of the second rise", "flow time", missing="never"),
        "end_of_rise": Column("end of the second rise", "flow time", missing="not in the run"),
        "rise": Column("factor of the second rise"),
        "risk_after_rise": Column("risk when the second rise ends", rtol=1e-3),
    },
    predicates={
        "T0 < T1": lambda t: t.T0 < t.T1,
        "III: alpha increases again": lambda t: t.onset.notna(),
        "III: until the population risk is at most 1e-3": lambda t: (
            t.onset.notna() & (t.risk_after_rise <= LOSS_GOAL)
        ),
    },
    judged=large.in_regime,
)
EARLIER = Table(
    index=(*large.INDEX, "ended at risk"),
    columns={
        "T1_if_ended_earlier": Column("T1 of a run that ends at this risk, over T1", rtol=2e-2)
    },
)
LONGER = Table(
    index=(*large.INDEX, "horizon"),
    columns={
        "T1_longer": Column("T1 of a longer run", "flow time", missing="never"),
        "ended": Column("time at which that run ended", "flow time"),
        "risk_longer": Column("risk at its end"),
    },
)

CLAIM = Claim(
    id="events-large-D",
    place="Events I, II, III (Section 4.1) with Assumption 2 and Parametrization 3.1",
    statement=(
        "alpha grows until T0, then gamma until it exceeds the largest |rho| at T1, then alpha "
        "increases again until the population risk is o(1)."
    ),
    method=(
        "T0, T1 and the second rise of alpha against D, with exponents and the scaling theory, for "
        "nu = D^(-1/2), 1/D, 1/D^2 and beta = log log D; fixed nu and beta as a contrast."
    ),
    criterion=(
        "Holds if at every size, density and scaling of nu with Parametrization 3.1 (fixed nu and "
        "beta are not judged) T0 < T1 exist and alpha* rises at some time after T0 until the risk "
        "is below 1e-3, the threshold for the paper's o(1). T1 refers to the largest |rho| of the "
        "run: the run ends at risk 1e-3 or, at the latest, at flow time 3e5 (D/100)^3, for the "
        "theorem's T = poly(d)/eta. T1 of a run that ends at risk 0.1 or 0.01 is reported."
    ),
    tables={
        "events": EVENTS,
        "ended earlier": EARLIER,
        "exponents": large.EXPONENTS,
        "longer runs": LONGER,
    },
    measure=measure,
    headline=headline,
    finding="T1 grows as D^{growth:.2g} at nu = 1/D; alpha rises again in {again} flows{until}.",
    tolerance=LOSS_GOAL,
    quick_note="nu = 1/D and the contrast, qD = C, D up to 10^4 instead of 10^6",
    thorough_note=(
        "D = 10^4 too; nu = D^(-1/2) at qD = C^2 and at D = 10^6; nu = 1/D^2 at qD = C^2; the "
        "contrast at qD = C^2 and at D = 10^5; T1 at D = 10^5, qD = 4, nu = 1/D for three "
        "horizons beyond the goal"
    ),
    assumptions="the Fourier expectation, certified at 1e-8",
    group="large-D",
)
