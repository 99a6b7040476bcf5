"""Verdicts on the claims of a theory file, from runs at several horizons and from searches."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from simulations.falsify import Conjecture, Result, Trial, falsify
from simulations.falsify.trial import attempt
from simulations.reproduction.claim import Claim, Context, Measurement, Paper
from simulations.reproduction.predicates import CheckedTable, Column, Table
from simulations.seeds import seed_at
from simulations.stated.system import UserTheorySystem
from simulations.system import RECORDS
from symbolic import theory as language

if TYPE_CHECKING:
    import pandas as pd

#: Time limit of all searches for a counterexample to a claim, in seconds. A quick run limits the
#: number of problems of each search instead, so that the verdict does not depend on the time.
BUDGET, QUICK_PROBLEMS = 30.0, 20
#: Horizons of the runs relative to that of the file, numbers of records, and seeds of searches.
HORIZONS, RECORDS_OF_RUNS, SEEDS = (1.0, 10.0), (RECORDS, 3 * RECORDS), (0, 1)
#: Seeds of a random start at the defaults of the file.
STARTS = range(5)


def _at_some_horizon(passed: pd.Series[bool]) -> pd.Series[bool]:
    """Return for each run whether a run from the same start passes."""
    return passed.groupby(level="start").transform("any")


RUNS = Table(
    index=("start", "horizon", "records"),
    columns={
        "result": Column("result at the defaults of the file"),
        "violation": Column("violation", missing="undefined", rtol=1e-3, atol=1e-9),
        "error": Column("numerical error of the violation", missing="unknown", rtol=1.0),
    },
    strict={
        "not violated at every horizon": lambda t: _at_some_horizon(t.result != Result.VIOLATED)
    },
    predicates={
        "not violated": lambda t: t.result != Result.VIOLATED,
        "decided at one horizon": lambda t: _at_some_horizon(
            (t.result == Result.HOLDS) | ((t.result == Result.NOISE) & np.isfinite(t.violation))
        ),
    },
)
SEARCHES = Table(
    index=("horizon", "seed"),
    columns={
        "tried": Column("problems tried"),
        "holds": Column("problems for which it holds"),
        "violation": Column("violation", missing="none found"),
        "error": Column("numerical error of the violation"),
        "everywhere": Column("violated by this problem at every horizon"),
    },
    strict={"no problem violates it at every horizon": lambda t: ~t.everywhere.astype(bool)},
    predicates={
        "no violation exceeds its numerical error": lambda t: t.violation.isna(),
        "a search tried a problem": lambda t: (t.tried > 0).any(),
    },
)


def conjectures_of(theory: UserTheorySystem, paper: Paper) -> Iterator[Claim]:
    """Yield a claim of the report for each claim that a file states."""
    for number, claim in enumerate(theory.theory.claims, start=1):
        yield Claim(
            id=f"{theory.theory.name}-conjecture-{number}",
            place=claim.label,
            statement=claim.statement,
            method=f"Runs at the defaults of the file, and searches for a run with not "
            f"({claim.condition}), at {len(HORIZONS)} horizons.",
            criterion="It fails if one problem violates it beyond the numerical error at every "
            "horizon and number of records; it is a finding if only some of these runs do, or if "
            "no run decides it. Otherwise it holds: no counterexample is known, which is no proof.",
            tables={"runs": RUNS, "searches": SEARCHES},
            measure=partial(_measure, theory, claim),
            headline=_headline,
            finding="{violated} of {runs} runs violate it; of {tried} problems searched, {result}.",
            quick_note=f"{QUICK_PROBLEMS} problems in each search, not {BUDGET:g} seconds in all",
            command=rerun_command(theory),
            paper=paper,
        )


def rerun_command(theory: UserTheorySystem) -> str:
    """Return the shell command that writes the report on a file again, in another folder."""
    file = shlex.quote(theory.path.name)
    return f"patchdyn theory {file} --report {shlex.quote(f'report-{theory.path.stem}')}"


def _headline(tables: Mapping[str, CheckedTable]) -> dict[str, Any]:
    runs, searches = tables["runs"].data, tables["searches"].data
    worst = searches.violation.max()
    return {
        "violated": int((runs.result == Result.VIOLATED).sum()),
        "runs": len(runs),
        "tried": int(searches.tried.sum()),
        "result": "none violates it" if math.isnan(worst) else f"one does by {worst:.3g}",
    }


def _measure(theory: UserTheorySystem, claim: language.Claim, context: Context) -> Measurement:
    conjecture = Conjecture(claim.condition, theory)
    runs = [
        {
            "start": seed,
            "horizon": horizon,
            "records": records,
            "result": str(trial.result),
            "violation": trial.violation,
            "error": trial.bound,
        }
        for seed in (STARTS if theory.theory.is_random else (0,))
        for horizon, records, trial in _trials(
            conjecture, {"seed": seed} if theory.theory.is_random else {}
        )
    ]
    budget = BUDGET / (len(HORIZONS) * len(SEEDS))
    settings: dict[str, Any] = {"condition": claim.condition, "budget": budget}
    searches = []
    for factor, seed in context.track(product(HORIZONS, SEEDS)):
        horizon = factor * theory.horizon
        report = falsify(
            claim.condition,
            system=theory,
            budget=4.0 * budget if context.quick else budget,
            most=QUICK_PROBLEMS if context.quick else None,
            seed=seed_at(context.seed, seed),
            horizon=horizon,
        )
        row = {"horizon": horizon, "seed": seed, "tried": report.tried, "violation": math.nan,
               "holds": report.results.get(Result.HOLDS, 0), "error": math.nan,
               "everywhere": False}  # fmt: skip
        if (trial := report.counterexample) is not None:
            trials = [repeated for _, _, repeated in _trials(conjecture, trial.case.values)]
            row |= {"violation": float(trial.violation), "error": float(trial.bound),
                    "everywhere": all(x.result is Result.VIOLATED for x in trials)}  # fmt: skip
            settings |= {"problem": dict(trial.case.problem.values), "rerun": report.command}
        searches.append(row)
    tables = {"runs": RUNS.frame(runs), "searches": SEARCHES.frame(searches)}
    return Measurement(tables, settings)


def _trials(
    conjecture: Conjecture, values: Mapping[str, Any]
) -> Iterator[tuple[float, int, Trial]]:
    """Yield horizon, number of records and trial of each run of a problem."""
    theory = conjecture.system
    assert isinstance(theory, UserTheorySystem)
    for factor, records in product(HORIZONS, RECORDS_OF_RUNS):
        horizon = factor * theory.horizon
        case = theory.build({**values, "horizon": horizon})
        yield horizon, records, attempt(conjecture, case, records=records)
