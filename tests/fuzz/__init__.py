"""Fuzz tests: random input gives a finite result or one sentence, within a time limit.

``pytest tests/fuzz`` runs a few dozen cases of each test with a fixed seed. Use
``pytest tests/fuzz --fuzz-cases 10000 --fuzz-seed 7`` for more; ``--fuzz-seed random`` prints the
seed.
"""
