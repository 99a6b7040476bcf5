"""Storage of results: atomic writes, digests, locks, and stamps of the code."""
