"""What other systems lack is imported where it is used, and asked for before: read, not run."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ABSENT_MODULES = {"crypt", "fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"}
ABSENT = {
    "os": {"fork", "getuid", "killpg", "mkfifo", "sched_getaffinity", "setsid", "statvfs"},
    "signal": {"SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "alarm", "pthread_sigmask", "setitimer"},
}
#: What is there if something else is.
WITH = {"SIGKILL": "killpg"}


def imported_at_once(tree: ast.Module) -> set[str]:
    """Return the modules that are imported with this one."""
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.Lambda)]
    later = {id(inner) for one in functions for inner in ast.walk(one)}
    found = set()
    for one in ast.walk(tree):
        if isinstance(one, ast.Import) and id(one) not in later:
            found |= {alias.name.split(".")[0] for alias in one.names}
        elif isinstance(one, ast.ImportFrom) and id(one) not in later and one.module:
            found.add(one.module.split(".")[0])
    return found


def unasked(tree: ast.Module) -> set[str]:
    """Return what may be absent and is used in a function that does not ask `hasattr` for it."""
    found = set()
    for function in (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)):
        asked = {
            one.args[1].value
            for one in ast.walk(function)
            if isinstance(one, ast.Call) and getattr(one.func, "id", "") == "hasattr"
            if isinstance(one.args[1], ast.Constant)
        }
        for one in ast.walk(function):
            if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
                absent = one.attr in ABSENT.get(one.value.id, ())
                if absent and WITH.get(one.attr, one.attr) not in asked:
                    found.add(f"{one.value.id}.{one.attr}")
    return found


@pytest.mark.parametrize("package", ["dynamics", "symbolic", "simulations"])
def test_nothing_that_other_systems_lack_is_needed(package):
    for path in (ROOT / package).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not imported_at_once(tree) & ABSENT_MODULES, path
        assert not unasked(tree), path


def test_tests_can_be_collected_there():
    for path in (ROOT / "tests").rglob("*.py"):
        assert not imported_at_once(ast.parse(path.read_text(encoding="utf-8"))) & ABSENT_MODULES, (
            path
        )


def test_what_is_asked_for_is_seen():
    tree = ast.parse("import os, fcntl\ndef f():\n    os.fork()\n    os.getcwd()\n")
    assert imported_at_once(tree) == {"os", "fcntl"}
    assert unasked(tree) == {"os.fork"}
    guarded = (
        "import os\ndef f():\n    import pwd\n    if hasattr(os, 'fork'):\n        os.fork()\n"
    )
    assert not unasked(ast.parse(guarded))
    assert imported_at_once(ast.parse(guarded)) == {"os"}
