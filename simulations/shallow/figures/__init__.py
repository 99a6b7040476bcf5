"""Figures of the shallow transformer: each draws a dataset and computes nothing."""
