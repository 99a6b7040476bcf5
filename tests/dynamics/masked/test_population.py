"""The patch loss: comparison with the raw loss and of the methods, derivatives, errors."""

import pickle
import tracemalloc
from collections import Counter
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamics import Status, gradient_flow
from dynamics.core.errors import ParameterError, ToleranceError
from dynamics.masked import MaskedPopulation, MaskedProblem
from dynamics.masked.expectation import Scenarios
from dynamics.masked.scenarios import all_counts, count_vectors
from tests.closeness import close


def raw_loss(problem: MaskedProblem, state: np.ndarray, z: dict[tuple[int, int], float]) -> float:
    """Return L_p by its definition, the mean over all masks, for scales z[k, m]."""
    partitions, p = problem.partitions, problem.patch
    assert partitions is not None
    values = dict(zip(problem.order_parameters, state.tolist()))
    K, total, masks = len(partitions), 0.0, 0
    where = [
        [next(m for m, area in enumerate(areas, 1) if q in area) for areas in partitions]
        for q in range(problem.P)
    ]
    upsilon = [
        values["Upsilon_" + "_".join(map(str, w))] if q != p else values["Upsilon_self"]
        for q, w in enumerate(where)
    ]
    for mask in combinations(range(problem.P), problem.masked):
        masks += 1
        if p not in mask:
            continue
        for k, areas in enumerate(partitions):
            logits = []
            unmasked = np.zeros((problem.P, len(areas)))
            for q in range(problem.P):
                m = where[q][k]
                label = f"{m}" if K == 1 else f"{k + 1}_{m}"
                logits.append(upsilon[q])
                if q not in mask:
                    logits[-1] += z[k, m] * values[f"Phi_{label}"]
                    unmasked[q, m - 1] = z[k, m]
            weights = np.exp(np.array(logits))
            target = np.zeros(len(areas))
            target[where[p][k] - 1] = z[k, where[p][k]]
            total += 0.5 * float(np.sum((target - weights @ unmasked / weights.sum()) ** 2)) / K
    return total / masks


def fixed_scales(problem: MaskedProblem) -> dict[tuple[int, int], float]:
    assert problem.partitions is not None
    sizes = [len(areas) for areas in problem.partitions]
    return {(k, m): problem.z_low for k, n in enumerate(sizes) for m in range(1, n + 1)}


def random_state(problem: MaskedProblem, seed: int = 0, size: float = 1.0) -> np.ndarray:
    return size * np.random.default_rng(seed).normal(size=len(problem.order_parameters))


SMALL = [
    MaskedProblem.from_sizes([4, 2, 2], query=5, mask_ratio=0.5, z_low=1.3),
    MaskedProblem.from_sizes([4, 3], [3, 2, 2], query=1, seed=3, mask_ratio=0.43),
    MaskedProblem.rows_and_columns(2, query=3, mask_ratio=0.5),
    MaskedProblem.from_sizes([3, 3, 2], [2, 5, 1], query=7, seed=1, mask_ratio=0.25, z_low=0.7),
]


class TestRawLoss:
    @pytest.mark.parametrize("problem", SMALL, ids=range(len(SMALL)))
    def test_enumeration_equals_mean_over_all_masks(self, problem: MaskedProblem) -> None:
        population = MaskedPopulation(problem)
        assert population.method == "enumeration"
        for state in (problem.initial_state, random_state(problem)):
            value = population.evaluate(state)
            exact = raw_loss(problem, state, fixed_scales(problem))
            close(value.loss, exact, rel=1e-13)
            assert value.floor == pytest.approx(problem.floor, rel=1e-13, abs=1e-16)
            assert value.floor <= value.loss

    def test_random_scales_by_quadrature(self) -> None:
        problem = MaskedProblem.from_sizes([3, 2], query=4, mask_ratio=0.4, z_low=0.6, z_high=1.5)
        population = MaskedPopulation(problem, tolerance=1e-10)
        state = random_state(problem)
        node, weight = np.polynomial.legendre.leggauss(20)
        z, weight = 1.05 + 0.45 * node, 0.5 * weight
        exact = sum(
            weight[i] * weight[j] * raw_loss(problem, state, {(0, 1): z[i], (0, 2): z[j]})
            for i, j in product(range(20), repeat=2)
        )
        value = population.evaluate(state)
        close(value.loss, exact, rel=1e-11)
        assert abs(value.loss - exact) <= value.bound
        rough = MaskedPopulation(problem, nodes=4).evaluate(state)
        assert 0 < abs(rough.loss - exact) <= rough.bounds["quadrature"]

    def test_torch_autograd_agrees(self) -> None:
        torch = pytest.importorskip("torch")
        from tests.benchmarks.test_masked_full_step import torch_loss

        problem = SMALL[1]
        state = random_state(problem)
        loss, Q = torch_loss(problem, state)
        loss.backward()
        assert torch.is_tensor(Q.grad)
        row, P = Q.grad[problem.patch].numpy(), problem.P
        layout, features = problem.layout, problem.layout.phi_slots
        gradient = MaskedPopulation(problem).gradient(state)
        assert row[P:] == pytest.approx(gradient[:features], abs=1e-15)
        others = np.delete(row[:P], problem.patch)
        assert sorted(others) == pytest.approx(
            sorted(np.repeat(gradient[features:-1], layout.size[:-1].astype(int))), abs=1e-15
        )


PROBLEMS = [
    *SMALL,
    MaskedProblem.two_phases(10**9),
    MaskedProblem.global_area(10**6, z_low=0.8, z_high=1.2),
    MaskedProblem(P=10**6, kappa_c=0.9, kappa_s=0.4, K=2, query=("local", "global")),
]


class TestDerivatives:
    @pytest.mark.parametrize("problem", PROBLEMS, ids=range(len(PROBLEMS)))
    def test_gradient_is_slope_of_loss_per_entry(self, problem: MaskedProblem) -> None:
        population, state, h = MaskedPopulation(problem), random_state(problem), 1e-5
        for s, step in enumerate(h * np.eye(state.size)):
            losses = [population.evaluate(state + sign * step).loss for sign in (1, -1)]
            slope = (losses[0] - losses[1]) / (2 * h)
            gradient = population.gradient(state)[s] * problem.multiplicity[s]
            assert gradient == pytest.approx(slope, rel=1e-6, abs=1e-10)

    @pytest.mark.parametrize("problem", PROBLEMS, ids=range(len(PROBLEMS)))
    def test_jacobian_equals_complex_step(self, problem: MaskedProblem) -> None:
        population, state = MaskedPopulation(problem), random_state(problem)
        jacobian = population.jacobian(state)
        plain = plain_gradient(population.gradient_plan(state), state).real
        assert plain == pytest.approx(population.gradient(state), rel=1e-10, abs=1e-18)
        steps = np.stack([complex_step(population, state, s) for s in range(state.size)], axis=1)
        scale = np.abs(jacobian * problem.multiplicity[:, None]).max()
        assert (jacobian - steps) * problem.multiplicity[:, None] == pytest.approx(
            0.0, abs=1e-13 * scale
        )

    @pytest.mark.parametrize("problem", PROBLEMS, ids=range(len(PROBLEMS)))
    def test_signs_and_sums_of_lemmas(self, problem: MaskedProblem) -> None:
        """The derivatives in Upsilon sum to 0 (Lemma 5.2); the own Phi grows (Lemma 5.1)."""
        gradient = MaskedPopulation(problem).gradient(random_state(problem, 1))
        features = problem.layout.phi_slots
        entries = problem.multiplicity[features:]
        total = np.abs(gradient[features:]) @ entries
        assert gradient[features:] @ entries == pytest.approx(0.0, abs=1e-13 * max(total, 1.0))
        assert all(gradient[areas.own_slot] <= 0.0 for areas in problem.layout.clusters)


def complex_step(population: MaskedPopulation, state: np.ndarray, s: int) -> np.ndarray:
    """Return d gradient / d state_s by a complex step of `plain_gradient`."""
    h = 1e-100
    shifted = state.astype(complex)
    shifted[s] += 1j * h
    return plain_gradient(population.gradient_plan(state), shifted).imag / h


def plain_gradient(scenarios: Scenarios, theta: np.ndarray) -> np.ndarray:
    """Return the gradient without the kernels, also at complex states."""
    K, slots = scenarios.own.size, theta.size
    out = np.zeros(slots, complex)
    for k in range(K):
        counts = scenarios.counts[min(k, len(scenarios.counts) - 1)]
        for row, draw in product(range(scenarios.weight.size), range(scenarios.z.shape[1])):
            weight = scenarios.weight[row] * scenarios.z_weight[k, draw]
            U, z = counts[row], scenarios.z[k, draw]
            base = np.exp(theta[scenarios.cell_slot[k]])
            unmasked = (
                U
                * base
                * np.exp(z[scenarios.area[k]] * theta[scenarios.area_slot[k]][scenarios.area[k]])
            )
            masked = (scenarios.size[k] - U) * base
            Z = unmasked.sum() + masked.sum()
            a = np.zeros(z.size, complex)
            np.add.at(a, scenarios.area[k], unmasked / Z)
            g = z**2 * a / scenarios.copies[k]
            g[scenarios.own[k]] = -(z[scenarios.own[k]] ** 2) * (1 - a[scenarios.own[k]])
            mean = a @ g
            np.add.at(out, scenarios.area_slot[k], -weight * z * a * (mean - g))
            keys = unmasked * (mean - g[scenarios.area[k]]) + masked * mean
            np.add.at(out, scenarios.cell_slot[k], -weight * keys / Z)
    return out * scenarios.masked_probability / K / scenarios.entries


class TestMethods:
    problem = MaskedProblem(P=24, kappa_c=0.8, kappa_s=0.35)  # areas of 12 and 4 x 3

    @pytest.mark.parametrize("scales", [{}, {"z_low": 0.8, "z_high": 1.2}])
    def test_sampling_is_within_its_error(self, scales: dict[str, float]) -> None:
        problem = MaskedProblem.from_sizes([6, 3, 3], query=7, **scales)
        state = random_state(problem, 2)
        exact = MaskedPopulation(problem, "enumeration", tolerance=1e-6).evaluate(state)
        sample = MaskedPopulation(problem, "sampling", samples=20_000, seed=4).evaluate(state)
        assert abs(sample.loss - exact.loss) < sample.bound < 0.01
        assert np.abs(sample.gradient - exact.gradient).max() < sample.bound

    def test_groups_of_equal_areas_are_exact(self) -> None:
        """A problem with exponents equals the problem with the same areas as partitions."""
        large, small, count = self.problem.sizes
        explicit = MaskedProblem.from_sizes([large] + [small] * count, query=large)
        grouped, single = MaskedPopulation(self.problem), MaskedPopulation(explicit)
        state = random_state(self.problem)
        spread = np.concatenate(
            [
                state[[0, 1]],
                [state[2]] * (count - 1),
                state[[3, 4]],
                [state[5]] * (count - 1),
                state[[6]],
            ]
        )
        close(single.evaluate(spread).loss, grouped.evaluate(state).loss, rel=1e-13)
        first = [0, 1, 2, count + 1, count + 2, count + 3, 2 * count + 2]
        close(single.gradient(spread)[first], grouped.gradient(state), rel=1e-11)

    def test_mean_field_is_the_limit_of_many_patches(self) -> None:
        """The error, from exact sums over counts, falls with P and is within its estimate."""
        errors = []
        for P in (12, 36, 108):
            problem = MaskedProblem.from_sizes([P // 3, P // 3, P // 3], query=P - 1)
            state = np.array([-0.5, 0.2, 1.0, 0.1, 0.0, -0.1, 0.0])
            exact = MaskedPopulation(problem, "enumeration").evaluate(state)
            limit = MaskedPopulation(problem, "mean_field").evaluate(state)
            errors.append(abs(limit.loss - exact.loss))
            assert errors[-1] < limit.bound
        assert errors[1] < 0.4 * errors[0]
        assert errors[2] < 0.4 * errors[1]

    def test_mean_field_of_random_scales(self) -> None:
        """Groups of equal areas average their scales; comparison with sampling."""
        problem = MaskedProblem(P=4000, kappa_c=0.9, kappa_s=0.5, z_low=0.7, z_high=1.4)
        state = np.array([-1.0, 2.0, 0.3, 0.01, 0.1, 0.0, 0.0])
        limit = MaskedPopulation(problem, "mean_field").evaluate(state)
        sample = MaskedPopulation(problem, "sampling", samples=4000).evaluate(state)
        assert abs(limit.loss - sample.loss) < sample.bound + limit.bound
        assert np.abs(limit.gradient - sample.gradient).max() < sample.bound + limit.bound

    @pytest.mark.parametrize(
        ("problem", "method"),
        [
            (problem, "enumeration"),
            (MaskedProblem.two_phases(10**6), "mean_field"),
            (MaskedProblem(P=27, kappa_c=0.7, kappa_s=0.5, K=2), "mean_field"),
            (MaskedProblem.rows_and_columns(6), "mean_field"),
        ],
    )
    def test_auto(self, problem: MaskedProblem, method: str) -> None:
        population = MaskedPopulation(problem)
        assert (population.method, population.reason.split(":")[0]) == (method, method)

    @pytest.mark.parametrize(("size", "unmasked"), [([3, 2, 2, 1], 4), ([1] * 10, 5), ([7], 3)])
    def test_count_vectors(self, size: list[int], unmasked: int) -> None:
        rows, weight = all_counts(np.array(size, float), unmasked)
        assert len(rows) == count_vectors(np.array(size), unmasked)
        close(weight.sum(), 1.0, rel=1e-12)
        cell = np.repeat(np.arange(len(size)), size)
        frequency = Counter(
            tuple(np.bincount(cell[list(patches)], minlength=len(size)).tolist())
            for patches in combinations(range(sum(size)), unmasked)
        )
        for row, probability in zip(rows.astype(int).tolist(), weight):
            close(probability, frequency[tuple(row)] / frequency.total(), rel=1e-14)


@pytest.mark.parametrize("problem", [SMALL[1], MaskedProblem.two_phases(10**6, z_high=1.2)])
def test_gradient_of_fixed_correlations_is_zero(problem: MaskedProblem) -> None:
    state, features = random_state(problem), problem.layout.phi_slots
    free = MaskedPopulation(problem)
    for moving, frozen in (("positions", slice(features)), ("features", slice(features, None))):
        population = MaskedPopulation(problem, moving=moving)
        expected = free.gradient(state)
        expected[frozen] = 0.0
        assert np.array_equal(population.gradient(state), expected)
        assert np.all(population.jacobian(state)[frozen] == 0.0)
        value = population.evaluate(state)
        assert value.loss == free.evaluate(state).loss
        assert np.all(value.gradient[frozen] == 0.0)
        close(value.gradient, expected, rel=1e-13)


@pytest.mark.parametrize("method", ["enumeration", "sampling", "mean_field"])
def test_pickle_round_trip(method: str) -> None:
    problem = SMALL[0].replace(z_high=1.5)
    tolerance = 1e-4 if method == "enumeration" else None
    population = MaskedPopulation(problem, method, tolerance, samples=200, moving="features")
    state = random_state(problem)
    expected = population.evaluate(state)
    again = pickle.loads(pickle.dumps(population))
    assert (again.reason, again.evaluations) == (population.reason, population.evaluations)
    value = again.evaluate(state)
    assert value.loss == expected.loss
    assert value.bounds == expected.bounds
    assert np.array_equal(value.gradient, expected.gradient)


CROSSED = MaskedProblem(P=10**4, kappa_c=0.9, kappa_s=0.4, K=2)


class TestErrors:
    @pytest.mark.parametrize(
        ("problem", "arguments", "message"),
        [
            (SMALL[0], {"method": "fourier"}, "method = fourier"),
            (SMALL[0], {"tolerance": 0.0}, "tolerance = 0.0"),
            (SMALL[0], {"samples": 5}, "samples = 5"),
            (SMALL[0], {"nodes": 1}, "nodes = 1"),
            (SMALL[0], {"moving": "nothing"}, "moving = nothing"),
            (CROSSED, {"moving": "positions"}, "moving = positions is not allowed"),
            (CROSSED, {"method": "sampling"}, "fractions of patches"),
            ("a problem", {}, "MaskedProblem"),
        ],
    )
    def test_rejects_bad_arguments(self, problem: Any, arguments: Any, message: str) -> None:
        with pytest.raises(ParameterError, match=message):
            MaskedPopulation(problem, **arguments)

    def test_rejects_state_of_wrong_length(self) -> None:
        with pytest.raises(ParameterError, match="must be 7 numbers"):
            MaskedPopulation(SMALL[0]).evaluate([0.0])

    def test_features_alone_allow_fractions_of_patches(self) -> None:
        assert MaskedPopulation(CROSSED, moving="features").method == "mean_field"

    @pytest.mark.parametrize(
        ("problem", "arguments", "message"),
        [
            (MaskedProblem.rows_and_columns(8), {"method": "enumeration"}, "more than"),
            (
                SMALL[0].replace(z_low=0.01, z_high=9.0),
                {"method": "enumeration", "tolerance": 1e-18},
                "nodes",
            ),
            (MaskedProblem.two_phases(10**8), {"method": "sampling"}, "numbers"),
        ],
    )
    def test_rejects_large_tables(
        self, problem: MaskedProblem, arguments: Any, message: str
    ) -> None:
        with pytest.raises(ToleranceError, match=message):
            MaskedPopulation(problem, **arguments)

    @pytest.mark.parametrize(
        ("problem", "method", "part"),
        [
            (MaskedProblem.two_phases(10**4), "mean_field", "fluctuations, estimated"),
            (MaskedProblem.rows_and_columns(4), "mean_field", "hidden areas"),
            (SMALL[0], "sampling", "three standard errors"),
            (SMALL[0].replace(z_high=4.0), "enumeration", "quadrature"),
        ],
    )
    def test_rejects_bounds_above_the_tolerance(
        self, problem: MaskedProblem, method: str, part: str
    ) -> None:
        """A tolerance just above the bound is met, a tolerance just below it is not."""
        nodes = 4 if part == "quadrature" else None
        state = random_state(problem, size=0.1)
        value = MaskedPopulation(problem, method, nodes=nodes).evaluate(state)
        assert value.bounds[part] > 0.0
        least = value.bound / max(1.0, value.loss, float(np.abs(value.gradient).max()))
        for factor, is_met in ((1.001, True), (0.999, False)):
            population = MaskedPopulation(problem, method, factor * least, nodes=nodes)
            if is_met:
                assert population.evaluate(state).bound == value.bound
                continue
            with pytest.raises(ToleranceError, match=f"cannot be met by {method}") as error:
                population.evaluate(state)
            assert error.value.reachable == value.bound
            assert "\n" not in str(error.value)
            with pytest.raises(ToleranceError):
                pickle.loads(pickle.dumps(population)).evaluate(state)

    def test_run_ends_where_bound_exceeds_tolerance(self) -> None:
        problem = MaskedProblem.two_phases(10**4)
        free = gradient_flow(MaskedPopulation(problem), horizon=1e5, records=20)
        assert free.status is Status.COMPLETED
        limit = float(np.sqrt(free.bound[0] * free.bound.max()))
        run = gradient_flow(MaskedPopulation(problem, tolerance=limit), horizon=1e5, records=20)
        assert run.status is Status.INACCURATE
        assert "cannot be met by mean_field" in run.message
        assert 0 < run.time.size < free.time.size
        assert run.bound.max() <= limit

    @pytest.mark.slow
    def test_large_tables_are_rejected_before_they_are_created(self) -> None:
        """3^16 order parameters would need 6 GB."""
        tracemalloc.start()
        with pytest.raises(ParameterError, match="here 43046770"):
            MaskedProblem(P=10**6, kappa_c=0.95, kappa_s=0.3, K=16)
        with pytest.raises(ToleranceError, match="6561 cells in K = 8 clusters"):
            MaskedPopulation(MaskedProblem(P=10**6, kappa_c=0.95, kappa_s=0.3, K=8))
        largest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert largest < 50e6
        grid = MaskedProblem.rows_and_columns(80)  # more areas than an array has dimensions
        with pytest.raises(ToleranceError, match="6399 cells in K = 2 clusters"):
            MaskedPopulation(grid)
        wide = MaskedPopulation(grid, "sampling", samples=100)
        with pytest.raises(ToleranceError, match="use gradient descent"):
            wide.jacobian(wide.problem.initial_state)
        assert np.isfinite(wide.gradient(wide.problem.initial_state)).all()

    def test_overflow_raises(self) -> None:
        with pytest.raises(OverflowError, match="not finite"):
            MaskedPopulation(SMALL[0]).gradient(np.full(7, np.inf))


@st.composite
def random_problems(draw: st.DrawFn) -> MaskedProblem:
    """Draw exponents with P up to 10^12, or small explicit areas."""
    mask_ratio = draw(st.floats(0.1, 0.9))
    z_low = draw(st.floats(0.5, 2.0))
    if draw(st.booleans()):
        sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
        P = sum(sizes)
        clusters = [sizes, sizes[::-1]][: draw(st.integers(1, 2))]
        return MaskedProblem.from_sizes(
            *clusters,
            query=draw(st.integers(0, P - 1)),
            seed=draw(st.integers(0, 9)),
            mask_ratio=min(max(mask_ratio, 1 / P), 1 - 1 / P),
            z_low=z_low,
        )
    return MaskedProblem(
        P=draw(st.integers(20, 10**12)),
        K=draw(st.integers(1, 2)),
        z_low=z_low,
        kappa_c=draw(st.floats(0.3, 0.95)),
        kappa_s=draw(st.floats(0.05, 0.6)),
        mask_ratio=mask_ratio,
        query=draw(st.sampled_from(["local", "global"])),
    )


@settings(max_examples=60)
@given(data=st.data(), seed=st.integers(0, 10**6), size=st.floats(0.0, 20.0))
def test_signs_sums_floor_and_symmetry_of_random_problems(
    data: st.DataObject, seed: int, size: float
) -> None:
    try:
        problem = data.draw(random_problems())
    except ParameterError:  # areas that do not fit, or no masked patch
        return
    population = MaskedPopulation(problem)
    n = len(problem.order_parameters)
    state = size * np.random.default_rng(seed).normal(size=n)
    value = population.evaluate(state)
    assert value.loss >= value.floor * (1.0 - 1e-12)
    layout, entries = problem.layout, problem.multiplicity
    total = value.gradient * entries
    assert all(value.gradient[areas.own_slot] <= 0.0 for areas in layout.clusters)
    positions = total[layout.phi_slots :]
    assert abs(positions.sum()) <= 1e-12 * max(np.abs(positions).sum(), value.loss)
    hessian = population.jacobian(state) * entries[:, None]
    assert np.abs(hessian - hessian.T).max() <= 1e-12 * max(np.abs(hessian).max(), value.loss)
    assert np.all((value.attention >= 0.0) & (value.attention <= problem.K * (1.0 + 1e-12)))
    assert np.isfinite(value.bound)
