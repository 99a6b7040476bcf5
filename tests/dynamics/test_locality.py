"""Measures of locality against plain loops and SciPy, and their null distributions."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, spearmanr

from dynamics import ParameterError
from dynamics.locality import (
    attention_locality,
    distances,
    encoding_locality,
    locality,
    neighbours,
    similarity,
    without_class_token,
)
from tests.closeness import close, within

GRID = (4, 5)


@pytest.fixture
def attention():
    return np.random.default_rng(5).dirichlet(np.ones(20), 20)


def _values(result):
    measures = vars(result).items()
    return {name: measure.value for name, measure in measures if measure is not None}


def _by_loops(weights, grid):
    """Return the measures of one map by their definitions, patch by patch."""
    patches = [(row, column) for row in range(grid[0]) for column in range(grid[1])]
    shares, near, far, close_by, gaps, looked, all_gaps = [], [], [], [], [], [], []
    for i, here in enumerate(patches):
        others = [j for j in range(len(patches)) if j != i]
        gap = {j: np.hypot(here[0] - patches[j][0], here[1] - patches[j][1]) for j in others}
        mine = [j for j in others if gap[j] < 1.5]
        best = sorted(others, key=lambda j: -weights[i, j])[: len(mine)]
        shares.append(len(set(best) & set(mine)) / len(mine))
        total = sum(weights[i, j] for j in others)
        for j in others:
            (near if j in mine else far).append(weights[i, j])
            close_by.append((j in mine, weights[i, j] / total))
            gaps.append(-gap[j])
        looked.append(sum(weights[i, j] * gap[j] for j in others) / total)
        all_gaps.append(np.mean(list(gap.values())))
    entries = [weights[i, j] for i in range(len(patches)) for j in range(len(patches)) if i != j]
    lift = np.mean([w for is_near, w in close_by if is_near])
    return {
        "precision": np.mean(shares),
        "auc": mannwhitneyu(near, far).statistic / (len(near) * len(far)),
        "mantel": spearmanr(entries, gaps).statistic,
        "lift": lift / np.mean([w for is_near, w in close_by if not is_near]),
        "distance": np.mean(looked) / np.mean(all_gaps),
    }


def test_measures_equal_their_definitions(attention):
    close(
        _values(attention_locality(attention, grid=GRID, draws=1)),
        _by_loops(attention, GRID),
        1e-12,
    )


def test_measures_of_symmetric_and_tied_maps_equal_their_definitions(attention):
    tied = np.rint(20.0 * (attention + attention.T))
    result, expected = locality(tied, grid=GRID, draws=1), _by_loops(tied, GRID)
    close([result.auc.value, result.mantel.value], [expected["auc"], expected["mantel"]], 1e-12)


def test_tied_entries_share_the_remaining_ranks():
    """Compare with the mean over random orders of the ties, sampled by adding small noise."""
    rng = np.random.default_rng(0)
    tied = rng.integers(0, 3, (20, 20)).astype(float)
    drawn = [
        locality(tied + 1e-6 * rng.normal(size=tied.shape), grid=GRID, draws=1).precision.value
        for _ in range(400)
    ]
    error = np.std(drawn) / np.sqrt(len(drawn))
    within(locality(tied, grid=GRID, draws=1).precision.value, np.mean(drawn), 4.0 * error)


def test_null_equals_the_measures_of_permuted_maps(attention):
    result = attention_locality(attention, grid=GRID, draws=300, seed=2)
    rng = np.random.default_rng(11)  # other permutations from the same distribution
    moved = [attention[np.ix_(order, order)] for order in (rng.permutation(20) for _ in range(300))]
    values = _values(attention_locality(np.array(moved), grid=GRID, draws=1))
    for name, drawn in values.items():
        measure = getattr(result, name)
        error = measure.null_sd * np.sqrt(2.0 / 300)
        within(measure.null_mean, drawn.mean(), 4.0 * error)
        close(measure.null_sd, drawn.std(ddof=1), 0.25)
        close(measure.z, (measure.value - measure.null_mean) / measure.null_sd, 1e-12)


@pytest.mark.parametrize("null", ["permutation", "ring"])
def test_p_values_of_maps_without_structure_are_uniform(null):
    maps = np.random.default_rng(7).normal(size=(400, 20, 20))
    result = locality(maps, grid=GRID, null=null, draws=99)
    for measure in (result.precision, result.auc, result.mantel):
        share = np.mean(measure.p <= 0.1)
        within(share, 0.1, 4.0 * np.sqrt(0.09 / 400))


def test_attention_to_neighbours_is_local():
    near = neighbours((6, 6)).astype(float)
    result = attention_locality(near / near.sum(axis=1, keepdims=True))
    close([result.precision.value, result.auc.value], [1.0, 1.0], 1e-12)
    assert np.isinf(result.lift.value)
    assert result.distance.value < 0.4
    for measure in (result.precision, result.auc, result.mantel, result.lift, result.distance):
        close(measure.p, 1.0 / 200.0, 1e-12)


def test_attention_to_neighbours_alone_has_infinite_lift_however_it_rounds():
    for grid in [(rows, columns) for rows in range(3, 13) for columns in range(rows, 13)]:
        near = neighbours(grid).astype(float)
        result = attention_locality(near / near.sum(axis=1, keepdims=True), grid=grid, draws=9)
        assert result.lift.value == np.inf


@pytest.mark.parametrize("elsewhere", [0.5, 1e-3, 1e-9])
def test_lift_of_a_share_elsewhere(elsewhere):
    near = neighbours((6, 6)).astype(float)
    far = 1.0 - near - np.eye(36)
    weights = (1.0 - elsewhere) * near / near.sum(axis=1, keepdims=True)
    weights += elsewhere * far / far.sum(axis=1, keepdims=True)
    expected = ((1.0 - elsewhere) / near.sum()) / (elsewhere / far.sum())
    close(attention_locality(weights).lift.value, expected, 1e-6)


def test_attention_elsewhere_is_anti_local():
    far = 1.0 - neighbours((6, 6)) - np.eye(36)
    result = attention_locality(far / far.sum(axis=1, keepdims=True))
    close([result.auc.value, result.distance.p], [0.0, 1.0], 1e-12)
    assert result.lift.value == 0.0
    assert result.mantel.value < 0.0


def test_uniform_attention_is_as_its_null():
    result = attention_locality(np.full((20, 20), 0.05), grid=GRID)
    near = neighbours(GRID).sum(axis=1)
    close(result.precision.value, near.mean() / 19.0, 1e-12)
    close([result.auc.value, result.lift.value, result.distance.value], [0.5, 1.0, 1.0], 1e-12)
    assert np.isnan(result.mantel.value)
    for measure in (result.precision, result.auc, result.lift, result.distance):
        assert np.isnan(measure.z)
        assert measure.p == 1.0


def test_patch_that_attends_to_itself_alone_has_no_lift(attention):
    attention = attention.copy()
    attention[3] = np.eye(20)[3]
    result = attention_locality(np.stack([attention, attention[::-1, ::-1]]), grid=GRID)
    assert np.isnan(result.lift.value).all()
    assert np.isnan(result.distance.p).all()
    assert np.isfinite(result.auc.value).all()


def test_similar_rings_are_local_under_the_permutation_null_only():
    rows, columns = np.divmod(np.arange(64), 8)
    ring = np.minimum.reduce([rows, columns, 7 - rows, 7 - columns])
    noise = 0.01 * np.random.default_rng(0).normal(size=(64, 64))
    alike = noise - abs(ring[:, None] - ring)
    for name in ("precision", "auc"):
        assert getattr(locality(alike), name).p <= 0.005
        assert getattr(locality(alike, null="ring"), name).p > 0.05


def test_leading_axes_are_preserved_and_maps_are_independent(attention):
    stack = np.stack([attention, attention.T / attention.T.sum(1, keepdims=True)] * 3)
    result = attention_locality(stack.reshape(3, 2, 20, 20), grid=GRID, draws=5)
    alone = attention_locality(stack[1], grid=GRID, draws=5)
    for name, measure in vars(result).items():
        for field, array in vars(measure).items():
            assert array.shape == (3, 2)
            close(array[:, 1], getattr(getattr(alone, name), field), 1e-9)


def test_blocks_of_maps_change_nothing(attention, monkeypatch):
    stack = np.stack([np.roll(attention, k, axis=0) for k in range(5)])
    whole = attention_locality(stack, grid=GRID, draws=20)
    for module in ("dynamics.locality", "dynamics.core.permutation_test"):
        monkeypatch.setattr(f"{module}.BLOCK", 900)
    for name, measure in vars(attention_locality(stack, grid=GRID, draws=20)).items():
        close(measure.z, getattr(whole, name).z, 1e-9)


def test_coordinates_as_encodings_are_local():
    grid = np.stack(np.divmod(np.arange(36.0), 6), axis=1)
    by_distance = encoding_locality(grid, "distance")
    close(
        [by_distance.precision.value, by_distance.auc.value, by_distance.mantel.value], 1.0, 1e-12
    )
    by_cosine = encoding_locality(grid)
    assert (
        0.4 < by_cosine.precision.value < 0.9
    )  # the cosine is uninformative near the mean encoding


def test_similarity_is_invariant_under_rotation_and_shift():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(12, 5))
    rotation, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    for by in ("cosine", "distance"):
        within(similarity(table @ rotation + rng.normal(size=5), by), similarity(table, by), 1e-12)
    gaps = np.linalg.norm(table[:, None] - table, axis=2)
    within(similarity(table, "distance"), -(gaps**2), 1e-12)
    within(similarity(table, "product"), table @ table.T, 1e-12)
    within(np.diag(similarity(table)), np.ones(12), 1e-12)


def test_neighbours_and_distances():
    near = neighbours((4, 4))
    assert sorted(near.sum(axis=1).tolist()) == [3] * 4 + [5] * 8 + [8] * 4
    assert np.array_equal(near, (distances((4, 4)) < 1.5) & ~np.eye(16, dtype=bool))


def test_class_tokens_are_removed():
    attention = np.random.default_rng(0).dirichlet(np.ones(21), (3, 21))
    patches = without_class_token(attention)
    assert patches.shape == (3, 20, 20)
    close(patches.sum(axis=-1), 1.0, 1e-12)
    close(patches[1, 2, 3] / patches[1, 2, 4], attention[1, 3, 4] / attention[1, 3, 5], 1e-12)
    with_registers = without_class_token(attention[0], tokens=5)
    close(with_registers, attention[0, 5:, 5:] / attention[0, 5:, 5:].sum(1, keepdims=True), 1e-12)


def _changed(index, value):
    attention = np.full((20, 20), 0.05)
    attention[index] = value
    return attention


@pytest.mark.parametrize(
    ("attention", "options", "sentence"),
    [
        (_changed((3, 4), np.nan), {}, "attention = array with nan or inf"),
        (_changed((3, 4), 0.5), {}, "attention = array with a row that sums to 1.45"),
        (_changed((3, slice(0, 2)), [-0.05, 0.15]), {}, "array with negative entries"),
        (np.full((20, 20), 1.0), {}, "a row that sums to 20"),
        (np.full((20, 19), 1 / 19), {}, r"array of shape \(20, 19\)"),
        (np.full(20, 0.05), {}, r"array of shape \(20,\)"),
        (np.zeros((0, 20, 20)), {}, r"array of shape \(0, 20, 20\)"),
        ([["a", "b"], ["c", "d"]], {}, "type <U1"),
        (_changed(0, 0.05), {"grid": (4, 4)}, r"rows x columns = 20"),
        (_changed(0, 0.05), {"grid": None}, "must be given as"),
        (np.full((4, 4), 0.25), {"grid": None}, "3 patches long"),
        (_changed(0, 0.05), {"null": "none"}, "'permutation' or 'ring'"),
        (_changed(0, 0.05), {"draws": 0}, "draws = 0"),
        (_changed(0, 0.05), {"seed": -1}, "seed = -1"),
    ],
)
def test_message_for_bad_attention(attention, options, sentence):
    with pytest.raises(ParameterError, match=sentence) as error:
        attention_locality(attention, **({"grid": GRID} | options))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("encodings", "by", "sentence"),
    [
        (np.ones(5), "cosine", r"shape \(5,\)"),
        (np.array([[np.inf, 1.0]]), "cosine", "nan or inf"),
        (np.ones((9, 2)), "cosine", "equals the mean row"),
        (np.ones((9, 2)), "angle", "'cosine', 'distance' or 'product'"),
    ],
)
def test_message_for_bad_encodings(encodings, by, sentence):
    with pytest.raises(ParameterError, match=sentence):
        encoding_locality(encodings, by)


def test_attention_to_class_tokens_alone_is_rejected():
    only_the_class = np.zeros((10, 10))
    only_the_class[:, 0] = 1.0
    with pytest.raises(ParameterError, match="attends to no patch"):
        without_class_token(only_the_class)
