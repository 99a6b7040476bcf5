"""Event III (Lemma D.11): once gamma exceeds the largest |rho|, alpha increases again."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray

from dynamics.positional.slow_manifold import SlowManifold
from simulations.figures import report_figure
from simulations.figures.style import PROBLEM_STYLES, styled
from simulations.positional import large_D_flows as large
from simulations.positional import theorem_4_1 as theorem
from simulations.positional.large_D_flows import FIXED, LOSS_GOAL, Case, Run
from simulations.reproduction.claim import Claim, Context, Figure, Measurement
from simulations.reproduction.predicates import CheckedTable, Column, Table

#: alpha is compared at T1 and at this many times T1.
AFTER = 1.01
#: Number of records of each flow in the figure.
RECORDS = 200


def measure(context: Context) -> Measurement:
    """Evaluate the slope of alpha at T1 on the flows of `events-large-D`."""
    flows = large.flows(context)
    table = TABLE.frame(row(case, run) for case, run in flows.items())
    shown = {case: run for case, run in flows.items() if case.scaling == "nu=1/D"}
    return Measurement({"event III": table}, large.parameters(context), (_figure(shown),))


def row(case: Case, run: Run) -> dict[str, Any]:
    """Return the row of a flow: slope of alpha at T1, and risk at the end of its rise."""
    path, T1 = run.path, run.events.T1.time
    within = case.scaling != FIXED and not theorem.hypotheses(path.problem).broken
    start = {"scaling": case.scaling, "qD": case.features, "D": case.D, "within": within}
    if not math.isfinite(T1):
        return start
    alpha = path.at(T1).alpha
    later = path.at(float(min(AFTER * T1, path.time[-1]))).alpha
    after = np.flatnonzero(path.time >= T1)
    top = after[np.argmax(path.alpha[after])]
    return start | {
        "T1": T1,
        "drift": SlowManifold(run.population).drift(path.at(T1)).alpha * T1 / alpha,
        "difference": (later / alpha - 1.0) / (AFTER - 1.0),
        "risk": float(np.interp(T1, path.time, path.loss)),
        "risk_at_top": float(path.loss[top]),
        "growth": float(path.alpha[top] / alpha),
        "final": float(path.final.alpha / alpha),
    }


def headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    """Return the numbers of the sentence."""
    table = tables["event III"]
    return {
        "increases": table.count("alpha increases at T1"),
        "until": table.count("it increases until the risk is 1e-3"),
        "least": table.rows.risk_at_top.min(),
        "most": table.rows.risk_at_top.max(),
    }


def _figure(flows: Mapping[Case, Run]) -> Figure:
    data = np.full((2, len(flows), RECORDS), np.nan)
    for number, run in enumerate(flows.values()):
        later = np.flatnonzero(run.path.time >= run.events.T1.time)
        indices = later[np.unique(np.linspace(0, later.size - 1, RECORDS).round().astype(int))]
        data[0, number, : indices.size] = run.path.loss[indices]
        data[1, number, : indices.size] = (
            run.path.alpha[indices] / run.path.at(run.events.T1.time).alpha
        )
    return report_figure(
        "event-III",
        "Event III: alpha after T1",
        "alpha over its value at T1 against the population risk, which falls from left to right, "
        "on flows with nu = 1/D, sigma_A = log log D, C = 4, until the risk is 1e-3. alpha "
        "increases at T1 and decreases before the risk is small.",
        _draw,
        xarray.Dataset(
            {"risk": (("flow", "record"), data[0]), "alpha": (("flow", "record"), data[1])},
            coords={
                "qD": ("flow", [case.features for case in flows]),
                "D": ("flow", [case.D for case in flows]),
            },
        ),
        (6.4, 3.8),
    )


@styled
def _draw(data: xarray.Dataset, figure: Any) -> dict[str, Any]:
    """Draw alpha against the risk, with a colour per D and a line style per qD."""
    ax = figure.subplots()
    artists, sizes = {}, np.unique(data["D"]).tolist()
    for number in range(data.sizes["flow"]):
        flow = data.isel(flow=number)
        D, features = int(flow["D"]), int(flow["qD"])
        label = rf"$D=10^{{{math.log10(D):.0f}}}$, $qD={features}$"
        artists[label] = ax.plot(
            flow["risk"],
            flow["alpha"],
            color=PROBLEM_STYLES[sizes.index(D)]["color"],
            linestyle="-" if features == data["qD"].min() else "--",
            label=label,
        )[0]
    ax.set(xscale="log", xlabel="population risk", ylabel=r"$\alpha(t)/\alpha(T_1)$")
    ax.invert_xaxis()
    ax.axhline(1.0, color="#999999", linewidth=0.8)
    ax.legend(ncols=2)
    return artists


TABLE = Table(
    index=("scaling", "qD", "D"),
    columns={
        "within": Column("hypotheses met"),
        "T1": Column("T1", "flow time", missing="never", rtol=1e-3),
        "drift": Column("d log alpha/d log t at T1, on the slow manifold", rtol=1e-2),
        "difference": Column("d log alpha/d log t from alpha at T1 and 1.01 T1", rtol=math.inf),
        "risk": Column("risk at T1", rtol=1e-3),
        "risk_at_top": Column("risk where alpha is largest after T1", rtol=0.2),
        "growth": Column("largest alpha after T1 over alpha(T1)", rtol=1e-3),
        "final": Column("alpha at the end over alpha(T1)", rtol=1e-3),
    },
    predicates={
        "T1 exists": lambda t: t["T1"].notna(),
        "alpha increases at T1": lambda t: (t.drift > 0.0) & (t.difference > 0.0),
        "it increases until the risk is 1e-3": lambda t: t.risk_at_top <= 1.001 * LOSS_GOAL,
    },
    judged=lambda t: t.within,
)

CLAIM = Claim(
    id="lemma-D.11",
    place="Event III (Section 4.1) and Lemma D.11",
    statement=(
        "Because gamma(T1) > max_t |rho(t)|, we again have alpha(t+1) > alpha(t), as in Event I: "
        "alpha increases again until the population risk is o(1)."
    ),
    method=(
        "On the flows of events-large-D, from D = 1,000 to 10^6: the slope of alpha at T1, by the "
        "drift of the quasi-steady value and by a difference of alpha; and the risk at which alpha "
        "is largest after T1."
    ),
    criterion=(
        "The appendix with the lemma is not available; the statement of Section 4.1 is tested, on "
        "flows that meet the hypotheses of theorem-4.1 (fixed nu and beta do not). T1 must exist, "
        "alpha increase at T1 by both measures, and go on until the risk is 1e-3, the threshold "
        "for o(1) as in events-large-D. o(1) and poly(d) are asymptotic: less is a finding."
    ),
    amended=(
        "The end of the rise was first measured as the share of the decay of the risk during which "
        "alpha increases, at 40 times. It is now the risk at which alpha is largest. No verdict of "
        "a flow changed."
    ),
    quick_note="nu = 1/D and the contrast, qD = C, D up to 10^4 instead of 10^6",
    thorough_note=(
        "D = 10^4 too; nu = D^(-1/2) at qD = C^2 and at D = 10^6; nu = 1/D^2 at qD = C^2; the "
        "contrast at qD = C^2 and at D = 10^5"
    ),
    assumptions="the Fourier expectation, certified at 1e-8",
    tables={"event III": TABLE},
    measure=measure,
    headline=headline,
    finding=(
        "alpha increases at T1 in {increases}, until the risk is 1e-3 in {until}: it is largest at "
        "risk {least:.2g} to {most:.2g}."
    ),
    group="large-D",
)
