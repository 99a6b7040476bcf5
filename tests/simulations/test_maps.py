"""Regime maps: what each cell shows, boundaries known beforehand, and the run behind a point."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import xarray
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

import dynamics
from simulations import maps, theories
from simulations.cli import build_parser, main
from simulations.figures import regime_map
from simulations.files import write_record
from simulations.positional import maps as positional_maps
from simulations.sweep.cells import empty_row
from simulations.sweep.config import parse, read
from simulations.sweep.storage import labelled, write_result
from tests.closeness import close

FLOW = """\
[fixed]
D = 16
[grid]
"qD/C^2" = { from = 0.02, to = 0.2, number = 3, scale = "log" }
C = [2, 3, 4, 8]
"""
DESCENT = """\
[fixed]
D = 16
C = 2
[grid]
learning_rate = { from = 0.01, to = 1.0, number = 3, scale = "log" }
qD = [1, 2]
[run]
solver = "gd"
"""


def row(**outcomes):
    row = empty_row(theories.load("positional"), "completed", "the run reached its end")
    values = {"T1": 1e3, "association": 1.0, "worst gamma >= rho": 0.0, "rise": 1.0, "loss": 0.1,
             "test_error": 0.02, "best_test_error": 0.01, "initial_alpha": 0.1,
             "alpha_star": 0.2, "stable_learning_rate": 0.1}  # fmt: skip
    return row | values | outcomes


def made_up(folder, text, rows):
    """Store a sweep with these rows, invalid cells apart."""
    config = parse(text)
    full = []
    for values, row in zip(config, rows, strict=True):
        invalid = 16 % values["C"] != 0
        full.append(
            empty_row(theories.load("positional"), "invalid", "C = 3 is not") if invalid else row
        )
    write_result(folder, labelled(config, full, {"code": "0"}))
    return folder


@pytest.fixture(scope="module")
def flow(tmp_path_factory):
    rows = [row(T1=10.0 ** (1 + n // 4)) for n in range(12)]
    rows[0] = row(association=0.0)
    rows[2] = row(T1=math.nan)
    rows[3] |= {"worst gamma >= rho": 0.5, "rise": 1.25, "alpha_star": 0.05}
    return made_up(tmp_path_factory.mktemp("flow"), FLOW, rows)


@pytest.fixture(scope="module")
def descent(tmp_path_factory):
    rows = [row() for _ in range(6)]
    rows[4] |= {"status": "diverged"}
    return made_up(tmp_path_factory.mktemp("descent"), DESCENT, rows)


def data_of(folder, name):
    sweep = maps.read(folder)
    by_map_name = {regime_map.name: regime_map for regime_map in maps.maps_of(sweep)}
    return maps.map_data(sweep, by_map_name[name], {})


class TestCells:
    def test_association_needs_T1_and_the_end(self, flow):
        data = data_of(flow, "association")
        assert data["status"].values[0].tolist() == ["none", "invalid", "none", "value"]
        assert data["value"].values[:, 3].tolist() == [10.0, 100.0, 1000.0]

    @pytest.mark.slow
    def test_violation_and_rise_where_there_is_one(self, flow):
        for name, value in (("gamma-rho", 0.5), ("second-rise", 0.25)):
            data = data_of(flow, name)
            close(data["value"].values[0, 3], value, rel=1e-12)
            assert (data["status"] == "value").sum() == 1

    def test_failed_cells_have_no_value(self, descent):
        data = data_of(descent, "stability")
        assert data["status"].values[2, 0] == "diverged"
        close(data["value"].values[:2, 0], [0.1, 1.0], rel=1e-12)


class TestBoundaries:
    def test_start_against_the_quasi_steady_value(self, flow):
        field = data_of(flow, "second-rise")["overlay alpha(0)"].values
        close(field[0, 3], math.log(2.0), rel=1e-12)
        close(field[1, 3], -math.log(2.0), rel=1e-12)

    def test_stable_learning_rate_changes_sign_there(self, descent):
        field = data_of(descent, "stability")["overlay learning rate"].values
        assert np.sign(np.round(field[:, 0], 9)).tolist() == [-1.0, 0.0, 1.0]

    @pytest.mark.slow
    @pytest.mark.traced
    def test_leaving_the_line_is_that_of_the_exact_drift(self, flow):
        from simulations.positional.symmetric_line import line_drift

        field = data_of(flow, "gamma-rho")["overlay leaves the line"].values
        assert np.isnan(field[0, 1])  # an invalid cell
        sweep = maps.read(flow)
        for cell, index in ((2, (0, 2)), (8, (2, 0))):
            problem = sweep.case(cell).problem
            drifts = [line_drift(problem, a).total for a in (problem.initial_state.alpha, 0.2)]
            assert np.sign(field[index]) == np.sign(min(drifts))

    def test_two_sets_never_leave_downwards(self, flow):
        assert (data_of(flow, "gamma-rho")["overlay leaves the line"].values[:, 3] > 0.0).all()


@pytest.mark.slow
class TestDrawing:
    @pytest.mark.parametrize("solver", ["flow", "descent"])
    def test_every_map_is_an_image_with_its_data(self, solver, request, capsys):
        folder = request.getfixturevalue(solver)
        assert main(["map", str(folder)]) == 0
        pictures = [Path(line) for line in capsys.readouterr().out.split()]
        assert len(pictures) == len(positional_maps.MAPS) + (solver == "descent")
        for picture in pictures:
            assert picture.read_bytes().startswith(b"\x89PNG")
            with xarray.open_dataset(picture.with_suffix(".nc"), engine="h5netcdf") as data:
                assert json.loads(data.attrs["configuration"])["system"] == "positional"
                again = regime_map.draw(data.load(), Figure())
            assert again["handles"] or "mesh" in again

    def test_legend_names_every_kind_of_cell(self, descent):
        artists = regime_map.draw(data_of(descent, "stability"), Figure())
        labels = [handle.get_label() for handle in artists["handles"]]
        assert "diverged (1 cell)" in labels
        assert positional_maps.RATE.label in labels

    def test_any_outcome(self, flow, tmp_path, capsys):
        command = ["map", str(flow), "--quantity", "T1", "--quantity", "rise"]
        assert main([*command, "--out", str(tmp_path / "some")]) == 0
        assert {path.name for path in (tmp_path / "some").glob("*.png")} == {"T1.png", "rise.png"}

    def test_edges_lie_half_way_on_the_scale(self):
        close(regime_map.cell_edges(np.array([1.0, 4.0]), True), [0.5, 2.0, 8.0], rel=1e-12)
        assert regime_map.cell_edges(np.array([1.0, 2.0]), False).tolist() == [0.5, 1.5, 2.5]


class TestAxes:
    """A linear axis is drawn linear, whatever its range."""

    @pytest.mark.parametrize(
        ("values", "scale"),
        [
            ([0.5, 2.0, 3.5, 5.0], "linear"),
            ([1, 3, 6, 8, 10], "linear"),
            ([0.02, 0.2, 2.0], "log"),
            ([1, 2, 4, 8], "log"),
            ([1, 2, 20], "log"),
            ([1, 2, 7], "linear"),
            ([0.0, 1.0, 20.0], "linear"),
        ],
    )
    def test_scale_follows_the_spacing(self, values, scale):
        cells = np.ones((1, len(values)))
        data = xarray.Dataset({"value": (("y", "x"), cells)}, {"x": values, "y": [1.0]})
        assert regime_map.axis_scale(data, "x") == scale

    @pytest.mark.slow
    @pytest.mark.traced
    def test_scale_that_is_requested(self, flow):
        sweep = maps.read(flow)
        chosen = maps.outcome_map(sweep, "T1")
        data = maps.map_data(sweep, chosen, {}, {"C": "log", "value": "linear"})
        figure = Figure()
        artists = regime_map.draw(data, figure)
        assert [figure.axes[0].get_xscale(), figure.axes[0].get_yscale()] == ["log", "log"]
        assert type(artists["mesh"].norm) is Normalize
        assert type(regime_map.draw(data_of(flow, "risk"), Figure())["mesh"].norm) is LogNorm

    @pytest.mark.slow
    @pytest.mark.traced
    def test_log_scale_needs_positive_values(self, tmp_path):
        text = FLOW.replace("C = [2, 3, 4, 8]", "gamma0 = [0, 1]")
        config = parse(text)
        write_result(tmp_path, labelled(config, [row()] * config.size, {"code": "0"}))
        sweep = maps.read(tmp_path)
        with pytest.raises(dynamics.ParameterError, match="gamma0 = log is not allowed"):
            maps.map_data(sweep, maps.outcome_map(sweep, "T1"), {}, {"gamma0": "log"})

    def test_axis_of_texts(self, flow):
        data = data_of(flow, "risk")
        data = data.assign_coords(C=["gd", "adam", "sign", "momentum"])
        figure = Figure()
        regime_map.draw(data, figure)
        labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
        assert labels == ["gd", "adam", "sign", "momentum"]

    def test_title_names_the_fixed_parameters(self, flow):
        figure = Figure()
        regime_map.draw(data_of(flow, "risk"), figure)
        assert figure.axes[0].get_title() == "Final population risk\n$D$ = 16"

    def test_large_numbers_of_the_title_are_powers_of_ten(self, flow):
        data, figure = data_of(flow, "risk"), Figure()
        data.attrs["fixed"] = json.dumps({"P": 1e6, "horizon": 2.5e7, "p": 0.25, "kind": "1e+06"})
        regime_map.draw(data, figure)
        _, fixed = figure.axes[0].get_title().split("\n", 1)
        numbers = {"$10^{6}$", r"$2.5\times10^{7}$", "0.25", "1e+06"}
        assert {part.split(" = ")[1] for part in re.split(r",\s", fixed)} == numbers

    @pytest.mark.slow
    def test_names_keep_their_case(self, flow):
        title = maps.outcome_map(maps.read(flow), "T1").title
        assert title == "End of Event II: gamma exceeds the largest |rho| of the run"
        title = maps.outcome_map(maps.read(flow), "association").title
        assert "Top_C of every row of A" in title


class TestImage:
    @pytest.mark.slow
    @pytest.mark.traced
    def test_one_map_in_a_file(self, flow, tmp_path, capsys):
        style, out = tmp_path / "small", tmp_path / "T1.pdf"
        style.write_text("font.size: 7  # points\n\naxes.labelsize: 5\n")
        command = ["map", str(flow), "--quantity", "T1", "--out", str(out), "--size", "8.5x7"]
        assert main([*command, "--style", str(style)]) == 0
        assert capsys.readouterr().out == f"{out}\n"
        first = out.read_bytes()
        assert first.startswith(b"%PDF")
        assert re.search(rb"MediaBox \[ ?0 0 240\.9\d+ 198\.4\d+", first)  # 72 points in 2.54 cm
        assert {path.name for path in tmp_path.glob("T1*")} == {"T1.pdf"}
        assert main([*command, "--style", str(style)]) == 2
        assert "overwrite it with --force" in capsys.readouterr().err
        assert main([*command, "--style", str(style), "--force"]) == 0
        assert out.read_bytes() == first
        assert main([*command, "--force"]) == 0
        assert out.read_bytes() != first

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["--out", "x.pdf"], "--out x.pdf is not allowed for 6 maps"),
            (["--format", "png", "--out", "x.pdf", "--quantity", "T1"], "x.pdf ends in .pdf"),
            (["--dpi", "5"], "dpi = 5 is not allowed: it must be in 20..2400"),
            (["--size", "8.5"], "size = 8.5 is not allowed: it must be WIDTHxHEIGHT in cm"),
            (["--size", "nanx7"], "size = nanx7 is not allowed"),
            (["--scale", "C=cubic"], "--scale C=cubic is not allowed: it must be log or linear"),
            (["--scale", "D=log"], "--scale D is not allowed: choose among qD/C^2, C, value"),
            (["--style", "{missing}"], "is not allowed: cannot read it"),
            (["--style", "{cycle}"], "line 2 must be a Matplotlib setting of the look"),
            (["--style", "{words}"], "line 1: Key font.size: Could not convert"),
        ],
    )
    def test_bad_options(self, flow, tmp_path, capsys, arguments, sentence):
        files = {name: tmp_path / name for name in ("missing", "cycle", "words")}
        files["cycle"].write_text("font.size: 7\naxes.prop_cycle: cycler('color', 'rgb')\n")
        files["words"].write_text("font.size: small one\n")
        arguments = [argument.format(**files) for argument in arguments]
        assert main(["map", str(flow), *arguments]) == 2
        assert sentence in (error := capsys.readouterr().err)
        assert error.count("\n") == 1
        assert not Path("x.pdf").exists()


class TestPoint:
    def test_nearest_cell_and_its_command(self, flow, capsys):
        assert main(["map", str(flow), "--at", "qD/C^2=0.19", "--at", "C=7", "--json"]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["at"] == {"qD/C^2": 0.2, "C": 8}
        assert result["outcomes"]["T1"] == 1000.0
        words = result["command"].split()[1:]
        args = vars(build_parser().parse_args(words))
        assert [args[f"parameter {name}"] for name in ("D", "C", "q")] == [16, 8, 0.8]

    def test_text(self, flow, capsys):
        assert main(["map", str(flow), "--at", "qD/C^2=1/10", "--at", "C=3"]) == 0
        output = capsys.readouterr().out
        assert "status   invalid: C = 3 is not" in output
        assert "this cell cannot be run" in output

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["--at", "nu=1"], "nu is not an axis of this sweep: choose among qD/C^2, C"),
            (["--at", "C"], "it must be NAME=VALUE"),
            (["--at", "C=two"], "C = 'two' is not allowed: C must be a real number"),
            (["--at", "C=2"], "a map needs two axes and this sweep leaves 1"),
            (["--json"], "--json is not allowed without --at"),
            (["--quantity", "speed"], "speed is not an outcome: choose among T0, T1"),
        ],
    )
    def test_bad_input(self, flow, capsys, arguments, sentence):
        assert main(["map", str(flow), *arguments]) == 2
        assert sentence in (error := capsys.readouterr().err)
        assert error.count("\n") == 1


class TestFolder:
    def test_missing_unfinished_and_damaged_sweeps(self, tmp_path, capsys):
        assert main(["map", str(tmp_path)]) == 2
        assert "contains no sweep" in capsys.readouterr().err
        write_record(tmp_path / "sweep.json", {})
        assert main(["map", str(tmp_path)]) == 2
        assert (
            "is not finished: resume it with the same `patchdyn sweep`" in capsys.readouterr().err
        )
        write_result(tmp_path, labelled(parse(FLOW), [row()] * 12, {}))
        (tmp_path / "sweep.nc").write_bytes(b"garbage")
        assert main(["map", str(tmp_path)]) == 2
        assert "cannot read" in capsys.readouterr().err

    def test_a_cell_of_a_list_is_printed(self, tmp_path, capsys):
        config = parse("[[list]]\nC = 2\n[[list]]\nC = 4\n")
        write_result(tmp_path, labelled(config, [row(), row(T1=5.0)], {}))
        assert main(["map", str(tmp_path), "--at", "cell=1"]) == 0
        assert "--C 4" in capsys.readouterr().out
        assert main(["map", str(tmp_path)]) == 2
        assert "a list of cells cannot be mapped" in capsys.readouterr().err


EXAMPLES = Path(__file__).parents[2] / "simulations" / "sweep" / "examples"


@pytest.mark.parametrize("name", ["density-nu", "beta-density", "sizes", "learning-rate"])
def test_example_configurations_can_be_read(name):
    config = read(EXAMPLES / f"{name}.toml")
    assert len(config.axes) == 2
    assert config.size < 300
