"""Figures of the claims on real images: they draw labelled data and compute nothing."""
