"""Properties of all problems of the shallow transformer, tested with Hypothesis."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynamics import gradient_descent
from dynamics.shallow import ShallowPopulation, cells, sample, train_on_counts
from simulations.shallow.runs import random_start
from simulations.strategies import shallow_problems
from tests.closeness import within

seeds = st.integers(0, 2**32 - 1)


def samples_and_start(problem, seed):
    """Return six samples, and random weights without symmetry."""
    rng = np.random.default_rng(seed)
    data = sample(problem, 6, rng)
    return data, random_start(problem, rng, sigma=0.3, delta=0.5)


def reordered(start, order, sign=1.0):
    """Return the weights with the patterns in another order and a times a sign."""
    return {name: start[name][:, order] for name in ("V", "K", "Q")} | {
        "W_O": start["W_O"],
        "a": sign * start["a"],
    }


def trained(problem, data, start, steps, attend=True):
    return train_on_counts(
        data.counts,
        data.labels,
        **start,
        steps=steps,
        queried=data.queried,
        learning_rate=0.1,
        learning_rate_KQ=0.1 * min(problem.attention_rate, 10.0),
        attention=attend,
        train_value=problem.train_value,
    )


@settings(max_examples=20)
@given(shallow_problems(), seeds, st.booleans())
def test_attention_sums_to_one_over_the_patterns(problem, seed, attend):
    """Each pattern in turn is exchanged with the relevant one."""
    data, start = samples_and_start(problem, seed)
    total = 0.0
    for i in range(problem.M):
        order = [i, *(k for k in range(problem.M) if k != i)]
        image = data._replace(
            counts=data.counts[:, order], queried=data.queried[:, order], labels=np.ones(6)
        )
        share = trained(problem, image, reordered(start, order), 0, attend).attention
        assert 0.0 <= share <= 1.0 + 1e-14
        total += share
    within(total, 1.0, 1e-13)


@settings(max_examples=20)
@given(shallow_problems(), seeds, st.data())
def test_descent_commutes_with_permutations_and_exchange(problem, seed, data):
    """Irrelevant patterns permuted; discriminative ones exchanged with y -> -y, a -> -a."""
    order = list(data.draw(st.permutations(range(2, problem.M))))
    exchange = data.draw(st.booleans())
    order, sign = ([1, 0, *order], -1.0) if exchange else ([0, 1, *order], 1.0)
    samples, start = samples_and_start(problem, seed)
    end = trained(problem, samples, start, 5)
    image = samples._replace(
        counts=samples.counts[:, order],
        queried=samples.queried[:, order],
        labels=sign * samples.labels,
    )
    other = trained(problem, image, reordered(start, order, sign), 5)
    within(other.F, sign * end.F, 1e-11)
    within(other.A, end.A[np.ix_(order, order)], 1e-11)
    within(other.H, end.H[:, order], 1e-11)


@settings(max_examples=20)
@given(shallow_problems())
def test_cells_are_symmetric(problem):
    """Images under exchange and permutation are cells with the same probability."""
    columns = (column.tolist() for column in cells(problem))
    table = {
        (*counts, *queried, label): probability
        for counts, label, queried, probability in zip(*columns)
    }
    exchange = [1, 0, *range(2, problem.M)]
    rotation = [0, 1, *range(3, problem.M), 2]
    for order, sign in ((exchange, -1.0), (rotation, 1.0)):
        for key, probability in table.items():
            counts, queried = key[: problem.M], key[problem.M : -1]
            image = (*(counts[k] for k in order), *(queried[k] for k in order), sign * key[-1])
            within(table[image], probability, 1e-15)


@settings(max_examples=15)
@given(shallow_problems(attention="trained", train_value=True), seeds)
def test_drift_of_conserved_quantities_is_of_first_order_in_the_rate(problem, seed):
    """From states with K != Q, to a given time, if no neuron passes its kink before."""
    population = ShallowPopulation(problem)
    start = problem.initial_state
    start = start + 0.05 * np.random.default_rng(seed).uniform(0.0, 1.0, start.size)
    time = 0.02 / max(1.0, problem.attention_rate)
    drifts = []
    for steps in (8, 16, 32):
        run = gradient_descent(
            population, learning_rate=time / steps, steps=steps, initial=start, records=33
        )
        conserved = run.conserved()
        drifts.append(np.linalg.norm(conserved[-1] - conserved[0]))
    nearest = np.array([population._outputs(state)[2] for state in run.states])
    assume(nearest.min() > 2.0 * np.abs(np.diff(nearest, axis=0)).max())
    rounding = 1e-14 * np.abs(conserved).max()
    assert drifts[2] <= drifts[1] <= drifts[0] + rounding
    if drifts[2] > 1e3 * rounding:
        within(np.array(drifts[:2]) / np.array(drifts[1:]), 2.0, 0.1)
