"""The velocity of the reduced dynamics in balls: Taylor series, Jacobian, and what is neglected."""
