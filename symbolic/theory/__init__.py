"""A theory in one file: the language, its order parameters, and the exact gradient for all sizes.

A file states index sets with symbolic sizes, data, parameters and the loss; `load_theory` reads it.

- sizes and constants: `Size`, `constants`
- index sets: `Exchangeable` (one may lie inside another), `Signed`, `Union`
- data: `Choice`, `Subset`, `Colouring`, `Sequence`, `Gaussian`, collected in `Data`
- parameters: `Tensor`, with ``fix`` and ``start``
- expressions: ``A["i", "j"]``; ``+ - * / **``; ``.exp() .log() .tanh() .sigmoid() .softplus()
  .softplus_of_minus()``; ``.sum("j")``, ``.softmax(over="j")``; `Same`, `Inside`
- and all of it in a `Theory`, which the file calls ``THEORY``
"""

from symbolic.theory.errors import TheoryError
from symbolic.theory.expression import Inside, Node, Same
from symbolic.theory.load import load_theory
from symbolic.theory.numbers import Constant, Size, constants
from symbolic.theory.sets import Exchangeable, Signed, Union
from symbolic.theory.tensors import Choice, Colouring, Data, Gaussian, Sequence, Subset, Tensor
from symbolic.theory.theory import OrderParameter, Reduced, Theory

__all__ = [
    "Choice",
    "Colouring",
    "Constant",
    "Data",
    "Exchangeable",
    "Gaussian",
    "Inside",
    "Node",
    "OrderParameter",
    "Reduced",
    "Same",
    "Sequence",
    "Signed",
    "Size",
    "Subset",
    "Tensor",
    "Theory",
    "TheoryError",
    "Union",
    "constants",
    "load_theory",
]
