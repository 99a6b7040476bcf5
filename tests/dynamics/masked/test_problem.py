"""Problems of masked image modelling: validation, presets, areas and cells."""

import json
from dataclasses import asdict
from math import comb
from typing import Any

import numpy as np
import pytest

from dynamics.core.errors import ParameterError
from dynamics.masked import MaskedProblem
from tests.closeness import close

TWO = (((0, 1, 2), (3, 4, 5)), ((0, 1, 4, 5), (2, 3)))


class TestValidation:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"P": 1}, "P = 1"),
            ({"P": 6.5}, "P = 6.5"),
            ({"mask_ratio": 0.0}, "mask_ratio = 0.0"),
            ({"mask_ratio": 0.01}, "at least one"),
            ({"mask_ratio": float("nan")}, "finite"),
            ({"kappa_c": None}, "give kappa_c and kappa_s, or partitions"),
            ({"kappa_s": 1.0}, "kappa_s = 1.0"),
            ({"kappa_c": True}, "real number"),
            ({"P": 4, "kappa_c": 0.99}, "kappa_c = 0.99"),
            ({"K": 0}, "K = 0"),
            ({"K": 2, "query": ("local",)}, "a tuple of 2"),
            ({"query": "left"}, "'local', 'global'"),
            ({"query": 3}, "'local', 'global'"),
            ({"z_low": 0.0}, "z_low = 0.0"),
            ({"z_high": 0.5}, "z_high = 0.5"),
            ({"partitions": TWO}, "not allowed with partitions"),
        ],
    )
    def test_exponents(self, changes: dict[str, Any], message: str) -> None:
        good = {"P": 32, "kappa_c": 0.8, "kappa_s": 0.3}
        MaskedProblem(**good)
        with pytest.raises(ParameterError, match=message) as error:
            MaskedProblem(**{**good, **changes})
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"query": "local"}, "must be a patch index"),
            ({"query": 6}, "query = 6"),
            ({"partitions": (((0, 1), (2, 3, 4)),)}, "each patch 0..5 once"),
            ({"partitions": (((0, 1, 2, 3, 4, 5), ()),)}, "nonempty"),
            ({"partitions": (1, 2)}, "sequence of areas"),
            ({"partitions": ()}, "at least one cluster"),
            ({"partitions": 3}, "at least one cluster"),
        ],
    )
    def test_partitions(self, changes: dict[str, Any], message: str) -> None:
        good = {"P": 6, "partitions": TWO, "query": 0}
        assert MaskedProblem(**good).K == 2
        with pytest.raises(ParameterError, match=message):
            MaskedProblem(**{**good, **changes})

    def test_json_round_trip(self) -> None:
        for problem in (
            MaskedProblem.rows_and_columns(3, query=4),
            MaskedProblem.two_phases(1000, K=2, query=("local", "global")),
        ):
            assert MaskedProblem(**json.loads(json.dumps(asdict(problem)))) == problem


class TestAreas:
    @pytest.mark.parametrize("P", [24, 1000, 10**6, 10**12])
    @pytest.mark.parametrize("query", ["local", "global"])
    def test_sizes_sum_to_number_of_patches(self, P: int, query: str) -> None:
        problem = MaskedProblem(P=P, kappa_c=0.85, kappa_s=0.4, query=query)
        large, small, count = problem.sizes
        assert large + small * count == P
        assert large == pytest.approx(P**0.85, abs=small)
        layout = problem.layout
        close(layout.size.sum(), P, rel=1e-12)
        close(problem.multiplicity[layout.phi_slots :].sum(), P, rel=1e-12)
        assert problem.own_size() == (large if query == "global" else small)
        expanded = layout.expanded() if P < 10**4 else layout
        close(expanded.size.sum(), P, rel=1e-12)
        assert expanded.area.shape == (1, expanded.size.size)

    def test_information_gap(self) -> None:
        close(MaskedProblem.two_phases().information_gap, 0.6, rel=1e-12)
        close(MaskedProblem.one_phase().information_gap, -0.2, rel=1e-12)
        assert np.isnan(MaskedProblem.rows_and_columns(2).information_gap)

    def test_cells_of_two_partitions(self) -> None:
        problem = MaskedProblem(P=6, partitions=TWO, query=0)
        assert problem.order_parameters == (
            "Phi_1_1",
            "Phi_1_2",
            "Phi_2_1",
            "Phi_2_2",
            "Upsilon_1_1",
            "Upsilon_1_2",
            "Upsilon_2_1",
            "Upsilon_2_2",
            "Upsilon_self",
        )
        assert problem.multiplicity.tolist() == [1, 1, 1, 1, 1, 1, 2, 1, 1]
        assert problem.roles == ("global", "global")
        assert problem.replace(query=2).roles == ("global", "local")

    def test_independent_partitions_have_mean_cells(self) -> None:
        """Mean sizes of the cells over 4,000 random partitions, p in a local area of each."""
        problem = MaskedProblem(P=27, kappa_c=0.65, kappa_s=0.55, K=2)
        large, small, count = problem.sizes
        area = np.repeat(np.arange(count + 1), [large] + [small] * count)
        group = np.minimum(area, 2)  # global, own, other
        rng = np.random.default_rng(0)
        mean = np.zeros((3, 3))
        for _ in range(4000):
            other = rng.permutation(26)
            first = np.delete(group, large)  # p is the first patch of area 1
            np.add.at(mean, (first, first[other]), 1.0 / 4000)
        expected = problem.layout.size[:-1].reshape(3, 3)
        assert mean == pytest.approx(expected, abs=0.15)

    @pytest.mark.parametrize(("P", "size", "masked"), [(10, 3, 5), (12, 4, 3), (9, 5, 4)])
    def test_floor(self, P: int, size: int, masked: int) -> None:
        problem = MaskedProblem.from_sizes([P - size, size], query=P - 1, mask_ratio=masked / P)
        assert problem.masked == masked
        probability = comb(P - size, masked - size) / comb(P, masked) if masked >= size else 0.0
        close(problem.floor, 0.5 * probability, rel=1e-12)

    def test_floor_far_below_the_smallest_double(self) -> None:
        assert MaskedProblem.global_area(10**12).floor == 0.0
        assert MaskedProblem.two_phases(10**12).floor == 0.0
