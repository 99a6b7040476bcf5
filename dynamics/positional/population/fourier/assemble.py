r"""Sum over R of the Fourier integrals, with bounds of all errors.

The identity is derived in the notebook ``fourier_method``, Section 3. For real ``eta`` in (-1, 1),
``w = eta + i t``, the trapezoidal rule with half-shifted nodes ``t_k = (k + 1/2) 2 pi / Omega``
gives exactly

.. math:: s(-F) = \frac{1}{1 + e^{\eta\Omega}} + \frac{2\pi}{\Omega}\sum_{k \ge 0}
          \mathrm{Re}\frac{e^{-w_k F}}{\sin \pi w_k}
          + \sum_{m \ge 1} (-1)^m \bigl[e^{-\eta m\Omega} s(F - m\Omega)
          - e^{\eta m\Omega} s(-F - m\Omega)\bigr].

The aliases (last sum) are exponentially small for F well inside the window ``|F| < Omega``, and are
bounded by tilted expectations elsewhere. The loss is the same integral with 1/(w sin(pi w)). No
node is at t = 0, and every eta is allowed.
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
from dynamics.positional.population.fourier.goals import Target, prepare
from dynamics.positional.population.fourier.lines import (
    INTEGRATED,
    LEFT_OUT,
    NEGATIVE,
    TOO_MANY_NODES,
    Lines,
    design,
)
from dynamics.positional.population.fourier.node_sums import NodeSums, node_sums
from dynamics.positional.population.fourier.operation_count import (
    MOST_OPERATIONS,
    OPERATIONS_AT_ONCE,
    operation_bound,
    operations,
    too_many_operations,
)
from dynamics.positional.population.fourier.predicted_sums import predicted_sums
from dynamics.positional.population.fourier.set_law import SetLaw
from dynamics.positional.population.fourier.tables import Model, Tables
from dynamics.positional.population.fourier.tilts import TILTS, UNTILTED
from dynamics.positional.population.fourier.windows import add_truncation_and_aliases

#: Parts of the bound, in the order of the columns of ``bounds``.
PARTS = ("truncation in R", "truncation in t", "aliasing in t", "aliasing in R", "rounding")

#: Largest numbers of iterations with lower goals.
_ROUNDS, _RELATIVE_ROUNDS = 4, 8


class Result(NamedTuple):
    """Expectations and their errors.

    Attributes
    ----------
    values
        Loss, E[s(-F) dF] for alpha, gamma, rho, and E[s(-F)], (5,).
    bounds
        Errors, (5, parts), see `PARTS`.
    magnitude
        Upper bounds of E[s(-F) |dF|], (5,).
    """

    values: np.ndarray
    bounds: np.ndarray
    magnitude: np.ndarray


class Moments(NamedTuple):
    """Moments by total: ``mean``, (5, totals), of F, dF and 1 on R = r, and their ``error``."""

    mean: np.ndarray
    error: np.ndarray


class Integrated(NamedTuple):
    """Results of the integrals by total; 0 for totals without an integral.

    ``front[total, 5]``: bounds on the line; ``constant``: 1 / (1 + e^(eta Omega));
    ``sizes[total, 5]`` and ``bounds[total, 5, parts]``: moduli of the results and their errors;
    ``rounding[total, 5]``: average effect of the errors of all probabilities.
    """

    front: np.ndarray
    constant: np.ndarray
    sizes: np.ndarray
    bounds: np.ndarray
    rounding: np.ndarray


def expectation(
    law: SetLaw,
    model: Model,
    weight_errors: WeightErrors,
    crude: np.ndarray,
    target: Target,
    predict: bool = False,
) -> Result:
    """Return the :class:`Result` at one state, with the requested accuracy if that can be met.

    ``crude`` bounds softplus(-F), |dF|, 1 everywhere, ``weight_errors`` the errors of the attention
    weights. With ``predict`` values and bounds are predicted without computing an integral.

    Raises
    ------
    ToleranceError
        If the integrals need more than ``MOST_OPERATIONS`` operations.
    """
    most = float(min(OPERATIONS_AT_ONCE, MOST_OPERATIONS))
    result, finished = at_once(law, model, weight_errors, crude, target, most, predict)
    if not finished:
        result = _in_parts(law, model, weight_errors, crude, target, predict)
    return result


@kernel
def at_once(law, model, weight_errors, crude, target, most, predict):
    """Return the :class:`Result`, and whether it is complete: not with ``most`` operations or more.

    A single compiled call avoids passing tables between Python and kernels, which takes a fifth of
    the time at D = 1024.
    """
    goals = prepare(law, model, crude, target)
    if not target.loss:
        goals.goal[0] = math.inf
    rest = math.exp(goals.log_beyond) * crude
    result = Result(np.zeros(5), np.zeros((5, 5)), np.zeros(5))
    for _ in range(_RELATIVE_ROUNDS if target.relative else _ROUNDS):
        lines = design(law, goals, target)
        work = operation_bound(law.C, law.L, len(law.n), lines.nodes, lines.angles)
        if work >= most:
            return result, False
        if predict:
            sums = predicted_sums(law, goals, lines)
        else:
            sums = node_sums(law.n, law.C, law.L, goals.tables, lines, lines.nodes, False)
        result, settled = assemble(law, model, weight_errors, goals, lines, sums, rest, target)
        if settled:
            break
    return result, True


def _in_parts(
    law: SetLaw,
    model: Model,
    weight_errors: WeightErrors,
    crude: np.ndarray,
    target: Target,
    predict: bool,
) -> Result:
    """Return the result of long computations in several calls, so that Ctrl-C takes effect."""
    goals, result = prepare(law, model, crude, target), None
    if not target.loss:
        goals.goal[0] = math.inf
    rest = math.exp(goals.log_beyond) * crude
    for _ in range(_RELATIVE_ROUNDS if target.relative else _ROUNDS):
        lines = design(law, goals, target)
        work = operations(law.C, law.L, len(law.n), lines.nodes, lines.angles, lines.share)
        if work > MOST_OPERATIONS:
            if result is None:
                raise ToleranceError(too_many_operations(work, int(lines.nodes.sum())))
            break  # return the previous result with its bounds
        if predict:
            sums = predicted_sums(law, goals, lines)
        else:
            sums = _integrate(work, law, goals.tables, lines)
        result, settled = assemble(law, model, weight_errors, goals, lines, sums, rest, target)
        if settled:
            break
    assert result is not None
    return result


def _integrate(work: float, law: SetLaw, tables: Tables, lines: Lines) -> NodeSums:
    """Return the ``node_sums``, computed in parts if there are many operations."""
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
def assemble(law, model, weight_errors, goals, lines, sums, rest, target):
    """Return the :class:`Result` summed over all R, and whether all goals are met.

    ``rest`` bounds the contribution of totals outside the tables. Goals that are not met are
    lowered. ``sums`` is overwritten.
    """
    tables, logs, count = goals.tables, goals.bounds.logs, len(lines.treatment)
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
    errors = table_errors(law, model, weight_errors, tables)
    beyond = np.zeros(5)  # bounds of the totals with too many nodes
    for k in range(5):
        result.bounds[k, 0] = rest[k]
    _add_left_out(lines.treatment, goals.bounds, errors.most, result.bounds, beyond)
    _add_negative(lines.treatment, logs, errors.most, moments, result.bounds)
    drift_of_moments(lines.treatment == NEGATIVE, law, tables, errors, result.bounds)
    add_truncation_and_aliases(lines, logs, errors.most, integrated, np.empty((2, 5)))
    level, series = np.empty(2 * law.C + 1), np.empty(10)
    add_rounding(law, tables, lines, sums, moments, integrated, level, series)
    tilted = np.zeros_like(tables.x)
    _fill_tilted(law, tables, lines, tilted)
    drift = drifts(law.L - 1.0, tilted, tables, errors)
    add_drift(law, tables, lines, errors, drift, integrated, result.bounds)
    additions = 64.0 + count + 2.0 * len(tables.x)
    for k in range(5):  # rounding of the sums over types and totals; then the margin
        result.bounds[k, 4] += additions * UNIT * result.magnitude[k] + TINY_RESULT
        for part in range(5):
            result.bounds[k, part] *= MARGIN
    return result, _settled(target, result, rest, beyond, goals)


@kernel(borrows=True)
def _fill_tilted(law, tables, lines, tilted):
    """Fill the tilted probabilities ``[type, total]`` of integrated totals, with lam in [0, 1).

    s(-F) is at most e^(-eta F) for eta >= 0, and at most 1 = e^(-0 F).
    """
    untilted = len(law.log_tail) - 1 + tables.first
    for i in range(len(lines.treatment)):
        if lines.treatment[i] == INTEGRATED:
            for j in range(len(tilted)):
                on_line = lines.eta[i] >= 0.0
                tilted[j, i] = lines.share[i, j] if on_line else law.share[j, untilted + i]


@kernel(borrows=True)
def _settled(target, result, rest, beyond, goals):
    """Lower each goal that is not met; return whether there is none.

    A lower goal does not reduce rounding and the ``rest``. If the totals with too many nodes, the
    errors ``beyond``, are too large, no goal is lowered.
    """
    bounds, answer = result.bounds, result.values if target.relative else result.magnitude
    settled = True
    for k in range(0 if target.loss else 1, 5):
        whole, fixed = target.tolerance * abs(answer[k]), bounds[k, 4] + MARGIN * rest[k]
        aim = fixed if fixed >= whole else max(0.1 * whole, whole - fixed)
        aim = max(aim, target.floor * goals.unit[k])
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
def _add_left_out(treatment, known, most, bounds, beyond):
    """Add the bounds of all R that are not integrated.

    s(-F) |dF| is bounded for F~, with the errors of F~, or by |dF|; softplus(-F) also by
    log 2 + |F|. The second bound may be smaller because F~ may have large errors for enormous F.
    The bounds of totals with too many nodes are also added to ``beyond``.
    """
    best, logs = known.best, known.logs
    for i in range(len(treatment)):
        if treatment[i] != LEFT_OUT and treatment[i] != TOO_MANY_NODES:
            continue
        part = 0 if treatment[i] == LEFT_OUT else 2
        probability = math.exp(min(logs[i, UNTILTED, 4], 0.0))
        mean_sigmoid = math.exp(min(best[i, 4] + most[0, i], logs[i, UNTILTED, 4], 0.0))
        for k in range(5):
            sharp, size = best[i, k] + most[0, i], logs[i, UNTILTED, k]
            if k == 0:
                loss = math.exp(min(size, 700.0)) + probability * most[0, i]
                bounds[k, part] += min(math.exp(min(sharp, 700.0)), loss)
            else:
                bounds[k, part] += math.exp(min(sharp, size, 700.0))
            if 0 < k < 4:
                bounds[k, part] += mean_sigmoid * most[k, i]
            if treatment[i] == TOO_MANY_NODES:
                beyond[k] += math.exp(min(best[i, k], 700.0))


@kernel(borrows=True)
def _add_negative(treatment, logs, most, moments, bounds):
    """Add the errors of the approximations s(-F) = 1 and softplus(-F) = -F of ``_add_values``.

    s(F) and softplus(F) are at most e^(aF) / a, a <= 1. ``most``: the largest errors of F and dF.
    """
    for i in range(len(treatment)):
        if treatment[i] != NEGATIVE:
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
    """Add the results of all R that are integrated or have a negative F.

    For integrated R ``sums.by_type``, expectations over L - 2 sets, becomes E[s(-F) 1{R=r}] for
    each type. ``integrated.sizes`` receives E[s(-F) |dF| 1{R=r}], with moduli set by set.
    """
    p, n, p_less_one, y, base = law.p, law.n, law.p_less_one, tables.y, tables.base
    values, magnitude, mean, sets = result.values, result.magnitude, moments.mean, law.L - 1.0
    for i in range(len(lines.treatment)):
        if lines.treatment[i] == NEGATIVE:
            for k in range(5):
                values[k] += mean[k, i] if k > 0 else -mean[k, i]
                magnitude[k] += abs(mean[k, i]) if k > 0 else -mean[k, i]
        if lines.treatment[i] != INTEGRATED:
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
