"""gamma >= rho certified on boxes of parameters, in ball arithmetic."""
