"""A third, tiny theory in folders like the real ones: two scalars with the risk (a b - s)^2 / 2."""
