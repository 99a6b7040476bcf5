"""The page that checks certificates in a browser, with Pyodide from the extra and from npm."""

import json
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dynamics import Problem
from simulations.cli import main
from simulations.positional.validated.page import EXTRA_FILES, NPM_FILES, PYODIDE
from simulations.validated import (
    certificate,
    installed_pyodide,
    prove,
    write_certificate,
    write_page,
)

#: Milliseconds until a check counts as stuck; it takes about 80 s of processor time.
LONGEST = 1_200_000


@pytest.fixture
def package(tmp_path):
    """A folder with empty files instead of those of Pyodide."""
    folder = tmp_path / "package"
    folder.mkdir()
    for name in NPM_FILES:
        (folder / name).write_text(json.dumps({"version": PYODIDE}))
    return folder


class TestCommand:
    @pytest.mark.slow
    @pytest.mark.traced
    def test_writes_a_folder_that_needs_python_alone(self, package, tmp_path, capsys):
        """The source files check a certificate without any installed package."""
        page, proof = tmp_path / "page", tmp_path / "proof.json"
        assert main(["prove", "--page", str(page), "--pyodide", str(package)]) == 0
        assert "python -m http.server" in capsys.readouterr().out
        assert {path.name for path in (page / "pyodide").iterdir()} == {*NPM_FILES}
        for name in (page / "source" / "files.txt").read_text().split():
            assert (page / "source" / name).is_file()
        record = certificate(prove(Problem(D=4, C=2, q=0.5), horizon=0.01, tolerance=1e-2))
        record["pieces"], record["horizon"] = record["pieces"][:1], record["pieces"][0]["end"]
        program = (
            f"import sys; sys.path.insert(0, {str(page / 'source')!r})\n"
            "from simulations.positional.validated.checker import verdict\n"
            f"print(*verdict({str(proof)!r}, None, 'python'), sep='\\n')"
        )
        for horizon, expected in ((record["horizon"], "checked"), (1.0, "rejected")):
            proof.write_text(json.dumps(record | {"horizon": horizon}))
            command = [sys.executable, "-I", "-S", "-c", program]
            result = subprocess.run(command, capture_output=True, text=True, check=True)
            lines = result.stdout.splitlines()
            assert lines[0] == expected
            assert lines[1].startswith(f"{expected}: the ")
        assert main(["prove", "--page", str(page), "--pyodide", str(package)]) == 2
        assert "--force" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda package: (package / "pyodide.asm.wasm").unlink(), "pyodide.asm.wasm"),
            (
                lambda package: (package / "package.json").write_text('{"version": "1"}'),
                "contains version 1",
            ),
        ],
    )
    def test_missing_files_and_other_versions(self, package, tmp_path, capsys, change, words):
        change(package)
        assert main(["prove", "--page", str(tmp_path / "page"), "--pyodide", str(package)]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert f"npm pack pyodide@{PYODIDE}" in error
        assert not (tmp_path / "page").exists()

    @pytest.mark.parametrize(
        "flags",
        [
            ["--pyodide", "x"],
            ["--page", "x", "--D", "8"],
            ["--page", "x", "--out", "y"],
        ],
    )
    def test_wrong_combinations(self, flags, capsys):
        assert main(["prove", *flags]) == 2
        assert "not allowed with" in capsys.readouterr().err

    def test_without_the_extra(self, tmp_path, capsys, monkeypatch):
        page = str(tmp_path / "page")
        monkeypatch.setattr("simulations.positional.validated.page.find_spec", lambda _: None)
        assert main(["prove", "--page", page]) == 2
        assert f"--page {page} is not allowed: Pyodide" in (error := capsys.readouterr().err)
        assert "pip install '.[page]'" in error
        assert not (tmp_path / "page").exists()


def test_the_extra_contains_pyodide(tmp_path):
    if installed_pyodide() is None:
        pytest.skip("the extra 'page' is not installed")
    write_page(tmp_path)
    assert {path.name for path in (tmp_path / "pyodide").iterdir()} == {*EXTRA_FILES}


@pytest.fixture(scope="module", params=["extra"])
def address(request, tmp_path_factory):
    """Address of a server of the page, with Pyodide from the extra or from npm."""
    folder = tmp_path_factory.mktemp("page")
    if request.param == "extra" and installed_pyodide() is None:
        pytest.skip("the extra 'page' is not installed")
    write_page(folder / "page", unpacked(folder) if request.param == "npm" else None)
    handler = partial(Quiet, directory=folder / "page")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def unpacked(folder):
    """Return the folder of the npm package of Pyodide, after fetching it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, so that Pyodide cannot be fetched")
    command = [npm, "pack", "--silent", f"pyodide@{PYODIDE}"]
    packed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    if packed.returncode:
        pytest.skip(f"npm cannot fetch Pyodide: {packed.stderr[:200]}")
    shutil.unpack_archive(folder / f"pyodide-{PYODIDE}.tgz", folder, filter="data")
    return folder / "package"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Print no requests."""


@pytest.fixture(scope="module")
def proof(tmp_path_factory):
    """The certificate of D = 16 to time 10."""
    path = tmp_path_factory.mktemp("proof") / "proof.json"
    write_certificate(path, prove(Problem(D=16, C=2, q=0.25), horizon=10.0))
    return path


@pytest.fixture
def opened(browser, address):
    """The page at 390 pixels, and the addresses of its requests."""
    context = browser.new_context(viewport={"width": 390, "height": 800})
    requests, messages = [], []
    context.on("request", lambda request: requests.append(request.url))
    page = context.new_page()
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(address)
    yield page, requests, messages
    context.close()


def checked(page, path):
    page.set_input_files("#file", path)
    page.wait_for_selector("#verdict:not([hidden])", timeout=LONGEST)
    return page.text_content("#verdict").splitlines()


@pytest.mark.slow
class TestPage:
    def test_checks_the_certificate_of_the_book(self, opened, address, proof):
        page, requests, messages = opened
        lines = checked(page, proof)
        assert lines[0] == "checked: the tube and its consequences are proved"
        assert lines[4].split() == ["to", "time", "10", "(20", "pieces)"]
        assert len(lines) == 12
        assert page.is_hidden("#progress")
        assert "checked after" in page.text_content("#status")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert messages == []
        assert any(url.endswith("pyodide.asm.wasm") for url in requests)
        assert all(url.startswith((address, "data:")) for url in requests)

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            (lambda record: record["problem"].update(q=0.26), "the tube is too thin"),
            (lambda record: record.update(pieces=[]), "there are no pieces"),
            (lambda record: record["problem"].update(D=10**7, C=10), "D - C = "),
        ],
    )
    def test_rejects_forged_certificates(self, opened, proof, tmp_path, change, reason):
        page, _, _ = opened
        record = json.loads(proof.read_text())
        change(record)
        forged = tmp_path / "forged.json"
        forged.write_text(json.dumps(record))
        (line,) = checked(page, forged)
        assert reason in line
        assert page.get_attribute("#verdict", "class") in {"rejected", "not checked"}

    @pytest.mark.parametrize("address", ["extra", "npm"], indirect=True)
    def test_drops_a_file_that_is_no_certificate(self, opened):
        page, _, _ = opened
        page.evaluate(
            "const data = new DataTransfer();"
            "data.items.add(new File(['[]'], 'other.json'));"
            "document.dispatchEvent(new DragEvent('drop', {dataTransfer: data}))"
        )
        page.wait_for_selector("#verdict:not([hidden])", timeout=LONGEST)
        assert page.text_content("#verdict").startswith("rejected: an object is missing")
