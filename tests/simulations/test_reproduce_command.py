"""`patchdyn reproduce`: folders, seeds, processes, errors and interruption."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from simulations.cli import main
from tests.simulations.fakes import claim, fake_registry

#: Claims that are defined in a test cannot be sent to other processes.
INLINE = ("--workers", "1")


class TestReproduce:
    def test_report_of_all_claims(self, registry, tmp_path, capsys):
        assert main(["reproduce", *INLINE, "--out", str(tmp_path / "r")]) == 0
        output = capsys.readouterr()
        assert output.out == f"3 holds\nreport: {tmp_path / 'r' / 'report.html'}\n"
        report = json.loads((tmp_path / "r" / "report.json").read_text())
        assert [entry["claim"] for entry in report] == ["one", "two", "three"]
        assert not report[0]["quick"]

    def test_single_file_and_browser(self, registry, tmp_path, monkeypatch, capsys):
        shown = []
        monkeypatch.setattr("webbrowser.open", lambda address: shown.append(address) or True)
        arguments = ["reproduce", *INLINE, "--out", str(tmp_path / "a b")]
        assert main(arguments) == 0
        page = tmp_path / "a b" / "report.html"
        assert not shown
        assert 'src="figures/line.png"' in page.read_text(encoding="utf-8")
        assert main([*arguments, "--single-file", "--open"]) == 0
        assert shown == [page.as_uri()]
        assert "figures/line.png" not in page.read_text(encoding="utf-8").replace(
            "Files: figures/line.png", ""
        )
        assert [c.measure.calls for c in registry] == [1, 1, 1]
        monkeypatch.setattr("webbrowser.open", lambda address: False)
        assert main([*arguments, "--open"]) == 0
        assert f"cannot open a browser: open {page} yourself" in capsys.readouterr().err

    @pytest.mark.parametrize("workers", ["0", "-1", "1.5"])
    def test_workers_must_be_a_positive_integer(self, workers, capsys):
        assert main(["reproduce", "--workers", workers]) == 2
        assert f"--workers {workers} is not allowed" in capsys.readouterr().err

    @pytest.mark.parametrize("seed", ["-1", "1.5", "1000001"])
    def test_seed_must_be_an_integer_in_its_range(self, seed, capsys):
        assert main(["reproduce", f"--seed={seed}"]) == 2
        assert f"--seed {seed} is not allowed: it must be" in capsys.readouterr().err

    def test_seed_is_passed_to_claims_and_stored(self, registry, tmp_path, capsys):
        arguments = ["reproduce", *INLINE, "--out", str(tmp_path)]
        assert main([*arguments, "--seed", "3"]) == 0
        assert [claim.measure.context.seed for claim in registry] == [3, 3, 3]
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert "seed 3 instead of 0" in page
        assert "patchdyn reproduce --seed 3 --only one" in page
        assert main([*arguments, "--seed", "3"]) == 0  # resumes
        assert [claim.measure.calls for claim in registry] == [1, 1, 1]
        capsys.readouterr()
        assert main(arguments) == 2
        assert "another seed (3, now 0)" in capsys.readouterr().err

    @pytest.mark.slow
    def test_seed_is_passed_to_worker_processes(self, tmp_path, monkeypatch):
        registry = fake_registry(claim("one"), claim("two"), claim("three"))
        monkeypatch.setitem(sys.modules, "simulations.reproduction.registry", registry)
        assert main(["reproduce", "--workers", "2", "--seed", "3", "--out", str(tmp_path)]) == 0
        report = json.loads((tmp_path / "report.json").read_text())
        assert [entry["seed"] for entry in report] == [3, 3, 3]
        assert {entry["provenance"]["seed"] for entry in report} == {"3"}

    def test_default_folder_is_report(self, registry, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert main(["reproduce", *INLINE, "--quick"]) == 0
        assert (tmp_path / "report" / "report.html").is_file()

    def test_chosen_claims_run_in_the_order_of_the_papers(self, registry, tmp_path):
        chosen = ["--only", "three", "--only", "one"]
        assert main(["reproduce", *INLINE, *chosen, "--out", str(tmp_path)]) == 0
        assert [c.measure.calls for c in registry] == [1, 0, 1]
        report = json.loads((tmp_path / "report.json").read_text())
        assert [entry["claim"] for entry in report] == ["one", "three"]

    def test_error_in_a_claim(self, registry, tmp_path, capsys):
        registry[1].measure.error = ValueError("no root")
        assert main(["reproduce", *INLINE, "--out", str(tmp_path)]) == 1
        assert "patchdyn: could not be run: two" in capsys.readouterr().err
        assert registry[2].measure.calls == 1

    def test_ctrl_c(self, registry, tmp_path, capsys):
        registry[1].measure.error = KeyboardInterrupt()
        assert main(["reproduce", *INLINE, "--out", str(tmp_path)]) == 130
        output = capsys.readouterr()
        assert "not run yet: two, three" in output.out
        assert "interrupted; the same command resumes" in output.err

    def test_other_mode_is_rejected(self, registry, tmp_path, capsys):
        main(["reproduce", *INLINE, "--quick", "--out", str(tmp_path)])
        capsys.readouterr()
        assert main(["reproduce", *INLINE, "--out", str(tmp_path)]) == 2
        assert "contains a quick run while this one is full" in capsys.readouterr().err
        assert main(["reproduce", *INLINE, "--out", str(tmp_path), "--force"]) == 0

    def test_thorough_is_passed_to_claims(self, registry, tmp_path, capsys):
        assert main(["reproduce", *INLINE, "--thorough", "--out", str(tmp_path)]) == 0
        assert registry[0].measure.context.thorough
        assert json.loads((tmp_path / "report.json").read_text())[0]["thorough"]
        assert main(["reproduce", *INLINE, "--out", str(tmp_path)]) == 2
        assert "contains a thorough run while this one is full" in capsys.readouterr().err
        assert main(["reproduce", "--quick", "--thorough"]) == 2

    def test_unusable_folder(self, registry, tmp_path, capsys):
        (tmp_path / "file").write_text("")
        assert main(["reproduce", *INLINE, "--out", str(tmp_path / "file")]) == 2
        assert "cannot use" in capsys.readouterr().err

    def test_folder_without_permission(self, registry, tmp_path, capsys, monkeypatch):
        def denied(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("pathlib.Path.mkdir", denied)
        assert main(["reproduce", *INLINE, "--out", str(tmp_path / "r")]) == 2
        assert "Permission denied" in capsys.readouterr().err

    def test_full_disk(self, registry, tmp_path, capsys, monkeypatch):
        replace = os.replace

        def full(source, target):
            if "two" in str(target):
                raise OSError(28, "No space left on device")
            replace(source, target)

        monkeypatch.setattr(os, "replace", full)
        assert main(["reproduce", *INLINE, "--out", str(tmp_path)]) == 1
        error = capsys.readouterr().err
        assert "No space left on device; finished claims are stored" in error

    @pytest.mark.slow
    def test_sigint_of_a_process(self, tmp_path):
        """SIGINT while a claim runs: the finished claim is stored, the exit code is 130."""
        script = (
            "import sys, time\n"
            "from tests.simulations.fakes import claim, fake_registry\n"
            "first, slow = claim('first'), claim('slow')\n"
            "object.__setattr__(slow, 'run', lambda context: time.sleep(60))\n"
            "sys.modules['simulations.reproduction.registry'] = fake_registry(first, slow)\n"
            "from simulations.cli import main\n"
            f"sys.exit(main(['reproduce', '--workers', '1', '--out', {str(tmp_path / 'r')!r}]))\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", script],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        record = tmp_path / "r" / "claims" / "first.json"
        deadline = time.monotonic() + 300
        while process.stderr.readline().startswith("[2/2] slow") is False:
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=300)
        assert process.returncode == 130
        assert "the same command resumes" in error
        assert record.is_file()
        assert "Not run yet: slow." in (tmp_path / "r" / "report.html").read_text()
