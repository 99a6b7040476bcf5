"""Certified velocity of the reduced dynamics: Taylor series, Jacobian and truncation in balls."""
