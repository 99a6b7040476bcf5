"""Positional encodings of a pre-trained ViT, from its file of weights, without its library.

Files are of the safetensors format, which holds numbers and no program; the models those of timm
and of Hugging Face transformers whose table of encodings is learned. How local is it? ::

    P = position_table("model.safetensors")             # (196, 768) of a ViT-B/16
    encoding_locality(P, "distance").precision

And where does the model look? Attention comes from the model itself, with its class token; of
transformers (``attn_implementation="eager"``)::

    told = model(pixels, output_attentions=True).attentions
    maps = np.stack([one.detach().numpy() for one in told])  # (layers, images, heads, 197, 197)
    attention_locality(without_class_token(maps.mean(axis=1))).lift  # layer by layer, head by head

All but `position_table` is in `dynamics.locality`.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.core.files import FileError, explain

#: How the table of encodings is called, at the end of its name: timm, transformers.
TABLES = ("pos_embed", "position_embeddings")

#: A header is a few hundred bytes a tensor.
_LONGEST_HEADER = 2**24

_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


def position_table(
    path: Path | str, name: str | None = None, tokens: int | None = None
) -> np.ndarray:
    """Return the positional encodings of the patches, (D, d), row by row on their grid.

    Parameters
    ----------
    path
        A file of weights in the safetensors format.
    name
        Of the table in it; without it, the one table whose name ends as in ``TABLES``.
    tokens
        Rows at the beginning that are no patches (class token, registers); without it, what is left
        beyond the largest square, as of a 14 x 14 grid with a class token.

    Raises
    ------
    ParameterError
        If there is no such table, or more than one, or no grid is left.
    dynamics.core.files.FileError
        If the file cannot be read.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            header = _header(path, file)
            name = _chosen(header) if name is None else name
            if name not in header:
                raise ParameterError(f"name = {name} is not allowed: {path.name} has no such table")
            table = _tensor(path, file, header[name])
    except OSError as failure:
        raise explain("read", path, failure) from failure
    if table.ndim == 3 and len(table) == 1:
        table = table[0]
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ParameterError(
            f"{name} of shape {table.shape} is not allowed: it must be (1, D + tokens, d), finite"
        )
    return table[_first_patch(len(table), tokens) :]


def _first_patch(rows: int, tokens: int | None) -> int:
    """Return how many rows of a table are no patches."""
    first = rows - math.isqrt(rows) ** 2 if tokens is None else tokens
    if not (isinstance(first, int) and 0 <= first < rows and (tokens is not None or first <= 16)):
        raise ParameterError(
            f"tokens = {tokens} is not allowed: it must tell how many of {rows} rows are no patches"
        )
    return first


def _chosen(names: Iterable[str]) -> str:
    """Return the one name that is of a table of encodings."""
    found = [name for name in names if name.rpartition(".")[2] in TABLES]
    if len(found) != 1:
        told = " and ".join(found) or "none"
        raise ParameterError(
            f"name is missing: of tables called {' or '.join(TABLES)} there is {told}"
        )
    return found[0]


def _header(path: Path, file: IO[bytes]) -> dict[str, Any]:
    """Return what a file says of its tensors, and leave it where they begin."""
    size = int.from_bytes(file.read(8), "little")
    if not 2 <= size <= _LONGEST_HEADER:
        raise FileError(f"cannot read {path}: it does not begin like a file of safetensors")
    try:
        header = json.loads(file.read(size))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise FileError(f"cannot read {path}: its header is damaged")
    header.pop("__metadata__", None)
    return header


def _tensor(path: Path, file: IO[bytes], told: Any) -> np.ndarray:
    """Return a tensor from behind the header, of exactly the bytes that its shape needs."""
    try:
        kind, shape = told["dtype"], tuple(map(int, told["shape"]))
        first, last = map(int, told["data_offsets"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise FileError(f"cannot read {path}: its header is damaged") from None
    if kind not in (*_TYPES, "BF16"):
        raise FileError(f"cannot read {path}: numbers of type {kind!s:.20} are not known here")
    each = 2 if kind == "BF16" else np.dtype(_TYPES[kind]).itemsize
    size = math.prod(shape) * each
    if min(shape, default=0) < 1 or first < 0 or last - first != size:
        raise FileError(f"cannot read {path}: its header is damaged")
    start = file.tell() + first
    file.seek(0, 2)
    if start + size > file.tell():
        raise FileError(f"cannot read {path}: it is cut short")
    file.seek(start)
    content = file.read(size)
    if kind == "BF16":  # the upper half of a float32
        wide = np.frombuffer(content, "<u2").astype(np.uint32) << 16
        return wide.view(np.float32).astype(float).reshape(shape)
    return np.frombuffer(content, _TYPES[kind]).astype(float).reshape(shape)
