"""The population expectation by enumeration, Fourier integrals or sampling."""
