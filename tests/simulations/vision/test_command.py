"""`patchdyn vision`: output, files and rejected options."""

import json
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import xarray

from simulations.cli import main
from simulations.commands.vision import ATTENTION_TYPES, DATA
from simulations.vision import data
from tests.closeness import close

pytestmark = pytest.mark.slow

needs_extra = pytest.mark.skipif(
    not all(find_spec(name) for name in ("jax", "sklearn", "skimage", "mlxtend")),
    reason="the extra 'vision' is not installed",
)
SMALL = "--steps 4 --width 8 --depth 1 --heads 2 --batch 32 --limit 300".split()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the JSON output of a small run, its dataset, and the path of the file."""
    out = tmp_path_factory.mktemp("vision") / "run.nc"
    printed = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.print", lambda text, file=None: file or printed.append(text))
        arguments = ["vision", "--data", "digits", "--seeds", "2", "--json", "--out", str(out)]
        assert main([*arguments, *SMALL]) == 0
    with xarray.open_dataset(out, engine="h5netcdf") as written:
        return json.loads("".join(printed)), written.load(), out


@needs_extra
def test_printed_measures_are_those_of_the_written_arrays(run):
    from dynamics.locality import attention_locality, encoding_locality

    printed, written, out = run
    assert (printed["grid"], printed["seeds"], printed["score"]) == ([4, 4], 2, "error")
    assert printed["images"]["train"] + printed["images"]["validation"] == 300
    assert list(printed["models"]) == ["position", "content"]
    for name, result in printed["models"].items():
        assert written[f"{name}_losses"].shape == (2, 4)
        close(result["error"], written[f"{name}_error"].to_numpy(), 1e-12)
        lift = attention_locality(written[f"{name}_attention"].to_numpy()).lift
        assert np.shape(result["attention"]["lift"]["value"]) == (2, 1, 2)
        close(result["attention"]["lift"]["z"], lift.z, 1e-9)
        for seed, table in enumerate(written[f"{name}_encodings"].to_numpy()):
            for by, measures in result["encodings"].items():
                close(measures["auc"]["p"][seed], encoding_locality(table, by).auc.p, 1e-12)
    assert [file.name for file in out.parent.iterdir()] == ["run.nc"]  # no checkpoint is left


@needs_extra
def test_text_output_has_scores_and_no_file_is_overwritten(run, capsys):
    small = [*SMALL[:1], "1", *SMALL[2:]]
    assert main(["vision", "--data", "digits", "--kind", "gram", "--validation", *small]) == 0
    output = capsys.readouterr().out
    assert "accuracy (validation)" in output
    assert "attention: lift (null)" in output
    before = run[2].read_bytes()
    assert main(["vision", "--data", "digits", "--out", str(run[2])]) == 2
    assert "overwrite it with --force" in capsys.readouterr().err
    assert run[2].read_bytes() == before


@needs_extra
def test_diverging_run_recommends_a_smaller_rate(run, monkeypatch, capsys):
    def diverging(*_, **__):
        raise RuntimeError("the loss is no longer finite at step 7")

    monkeypatch.setattr("simulations.vision.training.train", diverging)
    assert main(["vision", "--data", "digits", *SMALL]) == 1
    assert capsys.readouterr().err == (
        "patchdyn: the loss is no longer finite at step 7: choose a smaller --rate\n"
    )


@needs_extra
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--data digits --patch 3", "patch = 3 is not allowed: patch must be a divisor"),
        ("--data digits --patch 4", "patch = 4 is not allowed: patch must be at most 2"),
        ("--data digits --patch 0", "patch = 0 is not allowed"),
        ("--data digits --batch 2000", "batch = 2000 is not allowed: batch must be at most 1078"),
        ("--data digits --steps 0", "steps = 0 is not allowed"),
        ("--data digits --heads 5", "heads = 5 is not allowed: heads must be a divisor"),
        ("--data digits --seeds 0", "seeds = 0 is not allowed"),
        ("--data digits --limit 3", "limit = 3 is not allowed"),
        ("--data photographs --limit 30", "limit = 30 is not allowed: the number of crops"),
        ("--data digits --path here", "path = here is not allowed: digits comes with a package"),
        ("--data cifar10", "path is missing"),
        ("--data svhn --path /nowhere", "path = /nowhere is not allowed: nothing is there"),
        ("--data imagenet", "invalid choice: 'imagenet'"),
    ],
)
def test_bad_options_exit_with_one_sentence(arguments, sentence, capsys):
    assert main(["vision", *arguments.split()]) == 2
    output = capsys.readouterr().err
    assert sentence in output
    assert output.count("\n") == 1


def test_missing_extra_exits_with_the_install_command(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jax", None)
    assert main(["vision", "--data", "digits"]) == 2
    assert capsys.readouterr().err == (
        'patchdyn: vision needs jax, which is not installed: pip install "patchdyn[vision]"\n'
    )


def test_choices_of_data_are_the_data_sets():
    assert set(DATA) == set(data.NAMES)


@needs_extra
def test_choices_have_presets_and_models():
    from simulations.vision.comparison import PRESETS
    from simulations.vision.models import ARCHITECTURES

    assert set(PRESETS) == set(DATA)
    assert set(ATTENTION_TYPES) == set(ARCHITECTURES) - {"cnn"}
