"""Exceptions of invalid arguments and of tolerances that are out of reach."""


class ParameterError(ValueError):
    """An argument is outside its domain; the message is one sentence."""


class ToleranceError(ArithmeticError):
    """The requested tolerance cannot be met.

    Attributes
    ----------
    reachable
        The absolute error that can be reached, ``nan`` if it is not known.
    """

    def __init__(self, message: str, reachable: float = float("nan")) -> None:
        super().__init__(message)
        self.reachable = reachable
