"""The patch loss: area form against the raw loss, and the methods against each other."""

import pickle
import tracemalloc
from itertools import combinations, product

import numpy as np
import pytest

from dynamics import Status, gradient_flow
from dynamics.core.errors import ParameterError, ToleranceError
from dynamics.masked import MaskedPopulation, MaskedProblem, scenarios
from tests.closeness import close


def raw_loss(problem: MaskedProblem, state: np.ndarray, z: dict[tuple[int, int], float]) -> float:
    """L_p by the definition, over all masks, from names of the order parameters; scales given."""
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
            seen = np.zeros((problem.P, len(areas)))
            for q in range(problem.P):
                m = where[q][k]
                label = f"{m}" if K == 1 else f"{k + 1}_{m}"
                logits.append(upsilon[q])
                if q not in mask:
                    logits[-1] += z[k, m] * values[f"Phi_{label}"]
                    seen[q, m - 1] = z[k, m]
            weights = np.exp(np.array(logits))
            target = np.zeros(len(areas))
            target[where[p][k] - 1] = z[k, where[p][k]]
            total += 0.5 * float(np.sum((target - weights @ seen / weights.sum()) ** 2)) / K
    return total / masks


def fixed(problem: MaskedProblem) -> dict[tuple[int, int], float]:
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
    def test_enumeration_is_the_sum_over_all_masks(self, problem: MaskedProblem) -> None:
        population = MaskedPopulation(problem)
        assert population.method == "enumeration"
        for state in (problem.initial_state, random_state(problem)):
            value = population.evaluate(state)
            exact = raw_loss(problem, state, fixed(problem))
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
    def test_gradient_is_the_slope_of_the_loss_per_entry(self, problem: MaskedProblem) -> None:
        population, state, h = MaskedPopulation(problem), random_state(problem), 1e-5
        for s, step in enumerate(h * np.eye(state.size)):
            losses = [population.evaluate(state + sign * step).loss for sign in (1, -1)]
            slope = (losses[0] - losses[1]) / (2 * h)
            gradient = population.gradient(state)[s] * problem.multiplicity[s]
            assert gradient == pytest.approx(slope, rel=1e-6, abs=1e-10)

    @pytest.mark.parametrize("problem", PROBLEMS, ids=range(len(PROBLEMS)))
    def test_jacobian_is_the_complex_step_of_the_plain_gradient(
        self, problem: MaskedProblem
    ) -> None:
        population, state = MaskedPopulation(problem), random_state(problem)
        jacobian = population.jacobian(state)
        plain = plain_gradient(population.gradient_plan(state), state).real
        assert plain == pytest.approx(population.gradient(state), rel=1e-10, abs=1e-18)
        found = np.stack([complex_step(population, state, s) for s in range(state.size)], axis=1)
        scale = np.abs(jacobian * problem.multiplicity[:, None]).max()
        assert (jacobian - found) * problem.multiplicity[:, None] == pytest.approx(
            0.0, abs=1e-13 * scale
        )

    @pytest.mark.parametrize("problem", PROBLEMS, ids=range(len(PROBLEMS)))
    def test_positions_only_move_attention(self, problem: MaskedProblem) -> None:
        """Lemma 5.2: the derivatives in Upsilon sum to 0 over the keys; Lemma 5.1: own >= 0."""
        gradient = MaskedPopulation(problem).gradient(random_state(problem, 1))
        features = problem.layout.phi_slots
        entries = problem.multiplicity[features:]
        total = np.abs(gradient[features:]) @ entries
        assert gradient[features:] @ entries == pytest.approx(0.0, abs=1e-13 * max(total, 1.0))
        assert all(gradient[areas.own_slot] <= 0.0 for areas in problem.layout.clusters)


def complex_step(population: MaskedPopulation, state: np.ndarray, s: int) -> np.ndarray:
    """d gradient / d state_s by the plain Python form of the kernel, run on complex numbers."""
    h = 1e-100
    moved = state.astype(complex)
    moved[s] += 1j * h
    return plain_gradient(population.gradient_plan(state), moved).imag / h


def plain_gradient(plan, theta: np.ndarray) -> np.ndarray:
    """The gradient in array form, sharing nothing with the kernels; complex states allowed."""
    K, slots = plan.own.size, theta.size
    out = np.zeros(slots, complex)
    for k in range(K):
        counts = plan.counts[min(k, len(plan.counts) - 1)]
        for row, draw in product(range(plan.weight.size), range(plan.z.shape[1])):
            weight, U, z = plan.weight[row] * plan.z_weight[k, draw], counts[row], plan.z[k, draw]
            base = np.exp(theta[plan.cell_slot[k]])
            seen = U * base * np.exp(z[plan.area[k]] * theta[plan.area_slot[k]][plan.area[k]])
            hidden = (plan.size[k] - U) * base
            Z = seen.sum() + hidden.sum()
            a = np.zeros(z.size, complex)
            np.add.at(a, plan.area[k], seen / Z)
            g = z**2 * a / plan.copies[k]
            g[plan.own[k]] = -(z[plan.own[k]] ** 2) * (1 - a[plan.own[k]])
            mean = a @ g
            np.add.at(out, plan.area_slot[k], -weight * z * a * (mean - g))
            keys = seen * (mean - g[plan.area[k]]) + hidden * mean
            np.add.at(out, plan.cell_slot[k], -weight * keys / Z)
    return out * plan.chance / K / plan.entries


class TestMethods:
    problem = MaskedProblem(P=24, kappa_c=0.8, kappa_s=0.35)  # areas of 12 and 4 x 3

    @pytest.mark.parametrize("scales", [{}, {"z_low": 0.8, "z_high": 1.2}])
    def test_sampling_within_error_bars(self, scales: dict[str, float]) -> None:
        problem = MaskedProblem.from_sizes([6, 3, 3], query=7, **scales)
        state = random_state(problem, 2)
        exact = MaskedPopulation(problem, "enumeration", tolerance=1e-6).evaluate(state)
        found = MaskedPopulation(problem, "sampling", samples=20_000, seed=4).evaluate(state)
        assert abs(found.loss - exact.loss) < found.bound < 0.01
        assert np.abs(found.gradient - exact.gradient).max() < found.bound

    def test_shared_slots_are_exact(self) -> None:
        """Exponents against the same areas written out: equal areas keep equal correlations."""
        large, small, count = self.problem.sizes
        written = MaskedProblem.from_sizes([large] + [small] * count, query=large)
        grouped, single = MaskedPopulation(self.problem), MaskedPopulation(written)
        state = random_state(self.problem)
        spread = np.concatenate([state[[0, 1]], [state[2]] * (count - 1), state[[3, 4]],
                                 [state[5]] * (count - 1), state[[6]]])  # fmt: skip
        close(single.evaluate(spread).loss, grouped.evaluate(state).loss, rel=1e-13)
        first = [0, 1, 2, count + 1, count + 2, count + 3, 2 * count + 2]
        close(single.gradient(spread)[first], grouped.gradient(state), rel=1e-11)

    def test_mean_field_is_the_limit_of_many_patches(self) -> None:
        """Its error falls with P and stays within the estimate, by exact sums over counts."""
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
        """Groups of equal areas average their scales: against a sample of P = 4,000."""
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
        rows, weight = scenarios.all_counts(np.array(size, float), unmasked)
        assert len(rows) == scenarios.count_vectors(np.array(size), unmasked)
        close(weight.sum(), 1.0, rel=1e-12)
        cell = np.repeat(np.arange(len(size)), size)
        drawn: dict[tuple[int, ...], int] = {}
        for chosen in combinations(range(sum(size)), unmasked):
            key = tuple(np.bincount(cell[list(chosen)], minlength=len(size)).tolist())
            drawn[key] = drawn.get(key, 0) + 1
        total = sum(drawn.values())
        for row, chance in zip(rows.astype(int).tolist(), weight):
            close(chance, drawn[tuple(row)] / total, rel=1e-14)


@pytest.mark.parametrize("problem", [SMALL[1], MaskedProblem.two_phases(10**6, z_high=1.2)])
def test_what_is_not_trained_does_not_move(problem: MaskedProblem) -> None:
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
def test_survives_pickling(method: str) -> None:
    problem = SMALL[0].replace(z_high=1.5)
    tolerance = 1e-4 if method == "enumeration" else None
    population = MaskedPopulation(problem, method, tolerance, samples=200, moving="features")
    state = random_state(problem)
    expected = population.evaluate(state)
    again = pickle.loads(pickle.dumps(population))
    assert (again.reason, again.evaluations) == (population.reason, population.evaluations)
    found = again.evaluate(state)
    assert found.loss == expected.loss
    assert found.bounds == expected.bounds
    assert np.array_equal(found.gradient, expected.gradient)


class TestRefusals:
    def test_bad_arguments(self) -> None:
        problem = SMALL[0]
        for arguments, what in (
            ({"method": "fourier"}, "method = fourier"),
            ({"tolerance": 0.0}, "tolerance = 0.0"),
            ({"samples": 5}, "samples = 5"),
            ({"nodes": 1}, "nodes = 1"),
            ({"moving": "nothing"}, "moving = nothing"),
        ):
            with pytest.raises(ParameterError, match=what):
                MaskedPopulation(problem, **arguments)
        with pytest.raises(ParameterError, match="MaskedProblem"):
            MaskedPopulation("a problem")  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="must be 7 numbers"):
            MaskedPopulation(problem).evaluate([0.0])

    def test_positions_alone_need_whole_patches(self):
        crowded = MaskedProblem(P=10**4, kappa_c=0.9, kappa_s=0.4, K=2)
        with pytest.raises(ParameterError, match="moving = positions is not allowed"):
            MaskedPopulation(crowded, moving="positions")
        assert MaskedPopulation(crowded, moving="features").method == "mean_field"

    def test_what_is_too_large_is_refused(self) -> None:
        crossed = MaskedProblem(P=10**4, kappa_c=0.9, kappa_s=0.4, K=2)
        with pytest.raises(ParameterError, match="fractions of patches"):
            MaskedPopulation(crossed, "sampling")
        with pytest.raises(ToleranceError, match="more than"):
            MaskedPopulation(MaskedProblem.rows_and_columns(8), "enumeration")
        wild = SMALL[0].replace(z_low=0.01, z_high=9.0)
        with pytest.raises(ToleranceError, match="nodes"):
            MaskedPopulation(wild, "enumeration", tolerance=1e-18)
        with pytest.raises(ToleranceError, match="numbers"):
            MaskedPopulation(MaskedProblem.two_phases(10**8), "sampling")

    @pytest.mark.parametrize(
        ("problem", "method", "part"),
        [
            (MaskedProblem.two_phases(10**4), "mean_field", "fluctuations, estimated"),
            (MaskedProblem.rows_and_columns(4), "mean_field", "hidden areas"),
            (SMALL[0], "sampling", "three standard errors"),
            (SMALL[0].replace(z_high=4.0), "enumeration", "quadrature"),
        ],
    )
    def test_bounds_above_the_tolerance_are_refused(
        self, problem: MaskedProblem, method: str, part: str
    ) -> None:
        """Without a tolerance the bound is told; asked for just above it, it is met."""
        nodes = 4 if part == "quadrature" else None
        state = random_state(problem, size=0.1)
        value = MaskedPopulation(problem, method, nodes=nodes).evaluate(state)
        assert value.bounds[part] > 0.0
        least = value.bound / max(1.0, value.loss, float(np.abs(value.gradient).max()))
        for share, met in ((1.001, True), (0.999, False)):
            asked = MaskedPopulation(problem, method, share * least, nodes=nodes)
            if met:
                assert asked.evaluate(state).bound == value.bound
                continue
            with pytest.raises(ToleranceError, match=f"cannot be met by {method}") as caught:
                asked.evaluate(state)
            assert caught.value.reachable == value.bound
            assert "\n" not in str(caught.value)
            with pytest.raises(ToleranceError):
                pickle.loads(pickle.dumps(asked)).evaluate(state)

    def test_a_run_above_its_tolerance_says_so(self) -> None:
        """The bound grows as areas are told apart; the run ends where it passes the tolerance."""
        problem = MaskedProblem.two_phases(10**4)
        free = gradient_flow(MaskedPopulation(problem), horizon=1e5, records=20)
        assert free.status is Status.COMPLETED
        limit = float(np.sqrt(free.bound[0] * free.bound.max()))
        run = gradient_flow(MaskedPopulation(problem, tolerance=limit), horizon=1e5, records=20)
        assert run.status is Status.INACCURATE
        assert "cannot be met by mean_field" in run.message
        assert 0 < run.time.size < free.time.size
        assert run.bound.max() <= limit

    def test_tables_are_refused_before_they_are_made(self) -> None:
        """3^16 order parameters took 6 GB; all refusals together may take 50 MB."""
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

    def test_overflow_is_told(self) -> None:
        with pytest.raises(OverflowError, match="not finite"):
            MaskedPopulation(SMALL[0]).gradient(np.full(7, np.inf))
