"""Huang et al., Theorem 4.1: the loss goes to its floor, attention to the patch's own area."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simulations.claim import HUANG_2024, Claim, Context, Outcome, Verdict

if TYPE_CHECKING:
    import numpy as np

    from dynamics.masked import MaskedProblem

#: Loss above its floor, and mean of (1 - a_n)^2 in every cluster, that must be reached.
EPS = 1e-3


@dataclass(frozen=True)
class End:
    """Where one run arrives."""

    excess: float  # loss above its floor, over z^2
    shortfall: float  # mean of (1 - a_n)^2 of the worst cluster, hidden areas aside
    error: float  # of the loss

    @property
    def learned(self) -> bool:
        """Whether both are below eps."""
        return max(abs(self.excess), self.shortfall) <= EPS + self.error


def run(context: Context) -> Outcome:
    """Follow exact small problems and large ones in the mean-field limit to eps."""
    from dataclasses import asdict

    from simulations import masked_runs as runs

    found: dict[str, End] = {}
    measured: dict[str, Any] = {}
    problems = _problems(context.quick)
    curves: dict[str, tuple[np.ndarray, ...]] = {}
    for number, problem in enumerate(problems, start=1):
        name = runs.describe(problem)
        run = runs.flow(problem, 1e-4)
        square = problem.mean_square_z
        found[name] = end = End(
            float(run.excess[-1]) / square,
            float(run.shortfall[-1].max()),
            float(run.bound[-1]) / square,
        )
        curves[name] = (run.time, run.excess / square, run.shortfall.max(axis=1))
        measured |= {
            f"loss that no attention removes ({name})": run.population.floor,
            f"final loss above it ({name})": end.excess,
            f"final mean of (1 - a_n)^2, worst cluster ({name})": end.shortfall,
            f"time reached ({name})": float(run.time[-1]),
        }
        context.progress(number / len(problems))
    verdict, summary = judge(found)
    return Outcome(
        verdict,
        measured,
        EPS,
        {"problems": [asdict(problem) for problem in problems], "rtol": runs.RTOL},
        summary,
        (_figure(curves),),
    )  # fmt: skip


def _problems(quick: bool) -> list[MaskedProblem]:
    from simulations import masked_runs as runs

    problems = [runs.ONE_CLUSTER, runs.TWO_CLUSTERS, runs.WIDE_GAP.problem(),
                runs.NEGATIVE_GAP.problem(), runs.IN_GLOBAL.problem()]  # fmt: skip
    if not quick:
        mixed = runs.WIDE_GAP.problem(10**4, K=2).replace(query=("local", "global"))
        problems += [runs.GRID, mixed, runs.WIDE_GAP.problem(z_low=1.0, z_high=1.5)]
    return problems


def judge(found: dict[str, End]) -> tuple[Verdict, str]:
    """Return the verdict: every run reaches eps in loss and in attention."""
    short = [name for name, end in found.items() if not end.learned]
    if not found or short:
        where = f", not at {short[0]}" if short else ""
        return Verdict.FAILS, (
            f"{len(found) - len(short)} of {len(found)} runs reach eps = {EPS:g}{where}."
        )
    worst = max(end.shortfall for end in found.values())
    excess = max(end.excess for end in found.values())
    return Verdict.HOLDS, (
        f"In {len(found)} runs, exact and mean-field, the loss comes within {excess:.1e} z^2 of "
        f"its floor and (1 - a_n)^2 falls to {worst:.1e} on average, in every cluster."
    )


def _figure(curves: dict[str, tuple[np.ndarray, ...]]) -> Any:
    from simulations.figures import masked_convergence, report_figure

    return report_figure(
        "masked-convergence",
        "The loss goes to its floor and attention to the area",
        "Gradient flow from Q = 0: (a) loss of the query patch above what no attention removes "
        "(all patches of its area masked), over E[z^2]; (b) mean of (1 - a_n)^2 in the worst "
        "cluster, masks that hide the whole area aside. Dashed: the accuracy asked for. All masks "
        "are enumerated up to P = 12; larger P are mean-field counts.",
        masked_convergence.draw,
        masked_convergence.gather(curves, EPS),
        (7.4, 4.6),
    )


CLAIM = Claim(
    id="huang-theorem-4.1",
    place="Theorem 4.1 (Section 4)",
    statement=(
        "Gradient descent brings the reconstruction loss of each patch to within eps of what "
        "cannot be removed, and a masked patch pays nearly all attention to the unmasked patches "
        "of its area, in every cluster."
    ),
    measures=(
        "Loss above its floor and mean of (1 - a_n)^2 at the end of gradient flows: all masks "
        "enumerated at P = 9 and 12 with one and two clusters, and the mean-field limit at large P."
    ),
    run=run,
    quick_note="five problems instead of eight",
    depends="enumeration of all masks; for large P the mean-field limit",
    paper=HUANG_2024,
    shares="masked",
)
