"""Files and commands of the page "From a paper to a verdict in an afternoon"."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from simulations.cli import main

PAGE = Path(__file__).parents[1] / "notebooks" / "book" / "paper-to-verdict.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
#: Blocks of commands that take longer than a few seconds.
SLOW = ("--plot", "prove", "falsify", "sweep", "--report")


def _blocks(language):
    return [text for name, text in BLOCKS if name == language]


def _consoles():
    """Return one test for each block of commands, marked slow if it takes long."""
    for block in _blocks("console"):
        slow = [pytest.mark.slow] if any(word in block for word in SLOW) else []
        yield pytest.param(block, id=block.split("\n")[0], marks=slow)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a folder with the files that the page writes."""
    theory, claims = _blocks("python")
    text = theory.replace("THEORY =", f"{claims}\n\nTHEORY =")
    text = text.replace("    defaults=", "    claims=CLAIMS,\n    defaults=")
    (tmp_path / "chain.py").write_text(text, "utf-8")
    (tmp_path / "starts.toml").write_text(*_blocks("toml"), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("block", [*_consoles()])
def test_commands_print_what_the_page_shows(block, folder, capsys):
    for part in block.split("$ patchdyn ")[1:]:
        command, expected = part.split("\n", 1)
        assert main(shlex.split(command)) == 0
        output = capsys.readouterr()
        printed = output.err + output.out
        options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert doctest.OutputChecker().check_output(expected, printed, options), printed


def test_the_page_shows_every_step():
    text = "".join(_blocks("console"))
    commands = ("theory", "run", "prove", "falsify", "sweep", "map")
    assert all(f"$ patchdyn {command} " in text for command in commands)
