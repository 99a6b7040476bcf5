"""Theories in files: check against the full model, risk, runs, tools and claims."""
