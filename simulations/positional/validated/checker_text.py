"""Text of what the checker proves."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from simulations.positional.validated.checker import Checked, Rejected, TooLarge, check


def verdict(path: str, progress: Any, arithmetic: str) -> tuple[str, str]:
    """Check a file; return ``checked``, ``rejected`` or ``not checked``, and the text to print."""
    try:
        return "checked", checked_as_text(check(Path(path), progress, arithmetic))
    except Rejected as rejection:
        return "rejected", f"rejected: {rejection}"
    except TooLarge as limit:
        return "not checked", str(limit)


def checked_as_text(checked: Checked) -> str:
    """Return the consequences of a certificate as text."""
    problem = ", ".join(f"{name} = {value:g}" for name, value in checked.problem.items())
    rate, start = checked.learning_rate, checked.start
    solver = f"descent, learning rate {rate:g}, {checked.horizon:g} steps" if rate else "flow"
    shown = "Parametrization 3.1" if start is None else ", ".join(f"{x:g}" for x in start)
    since, until = checked.gap_positive_from, checked.association_until
    lines = [
        "checked: the tube and its consequences are proved",
        f"  problem      {problem}",
        f"  solver       {solver}",
        f"  start        {shown}",
        f"  to time      {checked.time:g} ({checked.pieces} pieces)",
    ]
    lines += [
        f"  {name:<12} in [{low:.12g}, {high:.12g}]"
        for name, (low, high) in checked.enclosure._asdict().items()
    ]
    outcomes = {"loss": checked.loss, "test error": checked.test_error}
    lines += [f"  {name:<12} in [{low:.6g}, {high:.6g}]" for name, (low, high) in outcomes.items()]
    gap = f"proved from time {since:.6g} on" if math.isfinite(since) else "not proved at the end"
    lines.append(f"  gamma > rho  {gap}{', for ever' if checked.forever else ''}")
    lines += [f"  gamma < rho  from {a:.6g} to {b:.6g}" for a, b in checked.gap_negative]
    association = "not proved at that time"
    if checked.association:
        later = f" and until {until:.4g}" if until > checked.time else ""
        association = f"proved at that time{later if math.isfinite(until) else ' and for ever'}"
    lines.append(f"  association  {association}")
    return "\n".join(lines)
