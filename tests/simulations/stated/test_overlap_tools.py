"""The command-line tools on theories in overlaps."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest
import xarray

import patchdyn
from simulations.cli import main
from simulations.stated import examples
from simulations.stated.overlaps import UserOverlapTheory
from symbolic.overlaps import Directions, Euclidean, Normal, OverlapTheory, Size, Vectors
from symbolic.theory import Exchangeable
from tests.closeness import close, within

FOLDER = Path(examples.__file__).parent
COMMITTEE = str(FOLDER / "saad_solla.py")
START = "--Q0 0.3 --C0 0 --R0 0.1 --S0 0.05".split()


@pytest.mark.slow
def test_sgd_compares_the_flow_with_runs(tmp_path, capsys):
    """At d = 100 the flow with noise is near the mean of eight runs, which --out contains."""
    out = str(tmp_path / "run.nc")
    options = "--solver sgd --d 100 --learning-rate 0.01 --horizon 3 --runs 8".split()
    arguments = ["run", "--theory", COMMITTEE, *options, *START, "--out", out, "--json"]
    assert main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert 0.0 < result["outcomes"]["sgd_distance"] < 3.0
    assert "--runs 8" in result["command"]
    data = xarray.load_dataset(out)
    assert result["violations"] == {}  # the loss may rise
    at_end = abs(float(data.Q[-1]) - float(data.Q_mean[-1]))
    assert at_end < 3.0 * float(data.Q_deviation[-1])
    assert data.sgd_time[-1] == pytest.approx(3.0, rel=1e-12, abs=0)
    assert np.all(data.Q_deviation[1:] > 0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--solver gd --runs 8", "runs is not allowed with solver = gd"),
        ("--solver sgd --optimizer momentum", "optimizer is not allowed with solver = sgd"),
        ("--solver sgd --runs 1", "runs = 1 is not allowed"),
    ],
)
def test_options_of_other_solvers_are_rejected(options, message, capsys):
    """One sentence that names the solver to set."""
    assert main(["run", "--theory", COMMITTEE, *options.split()]) == 2
    assert message in capsys.readouterr().err


def test_sgd_on_a_sphere_is_rejected(capsys):
    """The mean of a normalized step has no closed form."""
    file = str(FOLDER / "single_location.py")
    assert main(["run", "--theory", file, "--solver", "sgd"]) == 2
    error = capsys.readouterr().err
    assert "one-pass SGD of k, v is not allowed" in error
    assert error.count("\n") == 1


def test_other_theories_have_no_sgd(capsys):
    """The solver exists for theories in overlaps only."""
    file = str(FOLDER / "look_up.py")
    assert main(["run", "--theory", file, "--solver", "sgd"]) == 2
    assert "sgd" in capsys.readouterr().err


@pytest.mark.slow
def test_sweep_and_map(tmp_path, capsys):
    """A sweep over two constants has a map of each final overlap."""
    config, out = tmp_path / "sweep.toml", str(tmp_path / "sweep")
    config.write_text("[fixed]\nR0 = 0.2\n[grid]\nS0 = [0.05, 0.1]\nC0 = [0.0, 0.1]\n"
                      "[run]\nhorizon = 1\n")  # fmt: skip
    assert main(["sweep", str(config), "--theory", COMMITTEE, "--out", out, "--workers", "1"]) == 0
    assert main(["map", out, "--theory", COMMITTEE]) == 0
    data = xarray.load_dataset(tmp_path / "sweep" / "sweep.nc")
    assert np.isfinite(data.Q).all()
    assert float(np.ptp(data.S.values)) > 0.01
    written = {path.stem for path in (tmp_path / "sweep").rglob("*.png")}
    assert any("loss" in name for name in written)
    assert not any("sgd" in name for name in written)


def test_theory_prints_the_reduction_and_proves_digits(capsys):
    """Order parameters for all sizes, the check at given sizes, digits at start and end."""
    assert main(["theory", COMMITTEE]) == 0
    text = capsys.readouterr().out
    assert "K*(K - 1)/2 pairs, starts at 1/100 (J.J[other])" in text
    assert "agrees with descent on vectors" in text
    assert main(["theory", COMMITTEE, "--at", "K=2", "d=9", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["check"]["values"] == {"K": 2, "d": 9}
    assert result["agrees"] is True
    start, end = result["digits"]
    assert min(start["proved"].values()) >= 14
    assert 0 < min(end["proved"].values()) < min(start["proved"].values())
    assert end["bound"]["risk"] < 10.0 ** -end["proved"]["risk"]


@pytest.mark.slow
def test_falsify_finds_a_counterexample(capsys):
    """With R0 in a range R exceeds 0.3, a problem that exists; impossible overlaps are skipped."""
    arguments = ["falsify", "--theory", COMMITTEE, "R <= 0.3", "--budget", "3", "--json",
                 "--horizon", "3", "--fix", "K=2", "--range", "R0=0..0.6"]  # fmt: skip
    assert main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["outcome"] == "falsified"
    assert result["counterexample"]["violation"] > 0.01


def test_export_prints_the_loss_for_all_sizes(capsys):
    """The expectations with their laws as text and LaTeX."""
    assert main(["theory", COMMITTEE, "--export", "text"]) == 0
    text = capsys.readouterr().out
    assert "E[erf(y1)*erf(y2)], (y1, y2) ~ Normal([0, 0], [[1/2, R/2], [R/2, Q/2]])" in text
    assert "- E4*K*(K - 1)" in text
    assert main(["theory", COMMITTEE, "--export", "latex"]) == 0
    assert r"\mathbb{E}" in capsys.readouterr().out


def rectified():
    """Return a theory with relu, step and a power, whose means are closed."""
    d, K = Size("d"), Size("K")
    space, unit = Euclidean("coordinate", d), Exchangeable("unit", K)
    J, u, x = Vectors("J", (unit, space)), Directions("u", space), Normal("x", space)

    def loss(J, u, x):
        return ((J["k"] @ x).relu().sum("k") - (u @ x).step() - (u @ x) ** 2) ** 2

    return UserOverlapTheory(
        OverlapTheory(
            "rectified", "test", sizes=(d, K), parameters=(J,), directions=(u,), data=(x,),
            loss=loss, start={"J.J[same]": 0.6, "J.J[other]": 0.2, "J.u": 0.3}, defaults={"d": 9},
        )
    )  # fmt: skip


def three_functions():
    """Return a theory whose mean is an estimate."""
    space = Euclidean("coordinate", Size("d"))
    w, u, x = Vectors("w", space), Directions("u", space), Normal("x", space)
    return UserOverlapTheory(
        OverlapTheory(
            "three functions", "test", sizes=(Size("d"),), parameters=(w,), directions=(u,),
            data=(x,), start={"w.w": 0.6, "w.u": 0.3}, defaults={"d": 9},
            loss=lambda w, u, x: (w @ x).sigmoid() * (u @ x).tanh() * (w @ x + u @ x).erf(),
        )
    )  # fmt: skip


@pytest.fixture
def jax():
    """Return JAX, and reset the precision after the test, because exported modules set it."""
    module = pytest.importorskip("jax")
    before = module.config.jax_enable_x64
    yield module
    module.config.update("jax_enable_x64", before)


#: Theories and the sizes of the comparison.
EXPORTED = {
    "saad_solla": {"K": 4},
    "single_location": {},
    "semantic_positional": {},
    "rectified": {"K": 3},
    "three functions": {},
}


@pytest.mark.parametrize("form", ["python", pytest.param("jax", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=pytest.mark.slow if x == "rectified" else ()) for x in EXPORTED],
)
def test_exported_modules_are_the_risk(name, form, request):
    """Loss, gradient and exact step of the module, at other sizes than the defaults."""
    if form == "jax":
        request.getfixturevalue("jax")
    made = {"rectified": rectified, "three functions": three_functions}
    theory = made[name]() if name in made else patchdyn.load_theory(FOLDER / f"{name}.py")
    values = EXPORTED[name]
    namespace: dict = {}
    exec(theory.export(form), namespace)
    risk = theory.risk(**values)
    state = 0.9 * risk.problem.initial_state + 0.02
    loss, gradient = risk.loss(state), risk.gradient(state)
    close(float(namespace["loss"](state, **values)), loss, rel=1e-12)
    within(np.asarray(namespace["gradient"](state, **values)), gradient,
           1e-11 * np.abs(gradient).max())  # fmt: skip
    moved = np.asarray(namespace["step"](state, 0.2, **values))
    within(moved, risk.step(state, 0.2), 1e-11)
    assert np.abs(moved - state + 0.2 * gradient).max() > 1e-5 or name == "three functions"


def test_exported_modules_import_only_their_arrays(capsys):
    """The command prints a module that imports NumPy, or JAX."""
    for form, allowed in (("python", {"math", "numpy"}), ("jax", {"math", "jax", "jax.numpy"})):
        assert main(["theory", COMMITTEE, "--export", form]) == 0
        nodes = ast.walk(ast.parse(capsys.readouterr().out))
        imported = {x.name for node in nodes if isinstance(node, ast.Import) for x in node.names}
        assert imported == allowed


@pytest.mark.slow
@pytest.mark.traced
def test_a_report_states_the_check_and_the_digits(tmp_path, capsys):
    """The verdict, the equations and the digits of a run are on the page."""
    folder = tmp_path / "report"
    assert main(["theory", COMMITTEE, "--report", str(folder)]) == 0
    assert "holds" in capsys.readouterr().out
    page = (folder / "report.html").read_text()
    assert "digits proved in ball arithmetic" in page
    assert "<math" in page
    tables = [path.read_text() for path in folder.rglob("*.csv")]
    assert any("risk" in text for text in tables)
