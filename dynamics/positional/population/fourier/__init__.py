"""The population expectation by Fourier integrals; see
:mod:`dynamics.positional.population.fourier.method`."""

from dynamics.positional.population.fourier.method import (
    FourierExpectation,
    FourierValue,
    predicted_cost,
)

__all__ = ["FourierExpectation", "FourierValue", "predicted_cost"]
