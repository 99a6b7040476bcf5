"""The commands of `patchdyn`, one module each.

A command module offers ``NAME``, ``HELP`` (one line), ``add_arguments(parser)`` and
``execute(args) -> exit code``. It imports nothing heavy at its top: `patchdyn --help` loads all of
them. A new command is a module here and its name in ``COMMANDS``.
"""

COMMANDS = (
    "reproduce", "claims", "derive", "run", "prove", "sweep", "map", "falsify", "report", "vision",
    "theory", "explore",
)  # fmt: skip

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


class BadInput(Exception):
    """What was asked for is not allowed; the message is one sentence for a person."""
