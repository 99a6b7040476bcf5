r"""Small Vision Transformers (Definitions 3.1 and 3.2) and a small convolutional network (CNN).

The parameters of a model are a tree: nested dictionaries and lists of arrays. :func:`initial`
returns random parameters and :func:`apply` evaluates a model.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dynamics.core.checks import integer, require
from simulations.vision.patches import fold, unfold

#: Definition 3.1, Definition 3.2, Simplification 3.1, and the convolutional network.
ARCHITECTURES = ("content", "position", "gram", "cnn")

#: Standard deviation of the initial P and mask token.
_SCALE = 0.02
_LARGEST = 4096
#: Channels of the CNN after each 3 x 3 convolution, for classification and for masked patches. A
#: classifier pools by two after the layers of index `_POOLED`.
_CLASSIFIER = (16, 16, 32, 32, 32)
_INPAINTER = (16, 16, 16, 16, 16, 16)
_POOLED = (1, 3)

Tree = dict[str, Any]


@dataclass(frozen=True)
class Model:
    r"""Architecture and sizes of a model.

    Attributes
    ----------
    architecture
        ``content``: self-attention on tokens to which P is added once (Definition 3.1).
        ``position``: scores ``(P W_Q)(P W_K)^T / sqrt(width / heads)`` in every layer and head,
        values from the tokens alone, P added to nothing (Definition 3.2). ``gram``: scores
        ``P P^T / sqrt(width)`` with one head (Simplification 3.1). ``cnn``: 3 x 3 convolutions.
    patch
        Side length of a patch in pixels; of the CNN, of the cells that a permutation moves.
    width, depth, heads, hidden
        Sizes of a transformer: dimension of a token, layers, heads, width of the MLP. P (D, width)
        is shared by all layers.
    """

    architecture: str = "position"
    patch: int = 2
    width: int = 48
    depth: int = 2
    heads: int = 4
    hidden: int = 96

    def __post_init__(self) -> None:
        allowed = f"one of {', '.join(ARCHITECTURES)}"
        require(
            self.architecture in ARCHITECTURES, "architecture", repr(self.architecture), allowed
        )
        for name in ("patch", "width", "depth", "heads", "hidden"):
            integer(name, getattr(self, name), 1, _LARGEST)
        require(
            self.width % self.heads == 0, "heads", self.heads, f"a divisor of width = {self.width}"
        )

    @property
    def attention_heads(self) -> int:
        """Heads of a layer: one with the Gram matrix."""
        return 1 if self.architecture == "gram" else self.heads


@dataclass(frozen=True)
class Shape:
    """Sizes of the data of a model.

    Attributes
    ----------
    D
        Number of patches.
    pixels
        Numbers in a patch.
    outputs
        Number of classes; 0 if the model predicts the pixels of masked patches.
    """

    D: int
    pixels: int
    outputs: int = 0

    @property
    def masked(self) -> bool:
        """Whether the model predicts masked patches."""
        return self.outputs == 0


def initial(model: Model, shape: Shape, rng: np.random.Generator) -> Tree:
    """Return random parameters in double precision.

    Weights are Gaussian with variance 1 / fan-in (2 / fan-in in convolutions); P and the mask token
    have standard deviation 0.02.
    """

    def normal(scale: float, *size: int) -> np.ndarray:
        return scale * rng.standard_normal(size)

    def linear(fan_in: int, outputs: int) -> Tree:
        return {"w": normal(1.0 / math.sqrt(fan_in), fan_in, outputs), "b": np.zeros(outputs)}

    def norm() -> Tree:
        return {"g": np.ones(model.width), "b": np.zeros(model.width)}

    if model.architecture == "cnn":
        return _initial_cnn(model, shape, rng)
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
        if model.architecture != "gram":
            layer |= {
                name: normal(1.0 / math.sqrt(width), width, width) for name in ("query", "key")
            }
        tree["layers"].append(layer)
    return tree


def _initial_cnn(model: Model, shape: Shape, rng: np.random.Generator) -> Tree:
    """Return random parameters of the CNN; a plane of the input marks the masked pixels."""
    planes = shape.pixels // model.patch**2
    sizes = (planes + shape.masked, *(_INPAINTER if shape.masked else _CLASSIFIER))
    layers = []
    for fan_in, outputs in pairwise(sizes):
        weights = math.sqrt(2.0 / (9 * fan_in)) * rng.standard_normal((3, 3, fan_in, outputs))
        layers.append({"w": weights, "b": np.zeros(outputs), "g": np.ones(outputs)})
    outputs = shape.outputs or planes
    head = rng.standard_normal((sizes[-1], outputs)) / math.sqrt(sizes[-1])
    return {"layers": layers, "head": {"w": head, "b": np.zeros(outputs)}}


def apply(
    model: Model,
    tree: Tree,
    patches: jax.Array,
    grid: tuple[int, int],
    masked: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array | None]:
    """Return the output of a model and its attention.

    Parameters
    ----------
    model, tree
        The model and its parameters.
    patches
        Patches (B, D, pixels), in any order of the grid.
    grid
        Rows and columns of the grid of patches; used by the CNN only.
    masked
        Mask of the patches (B, D), or ``None`` for classification.

    Returns
    -------
    output
        Scores of the classes (B, classes), or the pixels of every patch (B, D, pixels).
    attention
        Attention of each query, with rows that sum to 1: (depth, heads, D, D), or (depth, B, heads,
        D, D) for ``content``; ``None`` for the CNN.
    """
    if model.architecture == "cnn":
        return _apply_cnn(model, tree, patches, grid, masked), None
    tokens = _linear(tree["embed"], patches)
    if masked is not None:
        tokens = jnp.where(masked[..., None], tree["mask"], tokens)
    if model.architecture == "content":
        tokens = tokens + tree["P"]
    attention = []
    for layer in tree["layers"]:
        normed = _norm(layer["before"], tokens)
        weights = _attention(model, layer, tree["P"], normed)
        attention.append(weights)
        values = _heads(_linear(layer["value"], normed), model.attention_heads)
        letters = "bhij,bjhk->bihk" if model.architecture == "content" else "hij,bjhk->bihk"
        mixed = jnp.einsum(letters, weights, values).reshape(tokens.shape)
        tokens = tokens + _linear(layer["out"], mixed)
        inside = jax.nn.gelu(_linear(layer["up"], _norm(layer["between"], tokens)))
        tokens = tokens + _linear(layer["down"], inside)
    tokens = _norm(tree["norm"], tokens)
    if masked is None:
        tokens = tokens.mean(axis=1)
    return _linear(tree["head"], tokens), jnp.stack(attention)


def _apply_cnn(
    model: Model, tree: Tree, patches: jax.Array, grid: tuple[int, int], masked: jax.Array | None
) -> jax.Array:
    """Return the output of the CNN; masked pixels are 0, and a plane of the input marks them."""
    if masked is None:
        x = _convolutions(tree, fold(patches, grid, model.patch), _POOLED).mean(axis=(1, 2))
        return x @ tree["head"]["w"] + tree["head"]["b"]
    mark = jnp.broadcast_to(masked[..., None], (*masked.shape, model.patch**2))
    planes = [
        fold(jnp.where(masked[..., None], 0.0, patches), grid, model.patch),
        fold(mark.astype(patches.dtype), grid, model.patch),
    ]
    x = _convolutions(tree, jnp.concatenate(planes, axis=-1), ())
    return unfold(x @ tree["head"]["w"] + tree["head"]["b"], model.patch)


def _convolutions(tree: Tree, images: jax.Array, pooled: tuple[int, ...]) -> jax.Array:
    """Return images after the convolutions, each normalised over all its pixels and channels."""
    x = images
    for number, layer in enumerate(tree["layers"]):
        x = jax.lax.conv_general_dilated(
            x, layer["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = x - x.mean(axis=(1, 2, 3), keepdims=True)
        x = x * jax.lax.rsqrt(jnp.square(x).mean(axis=(1, 2, 3), keepdims=True) + 1e-6)
        x = jax.nn.relu(x * layer["g"] + layer["b"])
        if number in pooled:  # a last odd row or column is left out
            count, height, width, channels = x.shape
            even = x[:, : height // 2 * 2, : width // 2 * 2]
            cells = even.reshape(count, height // 2, 2, width // 2, 2, channels)
            x = cells.max(axis=(2, 4))
    return x


def _attention(model: Model, layer: Tree, P: jax.Array, tokens: jax.Array) -> jax.Array:
    """Return the attention of a layer; for ``content``, of every image."""
    if model.architecture == "gram":
        return jax.nn.softmax(P @ P.T / math.sqrt(model.width), axis=-1)[None]
    source = tokens if model.architecture == "content" else P
    query, key = (_heads(source @ layer[name], model.heads) for name in ("query", "key"))
    scores = jnp.einsum("...ihk,...jhk->...hij", query, key)
    return jax.nn.softmax(scores / math.sqrt(model.width // model.heads), axis=-1)


def _heads(tokens: jax.Array, heads: int) -> jax.Array:
    return tokens.reshape(*tokens.shape[:-1], heads, -1)


def _linear(layer: Tree, x: jax.Array) -> jax.Array:
    """Return x w + b.

    The tokens are rows of one matrix, so that the gradient in w is one matrix product. With the
    two axes (B, D), XLA takes twice the time for the gradient of the whole model on a CPU.
    """
    rows = x.reshape(-1, x.shape[-1]) @ layer["w"]
    return rows.reshape(*x.shape[:-1], -1) + layer["b"]


def _norm(layer: Tree, x: jax.Array) -> jax.Array:
    mean = x.mean(axis=-1, keepdims=True)
    variance = jnp.square(x - mean).mean(axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * layer["g"] + layer["b"]
