"""Compile the risk of a theory file: ``python -m simulations.stated.precompile FILE.py``."""

import sys

from simulations.stated.system import UserTheorySystem

if __name__ == "__main__":
    theory = UserTheorySystem(sys.argv[1])
    case = theory.build({"solver": "gd", "steps": 1})
    theory.solve(case)
