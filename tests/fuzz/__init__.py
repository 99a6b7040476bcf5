"""Hostile input at random: a finite answer or one sentence, an exit code as documented, in time.

``pytest tests/fuzz`` runs a few dozen cases of each kind with a fixed seed; for more,
``pytest tests/fuzz --fuzz-cases 10000 --fuzz-seed 7`` (or ``--fuzz-seed random``; it is printed).
"""
