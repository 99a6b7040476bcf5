"""Shallow ViT (Li, Wang, Liu, Chen 2023) for the tools, with its claims and figures."""
