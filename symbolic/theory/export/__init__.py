"""Export of the derived equations as text, LaTeX, NumPy and JAX."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from symbolic.theory.export.arrays import arrays_source
from symbolic.theory.export.printed import latex, text

if TYPE_CHECKING:
    from symbolic.theory.theory import Theory

#: Functions that export a theory, by format.
FORMATS: "Mapping[str, Callable[[Theory], str]]" = {
    "text": text,
    "latex": latex,
    "python": partial(arrays_source, form="python"),
    "jax": partial(arrays_source, form="jax"),
}

__all__ = ["FORMATS"]
