"""Sweeps: one run per cell of a grid or list of problems, stored as labelled data.

`config` reads what is to be computed, `cells` computes one cell, `local` and `cluster` spread the
cells over processes or machines, `store` keeps what is finished, and `run` ties them together.
"""
