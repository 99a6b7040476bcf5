"""Positional attention (Jelassi, Sander, Li 2022): problem, reduced dynamics, what happens."""
