"""Compile every kernel once (`python -m dynamics.precompile`), so that no result waits for it.

With names, such as ``fourier enumeration``, only what these need. Numba keeps the compiled code on
disk. The jobs are those of the module ``precompile`` of each theory.
"""

import argparse
import pkgutil
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import dynamics


def jobs() -> dict[str, Callable[[], Any]]:
    """Return the jobs of all theories by name; the theory with most of them comes first."""
    packages = [f"dynamics.{one.name}" for one in pkgutil.iter_modules(dynamics.__path__)
                if one.ispkg and find_spec(f"dynamics.{one.name}.precompile")]  # fmt: skip
    tables = [import_module(f"{package}.precompile").JOBS for package in packages]
    return {name: job for table in sorted(tables, key=len, reverse=True)
            for name, job in table.items()}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Compile what is named, or all, each in a process of its own."""
    known = jobs()
    parser = argparse.ArgumentParser(prog="python -m dynamics.precompile", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    names = parser.parse_args(arguments).names or list(known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"{unknown[0]} is not allowed: it must be one of {', '.join(known)}")
    with ProcessPoolExecutor(max_workers=2) as pool:
        running = {name: pool.submit(known[name]) for name in names}
        for name, job in running.items():
            job.result()
            print(f"compiled: {name}")


if __name__ == "__main__":
    main()
