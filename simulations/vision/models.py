r"""Small Vision Transformers of Definitions 3.1 and 3.2, and a small CNN, as plain parameter trees.

A model is a :class:`Model` (frozen: what it is), `initial` (its parameters) and `apply` (what it
says). Images come as patches, (B, D, pixels); every model takes them in any order of the grid.
The parameters are a dictionary of arrays, so that any optimizer works on them and seeds are mapped
over a leading axis.
"""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dynamics.core.checks import integer, require
from simulations.vision import cnn
from simulations.vision.patches import fold, unfold

#: Definition 3.1, Definition 3.2, Simplification 3.1, and the convolutional network.
KINDS = ("content", "position", "gram", "cnn")
_SCALE = 0.02
_WIDEST = 4096

Tree = dict[str, Any]


@dataclass(frozen=True)
class Model:
    r"""What a model is.

    Attributes
    ----------
    kind
        ``content``: self-attention on tokens to which P is added once (Definition 3.1).
        ``position``: scores ``(P W_Q)(P W_K)^T / sqrt(width / heads)`` in every layer and head,
        values from the tokens alone, P added to nothing (Definition 3.2). ``gram``: the same with
        ``P P^T / sqrt(width)`` and one head (Simplification 3.1). ``cnn``: 3 x 3 convolutions.
    patch
        Side of a patch in pixels; of the CNN, of the cells that a permutation moves.
    width, depth, heads, hidden
        Of the transformer: width of a token, layers, heads, width of the MLP. P, shared by all
        layers, is (D, width).
    """

    kind: str = "position"
    patch: int = 2
    width: int = 48
    depth: int = 2
    heads: int = 4
    hidden: int = 96

    def __post_init__(self) -> None:
        require(self.kind in KINDS, "kind", repr(self.kind), f"one of {', '.join(KINDS)}")
        for name in ("patch", "width", "depth", "heads", "hidden"):
            integer(name, getattr(self, name), 1, _WIDEST)
        require(
            self.width % self.heads == 0, "heads", self.heads, f"a divisor of width = {self.width}"
        )

    @property
    def encodes(self) -> bool:
        """Whether the model has positional encodings."""
        return self.kind != "cnn"

    @property
    def attended(self) -> int:
        """Heads of a layer: one with the Gram matrix."""
        return 1 if self.kind == "gram" else self.heads


@dataclass(frozen=True)
class Shape:
    """What a model is built for: D patches of ``pixels`` numbers, and how many numbers come out.

    ``outputs`` is the number of classes, or 0 where masked patches are told, pixel by pixel.
    """

    D: int
    pixels: int
    outputs: int = 0

    @property
    def masked(self) -> bool:
        """Whether patches are masked and told."""
        return self.outputs == 0


def initial(model: Model, shape: Shape, rng: np.random.Generator) -> Tree:
    """Return random parameters: Gaussian weights of variance 1 / fan-in, P and mask token .02."""

    def normal(scale: float, *size: int) -> np.ndarray:
        return scale * rng.standard_normal(size)

    def linear(into: int, out: int) -> Tree:
        return {"w": normal(1.0 / math.sqrt(into), into, out), "b": np.zeros(out)}

    def norm() -> Tree:
        return {"g": np.ones(model.width), "b": np.zeros(model.width)}

    if model.kind == "cnn":
        planes = shape.pixels // model.patch**2
        out = shape.outputs or planes
        return cnn.initial(planes + shape.masked, out, shape.masked, rng)
    width = model.width
    tree: Tree = {
        "P": normal(_SCALE, shape.D, width),
        "embed": linear(shape.pixels, width),
        "layers": [],
        "norm": norm(),
        "head": linear(width, shape.outputs or shape.pixels),
    }
    if shape.masked:
        tree["mask"] = normal(_SCALE, width)
    for _ in range(model.depth):
        layer: Tree = {
            "before": norm(),
            "value": linear(width, width),
            "out": linear(width, width),
            "between": norm(),
            "up": linear(width, model.hidden),
            "down": linear(model.hidden, width),
        }
        if model.kind != "gram":
            layer |= {
                "query": normal(1.0 / math.sqrt(width), width, width),
                "key": normal(1.0 / math.sqrt(width), width, width),
            }
        tree["layers"].append(layer)
    return tree


def apply(
    model: Model,
    tree: Tree,
    patches: jax.Array,
    grid: tuple[int, int],
    masked: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array | None]:
    """Return what the model says, and its attention.

    Parameters
    ----------
    model, tree
        The model and its parameters.
    patches
        Patches (B, D, pixels).
    grid
        Rows and columns of the grid of patches; the CNN alone asks.
    masked
        Which ones are masked (B, D), ``None`` where images are classified.

    Returns
    -------
    said
        Scores of the classes (B, classes), or the pixels of every patch (B, D, pixels).
    attention
        Rows that sum to 1, of the queries: (depth, heads, D, D), of ``content`` with an axis B
        after the layers; ``None`` of the CNN.
    """
    if model.kind == "cnn":
        return _convolved(model, tree, patches, grid, masked), None
    tokens = _linear(tree["embed"], patches)
    if masked is not None:
        tokens = jnp.where(masked[..., None], tree["mask"], tokens)
    if model.kind == "content":
        tokens = tokens + tree["P"]
    maps = []
    for layer in tree["layers"]:
        normed = _norm(layer["before"], tokens)
        weights = _attention(model, layer, tree["P"], normed)
        maps.append(weights)
        values = _heads(_linear(layer["value"], normed), model.attended)
        letters = "bhij,bjhk->bihk" if model.kind == "content" else "hij,bjhk->bihk"
        mixed = jnp.einsum(letters, weights, values).reshape(tokens.shape)
        tokens = tokens + _linear(layer["out"], mixed)
        inside = jax.nn.gelu(_linear(layer["up"], _norm(layer["between"], tokens)))
        tokens = tokens + _linear(layer["down"], inside)
    tokens = _norm(tree["norm"], tokens)
    if masked is None:
        tokens = tokens.mean(axis=1)
    return _linear(tree["head"], tokens), jnp.stack(maps)


def _convolved(
    model: Model, tree: Tree, patches: jax.Array, grid: tuple[int, int], masked: jax.Array | None
) -> jax.Array:
    """Return what the CNN says; masked pixels are 0, and a plane tells which they are."""
    if masked is None:
        return cnn.apply(tree, fold(patches, grid, model.patch), masked=False)
    hidden = jnp.broadcast_to(masked[..., None], (*masked.shape, model.patch**2))
    planes = [
        fold(jnp.where(masked[..., None], 0.0, patches), grid, model.patch),
        fold(hidden.astype(patches.dtype), grid, model.patch),
    ]
    said = cnn.apply(tree, jnp.concatenate(planes, axis=-1), masked=True)
    return unfold(said, model.patch)


def _attention(model: Model, layer: Tree, P: jax.Array, tokens: jax.Array) -> jax.Array:
    """Return the attention of a layer, of ``content`` for every image."""
    if model.kind == "gram":
        return jax.nn.softmax(P @ P.T / math.sqrt(model.width), axis=-1)[None]
    source = tokens if model.kind == "content" else P
    query, key = (_heads(source @ layer[name], model.heads) for name in ("query", "key"))
    scores = jnp.einsum("...ihk,...jhk->...hij", query, key)
    return jax.nn.softmax(scores / math.sqrt(model.width // model.heads), axis=-1)


def _heads(tokens: jax.Array, heads: int) -> jax.Array:
    return tokens.reshape(*tokens.shape[:-1], heads, -1)


def _linear(layer: Tree, x: jax.Array) -> jax.Array:
    """Return x w + b, all tokens as rows of one matrix.

    So the gradient in w is one product of matrices. Summed over two axes, (B, D), XLA takes twice
    the time for the gradient of the whole model on a CPU.
    """
    rows = x.reshape(-1, x.shape[-1]) @ layer["w"]
    return rows.reshape(*x.shape[:-1], -1) + layer["b"]


def _norm(layer: Tree, x: jax.Array) -> jax.Array:
    mean = x.mean(axis=-1, keepdims=True)
    variance = jnp.square(x - mean).mean(axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * layer["g"] + layer["b"]
