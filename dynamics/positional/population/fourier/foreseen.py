"""What the integrals over the nodes will be about, by the bounds that planned them.

In their place these sums tell beforehand which error :func:`.assemble.assemble` will find.
"""

import math

import numpy as np

from dynamics.core.jit import kernel
from dynamics.positional.population.fourier.four_angles import LANES
from dynamics.positional.population.fourier.node_sums import NodeSums, node_weights


@kernel
def foreseen_sums(law, goals, lines):
    """Return :class:`.node_sums.NodeSums` without an angle: absolute weights exact, the rest sizes.

    E[s(-F) 1{R=r}] is taken to be its smallest Chernoff bound times what that of P[R = r] exceeds
    P[R = r] by, shared among the types as on the line. Slopes and pairs are empty.
    """
    rows, types, sure, first = len(lines.nodes), len(law.n), goals.bounds.sure, goals.tables.first
    of_weights = np.zeros((6, rows))
    sums = NodeSums(
        np.zeros((rows, types + 1)),
        of_weights[0],
        np.zeros((1, 1)),
        np.zeros((1, 1)),
        of_weights[1],
        of_weights[2],
        of_weights[3],
        of_weights[4],
        of_weights[5],
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
        sums.loss[i] = exact * math.exp(sure[i, 0] - lines.logs[i, 0])
        size = exact * math.exp(sure[i, 4] - lines.logs[i, 4])
        apart = math.exp(-lines.logs[i, 0]) / (1.0 + math.exp(eta * omega))
        for j in range(types):  # less the constant that assemble adds
            constant = law.p[j] * law.p_less_one[center - int(law.n[j])]
            sums.by_type[i, j] = size * lines.share[i, j] - apart * constant
        constant = law.p_empty * law.p_less_one[center]
        sums.by_type[i, types] = size * lines.empty[i] - apart * constant
    return sums
