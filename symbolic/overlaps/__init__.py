"""State a theory whose loss depends on vectors through inner products; derive its expectations.

The symmetry group is the orthogonal group of each `Euclidean` space. The order parameters are the
inner products of trained vectors with each other and with fixed directions (overlaps), one for each
orbit under permutations of exchangeable units. A step of gradient descent on the vectors is an
exact step on the overlaps, in every dimension that is at least the number of vectors.

- space: `Euclidean`, with the dimension
- vectors: `Vectors` (trained; ``sphere=True`` for norm 1) and `Directions` (fixed; ``gram`` is the
  squared norm, ``overlaps`` the inner products with earlier directions), each single or indexed by
  an `symbolic.theory.Exchangeable` set
- data: `Normal`, with a variance and a mean along a direction
- expressions: ``J["k"] @ x`` (a field), ``J["k"] @ B["m"]`` (an overlap); ``+ - *``, whole powers;
  ``.erf() .relu() .step() .sigmoid() .tanh()`` of linear combinations of fields and overlaps;
  ``.sum("k")``; ``softmax(k @ x, k @ y["l"])`` for the attention to x and to y["l"], normalized
  over x and all y; ``sqrt(2)`` for an exact number
"""

from symbolic.overlaps.attention import softmax
from symbolic.overlaps.language import Directions, Euclidean, Normal, Vectors, sqrt
from symbolic.overlaps.theory import OverlapTheory
from symbolic.theory.numbers import Size

__all__ = [
    "Directions",
    "Euclidean",
    "Normal",
    "OverlapTheory",
    "Size",
    "Vectors",
    "softmax",
    "sqrt",
]
