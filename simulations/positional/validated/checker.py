r"""Independent checker of tube certificates; it shares no code with the prover.

A certificate contains a tube alone: polynomials P and, for each part of a piece, coordinates B and
bounds ``bar``. Everything that is reported is derived here: the enclosure at the end, the sign of
gamma - rho on each part, loss, test error, the floor of the loss, patch association. The model is
in `checker_model`. It computes in one of two arithmetics: FLINT and NumPy, or pure Python.

Theorem. Let z = B^-1 (theta - P), |z| <= v at the start of a part of length h, M = B^-1 J B for
|theta - P| <= |B| bar, d a bound of the defect, b_i = d_i + sum_{j != i} |M_ij| bar_j and
after = e^{M_ii h} v + b int_0^h e^{M_ii s} ds. If v, after < bar, then |z| <= max(v, after) on the
part and |z| <= after at its end. For descent g^n and eta (g^n - 1)/(g - 1), g = max |1 + eta M_ii|,
replace the exponential and its integral.
"""

from __future__ import annotations

import json
import math
from functools import reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from simulations.positional.validated.checker_model import (
    Model,
    Rejected,
    TooLarge,
    allow,
    bounds,
    fields,
    interval,
    number,
    require,
)
from simulations.positional.validated.checker_text import Box, Checked, checked_as_text

__all__ = ["Box", "Checked", "Rejected", "TooLarge", "check", "verdict"]

FORMAT, FIELDS = "patchdyn tube 2", "format problem learning_rate start horizon pieces"
PIECE = "end K coefficients parts"
BITS, JACOBIAN_ORDER = 80, 4
ARITHMETICS = {"flint": "checker_images", "python": "checker_lists"}
MOST_BYTES, MOST_PIECES, MOST_PARTS, MOST_TERMS = 2**25, 20_000, 64, 32
MOST_IMAGES, MOST_WORK, MOST_ENTRIES = 200_000, 30_000_000, 20_000_000


def compared(M: Any, begin: list[Any], errors: Any, bar: Any, time: Any, eta: Any) -> Any:
    """Return bounds of |z| on a part and at its end, by the theorem; None if it does not apply.

    Parameters
    ----------
    M
        Enclosure of B^-1 J B, (3, 3).
    begin
        Bounds of |z| at the start of the part.
    errors
        Bounds of the defect in the coordinates B.
    bar
        Bounds whose validity the theorem shows.
    time
        Length of the part (descent: learning rate x steps).
    eta
        Learning rate; None for the flow.
    """
    for iteration in range(4):  # once proved, the tighter bounds replace the bar
        after = []
        for i in range(3):
            b = errors[i] + sum(M[i, j].abs_upper() * bar[j] for j in range(3) if j != i)
            rate, growth = M[i, i].upper(), time * M[i, i].upper()
            if eta is not None:
                g = (1 + eta * M[i, i]).abs_upper()
                rate, growth = (g - 1) / eta, time / eta * g.log()
            integral = time if rate == 0 else growth.expm1() / rate
            after.append((growth.exp() * begin[i] + integral * b).abs_upper())
        if iteration == 0 and not all(begin[i] < bar[i] and after[i] < bar[i] for i in range(3)):
            return None
        bar = [x.max(y) for x, y in zip(begin, after)]
    return bar, after


class Check:
    """State of the check of a record: |z| <= v in the coordinates ``basis`` around its curve."""

    def __init__(self, record: dict[str, Any], arithmetic: ModuleType) -> None:
        self.arithmetic, arb = arithmetic, arithmetic.arb
        fields(record, FIELDS)
        require(record["format"] == FORMAT, f"format = {str(record['format'])[:40]} is not known")
        self.record, self.model = record, Model(record["problem"], arithmetic)
        rate, start = record["learning_rate"], record["start"]
        self.eta = None if rate is None else self.number(rate)
        require(self.eta is None or self.eta > 0, "a learning rate is not positive")
        self.limits(record["pieces"])
        self.model.enumerate(max(piece["K"] for piece in record["pieces"]))
        self.basis, self.count = arithmetic.arb_mat(3, 3, 1), arithmetic.fmpq(0)
        self.v = [arb(0)] * 3
        with arithmetic.ctx.workprec(256):  # Parametrization 3.1
            root = (self.model.nu.log() / (self.model.p - 1)).exp()
        self.end = [root, 0, 0] if start is None else [self.number(x) for x in start]
        require(len(self.end) == 3, "a start must have three coordinates")
        self.leads = self.end[1] >= self.end[2]  # gamma >= rho now
        self.parts: list[tuple[Any, Any, bool]] = []  # start, gamma - rho, whether it is positive

    def number(self, x: Any) -> Any:
        """Return a number of the record as an exact rational number."""
        return number(x, self.arithmetic.fmpq)

    def limits(self, pieces: list[Any]) -> None:
        """Raise Rejected without pieces, TooLarge if the computation would be too expensive."""
        require(type(pieces) is list and pieces, "there are no pieces: nothing is proved")
        allow("pieces", len(pieces), MOST_PIECES)
        for piece in pieces:
            fields(piece, PIECE)
            K = piece["K"]
            require(type(K) is int and 0 <= K <= self.model.N, f"K = {K!r} is not possible")
            allow("K", K, 60)
            allow("parts of a piece", len(piece["parts"]), MOST_PARTS)
            allow("degree + 1", len(piece["coefficients"]), MOST_TERMS)
        sizes = self.model.sizes(max(piece["K"] for piece in pieces))
        for piece in pieces:
            allow("multisets", sizes[piece["K"]], MOST_IMAGES)
        functions = (self.model.p + 1) * (self.model.p + 2) // 2
        allow("multisets x powers", max(sizes) * functions, MOST_ENTRIES)
        allow("multisets x pieces", sum(sizes[piece["K"]] for piece in pieces), MOST_WORK)

    def piece(self, piece: dict[str, Any]) -> None:
        """Check one piece and move to its end."""
        use, number = self.arithmetic, self.number
        arb, arb_mat, arb_poly = use.arb, use.arb_mat, use.arb_poly
        parts, start, length = piece["parts"], self.count, number(piece["end"]) - self.count
        where = f"after {float(start.numerator) / float(start.denominator)!r}"
        require(length > 0, f"a piece {where} has no length")
        whole = self.eta is None or (length / len(parts)).denominator == 1
        require(parts and whole, f"a piece {where} has no parts, or no whole steps")
        curve = [arb_poly([number(row[i]) for row in piece["coefficients"]]) for i in range(3)]
        jump = bounds(self.basis.inv(), [P(-1) - x for P, x in zip(curve, self.end)])
        self.v = [x + y for x, y in zip(self.v, jump)]
        self.end, self.count, gap = [P(1) for P in curve], self.count + length, curve[1] - curve[2]
        time = length / len(parts) * (1 if self.eta is None else self.eta)
        rates = [P.derivative() * (2 / length) for P in curve]
        if self.eta is not None:
            rates = [(P(arb_poly([2 / length, 1])) - P) * (1 / self.eta) for P in curve]
        if self.eta is not None and length == 1:  # one step depends on the velocity at its start
            curve, rates = ([arb_poly([P(-1)]) for P in each] for each in (curve, rates))
        frames = [
            (arb_mat(3, 3, [number(x) for row in B for x in row]), [*map(number, bar)])
            for B, bar in parts
        ]
        own = [reduce(arb.max, column) for column in zip(*(bounds(*frame) for frame in frames))]
        *lost, _ = self.model.neglected(curve, own, piece["K"])
        velocity = self.model.along(curve, [], max(map(len, curve)), piece["K"])
        defect = [f - rate + arb(0, g) for f, rate, g in zip(velocity, rates, lost)]
        jacobian = self.model.along(curve, own, JACOBIAN_ORDER, piece["K"])
        for k, (B, bar) in enumerate(frames):
            here = arb_poly([arb(2 * k + 1) / len(parts) - 1, arb(1) / len(parts)])
            inverse, M, entries = B.inv(), arb_mat(3, 3), [p(here) for p in jacobian]
            for n in range(JACOBIAN_ORDER + 1):
                term = inverse * arb_mat(3, 3, [p[n] for p in entries]) * B
                M += term * arb(0, 1) if n else term
            there = [d(here)(arb(0, 1)) for d in defect]
            begin, errors = bounds(inverse * self.basis, self.v), bounds(inverse, there)
            reached = compared(M, begin, errors, bar, time, self.eta)
            require(reached, f"the tube is too thin {where}")
            (during, self.v), self.basis = reached, B
            e = B * arb_mat(3, 1, [arb(0, z) for z in during])
            Je = arb_mat(3, 3, [p(arb(0, 1)) for p in entries]) * e
            value = gap(here)(arb(0, 1)) + e[1, 0] - e[2, 0]
            f = [rates[i](here)(arb(0, 1)) + there[i] + Je[i, 0] for i in (1, 2)]
            self.leads = value > 0 or (self.leads and f[0] - f[1] > 0)
            self.parts.append((start + length * k / len(parts), value, self.leads))

    def result(self) -> Checked:
        """Return the statements that follow from all pieces; raise Rejected if some are missing."""
        record, model, arb = self.record, self.model, self.arithmetic.arb
        unit = self.eta or self.arithmetic.fmpq(1)
        horizon = self.number(record["horizon"])
        require(self.count == horizon, "the pieces do not end at the horizon")
        ends = [at + arb(0, r) for at, r in zip(self.end, bounds(self.basis, self.v))]
        enclosure = Box(*map(interval, ends))
        loss, error = model.outcomes(ends, record["pieces"][-1]["K"])
        times = [begin * unit for begin, _, _ in self.parts] + [self.count * unit]
        sure = [leads for _, _, leads in self.parts]
        first = len(sure) - sure[::-1].index(False) if False in sure else 0
        since = math.inf if not sure[-1] else interval(arb(times[first]))[1] if first else 0.0
        negative: list[list[Any]] = []
        for (_, value, _), begin, end in zip(self.parts, times, times[1:]):
            if value < 0 and negative and negative[-1][1] == begin:
                negative[-1][1] = end
            elif value < 0:
                negative.append([begin, end])
        floor, rho = model.floor(), enclosure.rho[1]
        forever = self.eta is None and loss[1] < floor and enclosure.gamma[0] > rho
        associates = bool(min(enclosure.gamma[0], record["problem"]["beta"]) > rho)
        time = float(record["horizon"] * (record["learning_rate"] or 1.0))
        until = time if associates else 0.0
        if associates and forever:
            duration = model.D * (model.D - model.C) * (model.beta - arb(rho)) ** 2 / arb(loss[1])
            until = math.inf if model.C == 2 else interval(horizon + duration)[0]
        gap = [
            (interval(arb(t))[0], *interval(value)) for t, (_, value, _) in zip(times, self.parts)
        ]
        return Checked(
            problem=record["problem"],
            start=record["start"],
            learning_rate=record["learning_rate"],
            horizon=record["horizon"],
            time=time,
            pieces=len(record["pieces"]),
            enclosure=enclosure,
            gap=gap,
            gap_positive_from=since,
            gap_negative=[(interval(arb(a))[1], interval(arb(b))[0]) for a, b in negative],
            loss=loss,
            test_error=error,
            floor=floor,
            forever=forever,
            association=associates,
            association_until=until,
        )


def check(
    certificate: Path | dict[str, Any], progress: Any = None, arithmetic: str = "flint"
) -> Checked:
    """Check a certificate and return the statements that it proves.

    Parameters
    ----------
    certificate
        A file, or its content.
    progress
        Called with the fraction of the pieces that is checked.
    arithmetic
        ``flint``: balls of FLINT and NumPy; ``python``: balls in pure Python, which is slower.

    Returns
    -------
    Checked
        All statements, derived from the tube alone.

    Raises
    ------
    ValueError
        For another arithmetic.
    Rejected
        If the certificate is malformed or its tube is not proved.
    TooLarge
        If the check would take too long or too much memory; nothing is computed.
    """
    if arithmetic not in ARITHMETICS:
        raise ValueError(f"arithmetic = {arithmetic!r} is not allowed: choose flint or python")
    use = import_module(f"{__package__}.{ARITHMETICS[arithmetic]}")
    cap = use.ctx.cap
    try:
        with use.precision(BITS):
            record: Any = certificate
            if isinstance(certificate, Path):
                allow("bytes", certificate.stat().st_size, MOST_BYTES)
                record = json.loads(certificate.read_text(encoding="utf-8"))
            state = Check(record, use)
            for i, piece in enumerate(record["pieces"]):
                state.piece(piece)
                if progress is not None:
                    progress((i + 1) / len(record["pieces"]))
            return state.result()
    except (LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as failure:
        raise Rejected(f"this is no certificate of a tube: {failure!r}"[:300]) from failure
    finally:
        use.ctx.cap = cap


def verdict(path: str, progress: Any, arithmetic: str) -> tuple[str, str]:
    """Check a file; return ``checked``, ``rejected`` or ``not checked``, and the text to print."""
    try:
        return "checked", checked_as_text(check(Path(path), progress, arithmetic))
    except Rejected as rejection:
        return "rejected", f"rejected: {rejection}"
    except TooLarge as limit:
        return "not checked", str(limit)
