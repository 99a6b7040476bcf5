"""What the paper says, exactly: the derivations of Jelassi, Sander, Li (2022) in SymPy.

No floats and no NumPy. One module per step of the argument: ``attention`` (Lambda, Gamma, Xi),
``margins`` (the margin O of a patch and what a set adds to F), ``full_model`` (D x D attention)
with its ``symmetry``, ``reduction`` (exact expectations of both models), ``lemma_4_1``,
``lemma_4_2``, ``lemma_4_3``. ``zero`` decides identities and ``proof`` keeps the record. ``emit``
turns the result into ``dynamics/positional/_emitted.py``; ``catalogue`` prints it. ``masked`` holds
the second theory, masked image modelling.
"""
