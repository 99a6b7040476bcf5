"""Masked image modelling (Huang, Wen, Chi, Liang 2024) for the tools, with its claims, figures."""
