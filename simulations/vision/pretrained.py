"""Positional encodings of a pre-trained ViT, read from its file of weights.

The file has the safetensors format, which contains numbers and no program; the model is one of timm
or of Hugging Face transformers with a learned table of encodings. Measure its locality with ::

    P = position_table("model.safetensors")             # (196, 768) of a ViT-B/16
    encoding_locality(P, "distance").precision

The attention comes from the model itself, with its class token; in transformers
(``attn_implementation="eager"``) ::

    outputs = model(pixels, output_attentions=True).attentions
    # (layers, images, heads, 197, 197)
    maps = np.stack([layer.detach().numpy() for layer in outputs])
    attention_locality(without_class_token(maps.mean(axis=1))).lift  # per layer and head

The measures are in `dynamics.locality`.
"""

import json
import math
from pathlib import Path
from typing import IO, Any

import numpy as np

from dynamics.core.errors import ParameterError
from dynamics.core.files import FileError, explain

#: Names of the table of encodings in timm and transformers, after the last dot.
TABLES = ("pos_embed", "position_embeddings")

#: Largest number of bytes of a header; a tensor takes a few hundred.
_LARGEST_HEADER = 2**24

_DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2"}


def position_table(
    path: Path | str, name: str | None = None, tokens: int | None = None
) -> np.ndarray:
    """Return the positional encodings of the patches, (D, d), row by row on their grid.

    Parameters
    ----------
    path
        File of weights in the safetensors format.
    name
        Name of the table; default: the only one whose name ends as in ``TABLES``.
    tokens
        Number of rows before the patches (class token, registers); default: the rows beyond the
        largest square, such as 1 for a 14 x 14 grid with a class token.

    Raises
    ------
    ParameterError
        If there is no such table, or more than one, or its rows are no grid.
    dynamics.core.files.FileError
        If the file cannot be read.
    """
    path = Path(path)
    try:
        with open(path, "rb") as file:
            header = _header(path, file)
            if name is None:
                name = _only_table(list(header))
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
    rows = len(table)
    first = rows - math.isqrt(rows) ** 2 if tokens is None else tokens
    if not (isinstance(first, int) and 0 <= first < rows and (tokens is not None or first <= 16)):
        raise ParameterError(
            f"tokens = {tokens} is not allowed: it must be the number of the {rows} rows that are "
            "no patches"
        )
    return table[first:]


def _only_table(names: list[str]) -> str:
    """Return the only name of a table of encodings, or raise ParameterError."""
    tables = [name for name in names if name.rpartition(".")[2] in TABLES]
    if len(tables) != 1:
        raise ParameterError(
            f"name is missing: of tables called {' or '.join(TABLES)} there is "
            f"{' and '.join(tables) or 'none'}"
        )
    return tables[0]


def _header(path: Path, file: IO[bytes]) -> dict[str, Any]:
    """Return the description of each tensor; the file is then read up to the first one."""
    size = int.from_bytes(file.read(8), "little")
    if not 2 <= size <= _LARGEST_HEADER:
        raise FileError(f"cannot read {path}: it does not begin like a file of safetensors")
    try:
        header = json.loads(file.read(size))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise _damaged(path)
    header.pop("__metadata__", None)
    return header


def _tensor(path: Path, file: IO[bytes], described: Any) -> np.ndarray:
    """Return a tensor after checking its description against the bytes of the file."""
    try:
        dtype, shape = described["dtype"], tuple(map(int, described["shape"]))
        first, last = map(int, described["data_offsets"])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise _damaged(path) from None
    if dtype not in _DTYPES:
        raise FileError(f"cannot read {path}: numbers of type {dtype!s:.20} are not supported")
    size = math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize
    if min(shape, default=0) < 1 or first < 0 or last - first != size:
        raise _damaged(path)
    begin = file.tell() + first
    if begin + size > file.seek(0, 2):
        raise FileError(f"cannot read {path}: it is cut short")
    file.seek(begin)
    numbers = np.frombuffer(file.read(size), _DTYPES[dtype])
    if dtype == "BF16":  # the upper half of a float32
        numbers = (numbers.astype(np.uint32) << 16).view(np.float32)
    return numbers.astype(float).reshape(shape)


def _damaged(path: Path) -> FileError:
    return FileError(f"cannot read {path}: its header is damaged")
