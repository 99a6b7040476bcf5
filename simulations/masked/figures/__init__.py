"""Figures of masked image modelling, one module each: they draw labelled data."""
