"""Signs of F: the test error P[F <= 0] and ties, by enumeration."""
