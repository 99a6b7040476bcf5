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

import math
from pathlib import Path

import numpy as np

from dynamics.core.errors import ParameterError
from simulations.weights import WeightFile

#: Names of the table of encodings in timm and transformers, after the last dot.
TABLES = ("pos_embed", "position_embeddings")


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
    with WeightFile(path) as file:
        if name is None:
            name = _only_table(file.names)
        if name not in file.names:
            raise ParameterError(f"name = {name} is not allowed: {path.name} has no such table")
        table = file.read(name).astype(float)
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
