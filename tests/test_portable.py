"""Platform-specific modules and functions are guarded, as the syntax trees of all files show."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ABSENT_MODULES = {"crypt", "fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"}
ABSENT = {
    "os": {"fork", "getuid", "killpg", "mkfifo", "sched_getaffinity", "setsid", "statvfs"},
    "signal": {"SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "alarm", "pthread_sigmask", "setitimer"},
}
#: Functions that exist exactly where another one exists.
WITH = {"SIGKILL": "killpg"}


def imported_at_once(tree: ast.Module) -> set[str]:
    """Return the modules that are imported together with a module."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    later = {id(inner) for function in functions for inner in ast.walk(function)}
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and id(node) not in later:
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and id(node) not in later and node.module:
            modules.add(node.module.split(".")[0])
    return modules


def unguarded(tree: ast.Module) -> set[str]:
    """Return the platform-specific functions that are used without a check by `hasattr`."""
    names = set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        checked = {
            node.args[1].value
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "hasattr"
            if isinstance(node.args[1], ast.Constant)
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                absent = node.attr in ABSENT.get(node.value.id, ())
                if absent and WITH.get(node.attr, node.attr) not in checked:
                    names.add(f"{node.value.id}.{node.attr}")
    return names


@pytest.mark.parametrize("package", ["dynamics", "symbolic", "simulations"])
def test_platform_specific_functions_are_guarded(package):
    for path in (ROOT / package).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not imported_at_once(tree) & ABSENT_MODULES, path
        assert not unguarded(tree), path


def test_tests_can_be_collected_on_other_platforms():
    for path in (ROOT / "tests").rglob("*.py"):
        assert not imported_at_once(ast.parse(path.read_text(encoding="utf-8"))) & ABSENT_MODULES, (
            path
        )


def test_detection_of_guards():
    tree = ast.parse("import os, fcntl\ndef f():\n    os.fork()\n    os.getcwd()\n")
    assert imported_at_once(tree) == {"os", "fcntl"}
    assert unguarded(tree) == {"os.fork"}
    guarded = (
        "import os\ndef f():\n    import pwd\n    if hasattr(os, 'fork'):\n        os.fork()\n"
    )
    assert not unguarded(ast.parse(guarded))
    assert imported_at_once(ast.parse(guarded)) == {"os"}
