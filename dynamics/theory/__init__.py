"""A stated theory in numbers: its data up to symmetry, its compiled kernel, and the full model.

What is stated comes in as plain arrays and names; this room knows neither the language nor SymPy.
"""
