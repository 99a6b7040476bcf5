"""The toy theory for the tools."""
