"""CIFAR, SVHN and MNIST in files of the user: small valid files, and damaged or hostile ones."""

import gzip
import io
import pickle
import struct
import tarfile
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat

from dynamics import ParameterError
from dynamics.core.files import FileError
from simulations.vision.data import load, user_files

TRAIN, TEST = 200, 40
PUBLISHED = "ignore:.*is not the published file:UserWarning"
pytestmark = pytest.mark.filterwarnings(PUBLISHED)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Expect few images where the published files have many."""
    monkeypatch.setattr(user_files, "MNIST_COUNTS", {"train": TRAIN, "t10k": TEST})
    monkeypatch.setattr(user_files, "SVHN_COUNTS", {"train": TRAIN, "test": TEST})
    layouts = {
        name: replace(layout, records=(TRAIN // len(layout.train), TEST))
        for name, layout in user_files.CIFAR.items()
    }
    monkeypatch.setattr(user_files, "CIFAR", layouts)


def _images(count, *shape):
    return np.random.default_rng(count).integers(0, 256, (count, *shape), dtype=np.uint8)


def _labels(count, classes=10):
    return (np.arange(count) % classes).astype(np.uint8)


# MNIST


def _idx(array, magic=None):
    magic = {3: 0x803, 1: 0x801}[array.ndim] if magic is None else magic
    return struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes()


def _mnist(folder, compressed=True, **replaced):
    files = {
        "train-images-idx3-ubyte": _idx(_images(TRAIN, 28, 28)),
        "train-labels-idx1-ubyte": _idx(_labels(TRAIN)),
        "t10k-images-idx3-ubyte": _idx(_images(TEST, 28, 28)),
        "t10k-labels-idx1-ubyte": _idx(_labels(TEST)),
    }
    for name, content in files.items():
        content = replaced.get(name.partition("-idx")[0].replace("-", "_"), content)
        if content is None:
            continue
        if compressed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content, 1))
        else:
            (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("compressed", [True, False])
def test_mnist_is_read_as_written(tmp_path, compressed):
    images = load("mnist", _mnist(tmp_path, compressed), seed=1)
    assert (images.shape, images.classes) == ((28, 28, 1), 10)
    assert (len(images.train), len(images.validation), len(images.test)) == (180, 20, TEST)
    assert np.array_equal(images.test.labels, _labels(TEST))
    _same_pixels(images, _images(TEST, 28, 28)[..., None])


def _same_pixels(images, raw):
    """Assert that the test images are the raw ones up to the scale of each channel."""
    for channel in range(raw.shape[-1]):
        scaled, original = images.test.pixels[..., channel].ravel(), raw[..., channel].ravel()
        slope, offset = np.polyfit(original.astype(float), scaled, 1)
        assert np.abs(scaled - slope * original - offset).max() < 1e-5
        assert slope > 0.0


@pytest.mark.parametrize(
    ("replaced", "error", "sentence"),
    [
        ({"train_images": _idx(_images(TRAIN, 28, 28), 0x801)}, FileError, "does not begin like"),
        ({"train_labels": _idx(_labels(TRAIN), 0x0D01)}, FileError, "does not begin like"),
        ({"train_images": _idx(_images(TRAIN, 28, 28))[:-1]}, FileError, "must have"),
        ({"train_images": bytes(10**7)}, FileError, "it has more than 156816 bytes"),
        ({"train_images": _idx(_images(TRAIN, 784, 1))}, FileError, "does not begin like"),
        ({"t10k_labels": None}, ParameterError, "it must contain t10k-labels-idx1-ubyte.gz or"),
        ({"t10k_labels": _idx(_labels(TEST, 11))}, ParameterError, "0..10 is not allowed"),
        ({"train_labels": _idx(_labels(TRAIN) + 1)}, ParameterError, "off by one"),
        ({"train_labels": _idx(_labels(TRAIN, 1) + 4)}, ParameterError, "two classes or more"),
    ],
)
def test_bad_mnist_raises(tmp_path, replaced, error, sentence):
    with pytest.raises(error, match=sentence) as raised:
        load("mnist", _mnist(tmp_path, **replaced))
    assert "\n" not in str(raised.value)


def test_gzip_bomb_is_decompressed_by_one_byte_too_many(tmp_path, monkeypatch):
    sizes = []

    class Counting(gzip.GzipFile):
        def read(self, size=-1):
            sizes.append(size)
            return super().read(size)

    folder = _mnist(tmp_path, train_images=bytes(10**8))
    monkeypatch.setattr("simulations.vision.data.user_files.gzip.open", lambda path: Counting(path))
    with pytest.raises(FileError, match="it has more than"):
        load("mnist", folder)
    assert max(sizes) == 16 + TRAIN * 784 + 1
    assert min(sizes) > 0


@pytest.mark.parametrize("damage", ["cut", "changed", "not gzip"])
def test_damaged_gzip_file_raises(tmp_path, damage):
    file = _mnist(tmp_path) / "train-images-idx3-ubyte.gz"
    content = file.read_bytes()
    middle = len(content) // 2
    file.write_bytes(
        {
            "cut": content[:middle],
            "changed": content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :],
            "not gzip": b"images" * 100,
        }[damage]
    )
    with pytest.raises(FileError, match=f"cannot read {file}"):
        load("mnist", tmp_path)


@pytest.mark.filterwarnings("default")
def test_unpublished_file_warns(tmp_path):
    with pytest.warns(UserWarning, match=r"train-images-idx3-ubyte.gz is not the published file"):
        load("mnist", _mnist(tmp_path))


def test_limit_takes_the_same_share_of_every_class(tmp_path):
    images = load("mnist", _mnist(tmp_path), limit=100)
    assert len(images.train) + len(images.validation) == 100
    assert np.array_equal(np.bincount(images.train.labels), [9] * 10)
    assert len(images.test) == TEST
    with pytest.raises(ParameterError, match="limit = 7"):
        load("mnist", tmp_path, limit=7)


# CIFAR


def _records(count, classes, coarse):
    pixels = _images(count, 32, 32, 3)
    fine = _labels(count, classes)[:, None]
    planes = pixels.transpose(0, 3, 1, 2).reshape(count, -1)
    return np.hstack([fine // 5, fine, planes] if coarse else [fine, planes]).tobytes()


def _cifar(name):
    """Return the content of each file of a version."""
    layout = user_files.CIFAR[name]
    coarse = layout.label_bytes == 2
    return {
        file: _records(count, layout.classes, coarse)
        for files, count in zip((layout.train, layout.test), layout.records)
        for file in files
    }


def _archive(path, files, folder, changed=None):
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            archive.addfile(changed(member) if changed else member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_cifar_is_read_as_written_from_folder_and_archive(tmp_path, name):
    files, layout = _cifar(name), user_files.CIFAR[name]
    (tmp_path / layout.folder).mkdir()
    for file, content in files.items():
        (tmp_path / layout.folder / file).write_bytes(content)
    archives = tmp_path / "archives"
    archives.mkdir()
    files = {"readme.html": b"about", **files, "batches.meta.txt": b"names"}
    archive = _archive(archives / layout.archive, files, layout.folder)
    for path in (tmp_path, tmp_path / layout.folder, archive, archives):
        images = load(name, path, seed=2)
        assert (images.shape, images.classes) == ((32, 32, 3), layout.classes)
        assert len(images.train) + len(images.validation) == TRAIN
        assert np.array_equal(images.test.labels, _labels(TEST, layout.classes))
        _same_pixels(images, _images(TEST, 32, 32, 3))


def _link(member):
    if member.name.endswith("data_batch_3.bin"):
        member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/hostname", 0
    return member


def _elsewhere(member):
    member.name = "../" + member.name
    return member


@pytest.mark.parametrize(
    ("files", "changed", "sentence"),
    [
        ({"data_batch_2.bin": b"short"}, None, "data_batch_2.bin is not a file of"),
        ({"data_batch_2.bin": None}, None, "data_batch_2.bin is not in it"),
        ({}, _link, "data_batch_3.bin is not a file of"),
        ({}, _elsewhere, "data_batch_1.bin is not in it"),
        ({"a.bin": bytes(3 * 10**6)}, None, "it unpacks to far more than its files need"),
    ],
)
def test_bad_archives_raise(tmp_path, files, changed, sentence):
    layout = user_files.CIFAR["cifar10"]
    files = {name: content for name, content in (_cifar("cifar10") | files).items() if content}
    path = _archive(tmp_path / layout.archive, files, layout.folder, changed)
    with pytest.raises(FileError, match=sentence):
        load("cifar10", path)
    assert [file.name for file in tmp_path.iterdir()] == [layout.archive]


def test_truncated_archive_raises(tmp_path):
    layout = user_files.CIFAR["cifar10"]
    path = _archive(tmp_path / layout.archive, _cifar("cifar10"), layout.folder)
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(FileError, match=f"cannot read {path}"):
        load("cifar10", path)


def test_pickles_are_never_opened(tmp_path):
    opened = tmp_path / "opened"

    class Trap:
        def __reduce__(self):
            return open, (str(opened), "w")

    trap = pickle.dumps(Trap())
    for name, version in (("cifar10", "cifar-10-batches-py"), ("cifar100", "cifar-100-python")):
        file = "data_batch_1" if name == "cifar10" else "train"
        folder = tmp_path / name / version
        folder.mkdir(parents=True)
        (folder / file).write_bytes(trap)
        archive = _archive(tmp_path / f"{name}.tar.gz", {file: trap}, version)
        for path in (folder, folder.parent, archive):
            with pytest.raises(ParameterError, match="the Python version, made of pickles"):
                load(name, path)
    assert not opened.exists()


# SVHN


def _svhn(folder, *, labels=None, shape=(32, 32, 3), **options):
    for part, count in (("train", TRAIN), ("test", TEST)):
        digits = _labels(count)
        classes = np.where(digits == 0, 10, digits) if labels is None else labels(count)
        pixels = _images(count, *shape)
        table = {"X": np.moveaxis(pixels, 0, -1), "y": classes[:, None]}
        savemat(folder / f"{part}_32x32.mat", table | options, do_compression=True)
    return folder


@pytest.mark.parametrize("dtype", [np.uint8, float])
def test_svhn_is_read_as_written_and_its_class_10_is_the_digit_0(tmp_path, dtype):
    folder = _svhn(
        tmp_path, labels=lambda n: np.where(_labels(n) == 0, 10, _labels(n)).astype(dtype)
    )
    images = load("svhn", folder)
    assert images.shape == (32, 32, 3)
    assert np.array_equal(images.test.labels, _labels(TEST))
    _same_pixels(images, _images(TEST, 32, 32, 3))


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"labels": _labels}, ParameterError, "labels of svhn = 0..9 in train_32x32.mat"),
        ({"labels": lambda n: _labels(n) + 0.5}, ParameterError, "with 10 for the digit 0"),
        ({"labels": lambda n: _labels(n, 1)}, ParameterError, "they must be 1..10"),
        ({"shape": (32, 32, 4)}, FileError, "it has no X of 32 x 32 x 3 x 200"),
        ({"X": np.ones((32, 32, 3, TRAIN))}, FileError, "it has no X of"),
        ({"y": np.ones(3)}, FileError, "it has no y of 200 x 1"),
    ],
)
def test_bad_svhn_raises(tmp_path, options, error, sentence):
    with pytest.raises(error, match=sentence):
        load("svhn", _svhn(tmp_path, **options))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<H2s", 0x200, b"IM") + bytes(999), "7.3"),
        (b"no such thing" * 50, "no MATLAB file"),
        (b"", "no MATLAB file|cannot read"),
    ],
)
def test_other_formats_are_no_svhn(tmp_path, content, sentence):
    _svhn(tmp_path)
    (tmp_path / "train_32x32.mat").write_bytes(content)
    with pytest.raises(FileError, match=sentence):
        load("svhn", tmp_path)


@pytest.mark.parametrize("name", ["mnist", "svhn", "cifar10", "cifar100"])
def test_missing_files_raise(tmp_path, name):
    with pytest.raises(ParameterError, match=r"path is missing: .* \(--path DIR\)"):
        load(name)
    with pytest.raises(ParameterError, match="nothing is there"):
        load(name, tmp_path / "nowhere")
    with pytest.raises(ParameterError, match="nothing is there"):
        load(name, "with\0zero")
    with pytest.raises(ParameterError, match="it must contain "):
        load(name, tmp_path)
