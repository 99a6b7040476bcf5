"""System, claims and figures of the shallow vision transformer (Li, Wang, Liu, Chen 2023)."""
