"""A small convolutional network, as a plain parameter tree: what Section 6 compares with."""

import math
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Tree = dict[str, Any]
#: Channels after each 3 x 3 convolution; where classes are told, pooled by two after the second
#: and the fourth.
CLASSES = (16, 16, 32, 32, 32)
PIXELS = (16, 16, 16, 16, 16, 16)
_POOLED = (1, 3)


def initial(planes: int, outputs: int, masked: bool, rng: np.random.Generator) -> Tree:
    """Return random parameters: Gaussian weights of variance 2 / fan-in.

    ``planes`` come in, a plane that tells what is masked among them; ``outputs`` classes come out,
    or numbers a pixel.
    """
    sizes = (planes, *(PIXELS if masked else CLASSES))
    layers = []
    for into, out in pairwise(sizes):
        weights = math.sqrt(2.0 / (9 * into)) * rng.standard_normal((3, 3, into, out))
        layers.append({"w": weights, "b": np.zeros(out), "g": np.ones(out)})
    head = rng.standard_normal((sizes[-1], outputs)) / math.sqrt(sizes[-1])
    return {"layers": layers, "head": {"w": head, "b": np.zeros(outputs)}}


def apply(tree: Tree, images: jax.Array, masked: bool) -> jax.Array:
    """Return scores of the classes (B, classes), or pixels (B, height, width, channels).

    After each convolution an image is normalized over all its pixels and channels.
    """
    x = images
    for number, layer in enumerate(tree["layers"]):
        x = jax.lax.conv_general_dilated(
            x, layer["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = x - x.mean(axis=(1, 2, 3), keepdims=True)
        x = x * jax.lax.rsqrt(jnp.square(x).mean(axis=(1, 2, 3), keepdims=True) + 1e-6)
        x = jax.nn.relu(x * layer["g"] + layer["b"])
        if not masked and number in _POOLED:
            x = _pooled(x)
    if not masked:
        x = x.mean(axis=(1, 2))
    return x @ tree["head"]["w"] + tree["head"]["b"]


def _pooled(x: jax.Array) -> jax.Array:
    """Return the largest of every 2 x 2 pixels; a last odd row or column is left out."""
    count, height, width, channels = x.shape
    even = x[:, : height // 2 * 2, : width // 2 * 2]
    return even.reshape(count, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))
