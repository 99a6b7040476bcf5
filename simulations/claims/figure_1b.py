"""Figure 1b: sets on the grid of an image, localized and not, and what training finds of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from simulations.claim import Claim, Context, Figure, Outcome, Verdict

if TYPE_CHECKING:
    from simulations.training_runs import Setting, Training

#: Level at which the paper cuts similarities, scaled to -1 .. 1, in Figure 1a.
CUT = 0.55
#: Names of the two partitions of the figure.
LAYOUTS = {"squares": "(1) squares of the grid", "random": "(2) not contiguous"}


class Found(NamedTuple):
    """What the learned A says about the sets of one partition."""

    recovered: float  # fraction of patches whose C highest entries are their set
    inside: float  # mean attention S_ij to another patch of the own set, over the uniform 1/D
    outside: float  # the same to a patch of another set
    neighbours: float  # the same to a patch of another set next to it on the grid
    cut: float  # fraction of pairs on the right side of the cut, each row scaled to -1 .. 1


def run(context: Context) -> Outcome:
    """Train on images whose sets are squares, and whose sets are not contiguous."""
    from dataclasses import asdict

    from simulations.training_runs import trained

    settings = _settings(context.quick)
    runs: dict[str, Training] = {}
    found: dict[str, Found] = {}
    measured: dict[str, Any] = {}
    for number, (layout, setting) in enumerate(settings.items(), start=1):
        runs[layout] = trained(setting, context.seed, number, scratch=context.scratch)
        found[layout] = look(setting, runs[layout])
        name = LAYOUTS[layout]
        measured |= {
            f"patches whose top C entries of A are their set {name}": found[layout].recovered,
            f"attention to the own set, times D {name}": found[layout].inside,
            f"attention to other sets, times D {name}": found[layout].outside,
            f"attention to neighbours in other sets, times D {name}": found[layout].neighbours,
            f"pairs on the right side of the cut at {CUT} {name}": found[layout].cut,
            f"test error {name}": float(runs[layout].history.test_error[-1]),
        }
        context.progress(number / len(settings))
    verdict, summary = judge(found)
    return Outcome(
        verdict,
        measured,
        1.0,
        {layout: asdict(setting) for layout, setting in settings.items()} | {"seed": context.seed},
        summary,
        (_figure(settings, runs),),
    )


def judge(found: dict[str, Found]) -> tuple[Verdict, str]:
    """Return HOLDS if the sets of both partitions are read off A without a mistake.

    FAILS if fewer than half of the patches show their set in one of them.
    """
    parts = [
        f"{LAYOUTS[layout]}: {one.recovered:.0%} of the patches have their set as the top C "
        f"entries of A, attention times D is {one.inside:.3g} within sets, {one.outside:.3g} "
        f"across and {one.neighbours:.3g} across to neighbours on the grid"
        for layout, one in found.items()
    ]
    worst = min(one.recovered for one in found.values())
    verdict = Verdict.HOLDS if worst == 1.0 else Verdict.FINDING
    return (Verdict.FAILS if worst < 0.5 else verdict), "; ".join(parts) + "."


def look(setting: Setting, run: Training) -> Found:
    """Return what the learned A of a run says about the sets."""
    import numpy as np
    from scipy.special import softmax

    problem = setting.problem
    D = problem.D
    owner = np.empty(D, dtype=int)
    owner[run.partition] = np.arange(problem.L)[:, None]
    same = owner[:, None] == owner
    off = ~np.eye(D, dtype=bool)
    S = D * softmax(run.A / problem.tau, axis=1)
    place = np.divmod(np.arange(D), int(np.sqrt(D)))
    distance = sum(np.abs(axis[:, None] - axis) for axis in place)
    low = np.where(off, run.A, np.inf).min(axis=1, keepdims=True)
    high = np.where(off, run.A, -np.inf).max(axis=1, keepdims=True)
    bright = 2.0 * (run.A - low) / (high - low) - 1.0 > CUT
    return Found(
        recovered=float(run.history.association[-1]),
        inside=float(S[same & off].mean()),
        outside=float(S[~same].mean()),
        neighbours=float(S[~same & (distance == 1)].mean()),
        cut=float((bright == same)[off].mean()),
    )


def _settings(quick: bool) -> dict[str, Setting]:
    from dynamics import Problem
    from simulations.training_runs import Setting

    D, N, steps, rate = (16, 4000, 60, 50.0) if quick else (64, 12_000, 120, 128.0)
    problem = Problem(D=D, C=4, q=8 / D, nu=0.1, beta=1.5, output_scale=1.0)
    return {
        layout: Setting(problem, N, 0.3, rate, steps, sets=layout, records=7, tested=4000)
        for layout in LAYOUTS
    }


def _figure(settings: dict[str, Setting], runs: dict[str, Training]) -> Figure:
    from simulations.figures import grid_sets, report_figure

    problem = settings["squares"].problem
    return report_figure(
        "figure-1b",
        "Sets on the grid and what A shows of them",
        f"D = {problem.D}, C = {problem.C}, trained on {settings['squares'].N} samples. Left: "
        "patches of one colour belong to one set, localized (above) and not (below), as in the "
        "paper's Figure 1b. Middle: the row of A of the outlined patch, on the grid, its fixed "
        "diagonal entry left out (grey). Right: the rows of all patches, each drawn as a small "
        "grid at the place of its patch, as in Figure 1a.",
        grid_sets.draw,
        grid_sets.gather(runs),
        (9.5, 6.0),
    )


CLAIM = Claim(
    id="figure-1b",
    place="Figure 1b (Section 1) and Definition 2.1",
    statement=(
        "The patches of an image are partitioned into sets, spatially localized ones (1), the type "
        "that appears at the end of training, or sets with non-contiguous elements (2)."
    ),
    measures=(
        "Training on samples with either partition: fraction of patches whose set is read off the "
        "learned A, and attention within sets, across sets, and across to neighbours on the grid."
    ),
    run=run,
    quick_note="a grid of 4 x 4 patches, as in the paper, instead of 8 x 8",
    depends="descent on (E)",
)
