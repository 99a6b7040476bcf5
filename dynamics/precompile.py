"""Compile every kernel once (`python -m dynamics.precompile`), so that no result waits for it.

Each theory states in its module ``precompile`` what there is to compile: ``JOBS``, a mapping from
name to function, the longest first. With names, such as ``fourier enumeration``, only these jobs
run. Numba stores the compiled code on disk.
"""

import argparse
import pkgutil
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, zip_longest
from multiprocessing import get_context

import dynamics


def jobs() -> dict[str, Callable[[], object]]:
    """Return the jobs of all theories: the first of each, then the second of each, and so on."""
    theories = [
        import_module(f"dynamics.{theory.name}.precompile").JOBS
        for theory in pkgutil.iter_modules(dynamics.__path__)
        if theory.ispkg and find_spec(f"dynamics.{theory.name}.precompile")
    ]
    ranked = chain.from_iterable(zip_longest(*(theory.items() for theory in theories)))
    return dict(job for job in ranked if job is not None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the named jobs, or all, on two processes."""
    available = jobs()
    parser = argparse.ArgumentParser(prog="python -m dynamics.precompile", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(available)}")
    names = parser.parse_args(arguments).names
    if unknown := [name for name in names if name not in available]:
        parser.error(f"{unknown[0]} is not allowed: it must be one of {', '.join(available)}")
    # fresh processes: a fork of one with threads, such as those of JAX, may hang
    with ProcessPoolExecutor(max_workers=2, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(available[name]): name for name in names or available}
        for job in as_completed(running):
            job.result()
            print(f"compiled: {running[job]}")


if __name__ == "__main__":
    main()
