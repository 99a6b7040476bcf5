"""What Li, Wang, Liu, Chen (2023) rests on: a shallow vision transformer, ReLU and hinge.

`reduction` (the gradients of the full matrices), `gram` (the closed Gram form and what is
conserved; `words` are its matrices of any size), `scalars` (the symmetric case by orbits),
`concentration` (the theory in two equations).
"""
