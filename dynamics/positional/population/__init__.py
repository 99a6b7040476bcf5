"""The population expectation: enumeration, Fourier integrals, sampling, and who chooses."""
