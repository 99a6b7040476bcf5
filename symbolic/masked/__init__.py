"""Exact derivations of masked image modelling: Huang, Wen, Chi, Liang (2024).

`raw_loss` is the model with all entries of Q free, `area_form` the gradients in terms of areas.
`lemma_5_1` and `lemma_5_2` prove that they agree and determine signs, `reduction` that few numbers
per query patch are sufficient; `kernels` contains the emitted kernels.
"""
