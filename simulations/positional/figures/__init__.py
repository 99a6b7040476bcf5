"""Figures of positional attention, one module each: they draw labelled data."""
