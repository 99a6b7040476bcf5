"""Files: written whole or not at all, sealed by digests, locked, stamped with what made them."""
