"""Files and commands of the page "From a paper to a verdict in an afternoon"."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from simulations.cli import main

PAGE = Path(__file__).parents[1] / "notebooks" / "book" / "paper-to-verdict.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def _blocks(language):
    return [text for name, text in BLOCKS if name == language]


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


@pytest.mark.slow
@pytest.mark.parametrize("block", _blocks("console"), ids=lambda block: block.split("\n")[0])
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
