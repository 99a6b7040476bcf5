"""A theory in one file: from its statement to numbers."""
