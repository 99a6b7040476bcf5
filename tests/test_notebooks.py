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
#: Forgets all names of the notebook before; the packages that it imported stay loaded.
AS_NEW = "%reset -f\nimport matplotlib; matplotlib.rcdefaults(); del matplotlib"


def read(path):
    return nbformat.read(path, as_version=4)


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.fixture(scope="module")
def client():
    """Return what runs cells, in one process for all notebooks: most of a short one is imports."""
    running = nbclient.NotebookClient(
        nbformat.v4.new_notebook(),
        timeout=1800,
        kernel_name="python3",
        resources={"metadata": {"path": str(ROOT / "notebooks")}},
    )
    with running.setup_kernel():
        yield running


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
    def test_runs(self, path, client):
        client.nb = read(path)
        client.reset_execution_trackers()
        client.execute_cell(nbformat.v4.new_code_cell(AS_NEW), 0)
        for number, cell in enumerate(client.nb.cells):
            client.execute_cell(cell, number)
        messages = [
            output.text
            for cell in client.nb.cells
            for output in cell.get("outputs", [])
            if output.get("name") == "stderr"
        ]
        assert not [text for text in messages if "Warning" in text]


@pytest.mark.slow
def test_no_notebook_finds_names_of_the_one_before(client):
    cells = [nbformat.v4.new_code_cell(source) for source in ("left = 1", AS_NEW, "left")]
    client.nb = nbformat.v4.new_notebook(cells=cells)
    for number in (0, 1):
        client.execute_cell(cells[number], number)
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="'left' is not defined"):
        client.execute_cell(cells[2], 2)
