"""Models and training: exact symmetries, resumed runs, and rejected input."""

import numpy as np
import pytest

from dynamics import ParameterError
from simulations.vision.data.images import Images, ImageSet
from tests.closeness import close, within

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax")

from dynamics.core.adam import initial_moments  # noqa: E402
from simulations.vision.evaluation import evaluate, evaluation_batches  # noqa: E402
from simulations.vision.models import ARCHITECTURES, Model, apply  # noqa: E402
from simulations.vision.patches import (  # noqa: E402
    cell_permutation,
    fold,
    grid_of,
    inverse_permuted,
    unfold,
)
from simulations.vision.tasks import Settings, batch  # noqa: E402
from simulations.vision.training import (  # noqa: E402
    State,
    batches,
    flatten,
    permutation_deviation,
    rates,
    start,
    step,
    task_of,
    train,
    unflatten,
)

SMALL = {"patch": 2, "width": 8, "depth": 1, "heads": 2, "hidden": 8}
FEW = Settings(steps=12, batch=8, shift=1)


def images(classes, count=32, side=6):
    rng = np.random.default_rng(3)

    def part(count):
        labels = np.arange(count) % max(classes, 1)
        pixels = rng.normal(size=(count, side, side, 1)) + labels[:, None, None, None]
        return Images(pixels.astype(np.float32), labels)

    return ImageSet("made", part(count), part(8), part(300), classes)


class TestPatches:
    def test_a_folded_image_is_the_image(self):
        pixels = images(0).train.pixels
        close(fold(unfold(pixels, 2), (3, 3), 2), pixels, rel=0.0)
        close(unfold(pixels, 2)[0, 1], pixels[0, :2, 2:4].ravel(), rel=0.0)

    def test_cells_stay_together_and_are_restored(self):
        order = cell_permutation((4, 4), np.random.default_rng(0), cell=2)
        moved = np.arange(16)[order].reshape(4, 4)
        assert (moved != np.arange(16).reshape(4, 4)).any()
        for block in (moved[i : i + 2, j : j + 2] for i in (0, 2) for j in (0, 2)):
            close(block - block[0, 0], np.array([[0, 1], [4, 5]]), rel=0.0)
        close(inverse_permuted(np.arange(16)[order], order, (0,)), np.arange(16), rel=0.0)

    def test_patch_or_cell_must_divide_the_sides(self):
        with pytest.raises(ParameterError, match=r"patch = 4 .* divisor of both sides .* 6 and 6"):
            grid_of((1, 6, 6, 1), 4)
        with pytest.raises(ParameterError, match=r"cell = 3 .* divisor"):
            cell_permutation((4, 4), np.random.default_rng(0), cell=3)


class TestModels:
    @pytest.mark.parametrize(
        ("architecture", "classes"),
        [(architecture, 0) for architecture in ARCHITECTURES] + [("position", 3), ("cnn", 3)],
    )
    def test_shapes_and_rows_of_attention(self, architecture, classes):
        task = task_of(images(classes), Model(architecture, **SMALL), FEW)
        data = images(classes).train
        rng = np.random.default_rng(0)
        shown = batch(task, data.pixels, data.labels, np.arange(9), rng, augment=True)
        output, attention = apply(
            task.model, start(task, 0), shown.patches, task.grid, shown.masked
        )
        assert output.shape == ((32, 3) if classes else (32, 9, 4))
        if architecture == "cnn":
            assert attention is None
        else:
            second = {"content": 32, "position": 2, "gram": 1}[architecture]
            assert attention.shape[:2] == (1, second)
            within(np.asarray(attention).sum(axis=-1), 1.0, absolute=1e-5)

    def test_positional_attention_does_not_depend_on_the_tokens(self):
        task = task_of(images(3), Model("position", **SMALL), FEW)
        tree = start(task, 0)
        pixels = unfold(images(3).train.pixels, 2)
        first, second = (
            apply(task.model, tree, patches, task.grid)[1] for patches in (pixels, -pixels)
        )
        close(first, second, rel=0.0)

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"architecture": "soft"}, "architecture = 'soft'"),
            ({"heads": 5}, "heads = 5"),
            ({"patch": 0}, "patch"),
        ],
    )
    def test_bad_fields_raise(self, fields, message):
        with pytest.raises(ParameterError, match=message):
            Model(**fields)


class TestEquivariance:
    """Figure 5a: a ViT on permuted patches is the same ViT, with P permuted."""

    @pytest.mark.parametrize(
        ("architecture", "classes"), [("content", 0), ("position", 3), ("gram", 0)]
    )
    def test_exact_with_P_permuted_along(self, architecture, classes):
        order = np.random.default_rng(1).permutation(9)
        differences = permutation_deviation(
            images(classes), Model(architecture, **SMALL), FEW, order
        )
        assert max(differences) <= 1e-14

    @pytest.mark.parametrize(("architecture", "classes"), [("content", 0), ("position", 3)])
    def test_not_with_P_unpermuted(self, architecture, classes):
        order = np.random.default_rng(1).permutation(9)
        loss, encodings = permutation_deviation(
            images(classes), Model(architecture, **SMALL), FEW, order, permute_encodings=False
        )
        assert loss > 1e-9
        assert encodings > 1e-3


class TestStep:
    """AdamW with the gradient clipped, on all parameters in one vector."""

    @pytest.mark.parametrize(("architecture", "classes"), [("content", 0), ("gram", 3), ("cnn", 0)])
    def test_only_matrices_decay(self, architecture, classes):
        task = task_of(images(classes), Model(architecture, **SMALL), Settings(decay=0.25))
        tree = jax.tree.map(lambda leaf: leaf + 1.0, start(task, 0))
        vector = flatten(tree)
        after = step(task, State(vector, initial_moments(vector)), np.zeros_like(vector), 0.5, 0)
        leaves = jax.tree.leaves(unflatten(after.parameters, tree))
        named = jax.tree_util.tree_flatten_with_path(tree)[0]
        for ((*_, last), old), new in zip(named, leaves, strict=True):
            decays = last.key in ("query", "key") or (last.key == "w" and old.shape[0] != 3)
            close(new, old * (0.875 if decays else 1.0), rel=1e-15)

    def test_long_gradient_is_clipped_to_norm_1(self):
        task = task_of(images(0), Model("position", **SMALL), FEW)
        vector = flatten(start(task, 0))
        gradient = np.random.default_rng(4).standard_normal(vector.size)
        unit = gradient / np.linalg.norm(gradient)

        def mean_after(gradient):
            state = State(vector, initial_moments(vector))
            return step(task, state, gradient, 0.1, 0).moments.mean

        close(mean_after(100.0 * unit), 0.1 * unit, rel=1e-12)
        close(mean_after(0.5 * unit), 0.05 * unit, rel=1e-12)

    def test_unflatten_is_the_inverse_of_flatten(self):
        tree = start(task_of(images(3), Model("content", **SMALL), FEW), 0)
        back = unflatten(flatten(tree), tree)
        for leaf, other in zip(jax.tree.leaves(tree), jax.tree.leaves(back), strict=True):
            close(leaf, other, rel=0.0)


class TestEvaluation:
    @pytest.mark.parametrize("architecture", ["content", "position"])
    def test_padded_batches_give_the_mean_over_all_images(self, architecture):
        data = images(3)
        task = task_of(data, Model(architecture, **SMALL), FEW)
        tree = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), start(task, 0))
        error, attention = evaluate(task, tree, np.arange(9), data.test)  # 256 and 44 images
        output, expected = apply(task.model, tree, unfold(data.test.pixels, 2), task.grid)
        close(error, (np.asarray(output).argmax(axis=1) != data.test.labels).mean(), rel=1e-12)
        expected = np.asarray(expected, dtype=float)
        if architecture == "content":
            expected = expected.mean(axis=1)
        close(attention, expected, rel=1e-5)

    def test_error_of_a_zero_output_is_the_mean_square_of_masked_patches(self):
        data = images(0)
        task = task_of(data, Model("position", **SMALL), FEW)
        tree = jax.tree.map(lambda leaf: np.zeros_like(leaf, np.float32), start(task, 0))
        error, _ = evaluate(task, tree, np.arange(9), data.test)
        squares = [
            (((shown.patches**2).mean(axis=2) * shown.masked).sum(axis=1) / 4).sum()
            for shown in evaluation_batches(task, data.test, np.arange(9))
        ]
        close(error, sum(squares) / 300, rel=1e-5)


class TestTraining:
    def test_learns_reproducibly(self):
        settings = Settings(steps=60, batch=16)
        first, again = (
            train(images(3), Model("position", **SMALL), settings, (0, 1)) for _ in range(2)
        )
        assert (first.error < 0.3).all()
        assert first.losses.shape == (2, 60)
        assert first.attention.shape == (2, 1, 2, 9, 9)
        close(first.losses, again.losses, rel=0.0)
        assert (first.losses[0] != first.losses[1]).any()

    def test_runs_do_not_depend_on_other_seeds(self):
        settings = Settings(steps=5, batch=16)
        pair = train(images(3), Model("position", **SMALL), settings, (0, 1))
        alone = train(images(3), Model("position", **SMALL), settings, (1,))
        close(alone.losses[0], pair.losses[1], rel=0.0)

    def test_interrupted_run_resumes(self, tmp_path, monkeypatch):
        monkeypatch.setattr("simulations.vision.training._CHECKPOINT_SECONDS", 0.0)
        file = tmp_path / "run.npz"

        def stop(fraction):
            if fraction >= 0.5:
                raise KeyboardInterrupt

        arguments = (images(0), Model("position", **SMALL), FEW, (0, 1))
        with pytest.raises(KeyboardInterrupt):
            train(*arguments, progress=stop, checkpoint=file)
        assert file.exists()
        with pytest.raises(ParameterError, match=r"checkpoint = .* of another run"):
            train(*arguments[:3], (2, 3), checkpoint=file)
        fractions = []
        resumed = train(*arguments, progress=fractions.append, checkpoint=file)
        assert not file.exists()
        assert fractions[0] > 0.4
        close(resumed.losses, train(*arguments).losses, rel=0.0)

    def test_damaged_checkpoint_raises(self, tmp_path):
        file = tmp_path / "run.npz"
        file.write_bytes(b"PK but no archive")
        with pytest.raises(ParameterError, match="complete checkpoint"):
            train(images(0), Model("position", **SMALL), FEW, checkpoint=file)

    def test_batch_larger_than_the_data_raises(self):
        with pytest.raises(ParameterError, match=r"batch = 64 .* at most 32"):
            train(images(3), Model("position", **SMALL), Settings(steps=1, batch=64))

    def test_diverging_run_raises(self):
        with pytest.raises(RuntimeError, match="no longer finite at step"):
            train(images(0), Model("cnn", **SMALL), Settings(steps=9, batch=8, rate=1e30))

    def test_every_image_once_an_epoch(self):
        indices = batches(0, 32, Settings(steps=5, batch=8))
        assert sorted(indices[:4].ravel()) == list(range(32))

    def test_rates_rise_and_fall_to_zero(self):
        rate = rates(Settings(steps=100, rate=0.1))
        close(rate.max(), 0.1, rel=1e-12)
        assert rate.argmax() in (9, 10)
        assert 0.0 < rate[-1] < 1e-4


class TestAugmentation:
    def test_masks_and_shifts_come_before_the_permutation(self):
        task = task_of(images(0), Model("position", **SMALL), FEW)
        data, order = images(0).train, np.random.default_rng(2).permutation(9)
        shown, moved = (
            batch(task, data.pixels, data.labels, shown, np.random.default_rng(5), augment=True)
            for shown in (np.arange(9), order)
        )
        close(moved.patches, shown.patches[:, order], rel=0.0)
        close(moved.masked, shown.masked[:, order], rel=0.0)
        assert (shown.masked.sum(axis=1) == 4).all()  # round(.5 x 9), to even

    def test_a_shift_moves_by_whole_pixels(self):
        task = task_of(images(3), Model("position", patch=1), Settings(shift=1))
        pixels = np.arange(36.0, dtype=np.float32).reshape(1, 6, 6, 1).repeat(40, axis=0)
        shown = batch(
            task, pixels, np.zeros(40, int), np.arange(36), np.random.default_rng(0), augment=True
        )
        moved = shown.patches.reshape(40, 6, 6)[:, 2, 2] - pixels[0, 2, 2, 0]
        assert set(moved) == {-7.0, -6.0, -5.0, -1.0, 0.0, 1.0, 5.0, 6.0, 7.0}
