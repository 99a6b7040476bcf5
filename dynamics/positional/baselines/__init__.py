"""Baselines for Sections 3 and 5: linear models, learners of the sets, explicit transformers."""
