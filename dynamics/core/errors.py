"""What can go wrong, each told in one sentence: the parameter, its value, what is allowed."""


class ParameterError(ValueError):
    """An argument is outside its domain; the message is one sentence for a person."""


class ToleranceError(ArithmeticError):
    """The requested tolerance cannot be met; the message names the bound that can be reached.

    ``reachable`` is that bound (an absolute error), ``nan`` where it is not known.
    """

    def __init__(self, message: str, reachable: float = float("nan")) -> None:
        super().__init__(message)
        self.reachable = reachable
