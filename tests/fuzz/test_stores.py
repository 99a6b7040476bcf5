"""Randomly damaged result files: the stored results are read, or one sentence is raised."""

import json
import shutil

import pytest

from simulations import maps
from simulations.cli import main
from simulations.files import StoreError
from simulations.sweep.compute import open_store
from simulations.sweep.config import read
from tests.simulations.fakes import claim, figure, run

CONFIG = "[fixed]\nD = 8\nC = 2\n[grid]\nnu = [0.1, 0.2]\nbeta = [1, 2]\n[run]\nhorizon = 1\n"


def _damage(rng, content):
    """Return bytes that are truncated, have a gap or flipped bits, or are replaced."""
    content = bytearray(content)
    damage = rng.randrange(6)
    if damage == 0 or len(content) < 3:
        return b"" if rng.random() < 0.5 else bytes(rng.randrange(256) for _ in range(50))
    if damage == 1:
        return bytes(content[: rng.randrange(len(content))])
    if damage == 2:
        start = rng.randrange(len(content))
        content[start : start + rng.randint(1, 100)] = b""
        return bytes(content)
    if damage == 3:
        return rng.choice((b"null", b"[]", b"{}", b'"x"', b"[" * 2000, b'{"format": 2}', b"7"))
    for _ in range(rng.choice((1, 1, 2, 20))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


def test_reports(cases, in_time, tmp_path):
    claims = [claim("one", figures=[figure()]), claim("two")]
    whole = tmp_path / "whole"
    run(whole, claims)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    expected = [
        {key: entry[key] for key in ("claim", "verdict", "measured", "summary")}
        for entry in json.loads((whole / "report.json").read_text())
    ]
    for rng in cases():
        path = tmp_path / "damaged"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        for file in rng.sample(files, rng.choice((1, 1, 2))):
            (path / file).write_bytes(_damage(rng, (whole / file).read_bytes()))
            print(file)
        with in_time():
            try:
                run(path, claims, force=rng.random() < 0.3)
            except StoreError as error:
                assert "\n" not in str(error)
                continue
        result = json.loads((path / "report.json").read_text())
        assert [{key: entry[key] for key in expected[0]} for entry in result] == expected


@pytest.mark.slow
def test_sweeps(cases, in_time, tmp_path, capsys, compiled_before):
    configuration, whole = tmp_path / "c.toml", tmp_path / "whole"
    configuration.write_text(CONFIG)
    assert main(["sweep", str(configuration), "--out", str(whole), "--workers", "1"]) == 0
    expected = maps.read(whole).data
    with open_store(whole, read(configuration)) as store:
        rows_of = {block: repr(rows) for block, rows in store.finished(pytest.fail)}  # nan: repr
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    for rng in cases():
        path = tmp_path / "damaged"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        file = rng.choice(files)
        (path / file).write_bytes(_damage(rng, (whole / file).read_bytes()))
        print(file)
        with in_time():
            try:
                assert maps.read(path).data.identical(expected)
            except StoreError as error:
                assert "\n" not in str(error)
            try:
                with open_store(path, read(configuration)) as store:
                    warnings = []
                    for block, rows in store.finished(warnings.append):
                        assert repr(rows) == rows_of[block]
                    assert all("\n" not in warning for warning in warnings)
            except StoreError as error:
                assert "\n" not in str(error)
