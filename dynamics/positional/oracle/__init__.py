"""The full D x D model with exact expectation: what the reduction is checked against."""
