"""Effects that are judged from an interval: shown, absent, or undecided at the runs made."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

from simulations.reproduction.predicates import Column, Table, Verdict

if TYPE_CHECKING:
    import pandas as pd

#: Verdict and sentence where there is nothing to judge.
NOTHING = (Verdict.FINDING, "Nothing was measured.")


class Effect(StrEnum):
    """What the interval of an effect shows."""

    SHOWN = "shown"
    ABSENT = "absent"
    UNDECIDED = "undecided"


def effect(low: float, high: float, *, none: float, least: float) -> Effect:
    """Return whether an effect is shown or absent, given the interval ``low`` to ``high``.

    Parameters
    ----------
    none
        Value without an effect: the effect is shown if the whole interval lies above it.
    least
        Smallest value that counts as an effect, above ``none``: the effect is absent if the whole
        interval lies below it and the effect is not shown.

    Notes
    -----
    An interval that reaches from ``none`` or below to ``least`` or above decides nothing. So does
    one with an end that is not a number.
    """
    if low > none:
        return Effect.SHOWN
    return Effect.ABSENT if high < least else Effect.UNDECIDED


def verdict_of(effects: Iterable[Effect]) -> Verdict:
    """Return HOLDS if every effect is shown, FAILS if every one is absent, else FINDING.

    Without any effect nothing is decided, which is a finding.
    """
    kinds = set(effects)
    if kinds == {Effect.SHOWN}:
        return Verdict.HOLDS
    return Verdict.FAILS if kinds == {Effect.ABSENT} else Verdict.FINDING


#: How many parts of a statement are shown; where every one is absent, the statement fails.
PARTS = Table(
    index=(),
    columns={
        "shown": Column("parts shown"),
        "absent": Column("parts absent"),
        "parts": Column("parts"),
    },
    strict={"not every part is absent": lambda t: t.absent < t.parts},
)


def parts(shown: pd.Series[bool], absent: pd.Series[bool]) -> pd.DataFrame:
    """Return the table `PARTS`, given which parts are shown and which are absent."""
    return PARTS.frame([{"shown": shown.sum(), "absent": absent.sum(), "parts": len(shown)}])
