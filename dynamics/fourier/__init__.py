"""The population expectation by Fourier integrals; see :mod:`dynamics.fourier.method`."""

from dynamics.fourier.method import FourierExpectation, FourierValue, predicted_cost

__all__ = ["FourierExpectation", "FourierValue", "predicted_cost"]
