"""Commands of `patchdyn`, one module each.

A command module defines ``HELP`` (one line), ``DESCRIPTION``, ``EPILOG``,
``add_arguments(parser)`` and ``execute(args)``, which returns the exit code. It is listed in
``COMMANDS``. `patchdyn --help` imports all of them, so that heavy imports belong inside functions.
"""

COMMANDS = (
    "reproduce",
    "claims",
    "derive",
    "run",
    "against",
    "prove",
    "sweep",
    "map",
    "falsify",
    "report",
    "vision",
    "theory",
    "explore",
)

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


class BadInput(Exception):
    """Bad input; the message is one sentence for the user."""
