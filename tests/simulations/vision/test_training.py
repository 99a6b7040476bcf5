"""Models and training: exact symmetries, runs that go on where they stopped, plain refusals."""

import numpy as np
import pytest

from dynamics import ParameterError
from simulations.vision.data.images import Images, ImageSet
from tests.closeness import close, within

jax = pytest.importorskip("jax")

from dynamics.core.adam import initial_moments  # noqa: E402
from simulations.vision.models import KINDS, Model, apply  # noqa: E402
from simulations.vision.patches import fold, grid_of, restored, shuffled, unfold  # noqa: E402
from simulations.vision.tasks import Settings, batch  # noqa: E402
from simulations.vision.training import (  # noqa: E402
    State,
    batches,
    evaluate,
    held_out,
    joined,
    parted,
    permutation_deviation,
    rates,
    start,
    step,
    task_of,
    train,
)

SMALL = {"patch": 2, "width": 8, "depth": 1, "heads": 2, "hidden": 8}
FEW = Settings(steps=12, batch=8, shift=1)


def images(classes, count=32, side=6):
    rng = np.random.default_rng(3)

    def drawn(count):
        labels = np.arange(count) % max(classes, 1)
        pixels = rng.normal(size=(count, side, side, 1)) + labels[:, None, None, None]
        return Images(pixels.astype(np.float32), labels)

    return ImageSet("made", drawn(count), drawn(8), drawn(300), classes)


class TestPatches:
    def test_a_folded_image_is_the_image(self):
        pixels = images(0).train.pixels
        close(fold(unfold(pixels, 2), (3, 3), 2), pixels, rel=0.0)
        close(unfold(pixels, 2)[0, 1], pixels[0, :2, 2:4].ravel(), rel=0.0)

    def test_cells_move_as_wholes_and_come_back(self):
        order = shuffled((4, 4), np.random.default_rng(0), cell=2)
        moved = np.arange(16)[order].reshape(4, 4)
        assert (moved != np.arange(16).reshape(4, 4)).any()
        for block in (moved[i : i + 2, j : j + 2] for i in (0, 2) for j in (0, 2)):
            close(block - block[0, 0], np.array([[0, 1], [4, 5]]), rel=0.0)
        close(restored(np.arange(16)[order], order, (0,)), np.arange(16), rel=0.0)

    def test_what_does_not_divide_is_told(self):
        with pytest.raises(ParameterError, match=r"patch = 4 .* divisor of both sides .* 6 and 6"):
            grid_of((1, 6, 6, 1), 4)
        with pytest.raises(ParameterError, match=r"cell = 3 .* divisor"):
            shuffled((4, 4), np.random.default_rng(0), cell=3)


class TestModels:
    @pytest.mark.parametrize(
        ("kind", "classes"), [(kind, 0) for kind in KINDS] + [("position", 3), ("cnn", 3)]
    )
    def test_shapes_and_rows_of_attention(self, kind, classes):
        task = task_of(images(classes), Model(kind, **SMALL), FEW)
        data = images(classes).train
        rng = np.random.default_rng(0)
        shown = batch(task, data.pixels, data.labels, np.arange(9), rng, augment=True)
        said, maps = apply(task.model, start(task, 0), shown.patches, task.grid, shown.masked)
        assert said.shape == ((32, 3) if classes else (32, 9, 4))
        if kind == "cnn":
            assert maps is None
        else:
            heads = 1 if kind == "gram" else 2
            assert maps.shape[:2] == ((1, 32) if kind == "content" else (1, heads))
            within(np.asarray(maps).sum(axis=-1), 1.0, absolute=1e-5)

    def test_position_does_not_look_at_the_tokens(self):
        task = task_of(images(3), Model("position", **SMALL), FEW)
        tree = start(task, 0)
        pixels = unfold(images(3).train.pixels, 2)
        first, second = (apply(task.model, tree, one, task.grid)[1] for one in (pixels, -pixels))
        close(first, second, rel=0.0)

    @pytest.mark.parametrize(
        ("bad", "told"),
        [({"kind": "soft"}, "kind = 'soft'"), ({"heads": 5}, "heads = 5"), ({"patch": 0}, "patch")],
    )
    def test_what_is_no_model_is_told(self, bad, told):
        with pytest.raises(ParameterError, match=told):
            Model(**bad)


class TestEquivariance:
    """Figure 5a: a ViT on permuted patches is the same ViT, with P permuted."""

    @pytest.mark.parametrize(("kind", "classes"), [("content", 0), ("position", 3), ("gram", 0)])
    def test_exact_with_P_moved_along(self, kind, classes):
        order = np.random.default_rng(1).permutation(9)
        differences = permutation_deviation(images(classes), Model(kind, **SMALL), FEW, order)
        assert max(differences) <= 1e-14

    @pytest.mark.parametrize(("kind", "classes"), [("content", 0), ("position", 3)])
    def test_not_with_P_left_in_place(self, kind, classes):
        order = np.random.default_rng(1).permutation(9)
        loss, encodings = permutation_deviation(
            images(classes), Model(kind, **SMALL), FEW, order, permute_encodings=False
        )
        assert loss > 1e-9
        assert encodings > 1e-3


class TestStep:
    """AdamW with the gradient clipped, on all parameters in one vector."""

    @pytest.mark.parametrize(("kind", "classes"), [("content", 0), ("gram", 3), ("cnn", 0)])
    def test_only_matrices_decay(self, kind, classes):
        task = task_of(images(classes), Model(kind, **SMALL), Settings(decay=0.25))
        tree = jax.tree.map(lambda leaf: leaf + 1.0, start(task, 0))
        vector = joined(tree)
        after = step(task, State(vector, initial_moments(vector)), np.zeros_like(vector), 0.5, 0)
        found = jax.tree.leaves(parted(after.parameters, tree))
        named = jax.tree_util.tree_flatten_with_path(tree)[0]
        for ((*_, last), old), new in zip(named, found, strict=True):
            decays = last.key in ("query", "key") or (last.key == "w" and old.shape[0] != 3)
            close(new, old * (0.875 if decays else 1.0), rel=1e-15)

    def test_a_long_gradient_counts_as_one_of_length_1(self):
        task = task_of(images(0), Model("position", **SMALL), FEW)
        vector = joined(start(task, 0))
        gradient = np.random.default_rng(4).standard_normal(vector.size)
        unit = gradient / np.linalg.norm(gradient)

        def kept(one):
            return step(task, State(vector, initial_moments(vector)), one, 0.1, 0).kept.mean

        close(kept(100.0 * unit), 0.1 * unit, rel=1e-12)
        close(kept(0.5 * unit), 0.05 * unit, rel=1e-12)

    def test_a_vector_parts_into_the_tree_it_was(self):
        tree = start(task_of(images(3), Model("content", **SMALL), FEW), 0)
        back = parted(joined(tree), tree)
        for one, other in zip(jax.tree.leaves(tree), jax.tree.leaves(back), strict=True):
            close(one, other, rel=0.0)


class TestEvaluation:
    @pytest.mark.parametrize("kind", ["content", "position"])
    def test_parts_that_are_filled_up_are_the_whole(self, kind):
        data = images(3)
        task = task_of(data, Model(kind, **SMALL), FEW)
        tree = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), start(task, 0))
        error, maps = evaluate(task, tree, np.arange(9), data.test)  # 256 and 44 images
        said, every = apply(task.model, tree, unfold(data.test.pixels, 2), task.grid)
        close(error, (np.asarray(said).argmax(axis=1) != data.test.labels).mean(), rel=1e-12)
        every = np.asarray(every, dtype=float)
        close(maps, every.mean(axis=1) if kind == "content" else every, rel=1e-5)

    def test_masked_patches_too(self):
        data = images(0)
        task = task_of(data, Model("position", **SMALL), FEW)
        tree = jax.tree.map(lambda leaf: np.zeros_like(leaf, np.float32), start(task, 0))
        found, _ = evaluate(task, tree, np.arange(9), data.test)  # it says 0 everywhere
        squares = [
            (((one.patches**2).mean(axis=2) * one.masked).sum(axis=1) / 4).sum()
            for one in held_out(task, data.test, np.arange(9))
        ]
        close(found, sum(squares) / 300, rel=1e-5)


class TestTraining:
    def test_learns_and_is_the_same_again(self):
        settings = Settings(steps=60, batch=16)
        first, again = (
            train(images(3), Model("position", **SMALL), settings, (0, 1)) for _ in range(2)
        )
        assert (first.error < 0.3).all()
        assert first.losses.shape == (2, 60)
        assert first.attention.shape == (2, 1, 2, 9, 9)
        close(first.losses, again.losses, rel=0.0)
        assert (first.losses[0] != first.losses[1]).any()

    def test_a_seed_alone_is_the_seed_among_others(self):
        settings = Settings(steps=5, batch=16)
        pair = train(images(3), Model("position", **SMALL), settings, (0, 1))
        alone = train(images(3), Model("position", **SMALL), settings, (1,))
        close(alone.losses[0], pair.losses[1], rel=0.0)

    def test_an_interrupted_run_goes_on(self, tmp_path, monkeypatch):
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
        seen = []
        resumed = train(*arguments, progress=seen.append, checkpoint=file)
        assert not file.exists()
        assert seen[0] > 0.4
        close(resumed.losses, train(*arguments).losses, rel=0.0)

    def test_a_damaged_checkpoint_is_told(self, tmp_path):
        file = tmp_path / "run.npz"
        file.write_bytes(b"PK but no archive")
        with pytest.raises(ParameterError, match="complete checkpoint"):
            train(images(0), Model("position", **SMALL), FEW, checkpoint=file)

    def test_fewer_images_than_a_batch_are_told(self):
        with pytest.raises(ParameterError, match=r"batch = 64 .* at most 32"):
            train(images(3), Model("position", **SMALL), Settings(steps=1, batch=64))

    def test_a_run_that_diverges_is_told(self):
        with pytest.raises(RuntimeError, match="no longer finite at step"):
            train(images(0), Model("cnn", **SMALL), Settings(steps=9, batch=8, rate=1e30))

    def test_every_image_once_an_epoch(self):
        found = batches(0, 32, Settings(steps=5, batch=8))
        assert sorted(found[:4].ravel()) == list(range(32))

    def test_rates_rise_and_fall_to_zero(self):
        found = rates(Settings(steps=100, rate=0.1))
        close(found.max(), 0.1, rel=1e-12)
        assert found.argmax() in (9, 10)
        assert 0.0 < found[-1] < 1e-4


class TestAugmentation:
    def test_masks_and_shifts_come_before_the_permutation(self):
        task = task_of(images(0), Model("position", **SMALL), FEW)
        data, order = images(0).train, np.random.default_rng(2).permutation(9)
        shown, moved = (
            batch(task, data.pixels, data.labels, one, np.random.default_rng(5), augment=True)
            for one in (np.arange(9), order)
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
