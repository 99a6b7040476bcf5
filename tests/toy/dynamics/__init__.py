"""The toy theory in numbers."""
