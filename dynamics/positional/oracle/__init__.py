"""Oracle: the full D x D model with exact expectation."""
