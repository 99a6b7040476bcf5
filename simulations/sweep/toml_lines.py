"""Line numbers of keys in a TOML text, for error messages."""

import re

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z0-9_.\-]+)\s*(\.|=)""")


def line_of(text: str, table: str = "", key: str = "", number: int = 0) -> int | None:
    """Return the line number of a key.

    Parameters
    ----------
    text
        TOML text.
    table
        Table of the key; "" for the root.
    key
        The key; "" for the table itself.
    number
        Index among the tables of that name, as in ``[[list]]``.

    Returns
    -------
    int or None
        Line of the key; that of its table if the key is not found; else ``None``.
    """
    current, seen, header = "", -1, None
    for count, line in enumerate(text.splitlines(), start=1):
        if match := _HEADER.match(line):
            current = _bare(match[2])
            if current == table:
                seen += 1
                if seen == number:
                    header = count
            if table == "" and current == key:  # a table, seen as a key of the root
                return count
            continue
        here = current == table and (table == "" or seen == number)
        if not here:
            if (
                current == ""
                and table
                and (inline := _KEY.match(line))
                and _bare(inline[1]) == table
            ):
                header = count  # table = { ... } or table.key = ...
            continue
        if key and (entry := _KEY.match(line)) and _bare(entry[1]) == key:
            return count
    return header


def _bare(name: str) -> str:
    """Return a name without its quotes."""
    return name[1:-1] if name[:1] in "\"'" and name[-1:] == name[:1] else name
