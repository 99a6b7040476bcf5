"""Sweeps: one run per cell of a grid or list of problems, stored as labelled data.

`config` parses a configuration, `cells` computes one cell, `engines` distributes the cells over
processes or machines, `storage` stores finished cells, and `compute` runs a sweep.
"""
