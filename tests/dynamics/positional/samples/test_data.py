"""Samples of Assumption 1, partitions, the labelling function, and held-out samples."""

import numpy as np
import pytest

from dynamics import ParameterError, Problem
from dynamics.positional.labelling import label_error
from dynamics.positional.samples import (
    HeldOut,
    association_gap,
    contiguous,
    disagreement,
    labelling_function,
    patch_association,
    random_feature,
    random_partition,
    sample,
    set_of,
    squares,
)
from dynamics.positional.samples import data as data_module
from tests.closeness import close, within

PROBLEM = Problem(D=12, C=3, q=0.5, d=5, p=3, nu=0.1, output_scale=1.0)


class TestSample:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_distribution_of_the_data(self, dtype):
        rng = np.random.default_rng(0)
        w, sets = random_feature(PROBLEM, rng), random_partition(PROBLEM, rng)
        N = 20_000
        X, y = sample(PROBLEM, N, rng, sets, w, dtype=dtype)
        assert X.dtype == y.dtype == dtype
        assert X.shape == (N, 12, 5)
        inner = X @ w.astype(dtype)
        s = np.round(inner)
        assert np.abs(inner - s).max() < (1e-14 if dtype is np.float64 else 1e-6)
        assert abs(y.mean()) < 4 / np.sqrt(N)
        agree = (s[:, sets] * y[:, None, None] == 1).all(axis=2)  # sets equal to the signal set
        assert agree.any(axis=1).all()
        # The signal set is uniform; another set is equal to it with probability (q/2)^C.
        probability = 1 / 4 + 3 / 4 * 0.25**3
        within(agree.mean(axis=0), probability, 4 * np.sqrt(probability / N))
        # Coefficients are +-1 in the signal set (a quarter of the patches), elsewhere q/2 each.
        for value in (1, -1):
            share = np.mean(s == value)
            assert share == pytest.approx(0.25 * 0.5 + 0.75 * 0.25, abs=4 / np.sqrt(12 * N))
        noise = X - s[..., None] * w.astype(dtype)
        covariance = np.einsum("nja,njb->ab", noise, noise) / (12 * N)
        expected = PROBLEM.noise**2 * (np.eye(5) - np.outer(w, w))
        within(covariance, expected, 5 * 0.2 / np.sqrt(12 * N))

    def test_unprojected_noise_has_a_component_along_w_star(self):
        rng = np.random.default_rng(1)
        X, _ = sample(PROBLEM, 20_000, rng, projected=False)
        along = X[..., 0] - np.round(np.clip(X[..., 0], -1, 1))
        plain = sample(PROBLEM.replace(sigma=0.05), 20_000, rng, projected=False)[0][..., 0]
        close((plain - np.round(plain)).std(), 0.05, rel=0.02)
        assert along.std() > 0.1

    def test_same_seed_gives_same_data(self):
        first, second = (sample(PROBLEM, 3000, np.random.default_rng(7)) for _ in range(2))
        np.testing.assert_array_equal(first[0], second[0])
        np.testing.assert_array_equal(first[1], second[1])

    def test_data_larger_than_memory_raise(self, monkeypatch):
        monkeypatch.setattr(data_module, "physical_memory", lambda: 2**30)
        with pytest.raises(ParameterError, match=r"take 4\.5 GiB of the 1\.0 GiB") as error:
            sample(PROBLEM, 10_000_000, np.random.default_rng(0))
        assert "N = 10000000" in str(error.value)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("name", "options"),
        [
            ("N", {"N": 0}),
            ("N", {"N": 2.5}),
            ("dtype", {"dtype": np.int32}),
            ("dtype", {"dtype": "nonsense"}),
            ("w_star", {"w_star": np.ones(5)}),
            ("partition", {"partition": [[0, 1, 2]]}),
        ],
    )
    def test_invalid_arguments_raise(self, name, options):
        arguments = {"N": 5, "rng": np.random.default_rng(0)} | options
        with pytest.raises(ParameterError, match=name):
            sample(PROBLEM, **arguments)


class TestPartitions:
    def test_squares_of_a_grid(self):
        sets = squares(Problem(D=16, C=4, q=0.1))
        np.testing.assert_array_equal(sets[0], [0, 1, 4, 5])
        np.testing.assert_array_equal(sets[3], [10, 11, 14, 15])
        assert sorted(sets.reshape(-1)) == list(range(16))

    def test_square_blocks_of_25_patches(self):
        assert squares(Problem(D=100, C=25, q=0.1)).shape == (4, 25)

    @pytest.mark.parametrize(("D", "C"), [(16, 2), (12, 4), (36, 18)])
    def test_sizes_that_are_not_squares_raise(self, D, C):
        with pytest.raises(ParameterError, match="square"):
            squares(Problem(D=D, C=C, q=0.1))

    def test_association_and_gap(self):
        problem = Problem(D=6, C=2, q=0.1)
        sets = random_partition(problem, np.random.default_rng(0))
        owner = set_of(problem, sets)
        assert all(owner[sets[k]].tolist() == [k, k] for k in range(3))
        A = np.where(owner[:, None] == owner, 0.5, 0.1)
        np.fill_diagonal(A, 2.0)
        assert patch_association(A, owner) == 1.0
        close(association_gap(A, owner), 0.4, rel=1e-12)
        i, j = sets[0][0], sets[1][0]
        A[i, j] = 0.6  # larger than the other entry of the set, smaller than the diagonal
        close(patch_association(A, owner), 5 / 6, rel=1e-12)
        close(association_gap(A, owner), -0.1, rel=1e-12)
        A[i, i] = 0.0  # the diagonal belongs to the set of a row, but not to the gap
        close(association_gap(A, owner), -0.1, rel=1e-12)
        A[i, i] = 2.0
        A[i, j] = 0.5  # a tie counts as a failure
        close(patch_association(A, owner), 5 / 6, rel=1e-12)
        top = [set(np.argsort(-row)[:2]) for row in np.random.default_rng(1).normal(size=(6, 6))]
        A = np.random.default_rng(1).normal(size=(6, 6))
        expected = np.mean([patches == set(sets[owner[k]]) for k, patches in enumerate(top)])
        assert patch_association(A, owner) == expected
        assert contiguous(problem).tolist() == [[0, 1], [2, 3], [4, 5]]


class TestLabels:
    def test_labelling_function_of_three_images(self):
        problem = Problem(D=6, C=3, q=0.5, d=2)
        s = np.array([[1, 1, 1, -1, -1, 0], [1, 1, 1, -1, -1, -1], [-1, -1, -1, 1, 1, 0]], float)
        X = np.stack([s, np.ones_like(s)], axis=2)
        np.testing.assert_array_equal(labelling_function(problem, X), [3.0, 0.0, -3.0])
        y = np.array([1.0, 1.0, 1.0])
        close(disagreement(problem, X, y), 2 / 3, rel=1e-12)

    def test_disagreement_approaches_the_exact_label_error(self):
        problem = Problem(D=10, C=2, q=0.6, d=2)
        X, y = sample(problem, 60_000, np.random.default_rng(3))
        exact = label_error(problem).error
        spread = np.sqrt(exact * (1 - exact) / 60_000)
        assert disagreement(problem, X, y) == pytest.approx(exact, abs=4 * spread)


class TestHeldOut:
    @pytest.mark.parametrize("projected", [True, False])
    def test_error_rates_agree_with_d_dimensional_samples(self, projected):
        rng = np.random.default_rng(11)
        w, sets = random_feature(PROBLEM, rng), random_partition(PROBLEM, rng)
        A = rng.normal(size=(12, 12))
        v = 0.7 * w + 0.5 * random_feature(PROBLEM, rng)
        N = 60_000
        X, y = sample(PROBLEM, N, rng, sets, w, projected=projected)
        S = np.exp(A)
        S /= S.sum(axis=1, keepdims=True)
        O = (X @ v) @ S.T  # noqa: E741
        F = np.sum(O**3 + 0.1 * O, axis=1)
        label = labelling_function(PROBLEM, X, sets, w)
        held_out = HeldOut(PROBLEM, N, 1, sets, projected=projected)
        rates = held_out.error(A, v, w)
        spread = np.sqrt(2 / N) * 0.5  # bound of the standard error of a difference of two rates
        assert rates.error == pytest.approx(np.mean(y * F <= 0), abs=4 * spread)
        assert rates.disagreement == pytest.approx(np.mean(label * F <= 0), abs=4 * spread)
        assert 0.05 < rates.error < 0.5
        close(rates.bound, 3 * np.sqrt(rates.error * (1 - rates.error) / N), rel=1e-12)
        assert rates == held_out.error(A, v, w)

    def test_ties_count_as_errors(self):
        rates = HeldOut(PROBLEM, 1000).error(np.zeros((12, 12)), np.zeros(5))
        assert rates[:3] == (1.0, 1.0, 1.0)
        # With uniform attention F has the sign of the sum of 3 signal and 9 random coefficients.
        rate = HeldOut(PROBLEM, 40_000).error(np.zeros((12, 12)), np.eye(5)[0])
        law = np.ones(1)
        for _ in range(9):
            law = np.convolve(law, [0.25, 0.5, 0.25])
        for estimate, exact in ((rate.ties, law[6]), (rate.error, law[:7].sum())):
            assert estimate == pytest.approx(exact, abs=4 * np.sqrt(exact / 40_000))

    def test_stored_and_regenerated_blocks_agree(self, monkeypatch):
        from dynamics.positional.samples import held_out

        A, v = np.zeros((12, 12)), np.array([0.3, 0.2, 0.1, 0.0, 0.0])
        stored = HeldOut(PROBLEM, 9000, 5).error(A, v)
        monkeypatch.setattr(held_out, "_STORED_BYTES", 0)
        regenerated = HeldOut(PROBLEM, 9000, 5)
        assert regenerated._blocks is None
        assert regenerated.error(A, v) == stored

    def test_scale_of_v_does_not_change_signs(self):
        A, v = np.zeros((12, 12)), np.eye(5)[0]
        held_out = HeldOut(PROBLEM.replace(nu=1e-12), 2000)
        for size in (1e-30, 1e30, 1e150):
            assert held_out.error(A, size * v) == held_out.error(A, v)

    def test_scale_of_v_does_not_change_ties(self):
        # all sums are exact for D a power of 2: O is 0 in some samples and about 1e150 in most
        problem = PROBLEM.replace(D=16, C=4)
        A, v = np.zeros((16, 16)), np.eye(5)[0]
        held_out = HeldOut(problem, 2000)
        rates = held_out.error(A, v)
        assert rates.ties > 0.0
        assert held_out.error(A, 1e150 * v) == rates
