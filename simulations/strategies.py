"""Hypothesis strategies for problems and states, to test your own conjectures.

.. code-block:: python

    @given(problems(), states())
    def test_attention_is_a_distribution(problem, state):
        Lambda, Gamma, Xi, _ = attention(problem, state)
        assert Lambda + (problem.C - 1) * Gamma + (problem.D - problem.C) * Xi == approx(1)

All sampled problems are valid and small: one evaluation of the population risk takes about a
millisecond. Examples shrink towards few patches, p = 3, the default temperature and output scale,
and zero logits.
"""

from simulations.masked.strategies import masked_problems
from simulations.parameter_strategies import flow_settings, reals
from simulations.positional.strategies import invalid_problem_arguments, problems, states
from simulations.shallow.strategies import shallow_problems

__all__ = [
    "flow_settings",
    "invalid_problem_arguments",
    "masked_problems",
    "problems",
    "reals",
    "shallow_problems",
    "states",
]
