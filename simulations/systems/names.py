"""The names of the systems, for those who need no more: nothing is imported here."""

NAMES = ("positional", "masked")
DEFAULT = "positional"
