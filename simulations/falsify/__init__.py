"""Conjectures about the dynamics: parse, search for counterexamples, check in tests.

.. code-block:: python

    report = falsify("gamma >= rho", where="q*D <= C", budget=60)
    report.counterexample                     # the problem, the time, the violation and its error

    @given(problems(where="q*D <= C"))        # from simulations.strategies, in your own test
    def test_gamma_stays_above_rho(problem):
        run = gradient_flow(Population(problem), horizon=1e3)
        assert_holds("gamma >= rho", run)
"""

from simulations.falsify.check import assert_holds, check
from simulations.falsify.language import ConjectureError, parse
from simulations.falsify.report import Report
from simulations.falsify.search import falsify
from simulations.falsify.trial import Conjecture, Filter, Result, Trial

__all__ = [
    "Conjecture",
    "ConjectureError",
    "Filter",
    "Report",
    "Result",
    "Trial",
    "assert_holds",
    "check",
    "falsify",
    "parse",
]
