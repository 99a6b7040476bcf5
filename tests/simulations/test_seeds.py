"""Runs of one root seed are independent of those of every other root seed."""

import ast
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import simulations
from simulations.falsify import search
from simulations.masked import runs as masked_runs
from simulations.masked.claims import positional_is_not_enough as positional
from simulations.masked.claims import pp_small, two_phases
from simulations.positional import reference_runs as runs
from simulations.positional import training_runs, transfer_runs
from simulations.positional.claims import figure_2
from simulations.reproduction.claim import Context
from simulations.reproduction.registry import load
from simulations.seeds import rng_at, seed_at, seeds_of
from tests.simulations.test_falsify import known_system, run_of

ROOTS = (0, 1, 2, 3)


class Stop(Exception):
    """Ends a claim after its sampling."""


def disjoint(by_root):
    """Return whether every root has seeds, and no two roots have one in common."""
    return all(by_root) and all(not set(a) & set(b) for a, b in combinations(by_root, 2))


def recorded(monkeypatch, module, name, call, result=None):
    """Return the last positional arguments of all calls of a function, for each root."""
    by_root = []
    for root in ROOTS:
        seeds = []
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda *args, _to=seeds: _to.append(args[-1]) or result)
            call(root)
        by_root.append(seeds)
    return by_root


def test_streams_of_neighbouring_roots_differ():
    every = [seed_at(root, *key) for root in range(20) for key in ((), (0,), (1,), (0, 1), (1, 0))]
    assert len(set(every)) == len(every)
    assert seeds_of(3, 4) == [seed_at(3, k) for k in range(4)]
    assert seeds_of(3, 5)[:4] == seeds_of(3, 4)
    keys = [(), (0,), (1,), (0, 1), (1, 0)]
    numbers = [rng_at(root, *key).random() for root in range(20) for key in keys]
    assert len(set(numbers)) == len(numbers)
    draws = np.array([np.random.default_rng(seed).normal(size=400) for seed in every[:12]])
    correlation = np.corrcoef(draws)[~np.eye(12, dtype=bool)]
    assert np.abs(correlation).max() < 5.0 / 400**0.5


def test_full_descents_of_each_root_are_its_own(monkeypatch):
    monkeypatch.setattr(runs, "safe_learning_rate", lambda problem: 0.1)
    seeds = recorded(monkeypatch, runs, "full_descent",
                     lambda root: runs.full_descents(runs.TINY, True, root))  # fmt: skip
    assert disjoint(seeds)
    assert {len(of_root) for of_root in seeds} == {runs.SEEDS}


@pytest.mark.parametrize("quick", [True, False])
def test_students_of_figure_2_of_each_root_are_its_own(quick):
    by_root = [
        [seed for model in figure_2._architectures(quick, True, root) for seed in model.seeds]
        for root in ROOTS
    ]
    assert disjoint(by_root)


def test_states_and_masks_of_each_root_are_its_own(monkeypatch):
    nothing = masked_runs.Agreement(0.0, 0.0, 0.0, 0)
    seeds = recorded(monkeypatch, masked_runs, "agreement",
                     lambda root: masked_runs.agreements(1, root, 5), nothing)  # fmt: skip
    assert disjoint(seeds)


def test_partitions_of_random_problems_of_each_root_are_their_own(monkeypatch):
    seeds = []
    monkeypatch.setattr(masked_runs.MaskedProblem, "from_sizes",
                        lambda *_, seed, **__: seeds.append(seed))  # fmt: skip
    for root in ROOTS:
        masked_runs.random_problems(6, root)
    assert len(set(seeds)) == len(seeds) == 6 * len(ROOTS)


def sample_phases(root):
    """Sample the masks of the two claims that compare them with the mean field."""
    with pytest.raises(Stop):
        two_phases.with_random_masks(root)
    with pytest.raises(Stop):
        pp_small.with_random_masks(masked_runs.WIDE_GAP, root)


def test_masks_of_each_root_are_its_own(monkeypatch):
    by_root = []
    for root in ROOTS:
        seeds = []

        def sampled(regime, seed, _to=seeds):
            _to.append(seed)
            if len(_to) % 5 == 0:
                raise Stop
            return None, None

        monkeypatch.setattr(masked_runs, "sampled", sampled)
        monkeypatch.setattr(pp_small, "sampled_share", sampled)
        sample_phases(root)
        by_root.append(seeds)
    assert disjoint(by_root)
    assert {len(seeds) for seeds in by_root} == {10}


def test_partitions_of_each_root_are_its_own(monkeypatch):
    by_root = []
    for root in ROOTS:
        partitions = []

        def quadratic(problem, _to=partitions):
            if problem.K == 2:
                _to.append(problem.partitions)
            return SimpleNamespace(at_start=1.0)

        monkeypatch.setattr(positional, "quadratic", quadratic)
        monkeypatch.setattr(positional, "best", lambda problem: SimpleNamespace(loss=0, lower=0))
        positional.by_clusters(2, 4, root)
        by_root.append(partitions)
    shuffled = recorded(monkeypatch, positional, "shuffled",
                        lambda root: positional.equal_sizes(4, root) and None,
                        positional.shuffled((12, 6, 6, 6, 6), 2, 3))  # fmt: skip
    assert disjoint(by_root)
    assert disjoint(shuffled)
    assert {len(seeds) for seeds in shuffled} == {4}


@pytest.mark.slow
@pytest.mark.parametrize("claim", ["li-conserved", "huang-lemma-5.2"])
def test_generators_of_a_claim_differ_for_each_root(claim, monkeypatch):
    sequence, generator = np.random.SeedSequence, np.random.default_rng
    by_root = []
    for root in (1, 2):
        made = []

        def recorded_sequence(entropy=None, *, spawn_key=(), _to=made):
            _to.append((entropy, tuple(spawn_key)))
            return sequence(entropy, spawn_key=spawn_key)

        def recorded_generator(seed=None, _to=made):
            if not isinstance(seed, sequence):
                _to.append((seed, ()))
            return generator(seed)

        masked_runs.agreement.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(np.random, "SeedSequence", recorded_sequence)
            patch.setattr(np.random, "default_rng", recorded_generator)
            load(claim).run(Context(quick=True, seed=root))
        by_root.append(made)
    assert disjoint(by_root)


def test_held_out_samples_of_each_run_and_root_are_its_own(monkeypatch):
    seeds = []
    monkeypatch.setattr(training_runs, "HeldOut", lambda problem, samples, seed, *_, **__: (
        seeds.append(seed)))  # fmt: skip
    monkeypatch.setattr(training_runs, "_finished", {})
    monkeypatch.setattr(training_runs, "_tested", lambda *_: None)
    setting = training_runs.Setting(training_runs.SMALL, 8, 0.3, 1.0, 1, records=2, tested=8)
    for root in ROOTS:
        for number in range(3):
            training_runs.trained(setting, root, number)
    groups = [[transfer_runs.held_out_seed(root, group) for group in range(transfer_runs.SEEDS)]
              for root in ROOTS]  # fmt: skip
    assert len(set(seeds)) == len(seeds) == 12
    assert disjoint(groups)


def is_seed(node):
    """Return whether a node of a syntax tree is a variable or an attribute called seed or root."""
    return getattr(node, "attr", getattr(node, "id", "")) in ("seed", "root")


def seeds_by_addition(source):
    """Return the lines of a source that add to a seed, or count on from one."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
            and (is_seed(node.left) or is_seed(node.right)))
        or (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range"
            and len(node.args) > 1 and is_seed(node.args[0]))
    ]  # fmt: skip


@pytest.mark.parametrize(
    "theory",
    [
        pytest.param("positional", marks=pytest.mark.slow),
        "masked",
        "shallow",
        "stated",
        "vision",
    ],
)
def test_no_theory_adds_to_a_root_seed(theory):
    files = list((Path(simulations.__file__).parent / theory).rglob("*.py"))
    assert files
    assert {
        path.name: lines for path in files if (lines := seeds_by_addition(path.read_text()))
    } == {}


@pytest.mark.parametrize("text", ["f(context.seed + k)", "k + seed", "range(seed, end)"])
def test_an_added_number_is_seen(text):
    assert seeds_by_addition(text) == [1]


@pytest.mark.slow
def test_rounds_of_a_search_of_each_root_are_its_own(monkeypatch):
    system, by_root = known_system(lambda case: run_of(case, abs)), []
    for root in ROOTS:
        seeds = []

        def record(*key, _to=seeds):
            _to.append(seed_at(*key))
            return _to[-1]

        with monkeypatch.context() as patch:
            patch.setattr(search, "seed_at", record)
            search.falsify("gamma >= rho", system=system, seed=root, most=150)
        assert len(set(seeds)) >= 3
        by_root.append(seeds)
    assert disjoint(by_root)
