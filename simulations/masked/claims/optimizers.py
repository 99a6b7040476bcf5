"""Momentum and weight decay in place of gradient flow: the phases of masked pretraining."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray

from dynamics import gradient_descent
from dynamics.core.trajectory import Status
from dynamics.masked import MaskedTrajectory
from dynamics.masked.events import MaskedEvents, find_events
from simulations.figures import report_figure
from simulations.figures.style import PROBLEM_STYLES, panel_letters, styled
from simulations.masked import runs
from simulations.masked.figures import regime_label
from simulations.masked.runs import CLOSE_TO_ZERO, LEAD, Regime
from simulations.masked.system import default_horizon
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: Optimizer -> arguments of `gradient_descent`. The first is the control. The first decay exceeds
#: the initial speed of Phi_n over log P at P = 10^6, the second does not.
CONTROL = "gradient descent"
OPTIMIZERS: dict[str, dict[str, Any]] = {
    CONTROL: {},
    "momentum": {"optimizer": "momentum", "momentum": 0.9},
    "weight decay 5e-4": {"weight_decay": 5e-4},
    "weight decay 1e-6": {"weight_decay": 1e-6},
}
P, RATE, RECORDS, EPS = 10**6, 4.0, 400, 1e-2


class Case(NamedTuple):
    """A regime and the name of an optimizer."""

    regime: Regime
    optimizer: str


def measure(context: Context) -> Measurement:
    """Descend with each optimizer and locate the phases."""
    two = context.choose(quick=runs.TWO_PHASES[:1], full=runs.TWO_PHASES)
    single = context.choose(quick=runs.ONE_PHASE[0::2], full=runs.ONE_PHASE)
    cases = [Case(regime, name) for regime in (*two, *single) for name in OPTIMIZERS]
    trajectories = {case: descend(case) for case in context.track(cases)}
    tables: dict[str, list[dict[str, Any]]] = {"two phases": [], "one phase": []}
    for case, run in trajectories.items():
        events = find_events(run, runs.population(run.problem), eps=EPS)
        name, row = (
            ("two phases", two_phases(run, events))
            if case.regime in two
            else ("one phase", one_phase(run, events))
        )
        tables[name].append(
            {
                "regime": case.regime.name,
                "optimizer": case.optimizer,
                "learned": events.learned.time / RATE,
            }
            | row
        )
    return Measurement(
        {
            "two phases": TWO.frame(tables["two phases"]),
            "one phase": ONE.frame(tables["one phase"]),
        },
        {"P": P, "mask_ratio": 0.5, "z": 1.0, "eps": EPS, "learning rate": RATE}
        | {"optimizers": OPTIMIZERS},
        (_figure(trajectories),),
    )


def descend(case: Case) -> MaskedTrajectory:
    """Return descent from Q(0) = 0 for the flow time in which p learns without decay.

    Raises
    ------
    RuntimeError
        If it does not reach its last step.
    """
    problem = case.regime.problem(P)
    run = gradient_descent(
        runs.population(problem),
        learning_rate=RATE,
        steps=int(np.ceil(default_horizon(problem, EPS) / RATE)),
        records=RECORDS,
        **OPTIMIZERS[case.optimizer],
    )
    if run.status is not Status.COMPLETED:
        raise RuntimeError(f"{case} stopped early: {run.message}")
    assert isinstance(run, MaskedTrajectory)
    return run


def two_phases(run: MaskedTrajectory, events: MaskedEvents) -> dict[str, float]:
    """Return the quantities of `huang-two-phases`."""
    areas = run.problem.layout.clusters[0]
    gain = run.at(events.learned.time) - run.at(events.switch.time)
    return {
        "phases": events.phases,
        "switch": events.switch.time / RATE,
        "rival_at_switch": events.rival_at_switch,
        "others_at_switch": max(events.own_at_switch, events.others_at_switch),
        "own_gain": float(gain[areas.own_slot]),
        "rival_loss": abs(float(gain[areas.global_slot])),
    }


def one_phase(run: MaskedTrajectory, events: MaskedEvents) -> dict[str, float]:
    """Return the quantities of `huang-one-phase`; NaN if p does not learn."""
    if not events.learned.happens:
        return {"phases": events.phases}
    areas, first = run.problem.layout.clusters[0], run.problem.layout.phi_slots
    states = run.states[run.time <= events.learned.time]
    rivals = [slot for slot in np.unique(areas.slot) if slot != areas.own_slot]
    population = runs.population(run.problem)
    speed = -np.array([population.gradient(state) for state in states])
    others = np.abs(np.hstack([states[:, rivals], states[:, first:]])).max()
    return {
        "phases": events.phases,
        "overtaken": (np.abs(speed[:, rivals]).max(axis=1) / speed[:, areas.own_slot]).max(),
        "others": others / run.at(events.learned.time)[areas.own_slot],
    }


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    return {
        "two": tables["two phases"].count(TAKES_OVER),
        "one": tables["one phase"].count(DOMINATES),
        "learned": " and ".join(table.count(LEARNED) for table in tables.values()),
    }


def _figure(trajectories: Mapping[Case, MaskedTrajectory]) -> Figure:
    regimes = list(dict.fromkeys(case.regime for case in trajectories))
    chosen = [
        next(regime for regime in regimes if regime in group)
        for group in (runs.TWO_PHASES, runs.ONE_PHASE)
    ]
    data = {
        name: np.full((len(chosen), len(OPTIMIZERS), RECORDS), np.nan)
        for name in ("step", "own", "first")
    }
    for case, run in trajectories.items():
        if case.regime in chosen:
            index = chosen.index(case.regime), list(OPTIMIZERS).index(case.optimizer)
            areas, size = run.problem.layout.clusters[0], run.time.size
            data["step"][*index, :size] = run.time / RATE
            data["own"][*index, :size] = run.states[:, areas.own_slot]
            data["first"][*index, :size] = run.states[:, areas.global_slot]
    return report_figure(
        "masked-optimizers",
        "The two correlations with momentum and weight decay",
        "Correlation with p's own area (thick) and with the global area (thin) of a local patch "
        f"at P = 10^6, learning rate {RATE:g}, momentum 0.9: left a positive information gap "
        "(two phases), right a negative one.",
        _draw,
        xarray.Dataset(
            {name: (("regime", "optimizer", "record"), values) for name, values in data.items()},
            coords={
                "regime": [regime.name for regime in chosen],
                "optimizer": list(OPTIMIZERS),
            },
        ),
        (7.4, 3.6),
    )


@styled
def _draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw both correlations against the step, a panel per regime and a colour per optimizer."""
    panels = figure.subplots(1, data.sizes["regime"], squeeze=False)[0]
    artists = {}
    for ax, regime in zip(panels, data["regime"].values):
        for name, style in zip(data["optimizer"].values, PROBLEM_STYLES):
            run = data.sel(regime=regime, optimizer=name).isel(record=slice(1, None))
            artists[str(name)] = ax.plot(run["step"], run["own"], **style)[0]
            ax.plot(run["step"], run["first"], **style | {"linewidth": 0.7})
        ax.set(xscale="log", xlabel="step")
        ax.set_title(regime_label(str(regime)))
    panels[0].set_ylabel(r"$\Phi_n$ (thick), $\Phi_1$ (thin)")
    panel_letters(panels)
    figure.legend(artists.values(), artists, loc="outside lower center", ncols=4)
    return artists


LEARNED = "p learns"
TAKES_OVER = "Phi_1 decreases first, then Phi_n takes over"
DOMINATES = "the increase of Phi_n dominates throughout"
_LEARNED = Column(f"mean of (1 - attention)^2 below {EPS:g}", "steps", missing="never", rtol=1e-3)
TWO = Table(
    index=("regime", "optimizer"),
    columns={
        "phases": Column("phases"),
        "switch": Column("switch", "steps", missing="never", rtol=1e-3),
        "learned": _LEARNED,
        "rival_at_switch": Column("Phi_1 at the switch", rtol=1e-3),
        "others_at_switch": Column("largest other correlation at the switch", rtol=1e-3),
        "own_gain": Column("growth of Phi_n after it", rtol=1e-3),
        "rival_loss": Column("further change of Phi_1", rtol=1e-3),
    },
    predicates={
        TAKES_OVER: lambda t: (t.phases == 2) & (t.rival_at_switch < 0.0),
        "all others hardly change before the switch": lambda t: (
            -t.rival_at_switch >= LEAD * t.others_at_switch
        ),
        "Phi_1 is nearly unchanged after the switch": lambda t: t.own_gain >= LEAD * t.rival_loss,
        LEARNED: lambda t: t.learned.notna(),
    },
    judged=lambda t: t.index.get_level_values("optimizer") != CONTROL,
)
ONE = Table(
    index=("regime", "optimizer"),
    columns={
        "phases": Column("phases"),
        "learned": _LEARNED,
        "overtaken": Column("greatest speed of a rival over dPhi_n/dt until learned", rtol=1e-3),
        "others": Column("largest other correlation over Phi_n when learned", rtol=1e-3),
    },
    predicates={
        DOMINATES: lambda t: t.overtaken < 1.0,
        "all others stay close to 0": lambda t: t.others <= CLOSE_TO_ZERO,
        LEARNED: lambda t: t.learned.notna(),
    },
    judged=lambda t: t.index.get_level_values("optimizer") != CONTROL,
)

CLAIM = Claim(
    id="huang-optimizers",
    place="Sections 5.2 to 5.4 with other optimizers",
    statement=(
        "With a positive information gap Phi_1 of a local patch falls first, then Phi_n takes "
        "over; otherwise Phi_n dominates throughout; p learns. Tested here: the same with "
        "momentum and weight decay."
    ),
    method=(
        "The quantities of huang-two-phases and huang-one-phase along descent at P = 10^6, as long "
        "as p needs without decay; gradient descent as a control. Speeds are minus the gradient. "
        "Events between two of 400 records, 3 % apart in time, are interpolated."
    ),
    criterion=(
        "In every run with another optimizer, as in the two claims: |Phi_1| at least 3 times all "
        "other correlations at the switch, then Phi_n grows by at least 3 times the change of "
        "Phi_1; with one phase no rival is as fast as Phi_n, and none exceeds a tenth of it. p "
        "learns: the mean of (1 - attention)^2 falls below 1e-2. The statements are about GD: a "
        "violation is a finding. Decay 5e-4 exceeds the initial speed of Phi_n over log P, 1e-6 "
        "does not. Gradient descent is reported, not judged. Nothing is random."
    ),
    tables={"two phases": TWO, "one phase": ONE},
    measure=measure,
    headline=headline,
    finding=("Two phases in {two} runs, Phi_n leads throughout in {one}; p learns in {learned}."),
    quick_note="one regime with two phases instead of two, two with one phase instead of four",
    assumptions=(
        "the mean-field limit; Adam and sign descent are rejected, because Q can be rotated and "
        "they do not commute with rotations"
    ),
    group="masked",
)
