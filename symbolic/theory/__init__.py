"""State a theory in one file and derive its order parameters and exact gradient for all sizes.

A theory file defines index sets with symbolic sizes, random data, trained parameters and the loss,
and collects them in a `Theory` named ``THEORY``. `load_theory` reads the file.

- sizes and constants: `Size`, `constants`
- index sets: `Exchangeable` (optionally inside another set), `Signed`, `Union`; `Ordered`
  positions, with constant arrays on them (`relation`)
- data: `Choice`, `Subset`, `Colouring`, `Sequence`, `Gaussian`, collected in `Data`; on ordered
  positions `Words` with a law `iid`, `polya`, `chain` or `tree`, `Chain`, or vectors of a random
  `Frame` of `Signed` and `Turned` coordinates
- parameters: `Tensor`, with ``start`` (which may be `normal`) and ``fix``
- expressions: ``A["i", "j"]``; ``+ - * / **``; ``.exp() .log() .tanh() .sigmoid() .softplus()
  .softplus_of_minus() .abs() .relu()``; ``.sum("j")``, ``.softmax(over="j")``,
  ``.logsumexp(over="j")``, ``.cross_entropy(target, over="j")``; on ordered positions
  ``.softmax(over="j", where=mask)`` and ``A.at(0, "j")``; `Same`, `Inside`, `ByPart`

Examples
--------
A bilinear form that learns to score equal elements above different ones:

>>> from symbolic.theory import Choice, Data, Exchangeable, Size, Tensor, Theory
>>> K = Size("K", "features", least=2)
>>> feature = Exchangeable("feature", K)
>>> query = Choice("query", feature)
>>> Q = Tensor("Q", (feature, feature))
>>> def loss(Q, query):
...     score = (query["m"] * Q["m", "k"]).sum("m").softmax(over="k")
...     return 0.5 * ((score - query["k"]) ** 2).sum("k")
>>> theory = Theory("look up", "example", sizes=(K,), parameters=(Q,), data=Data(query), loss=loss)
>>> theory.order_parameters
{'Q[diagonal]': K, 'Q[other feature]': K*(K - 1)}
"""

from symbolic.theory.errors import TheoryError
from symbolic.theory.expression import Inside, Node, Same
from symbolic.theory.formulas import Claim
from symbolic.theory.frames import Frame
from symbolic.theory.load import load_theory
from symbolic.theory.numbers import Constant, Size, constants, normal
from symbolic.theory.positions import relation
from symbolic.theory.reduced import OrderParameter, Reduced
from symbolic.theory.sets import Exchangeable, Ordered, Signed, Turned, Union
from symbolic.theory.sources import ByPart, Choice, Colouring, Data, Gaussian, Sequence, Subset
from symbolic.theory.tensors import Tensor
from symbolic.theory.theory import Theory
from symbolic.theory.words import Chain, Words, chain, iid, polya, tree

__all__ = [
    "ByPart",
    "Chain",
    "Choice",
    "Claim",
    "Colouring",
    "Constant",
    "Data",
    "Exchangeable",
    "Frame",
    "Gaussian",
    "Inside",
    "Node",
    "OrderParameter",
    "Ordered",
    "Reduced",
    "Same",
    "Sequence",
    "Signed",
    "Size",
    "Subset",
    "Tensor",
    "Theory",
    "TheoryError",
    "Turned",
    "Union",
    "Words",
    "chain",
    "constants",
    "iid",
    "load_theory",
    "normal",
    "polya",
    "relation",
    "tree",
]
