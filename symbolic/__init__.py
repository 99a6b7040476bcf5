"""What the papers say, exactly: derivations in SymPy, without floats and NumPy.

`core` decides identities (`zero`), keeps the record (`proof`), sums over symbolic sizes (`sums`),
and writes kernels (`source`). A theory is a folder: `positional` (Jelassi, Sander, Li 2022) with
one module per step of the argument, `attention` (Lambda, Gamma, Xi), `margins` (the margin O of a
patch and what a set adds to F), `full_model` (D x D attention) with its `symmetry`, `reduction`
(exact expectations of both models), `lemma_4_1`, `lemma_4_2`, `lemma_4_3`; `masked` (Huang et al.
2024); `shallow` (Li et al. 2023). `emit` writes the compiled modules of `dynamics`; `catalogue`
prints derivations.
"""
