"""Predictions of the sums over nodes from Chernoff bounds.

Used instead of the sums they predict the error that :func:`.assemble.assemble` will certify.
"""

import math

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.fourier.four_angles import LANES
from dynamics.positional.population.fourier.node_sums import NodeSums, node_weights


@kernel
def predicted_sums(law, goals, lines):
    """Return predicted :class:`.node_sums.NodeSums` without evaluating angles.

    Absolute weights are exact. E[s(-F) 1{R=r}] is estimated by its smallest Chernoff bound times
    the ratio of P[R = r] to its own Chernoff bound, distributed among the types as on the line.
    Slopes and pairs are empty.
    """
    rows, types, best, first = len(lines.nodes), len(law.n), goals.bounds.best, goals.tables.first
    weight_sums = np.zeros((6, rows))
    sums = NodeSums(
        np.zeros((rows, types + 1)),
        weight_sums[0],
        np.zeros((1, 1)),
        np.zeros((1, 1)),
        weight_sums[1],
        weight_sums[2],
        weight_sums[3],
        weight_sums[4],
        weight_sums[5],
    )
    node, wave = np.empty((3, 2, LANES)), np.zeros((2, 1, LANES))
    for i in range(rows):
        if lines.nodes[i] == 0:
            continue
        for done in range(0, lines.nodes[i], LANES):
            lanes = min(LANES, lines.nodes[i] - done)
            node_weights(i, done + 0.5, lines.step[i], lines.eta[i], wave, lanes, node, sums)
        center, eta, omega = law.center + first + i, lines.eta[i], lines.omega[i]
        bound = law.log_probability[len(law.log_tail) - 1 + first + i]
        exact = law.p_total[center] * math.exp(-bound)
        sums.loss[i] = exact * math.exp(best[i, 0] - lines.logs[i, 0])
        size = exact * math.exp(best[i, 4] - lines.logs[i, 4])
        apart = math.exp(-lines.logs[i, 0]) / (1.0 + math.exp(eta * omega))
        for j in range(types):  # minus the constant added by assemble
            constant = law.p[j] * law.p_less_one[center - int(law.n[j])]
            sums.by_type[i, j] = size * lines.share[i, j] - apart * constant
        constant = law.p_empty * law.p_less_one[center]
        sums.by_type[i, types] = size * lines.empty[i] - apart * constant
    return sums
