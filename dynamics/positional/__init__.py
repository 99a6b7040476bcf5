"""Positional attention (Jelassi, Sander, Li 2022): problem, population risk, dynamics, events."""
