r"""Sum over R of the Fourier integrals, with every error accounted for by name.

The identity of the notebook ``fourier_method``, Section 3.

For real ``eta`` in (-1, 1), ``w = eta + i t``, the trapezoid rule with half-shifted nodes
``t_k = (k + 1/2) 2 pi / Omega`` gives exactly

.. math:: s(-F) = \frac{1}{1 + e^{\eta\Omega}} + \frac{2\pi}{\Omega}\sum_{k \ge 0}
          \mathrm{Re}\frac{e^{-w_k F}}{\sin \pi w_k}
          + \sum_{m \ge 1} (-1)^m \bigl[e^{-\eta m\Omega} s(F - m\Omega)
          - e^{\eta m\Omega} s(-F - m\Omega)\bigr],

so the aliases (last sum) are exponentially small wherever F stays inside the window
``|F| < Omega`` by a margin, and are bounded by tilted expectations elsewhere. The loss is the
same integral with 1/(w sin(pi w)). No node sits at t = 0, and none of eta is excluded.
"""

import math
from typing import NamedTuple

import numpy as np

from dynamics.core.errors import ToleranceError
from dynamics.core.jit import REORDER, kernel
from dynamics.positional.population.fourier.errors import (
    MARGIN,
    TINY_RESULT,
    UNIT,
    WeightErrors,
    add_drift,
    add_rounding,
    drift_of_moments,
    drifts,
    table_errors,
)
from dynamics.positional.population.fourier.foreseen import foreseen_sums
from dynamics.positional.population.fourier.goals import Asked, prepare
from dynamics.positional.population.fourier.lines import (
    INTEGRATED,
    LEFT_OUT,
    SURELY_NEGATIVE,
    TOO_MANY_NODES,
    Lines,
    design,
)
from dynamics.positional.population.fourier.node_sums import NodeSums, node_sums
from dynamics.positional.population.fourier.operation_count import (
    MOST_OPERATIONS,
    OPERATIONS_AT_ONCE,
    at_most,
    operations,
    too_long,
)
from dynamics.positional.population.fourier.set_law import SetLaw
from dynamics.positional.population.fourier.tables import Model, Tables
from dynamics.positional.population.fourier.tilts import TILTS, UNTILTED
from dynamics.positional.population.fourier.windows import account

#: Parts of the bound, in the order of the columns of ``bounds``.
PARTS = ("truncation in R", "truncation in t", "aliasing in t", "aliasing in R", "rounding")

#: How often lines are chosen anew, for a lower goal, before the answer stands as it is.
_ROUNDS, _RELATIVE_ROUNDS = 4, 8


class Result(NamedTuple):
    """Loss, E[s(-F) dF] for alpha, gamma, rho, and E[s(-F)]: ``values[5]``, ``bounds[5, parts]``.

    ``magnitude[5]`` bounds E[s(-F) |dF|] from above.
    """

    values: np.ndarray
    bounds: np.ndarray
    magnitude: np.ndarray


class Moments(NamedTuple):
    """``mean[5, total]``: E[F 1{R=r}], E[dF 1{R=r}], P[R=r]; ``error``: of the law and of sums."""

    mean: np.ndarray
    error: np.ndarray


class Integrated(NamedTuple):
    """What the integrals give, by total; 0 where there is none.

    ``front[total, 5]``: the bounds on the line; ``constant``: 1 / (1 + e^(eta Omega));
    ``sizes[total, 5]``: the moduli of the results; ``bounds[total, 5, parts]``: their errors;
    ``moved[total, 5]``: what the errors of all probabilities do, on average.
    """

    front: np.ndarray
    constant: np.ndarray
    sizes: np.ndarray
    bounds: np.ndarray
    moved: np.ndarray


def expectation(
    law: SetLaw,
    model: Model,
    of_weights: WeightErrors,
    crude: np.ndarray,
    asked: Asked,
    foreseen: bool = False,
) -> Result:
    """Return the :class:`Result` at one state, to the accuracy ``asked`` where it can be met.

    ``crude`` bounds softplus(-F), |dF|, 1 everywhere, ``of_weights`` the errors of the attention
    weights. Raises ToleranceError where the integrals are counted to be more than
    ``MOST_OPERATIONS``, before they are computed. With ``foreseen`` no integral is: values and
    bounds are about what they will be.
    """
    most = float(min(OPERATIONS_AT_ONCE, MOST_OPERATIONS))
    result, finished = at_once(law, model, of_weights, crude, asked, most, foreseen)
    if not finished:
        result = _in_parts(law, model, of_weights, crude, asked, foreseen)
    return result


@kernel
def at_once(law, model, of_weights, crude, asked, most, foreseen):
    """Return the :class:`Result`, and whether it is: not if it takes ``most`` operations or more.

    All in one call: lists of tables that pass between Python and kernels take as long as a fifth
    of the work at D = 1024.
    """
    goals = prepare(law, model, crude, asked)
    if not asked.loss:
        goals.goal[0] = math.inf
    rest = math.exp(goals.log_beyond) * crude
    result = Result(np.zeros(5), np.zeros((5, 5)), np.zeros(5))
    for _ in range(_RELATIVE_ROUNDS if asked.relative else _ROUNDS):
        lines = design(law, goals, asked)
        work = at_most(law.C, law.L, len(law.n), lines.nodes, lines.angles)
        if work >= most:
            return result, False
        if foreseen:
            sums = foreseen_sums(law, goals, lines)
        else:
            sums = node_sums(law.n, law.C, law.L, goals.tables, lines, lines.nodes, False)
        result, settled = assemble(law, model, of_weights, goals, lines, sums, rest, asked)
        if settled:
            break
    return result, True


def _in_parts(
    law: SetLaw,
    model: Model,
    of_weights: WeightErrors,
    crude: np.ndarray,
    asked: Asked,
    foreseen: bool,
) -> Result:
    """Return the same where the integrals are long work, counted before; Ctrl-C is heard."""
    goals, result = prepare(law, model, crude, asked), None
    if not asked.loss:
        goals.goal[0] = math.inf
    rest = math.exp(goals.log_beyond) * crude
    for _ in range(_RELATIVE_ROUNDS if asked.relative else _ROUNDS):
        lines = design(law, goals, asked)
        work = operations(law.C, law.L, len(law.n), lines.nodes, lines.angles, lines.share)
        if work > MOST_OPERATIONS:
            if result is None:
                raise ToleranceError(too_long(work, int(lines.nodes.sum())))
            break  # what is there, with its bounds
        if foreseen:
            sums = foreseen_sums(law, goals, lines)
        else:
            sums = _integrate(work, law, goals.tables, lines)
        result, settled = assemble(law, model, of_weights, goals, lines, sums, rest, asked)
        if settled:
            break
    assert result is not None
    return result


def _integrate(work: float, law: SetLaw, tables: Tables, lines: Lines) -> NodeSums:
    """Return the ``node_sums``; long work in parts, so that Ctrl-C is heard."""
    parts, nodes = 1 + int(work / OPERATIONS_AT_ONCE), lines.nodes
    if parts == 1:
        return node_sums(law.n, law.C, law.L, tables, lines, nodes, False)
    done = np.cumsum(nodes * lines.angles)
    owner = np.minimum(done * parts // max(done[-1], 1), parts - 1)  # the part of each total
    sums = None
    for part in range(parts):
        own = np.where(owner == part, nodes, 0)  # totals without nodes give 0
        more = node_sums(law.n, law.C, law.L, tables, lines, own, False)
        sums = more if sums is None else NodeSums(*(a + b for a, b in zip(sums, more)))
    assert sums is not None
    return sums


@kernel
def assemble(law, model, of_weights, goals, lines, sums, rest, asked):
    """Add up all R, ``rest`` bounding those beyond, and lower each goal that was missed.

    Returns the :class:`Result` and whether all goals were met; overwrites ``sums``.
    """
    tables, logs, count = goals.tables, goals.bounds.logs, len(lines.kind)
    result = Result(np.zeros(5), np.zeros((5, 5)), np.zeros(5))
    integrated = Integrated(
        np.exp(lines.logs),
        np.zeros(count),
        np.zeros((count, 5)),
        np.zeros((count, 5, 5)),
        np.zeros((count, 5)),
    )
    moments = Moments(np.empty((5, count)), np.empty((5, count)))
    _fill_moments(law, tables, moments)
    _add_values(law, tables, lines, sums, moments, integrated, result)
    errors = table_errors(law, model, of_weights, tables)
    beyond = np.zeros(5)  # the totals that would need too many nodes, whatever the goal
    for k in range(5):
        result.bounds[k, 0] = rest[k]
    _add_left_out(lines.kind, goals.bounds, errors.most, result.bounds, beyond)
    _add_surely_negative(lines.kind, logs, errors.most, moments, result.bounds)
    drift_of_moments(lines.kind == SURELY_NEGATIVE, law, tables, errors, result.bounds)
    account(lines, logs, errors.most, integrated, np.empty((2, 5)))
    level, series = np.empty(2 * law.C + 1), np.empty(10)
    add_rounding(law, tables, lines, sums, moments, integrated, level, series)
    likely = np.zeros_like(tables.x)
    _fill_likely(law, tables, lines, likely)
    drift = drifts(law.L - 1.0, likely, tables, errors)
    add_drift(law, tables, lines, errors, drift, integrated, result.bounds)
    many = 64.0 + count + 2.0 * len(tables.x)
    for k in range(5):  # adding up the types and the totals; then outwards
        result.bounds[k, 4] += many * UNIT * result.magnitude[k] + TINY_RESULT
        for part in range(5):
            result.bounds[k, part] *= MARGIN
    return result, _settled(asked, result, rest, beyond, goals)


@kernel(borrows=True)
def _fill_likely(law, tables, lines, likely):
    """Fill the tilted probabilities ``[type, total]`` of integrated totals, lam in [0, 1).

    s(-F) is at most e^(-eta F) for eta >= 0, and 1 = e^(-0 F).
    """
    untilted = len(law.log_tail) - 1 + tables.first
    for i in range(len(lines.kind)):
        if lines.kind[i] == INTEGRATED:
            for j in range(len(likely)):
                on_line = lines.eta[i] >= 0.0
                likely[j, i] = lines.share[i, j] if on_line else law.share[j, untilted + i]


@kernel(borrows=True)
def _settled(asked, result, rest, beyond, goals):
    """Lower each goal whose error exceeds its share of the answer.

    Rounding and the ``rest`` of all R that are never visited cannot be lowered, and nothing helps
    where what is left out ``beyond`` is too large.
    """
    bounds, answer = result.bounds, result.values if asked.relative else result.magnitude
    settled = True
    for k in range(0 if asked.loss else 1, 5):
        whole, fixed = asked.tolerance * abs(answer[k]), bounds[k, 4] + MARGIN * rest[k]
        aim = fixed if fixed >= whole else max(0.1 * whole, whole - fixed)
        aim = max(aim, asked.floor * goals.unit[k])
        if beyond[k] > aim:
            return True
        error = bounds[k, 0] - MARGIN * rest[k] + bounds[k, 1] + bounds[k, 2] + bounds[k, 3]
        if error > aim:
            goals.goal[k] *= 0.5 * aim / error
            settled = False
    return settled


@kernel(borrows=True, fastmath=REORDER)
def _fill_moments(law, tables, moments):
    """Fill the :class:`Moments` of all totals."""
    x, y, base, p, n, sets = tables.x, tables.y, tables.base, law.p, law.n, law.L - 1.0
    count, first, noise = x.shape[1], law.center + tables.first, law.noise
    mean, error = moments.mean, moments.error
    accuracy, of_p = law.accuracy, (16.0 + 8.0 * law.log_size) * UNIT
    accuracy += (16.0 + len(p)) * UNIT
    here = law.p_total[first : first + count]
    for k in range(5):
        for i in range(count):
            mean[k, i] = base[k, i] * here[i]
            error[k, i] = abs(base[k, i]) * (accuracy * here[i] + noise)
    accuracy += of_p
    for j in range(len(p)):
        w, here = sets * p[j], law.p_less_one[first - int(n[j]) :]
        for k in range(4):
            size, mean_k, error_k = x[j] if k == 0 else y[k - 1, j], mean[k], error[k]
            for i in range(count):
                mean_k[i] += w * here[i] * size[i]
                error_k[i] += w * (accuracy * here[i] + noise) * abs(size[i])


@kernel(borrows=True)
def _add_left_out(kind, known, most, bounds, beyond):
    """Account for all R that are left out: s(-F) |dF| by its bound for F~, with the errors of F~.

    Or by |dF|, and softplus(-F) by log 2 + |F|, whichever is less: F~ may be far off where F is
    enormous. Adds to ``beyond`` the bounds of those that would need too many nodes.
    """
    sure, logs = known.sure, known.logs
    for i in range(len(kind)):
        if kind[i] != LEFT_OUT and kind[i] != TOO_MANY_NODES:
            continue
        part = 0 if kind[i] == LEFT_OUT else 2
        chance = math.exp(min(logs[i, UNTILTED, 4], 0.0))
        every = math.exp(min(sure[i, 4] + most[0, i], logs[i, UNTILTED, 4], 0.0))
        for k in range(5):
            sharp, size = sure[i, k] + most[0, i], logs[i, UNTILTED, k]
            if k == 0:
                loss = math.exp(min(size, 700.0)) + chance * most[0, i]
                bounds[k, part] += min(math.exp(min(sharp, 700.0)), loss)
            else:
                bounds[k, part] += math.exp(min(sharp, size, 700.0))
            if 0 < k < 4:
                bounds[k, part] += every * most[k, i]
            if kind[i] == TOO_MANY_NODES:
                beyond[k] += math.exp(min(sure[i, k], 700.0))


@kernel(borrows=True)
def _add_surely_negative(kind, logs, most, moments, bounds):
    """Bound the errors of s(-F) = 1 and softplus(-F) = -F, as ``_add_values`` takes them.

    s(F) and softplus(F) are at most e^(aF) / a, a <= 1. ``most``: the largest errors of F and dF.
    """
    for i in range(len(kind)):
        if kind[i] != SURELY_NEGATIVE:
            continue
        for k in range(5):
            least = rest = math.inf
            for j in range(UNTILTED):
                least = min(least, logs[i, j, k] - (math.log(-TILTS[j]) if k == 0 else 0.0))
                rest = min(rest, logs[i, j, 4])
            bounds[k, 0] += math.exp(min(least + most[0, i], 700.0))
            if 0 < k < 4:
                bounds[k, 0] += math.exp(min(rest + most[0, i], 700.0)) * most[k, i]
            bounds[k, 4] += moments.error[k, i]


@kernel(borrows=True)
def _add_values(law, tables, lines, sums, moments, integrated, result):
    """Add the results of all R that are integrated, or whose F is surely negative.

    The integrals, with the constants of the identity: ``sums.by_type``, E over L - 2 sets for each
    type, becomes E[s(-F) 1{R=r}] for it. ``integrated.sizes``: E[s(-F) |dF| 1{R=r}] set by set.
    """
    p, n, p_less_one, y, base = law.p, law.n, law.p_less_one, tables.y, tables.base
    values, magnitude, mean, sets = result.values, result.magnitude, moments.mean, law.L - 1.0
    for i in range(len(lines.kind)):
        if lines.kind[i] == SURELY_NEGATIVE:
            for k in range(5):
                values[k] += mean[k, i] if k > 0 else -mean[k, i]
                magnitude[k] += abs(mean[k, i]) if k > 0 else -mean[k, i]
        if lines.kind[i] != INTEGRATED:
            continue
        of_type, sizes, front = sums.by_type[i], integrated.sizes[i], integrated.front[i, 0]
        types, center, omega = len(p), law.center + tables.first + i, lines.omega[i]
        constant = 1.0 / (1.0 + math.exp(lines.eta[i] * omega))
        integrated.constant[i] = constant
        loss = front * sums.loss[i] + omega * constant * (1 - constant) * law.p_total[center]
        loss -= constant * mean[0, i]
        values[0] += loss
        magnitude[0] += loss
        total = front * of_type[types] + constant * law.p_empty * p_less_one[center]
        for j in range(types):
            of_type[j] = front * of_type[j] + constant * p[j] * p_less_one[center - int(n[j])]
            total += of_type[j]
        for k in range(3):
            value = base[1 + k, i] * total
            size = abs(value)
            for j in range(types):
                term = sets * y[k, j, i] * of_type[j]
                value += term
                size += abs(term)
            values[1 + k] += value
            magnitude[1 + k] += size
            sizes[1 + k] = size
        values[4] += total
        magnitude[4] += total
        sizes[0], sizes[4] = abs(loss), abs(total)
