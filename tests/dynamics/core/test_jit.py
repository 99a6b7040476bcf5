"""The compile cache: used by the next process, never stale."""

import ast
import gc
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python
from numba.core.runtime.nrt import rtsys

import dynamics
from dynamics import Population, Problem, State, precompile
from dynamics.core import descent
from dynamics.core import jit as _jit

#: A small kernel with callees in two other files.
PROGRAM = """
from dynamics.positional.population.truncation import _inflated
from dynamics.positional.population.expectation import Constants
from dynamics.positional.problem import Problem
_inflated(Constants.of(Problem(D=8, C=2, q=0.1)), 0.0, 0.0)
stats = _inflated.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def run(cache, folder):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment, cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.slow
def test_the_next_process_compiles_nothing_until_a_callee_changes(tmp_path):
    """A caller must not keep a stale copy of a callee from another file."""
    copy, cache = tmp_path / "copy", tmp_path / "cache"
    shutil.copytree(Path(dynamics.__file__).parent, copy / "dynamics")
    (copy / "dynamics" / "__init__.py").write_text("")  # imports no more than the kernel needs
    assert run(cache, copy) == ["0", "1"]
    assert run(cache, copy) == ["1", "0"]
    append(copy / "dynamics" / "core" / "descent.py")  # not imported by the kernel
    assert run(cache, copy) == ["1", "0"]
    append(copy / "dynamics" / "positional" / "_emitted.py")  # holds a callee
    assert run(cache, copy) == ["0", "1"]


def test_import_pattern_agrees_with_the_parser():
    """Compare in all files of the package, and for unusual spellings."""
    odd = b"if 1: from dynamics.core.flow import a; x\nfrom \\\n dynamics.full \\\n import b\n"
    files = Path(dynamics.__file__).parent.rglob("*.py")
    for source in (odd, *map(Path.read_bytes, files)):
        named = {
            node.module.removeprefix("dynamics.").encode()
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom) and node.module.startswith("dynamics.")
        }
        assert set(_jit._IMPORT.findall(source)) == named


def append(path):
    path.write_text(path.read_text() + "# changed\n")


def test_a_kernel_specialised_for_a_class_is_cached_under_the_source_of_both(tmp_path, monkeypatch):
    """The descent loop does not import the theories whose gradients it is compiled with."""

    def entries():
        _jit._digest.cache_clear()
        spec = importlib.util.spec_from_file_location("plan_of_a_theory", tmp_path / "theory.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "plan_of_a_theory", module)
        spec.loader.exec_module(module)
        loops = [_jit.kernel(descent._descend, specialised_for=c) for c in (module.A, module.B)]
        return [loop._cache._cache_file._index_name for loop in loops]

    (tmp_path / "theory.py").write_text("class A: ...\nclass B: ...\n")
    first = entries()
    assert first[0] != first[1]
    assert entries() == first
    append(tmp_path / "theory.py")
    assert not set(entries()) & set(first)


def test_every_theory_states_what_to_compile():
    """A module ``precompile`` in a theory's folder is enough: no list contains the theories."""
    source = Path(precompile.__file__)
    theories = {module.parent.name for module in source.parent.glob("*/precompile.py")}
    assert len(theories) == 3
    for theory in theories:
        jobs = importlib.import_module(f"dynamics.{theory}.precompile").JOBS
        assert jobs.items() <= precompile.jobs().items()
        assert theory not in source.read_text()


def test_jobs_run_in_this_process_and_unknown_names_are_rejected(capsys):
    for name in ("enumeration", "fourier"):
        precompile.jobs()[name]()
    with pytest.raises(SystemExit) as stop:
        precompile.main(["magic"])
    assert stop.value.code == 2
    assert "magic is not allowed: it must be one of " in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.traced
def test_two_processes_compile_the_named_jobs(capsys):
    """The processes are spawned: JAX warns of a fork once it has been imported."""
    pytest.importorskip("jax").device_count()
    precompile.main(["masked", "shallow"])
    assert sorted(capsys.readouterr().out.splitlines()) == ["compiled: masked", "compiled: shallow"]


def test_a_kernel_that_borrows_cannot_make_an_array():
    @_jit.kernel(borrows=True)
    def makes_one(n):
        return np.zeros(n).sum()

    with pytest.raises(numba.core.errors.NumbaError, match="Only accept returning of array"):
        makes_one.compile((numba.int64,))


def test_kernels_that_borrow_call_nothing_that_makes_arrays():
    """What they call is compiled without counting too, or could hand them what nobody frees."""
    kernels, borrowing = {}, []
    for path in Path(dynamics.__file__).parent.rglob("*.py"):
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.FunctionDef) and "kernel" in "".join(
                ast.unparse(mark) for mark in node.decorator_list
            ):
                makes = any(
                    isinstance(part, ast.Call) and ast.unparse(part.func).startswith("np.")
                    for part in ast.walk(ast.Module(node.body, []))
                )
                kernels.setdefault(node.name, []).append(makes)
                if any("borrows=True" in ast.unparse(mark) for mark in node.decorator_list):
                    borrowing.append(node)
    assert len(borrowing) > 50
    plain = {"range", "enumerate", "len", "min", "max", "abs", "int", "float", "round"}
    for node in borrowing:
        for part in ast.walk(ast.Module(node.body, [])):
            if isinstance(part, ast.Call):
                name = ast.unparse(part.func)
                allowed = name in plain or name.startswith("math.") or name.endswith(".view")
                assert allowed or not any(kernels.get(name, [True])), (node.name, name)
            if isinstance(part, ast.Return) and part.value is not None:
                given = {argument.arg for argument in node.args.args}
                assert ast.unparse(part.value) not in given, node.name


@pytest.mark.slow
def test_no_array_is_lost_or_freed_twice():
    """References are not counted in kernels that borrow: what they work on must be freed once."""
    expectation = Population(Problem(D=64, C=4, q=0.1, nu=0.1), "fourier", 1e-6).expectation
    state = State(0.05, 1.0, -0.1)
    counting = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    try:
        for evaluate in (expectation.gradient, expectation.evaluate, expectation.jacobian):
            evaluate(state)
            gc.collect()
            before = rtsys.get_allocation_stats()
            for _ in range(3):
                evaluate(state)
            gc.collect()
            after = rtsys.get_allocation_stats()
            made = after.mi_alloc - before.mi_alloc
            assert made == after.mi_free - before.mi_free > 100
    finally:
        if not counting:
            _nrt_python.memsys_disable_stats()
