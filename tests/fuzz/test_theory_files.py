"""Theory files with an edit that nobody foresaw: a result or one sentence, never a traceback."""

import random

import pytest

from simulations.cli import main
from tests.fuzz.theory_files import edit, texts

#: Edits tried where no number is given: most are rejected when the file is loaded.
CASES = 60


def check(path, rng, capsys):
    """Write an edited example and run both commands that read it."""
    name, text = rng.choice(sorted(texts().items()))
    changed, what = edit(text, rng)
    path.write_text(changed, encoding="utf-8")
    for arguments in (["theory", str(path)], ["run", "--theory", str(path), "--horizon", "1"]):
        try:
            code = main(arguments)
        except Exception as failure:
            raise AssertionError(f"{name}, {what}: {failure!r}") from failure
        error = capsys.readouterr().err
        assert code in (0, 1, 2), f"{name}, {what}"
        if code == 2:
            assert len(error.splitlines()) == 1, f"{name}, {what}"
            assert error.rstrip("\n").isprintable(), f"{name}, {what}"


@pytest.mark.filterwarnings("ignore")
def test_edited_examples(tmp_path, capsys):
    for number in range(CASES):
        check(tmp_path / f"edited_{number}.py", random.Random(number), capsys)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_newly_edited_examples(cases, tmp_path, capsys):
    for number, rng in enumerate(cases()):
        check(tmp_path / f"edited_{number}.py", rng, capsys)
