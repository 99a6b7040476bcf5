"""Files of weights with the names and shapes of timm and transformers, and random numbers."""

import numpy as np
import pytest

from dynamics import ParameterError
from dynamics.core.files import FileError
from dynamics.locality import attention_locality, encoding_locality, without_class_token
from simulations.vision.pretrained import position_table
from tests.closeness import within
from tests.weights import write_weights

WIDTH, SIDE, TOKENS = 24, 14, 1

#: Shapes of the table of encodings and of other tensors of a model.
LIBRARIES = {
    "timm": {
        "cls_token": (1, 1, WIDTH),
        "pos_embed": (1, SIDE**2 + TOKENS, WIDTH),
        "blocks.0.attn.qkv.weight": (3 * WIDTH, WIDTH),
    },
    "transformers": {
        "vit.embeddings.cls_token": (1, 1, WIDTH),
        "vit.embeddings.patch_embeddings.projection.bias": (WIDTH,),
        "vit.embeddings.position_embeddings": (1, SIDE**2 + TOKENS, WIDTH),
    },
}


def _random(library):
    rng = np.random.default_rng(0)
    return {name: rng.normal(0.0, 0.02, shape) for name, shape in LIBRARIES[library].items()}


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_table_of_each_library_is_read_as_written(tmp_path, library, dtype):
    tensors = _random(library)
    table = position_table(write_weights(tmp_path / "model.safetensors", tensors, dtype))
    written = next(array for name, array in tensors.items() if "pos" in name)
    assert table.shape == (SIDE**2, WIDTH)
    absolute = {"F32": 1e-8, "F16": 1e-4, "BF16": 1e-3}[dtype]
    within(table, written[0, TOKENS:], absolute)


def test_random_weights_are_not_local_and_coordinates_are(tmp_path):
    tensors = _random("timm")
    table = position_table(write_weights(tmp_path / "random.safetensors", tensors))
    assert abs(encoding_locality(table, draws=49).auc.z) < 4.0
    coordinates = np.stack(np.divmod(np.arange(SIDE**2), SIDE), axis=1)
    tensors["pos_embed"][0, TOKENS:, :2] = coordinates
    table = position_table(write_weights(tmp_path / "coordinates.safetensors", tensors))
    result = encoding_locality(table, "distance", draws=49)
    assert result.precision.value > 0.95
    assert result.auc.z > 20.0


def test_attention_with_a_class_token_has_a_lift_per_head():
    """Attention of a layer with random weights, in the shape that libraries return."""
    rng = np.random.default_rng(1)
    tokens = rng.normal(size=(2, SIDE**2 + TOKENS, WIDTH))
    query, key = rng.normal(size=(2, 3, WIDTH, 8)) / np.sqrt(WIDTH)
    scores = np.einsum("btw,hwk,bsv,hvk->bhts", tokens, query, tokens, key, optimize=True)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True)).astype(np.float32)
    maps = weights / weights.sum(axis=-1, keepdims=True)
    result = attention_locality(without_class_token(maps.mean(axis=0)), draws=49)
    assert result.lift.value.shape == (3,)
    assert (abs(result.lift.z) < 4.0).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "absent"}, "name = absent is not allowed"),
        ({"name": "blocks.0.attn.qkv.weight", "tokens": 72}, "tokens = 72 is not allowed"),
        ({"name": "blocks.0.attn.qkv.weight", "tokens": -1}, "tokens = -1 is not allowed"),
        ({"tokens": 1.5}, "tokens = 1.5 is not allowed"),
    ],
)
def test_bad_arguments_raise(tmp_path, arguments, sentence):
    file = write_weights(tmp_path / "model.safetensors", _random("timm"))
    with pytest.raises(ParameterError, match=sentence):
        position_table(file, **arguments)


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        ({"head.weight": np.ones((4, 4))}, "there is none"),
        (
            {"pos_embed": np.ones((1, 17, 4)), "decoder.pos_embed": np.ones((1, 17, 4))},
            "there is pos_embed and decoder.pos_embed",
        ),
        ({"pos_embed": np.ones((2, 17, 4))}, r"pos_embed of shape \(2, 17, 4\)"),
        ({"pos_embed": np.full((1, 17, 4), np.nan)}, r"d\), finite"),
        ({"pos_embed": np.ones((1, 120, 4))}, "the number of the 120 rows that are no patches"),
    ],
)
def test_models_without_one_table_of_encodings_raise(tmp_path, tensors, sentence):
    with pytest.raises(ParameterError, match=sentence):
        position_table(write_weights(tmp_path / "model.safetensors", tensors))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"shape": [1, 10**9, 10**9]}, "its header is damaged"),
        ({"shape": [1, -197, -24]}, "its header is damaged"),
        ({"data_offsets": [-8, 8]}, "its header is damaged"),
        ({"data_offsets": [10**7, 10**7 + 4 * 197 * 24]}, "it is cut short"),
        ({"data_offsets": "ab"}, "its header is damaged"),
        ({"shape": [1, float("inf"), 24]}, "its header is damaged"),
        ({"shape": [1, float("nan"), 24]}, "its header is damaged"),
        ({"data_offsets": [0, float("-inf")]}, "its header is damaged"),
        ({"dtype": "F8_E4M3"}, "numbers of type F8_E4M3"),
    ],
)
def test_inconsistent_headers_raise(tmp_path, changes, sentence):
    file = write_weights(
        tmp_path / "model.safetensors", {"pos_embed": np.ones((1, 197, 24))}, **changes
    )
    with pytest.raises(FileError, match=sentence):
        position_table(file)


@pytest.mark.parametrize("content", [b"", b"\x80\x04pickled weights", b"\4" + bytes(7) + b"[{]}"])
def test_other_formats_raise(tmp_path, content):
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(FileError, match="cannot read"):
        position_table(tmp_path / "model.bin")


def test_missing_file_raises(tmp_path):
    with pytest.raises(FileError, match="No such file"):
        position_table(tmp_path / "model.safetensors")
