"""The commands of `patchdyn`, one module each.

A command module defines ``HELP`` (one line), ``add_arguments(parser)`` and
``execute(args) -> exit code``, and is listed in ``COMMANDS``. It imports nothing heavy at module
level, because `patchdyn --help` imports all of them.
"""

COMMANDS = (
    "reproduce",
    "claims",
    "derive",
    "run",
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
    """What was asked for is not allowed; the message is one sentence for a person."""
