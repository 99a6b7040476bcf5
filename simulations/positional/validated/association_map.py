"""A map of theorems: the cells in q and nu of which patch association is proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray

from dynamics import Population, Problem, gradient_flow
from dynamics.core.checks import integer, require
from simulations.files import StoreError, code_fingerprint, read_record, to_json, write_record
from simulations.positional.symmetric_line import line_drift
from simulations.positional.validated.region import (
    AssociationProof,
    Ends,
    corners_have_regions,
    prove_association,
    require_provable,
)
from simulations.workers import Channel, WorkerPool

PROVED, TRUE, FALSE = "proved", "true at the centre", "false at the centre"
_MOST_PARTS = 12
_RECORDS = 200
_ATTEMPTS = 3  # of a cell whose process died


class Cell(NamedTuple):
    """A cell of the map: its position, and its constants."""

    row: int
    column: int
    nu: Ends
    q: Ends


class Axis(NamedTuple):
    """The ends of a constant as they were given, such as qD, and as nu or q."""

    name: str
    given: tuple[float, float]
    ends: tuple[float, float]

    def edges(self, cells: int) -> np.ndarray:
        """Return edges of cells of equal ratio."""
        return self._logarithmic(*self.ends, cells)

    def given_edges(self, cells: int) -> np.ndarray:
        """Return the same edges in the quantity that was given."""
        return self._logarithmic(*self.given, cells)

    @staticmethod
    def _logarithmic(low: float, high: float, cells: int) -> np.ndarray:
        edges = np.geomspace(low, high, cells + 1)
        edges[0], edges[-1] = low, high
        return edges


def prove_map(
    problem: Problem,
    q: Axis,
    nu: Axis,
    *,
    cells: int,
    horizon: float,
    workers: int = 1,
    unfinished: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> xarray.Dataset:
    """Prove gamma > rho and patch association, cell by cell, for 0 < t <= horizon.

    Parameters
    ----------
    problem
        The other constants.
    q, nu
        Axes, logarithmic.
    cells
        Cells on each axis, 1 to 200.
    horizon
        Final time.
    workers
        Number of processes.
    unfinished
        File of the cells of an interrupted map. It is removed by the caller.
    progress
        Called with the fraction of the cells that is done.

    Returns
    -------
    xarray.Dataset
        ``status`` by ``nu`` and ``q``: proved, or whether the statement is true for the problem in
        the centre (an estimate); ``boxes`` and ``failure``; ``q_edge`` and ``nu_edge``.

    Raises
    ------
    ParameterError
        If an argument is not allowed.
    StoreError
        If ``unfinished`` cannot be read or written, or belongs to another map.
    """
    integer("map", cells, 1, 200)
    require_provable(problem, horizon)
    for axis in (q, nu):
        low, high = axis.given
        require(0.0 < low < high, axis.name, f"{low:g}..{high:g}", "positive and in order")
    edges = [axis.edges(cells).tolist() for axis in (nu, q)]
    sides = [[Ends(*ends) for ends in pairwise(e)] for e in edges]
    tasks = [Cell(i, j, sides[0][i], sides[1][j]) for i, j in product(range(cells), range(cells))]
    identity = {"problem": repr(problem), "edges": edges, "horizon": horizon}
    results = _stored(unfinished, identity)
    waiting = [task for task in tasks if _key(task) not in results]
    pool, deaths = WorkerPool(workers, partial(_measure, problem, horizon)), Counter[str]()
    for task, event in pool.events(waiting):
        if event.type != "done":
            deaths[_key(task)] += 1
            if deaths[_key(task)] == _ATTEMPTS:
                raise RuntimeError(f"a cell ended {_ATTEMPTS} times: {event.content}")
            pool.retry(task)
            continue
        results[_key(task)] = event.content
        if unfinished is not None:
            _store(unfinished, identity, results)
        if progress is not None:
            progress(len(results) / len(tasks))
    return _dataset(problem, (q, nu), cells, horizon, results)


def _key(cell: Cell) -> str:
    return f"{cell.row},{cell.column}"


def _stored(path: Path | None, identity: dict[str, Any]) -> dict[str, Any]:
    """Return the stored results of cells."""
    record = None if path is None else read_record(path)
    if record is None:
        return {}
    if record["code"] != code_fingerprint() or record["map"] != to_json(identity):
        raise StoreError(
            f"{path} contains cells of another map: remove it, or choose another --out"
        )
    return dict(record["cells"])


def _store(path: Path, identity: dict[str, Any], results: dict[str, Any]) -> None:
    write_record(path, {"code": code_fingerprint(), "map": to_json(identity), "cells": results})


def _measure(problem: Problem, horizon: float, cell: Cell, channel: Channel) -> dict[str, Any]:
    """Return the result of one cell, which is divided if it is not proved as a whole."""
    waiting, parts, boxes, failure = [(cell.nu, cell.q)], 1, 0, ""
    while waiting and not failure:
        channel.check()
        nu, q = waiting.pop()
        proof = prove_association(problem, nu, q, horizon)
        boxes += proof.boxes
        if proof.proved:
            continue
        whole = parts == 1
        parts += 1
        if parts > _MOST_PARTS or (whole and not corners_have_regions(problem, nu, q, horizon)):
            failure = proof.failure
        waiting += _halves(proof)
    status = PROVED if not failure else TRUE if _is_true(problem, cell, horizon) else FALSE
    return {"status": status, "boxes": boxes, "failure": failure}


def _halves(proof: AssociationProof) -> list[tuple[Ends, Ends]]:
    """Return the halves of a box, divided along the constant of the largest ratio."""
    nu, q = proof.nu, proof.q
    if q.high / q.low > (nu.high / nu.low) ** 0.25:  # nu has less effect
        return [(nu, half) for half in q.halves()]
    return [(half, q) for half in nu.halves()]


def _is_true(problem: Problem, cell: Cell, horizon: float) -> bool:
    """Estimate whether gamma > rho and association hold at all times for the central problem."""
    nu, q = (float(np.sqrt(ends.low * ends.high)) for ends in (cell.nu, cell.q))
    central = problem.replace(nu=nu, q=q)
    if line_drift(central, central.initial_state.alpha).total <= 0.0:
        return False  # right after the start, between two records
    flow = gradient_flow(Population(central), horizon=horizon, records=_RECORDS)
    gamma, rho = flow.states[1:, 1], flow.states[1:, 2]
    return bool(np.all(gamma > rho) and np.all(rho < problem.beta))


def _dataset(
    problem: Problem,
    axes: tuple[Axis, Axis],
    cells: int,
    horizon: float,
    results: dict[str, Any],
) -> xarray.Dataset:
    q, nu = axes
    rows = [[results[f"{i},{j}"] for j in range(cells)] for i in range(cells)]
    columns = {
        name: (("nu", "q"), np.array([[cell[name] for cell in row] for row in rows]))
        for name in ("status", "boxes", "failure")
    }
    return xarray.Dataset(
        columns,
        {
            "q_edge": ("q_edge", q.given_edges(cells)),
            "nu_edge": ("nu_edge", nu.given_edges(cells)),
        },
        {
            "x": q.name,
            "y": nu.name,
            "D": problem.D,
            "C": problem.C,
            "horizon": horizon,
            "fraction": float(np.mean(columns["status"][1] == PROVED)),
        },
    )
