"""The regime of Theorem 4.1: where all its conclusions hold at finite D, and how far it reaches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from simulations.claim import Claim, Context, Outcome, Verdict
from simulations.claims.theorem_4_1 import TOLERANCE

#: Population risk that counts as small (log 2 before training).
RISK = 0.1
C = 4
#: The bracket of the boundary in qD/C^2: from the scaling of the paper up (q = 1 at most), and how
#: often it is halved on a logarithmic scale.
LOW, HIGH, HALVINGS = 1.0, 16.0, 4


class Plan(NamedTuple):
    """What is run."""

    D: int  # of the map
    densities: tuple[float, ...]  # its axes
    nus: tuple[float, ...]
    boundaries: tuple[tuple[int, float], ...]  # (D, nu) along which the boundary is located
    halvings: int
    tolerance: float


class Edge(NamedTuple):
    """The boundary in qD/C^2: conclusions hold at ``inside`` and fail at ``outside``.

    ``inside`` is nan if they fail at the lower end of the bracket, ``outside`` is nan if they hold
    at the upper end.
    """

    inside: float
    outside: float
    why: str  # which conclusion fails first outside

    @property
    def middle(self) -> float:
        """The geometric middle; the end that exists where only one does."""
        if math.isnan(self.inside) or math.isnan(self.outside):
            return self.outside if math.isnan(self.inside) else self.inside
        return math.sqrt(self.inside * self.outside)


def plan(quick: bool) -> Plan:
    """Return what is run."""
    if quick:
        pairs = tuple((D, nu) for nu in (1e-3, 1e-1) for D in (24, 48))
        return Plan(24, (0.25, 0.75), (1e-3, 1e-1), pairs, 1, 1e-5)
    pairs = tuple((D, nu) for nu in (1e-3, 1e-1) for D in (64, 256, 1024))
    densities = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
    return Plan(64, densities, (1e-3, 1e-2, 1e-1, 1.0), (*pairs, (4096, 1e-3)), HALVINGS, 1e-7)


def values(D: int, density: float, nu: float, tolerance: float) -> dict[str, Any]:
    """Return one cell; the attention gradients fall with D^2 and more, and the time grows so."""
    horizon = 1e6 * (D / 64) ** 3
    return {"D": D, "C": C, "qD/C^2": density, "nu": nu, "horizon": horizon, "rtol": 1e-6,
            "tolerance": tolerance}  # fmt: skip


def failing(row: Mapping[str, Any]) -> str:
    """Return which conclusion of the theorem fails at the end of a run, "" if none does.

    A run that ended early is judged by its last state: what is learned there stays learned, and
    what is not counts as failing.
    """
    if row["association"] != 1.0:
        return "patch association"
    if not row["test_error"] - row["best_test_error"] <= TOLERANCE:
        return "test error"
    return "" if row["loss"] <= RISK else "risk"


def locate(fails: Callable[[float], str], low: float, high: float, halvings: int) -> Edge:
    """Return the boundary between two densities by bisection on a logarithmic scale."""
    if why := fails(low):
        return Edge(math.nan, low, why)
    why = fails(high)
    if not why:
        return Edge(high, math.nan, "")
    for _ in range(halvings):
        middle = math.sqrt(low * high)
        found = fails(middle)
        low, high, why = (low, middle, found) if found else (middle, high, why)
    return Edge(low, high, why)


def run(context: Context) -> Outcome:
    """Map the conclusions at one D, then follow the boundary to larger D."""
    from simulations.sweep import run as sweeps

    chosen = plan(context.quick)
    fixed = {k: v for k, v in values(chosen.D, 1.0, 1.0, chosen.tolerance).items()
             if k not in ("qD/C^2", "nu")}  # fmt: skip
    axes = {"nu": chosen.nus, "qD/C^2": chosen.densities}
    cells = sweeps.grid("positional", axes, **fixed)
    data = sweeps.compute(cells, lambda fraction: context.progress(0.25 * fraction))
    edges: dict[tuple[int, float], Edge] = {}
    early = 0
    for number, (D, nu) in enumerate(chosen.boundaries, start=1):
        edges[D, nu], stopped = _edge(D, nu, chosen)
        early += stopped
        context.progress(0.25 + 0.75 * number / len(chosen.boundaries))
    inside = _inside(data)
    measured: dict[str, Any] = {
        f"cells of the map at D = {chosen.D}": int(inside.size),
        "of these, all conclusions hold in": int(inside.sum()),
        "runs that ended before their horizon": early + int((data["status"] != "completed").sum()),
    }
    for (D, nu), edge in edges.items():
        name = f"(D = {D}, nu = {nu:g})"
        measured[f"largest qD/C^2 seen with all conclusions {name}"] = _or_none(edge.inside)
        measured[f"smallest seen without {name}"] = _or_none(edge.outside)
        measured[f"what fails there {name}"] = edge.why or "nothing"
    verdict, summary = judge(edges)
    parameters = {
        "C": C, "map": {"D": chosen.D, "qD/C^2": chosen.densities, "nu": chosen.nus},
        "horizon": "1e6 (D/64)^3", "rtol": 1e-6, "population tolerance": chosen.tolerance,
        "risk that counts as small": RISK, "bracket": (LOW, HIGH), "halvings": chosen.halvings,
    }  # fmt: skip
    return Outcome(verdict, measured, TOLERANCE, parameters, summary, (_figure(data, edges),))


def _edge(D: int, nu: float, chosen: Plan) -> tuple[Edge, int]:
    """Return the boundary at one D and nu, and how many runs ended early."""
    from simulations.sweep.cells import measure_cell

    rows: list[Mapping[str, Any]] = []

    def fails(density: float) -> str:
        rows.append(measure_cell("positional", values(D, density, nu, chosen.tolerance)))
        return failing(rows[-1])

    edge = locate(fails, LOW, min(HIGH, D / C**2), chosen.halvings)
    return edge, sum(row["status"] != "completed" for row in rows)


def _inside(data: Any) -> Any:
    """Return where all conclusions hold on the map."""
    learned = (data["association"] == 1.0) & (data["loss"] <= RISK)
    return learned & (data["test_error"] - data["best_test_error"] <= TOLERANCE)


def judge(edges: Mapping[tuple[int, float], Edge]) -> tuple[Verdict, str]:
    """Return HOLDS unless qD = C^2 is seen to fail, or the region is seen to shrink, as D grows.

    The theorem is about D going to infinity at q = poly(C)/D: both should hold if it describes
    these sizes. What the brackets leave open counts for the theorem.
    """
    outside = [key for key, edge in edges.items() if edge.outside <= 1.0]
    nus = tuple(dict.fromkeys(nu for _, nu in edges))
    sizes = {nu: [D for D, other in edges if other == nu] for nu in nus}
    shrinking = [
        (nu, small, large)
        for nu in nus
        for small, large in itertools.pairwise(sizes[nu])
        if edges[large, nu].outside <= edges[small, nu].inside
    ]
    text = "The boundary of the region where all conclusions hold is at qD/C^2 of " + "; ".join(
        ", ".join(f"{_shown(edges[D, nu])} (D = {D})" for D in sizes[nu]) + f" for nu = {nu:g}"
        for nu in nus
    )
    if outside:
        D, nu = outside[0]
        text += f". The paper's scaling qD = C^2 fails in {len(outside)} of {len(edges)} cases, "
        text += f"first at D = {D}, nu = {nu:g}, by {edges[D, nu].why}"
    for nu, small, large in shrinking[:1]:
        text += f". At nu = {nu:g} the region shrinks from D = {small} to {large}"
    if not outside and not shrinking:
        text += ". The paper's scaling qD = C^2 is nowhere outside, and the region never shrinks"
    return (Verdict.FINDING if outside or shrinking else Verdict.HOLDS), text + "."


def _shown(edge: Edge) -> str:
    """Return the boundary in a few characters."""
    if math.isnan(edge.inside):
        return f"less than {edge.outside:.3g}"
    if math.isnan(edge.outside):
        return f"at least {edge.inside:.3g}"
    return f"{edge.middle:.2g}"


def _or_none(number: float) -> float | str:
    return number if math.isfinite(number) else "none"


def _figure(data: Any, edges: Mapping[tuple[int, float], Edge]) -> Any:
    import json

    from simulations.figures import report_figure, theorem_regime

    D = json.loads(data.attrs["configuration"])["fixed"]["D"]
    return report_figure(
        "regime-of-theorem-4.1",
        "Theorem 4.1: the regime in which all conclusions hold",
        f"(a) Test error above the best possible at the end of the flow, D = {D}, C = {C}; white "
        "circles: all conclusions hold (patch association, test error within 0.01 of the best, "
        f"population risk at most {RISK:g}); crosses: no patch association. (b) The largest qD/C^2 "
        "with all conclusions against D, by bisection (bars: the last bracket). Dashed: the "
        "paper's scaling qD = C^2. Flow time 1e6 (D/64)^3.",
        theorem_regime.draw,
        theorem_regime.gather(data, _inside(data), edges),
        (7.0, 3.6),
    )


CLAIM = Claim(
    id="regime-of-theorem-4.1",
    place="Theorem 4.1, Assumption 2 (Section 4.1)",
    statement=(
        "With q = poly(C)/D and nu = 1/poly(d), training ends with patch association, the "
        "labelling function learned, and a population risk o(1)."
    ),
    measures=(
        "The region of (qD/C^2, nu) in which all three hold at the end of the flow, and how its "
        "boundary moves with D."
    ),
    run=run,
    quick_note="D = 24 and 48 instead of 64 to 4096, a map of 4 cells instead of 24",
    depends="gradient flow under the certified expectation, the exact law of f*",
)
