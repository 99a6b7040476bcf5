"""Write the generated modules of `dynamics` from the derivations: ``python -m symbolic.emit``.

The modules are the ``TARGETS`` in the module ``kernels`` of each theory. With ``--check`` nothing
is written, and the exit code is 1 if a committed file is out of date. Derivations and compiled
solvers do not import each other; the generated modules connect them.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from symbolic.catalogue import packages
from symbolic.core.source import Target, source

TARGETS: tuple[Target, ...] = tuple(
    target
    for package in packages()
    if find_spec(f"{package}.kernels")
    for target in import_module(f"{package}.kernels").TARGETS
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the emitted modules, or with ``--check`` compare them with the files; return 0 or 1."""
    parser = argparse.ArgumentParser(prog="python -m symbolic.emit", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    check = parser.parse_args(arguments).check
    different = 0
    for target in TARGETS:
        text, path = source(target), target.path
        current = path.read_text(encoding="utf-8") if path.exists() else None
        if current == text:
            continue
        different += 1
        if check:
            name = "/".join(path.parts[-2:])
            print(f"{name} is out of date: run `python -m symbolic.emit`", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
    return int(check and different > 0)


if __name__ == "__main__":
    sys.exit(main())
