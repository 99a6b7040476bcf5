"""Positional attention (Jelassi, Sander, Li 2022) for the tools, with its claims and figures."""
