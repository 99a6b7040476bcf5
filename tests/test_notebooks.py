"""Every notebook runs from top to bottom, is committed without outputs, and names no machine."""

import re
from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
#: A path from the root or a home directory, or a drive letter, where a string or a word starts.
ABSOLUTE = re.compile(r"""(?:^|[\s"'(=])(?:/(?:home|root|usr|tmp|work|mnt|Users)/|~/|[A-Z]:\\\\)""")


def read(path):
    return nbformat.read(path, as_version=4)


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    def test_is_valid(self, path):
        nbformat.validate(read(path))

    def test_outputs_are_stripped(self, path):
        for cell in read(path).cells:
            assert not cell.get("outputs"), cell.source
            assert cell.get("execution_count") is None, cell.source

    def test_no_absolute_paths(self, path):
        for cell in read(path).cells:
            assert not ABSOLUTE.search(cell.source), cell.source

    @pytest.mark.slow
    def test_runs(self, path):
        client = nbclient.NotebookClient(
            read(path),
            timeout=1800,
            kernel_name="python3",
            resources={"metadata": {"path": str(path.parent)}},
        )
        client.execute()
        messages = [
            output.text
            for cell in client.nb.cells
            for output in cell.get("outputs", [])
            if output.get("name") == "stderr"
        ]
        assert not [text for text in messages if "Warning" in text]
