"""Exact derivations of a shallow vision transformer: Li, Wang, Liu, Chen (2023).

`reduction` derives the gradients of the full matrices, `gram` the closed Gram form and conserved
quantities (with polynomials in matrices from `words`), `scalars` the number of scalars in the
symmetric case, `concentration` the two-equation model.
"""
