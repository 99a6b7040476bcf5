"""Samples of Assumption 1, partitions, f*, and the test error from scalar projections."""

import numpy as np
import pytest

from dynamics import ParameterError, Problem
from dynamics.positional.labelling import label_error
from dynamics.positional.samples import (
    HeldOut,
    association_gap,
    at_random,
    contiguous,
    disagreement,
    labelling_function,
    patch_association,
    random_feature,
    sample,
    set_of,
    squares,
)
from dynamics.positional.samples import data as data_module
from tests.closeness import close, within

PROBLEM = Problem(D=12, C=3, q=0.5, d=5, p=3, nu=0.1, output_scale=1.0)


class TestSample:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_law_of_the_data(self, dtype):
        rng = np.random.default_rng(0)
        w, sets = random_feature(PROBLEM, rng), at_random(PROBLEM, rng)
        N = 20_000
        X, y = sample(PROBLEM, N, rng, sets, w, dtype=dtype)
        assert X.dtype == y.dtype == dtype
        assert X.shape == (N, 12, 5)
        inner = X @ w.astype(dtype)
        s = np.round(inner)
        assert np.abs(inner - s).max() < (1e-14 if dtype is np.float64 else 1e-6)
        assert abs(y.mean()) < 4 / np.sqrt(N)
        agree = (s[:, sets] * y[:, None, None] == 1).all(axis=2)  # sets that look like the signal
        assert agree.any(axis=1).all()
        # The signal set is uniform; another set looks like it with probability (q/2)^C.
        chance = 1 / 4 + 3 / 4 * 0.25**3
        within(agree.mean(axis=0), chance, 4 * np.sqrt(chance / N))
        # Coefficients: in the signal set +-1 (share 1/4), elsewhere q/2 each.
        for value in (1, -1):
            share = np.mean(s == value)
            assert share == pytest.approx(0.25 * 0.5 + 0.75 * 0.25, abs=4 / np.sqrt(12 * N))
        noise = X - s[..., None] * w.astype(dtype)
        covariance = np.einsum("nja,njb->ab", noise, noise) / (12 * N)
        expected = PROBLEM.noise**2 * (np.eye(5) - np.outer(w, w))
        within(covariance, expected, 5 * 0.2 / np.sqrt(12 * N))

    def test_unprojected_noise(self):
        rng = np.random.default_rng(1)
        X, _ = sample(PROBLEM, 20_000, rng, projected=False)
        along = X[..., 0] - np.round(np.clip(X[..., 0], -1, 1))
        plain = sample(PROBLEM.replace(sigma=0.05), 20_000, rng, projected=False)[0][..., 0]
        close((plain - np.round(plain)).std(), 0.05, rel=0.02)
        assert along.std() > 0.1

    def test_same_seed_same_data(self):
        one, two = (sample(PROBLEM, 3000, np.random.default_rng(7)) for _ in range(2))
        np.testing.assert_array_equal(one[0], two[0])
        np.testing.assert_array_equal(one[1], two[1])

    def test_too_much_memory_is_refused_with_the_size(self, monkeypatch):
        monkeypatch.setattr(data_module, "physical_memory", lambda: 2**30)
        with pytest.raises(ParameterError, match=r"take 4\.5 GiB of the 1\.0 GiB") as refusal:
            sample(PROBLEM, 10_000_000, np.random.default_rng(0))
        assert "N = 10000000" in str(refusal.value)
        assert "\n" not in str(refusal.value)

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
    def test_bad_input(self, name, options):
        arguments = {"N": 5, "rng": np.random.default_rng(0)} | options
        with pytest.raises(ParameterError, match=name):
            sample(PROBLEM, **arguments)


class TestPartitions:
    def test_squares_of_a_grid(self):
        sets = squares(Problem(D=16, C=4, q=0.1))
        np.testing.assert_array_equal(sets[0], [0, 1, 4, 5])
        np.testing.assert_array_equal(sets[3], [10, 11, 14, 15])
        assert sorted(sets.reshape(-1)) == list(range(16))

    @pytest.mark.parametrize(("D", "C"), [(16, 2), (12, 4), (36, 9 * 2), (100, 4 * 4 + 9)])
    def test_what_is_no_square(self, D, C):
        if (D, C) == (100, 25):
            assert squares(Problem(D=D, C=C, q=0.1)).shape == (4, 25)
            return
        with pytest.raises(ParameterError, match="square"):
            squares(Problem(D=D, C=C, q=0.1))

    def test_association_and_gap(self):
        problem = Problem(D=6, C=2, q=0.1)
        sets = at_random(problem, np.random.default_rng(0))
        owner = set_of(problem, sets)
        assert all(owner[sets[k]].tolist() == [k, k] for k in range(3))
        A = np.where(owner[:, None] == owner, 0.5, 0.1)
        np.fill_diagonal(A, 2.0)
        assert patch_association(A, owner) == 1.0
        close(association_gap(A, owner), 0.4, rel=1e-12)
        i, j = sets[0][0], sets[1][0]
        A[i, j] = 0.6  # beats the partner, not the diagonal
        close(patch_association(A, owner), 5 / 6, rel=1e-12)
        close(association_gap(A, owner), -0.1, rel=1e-12)
        A[i, j] = 0.5  # a tie is no association
        close(patch_association(A, owner), 5 / 6, rel=1e-12)
        top = [set(np.argsort(-row)[:2]) for row in np.random.default_rng(1).normal(size=(6, 6))]
        A = np.random.default_rng(1).normal(size=(6, 6))
        expected = np.mean([found == set(sets[owner[k]]) for k, found in enumerate(top)])
        assert patch_association(A, owner) == expected
        assert contiguous(problem).tolist() == [[0, 1], [2, 3], [4, 5]]


class TestLabels:
    def test_f_star_by_hand(self):
        problem = Problem(D=6, C=3, q=0.5, d=2)
        s = np.array([[1, 1, 1, -1, -1, 0], [1, 1, 1, -1, -1, -1], [-1, -1, -1, 1, 1, 0]], float)
        X = np.stack([s, np.ones_like(s)], axis=2)
        np.testing.assert_array_equal(labelling_function(problem, X), [3.0, 0.0, -3.0])
        y = np.array([1.0, 1.0, 1.0])
        close(disagreement(problem, X, y), 2 / 3, rel=1e-12)

    def test_disagreement_is_the_exact_label_error(self):
        problem = Problem(D=10, C=2, q=0.6, d=2)
        X, y = sample(problem, 60_000, np.random.default_rng(3))
        exact = label_error(problem).error
        spread = np.sqrt(exact * (1 - exact) / 60_000)
        assert disagreement(problem, X, y) == pytest.approx(exact, abs=4 * spread)


class TestHeldOut:
    @pytest.mark.parametrize("projected", [True, False])
    def test_against_d_dimensional_samples(self, projected):
        rng = np.random.default_rng(11)
        w, sets = random_feature(PROBLEM, rng), at_random(PROBLEM, rng)
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
        found = held_out.error(A, v, w)
        spread = np.sqrt(2 / N) * 0.5  # standard error of a difference of two rates, at most
        assert found.error == pytest.approx(np.mean(y * F <= 0), abs=4 * spread)
        assert found.disagreement == pytest.approx(np.mean(label * F <= 0), abs=4 * spread)
        assert 0.05 < found.error < 0.5
        close(found.bound, 3 * np.sqrt(found.error * (1 - found.error) / N), rel=1e-12)
        assert found == held_out.error(A, v, w)

    def test_ties_count_as_errors(self):
        found = HeldOut(PROBLEM, 1000).error(np.zeros((12, 12)), np.zeros(5))
        assert found[:3] == (1.0, 1.0, 1.0)
        # Uniform attention: F has the sign of the sum, 3 from the signal set and 9 random ones.
        rate = HeldOut(PROBLEM, 40_000).error(np.zeros((12, 12)), np.eye(5)[0])
        law = np.ones(1)
        for _ in range(9):
            law = np.convolve(law, [0.25, 0.5, 0.25])
        for found, exact in ((rate.ties, law[6]), (rate.error, law[:7].sum())):
            assert found == pytest.approx(exact, abs=4 * np.sqrt(exact / 40_000))

    def test_blocks_drawn_again_are_the_same(self, monkeypatch):
        from dynamics.positional.samples import held_out

        A, v = np.zeros((12, 12)), np.array([0.3, 0.2, 0.1, 0.0, 0.0])
        kept = HeldOut(PROBLEM, 9000, 5).error(A, v)
        monkeypatch.setattr(held_out, "_KEPT_BYTES", 0)
        streamed = HeldOut(PROBLEM, 9000, 5)
        assert streamed._kept is None
        assert streamed.error(A, v) == kept

    def test_a_huge_v_keeps_its_signs(self):
        A, v = np.zeros((12, 12)), np.eye(5)[0]
        held_out = HeldOut(PROBLEM.replace(nu=1e-12), 2000)
        for size in (1e-30, 1e30, 1e150):
            assert held_out.error(A, size * v) == held_out.error(A, v)

    def test_ties_of_a_huge_v_are_ties(self):
        # with D a power of two all sums are exact: O is 0 in some samples, about 1e150 in most
        problem = PROBLEM.replace(D=16, C=4)
        A, v = np.zeros((16, 16)), np.eye(5)[0]
        held_out = HeldOut(problem, 2000)
        found = held_out.error(A, v)
        assert found.ties > 0.0
        assert held_out.error(A, 1e150 * v) == found
