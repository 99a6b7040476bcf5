"""Derivations of the papers in SymPy: exact, without floats and without NumPy.

`core`
    Exact decisions of identities, proofs, sums of symbolic length, emitted source code.
`positional`, `masked`, `shallow`
    One package per paper, one module per lemma or step of its argument.
`theory`
    The language of user-defined theories: order parameters and gradients for all sizes.
`catalogue`
    All derivations, for `patchdyn derive`.
`emit`
    Writes the generated modules of `dynamics`.
"""
