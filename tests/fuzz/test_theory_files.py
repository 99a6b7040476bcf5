"""Theory files with a random edit: a result or one sentence, never a traceback."""

import random

import pytest

from simulations.cli import main
from tests.fuzz.theory_files import edit, texts

#: Default number of edits; most are rejected when the file is loaded.
CASES = 60


def check(path, rng, capsys):
    """Write an edited example and run two commands on it."""
    name, text = rng.choice(sorted(texts().items()))
    edited, description = edit(text, rng)
    path.write_text(edited, encoding="utf-8")
    for arguments in (["theory", str(path)], ["run", "--theory", str(path), "--horizon", "1"]):
        try:
            code = main(arguments)
        except Exception as exception:
            raise AssertionError(f"{name}, {description}: {exception!r}") from exception
        error = capsys.readouterr().err
        assert code in (0, 1, 2), f"{name}, {description}"
        if code == 2:
            assert len(error.splitlines()) == 1, f"{name}, {description}"
            assert error.rstrip("\n").isprintable(), f"{name}, {description}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_edited_examples(tmp_path, capsys):
    for number in range(CASES):
        check(tmp_path / f"edited_{number}.py", random.Random(number), capsys)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_newly_edited_examples(cases, tmp_path, capsys):
    for number, rng in enumerate(cases()):
        check(tmp_path / f"edited_{number}.py", rng, capsys)
