"""Texts of a stored record."""

import re

_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?[/\\](?:[^\s:'\"<>|,;()\[\]/\\]+[/\\])+")


def without_folders(text: str) -> str:
    """Return a text with the absolute paths in it cut to the names of their files.

    A report does not contain the folders of the machine that made it.
    """
    return _FOLDERS.sub("", text)
