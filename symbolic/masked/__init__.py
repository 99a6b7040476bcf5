"""Masked image modelling, exactly: the derivations of Huang, Wen, Chi, Liang (2024) in SymPy.

``raw_loss`` is the model with every entry of Q free, ``area_form`` the gradients written in areas,
``lemma_5_1`` and ``lemma_5_2`` show that the two agree and what their signs are, ``reduction`` that
few numbers per query patch suffice; ``kernels`` is what the solvers run.
"""
