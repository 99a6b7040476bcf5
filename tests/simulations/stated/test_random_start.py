"""Random starts of theory files: sampled numbers, rejected starts, and the seed in every tool."""

import json

import numpy as np
import pytest
import xarray

from simulations.cli import main
from simulations.falsify import falsify
from simulations.reproduction.claim import Context
from simulations.stated import conjectures
from simulations.stated.full import FullModel
from simulations.stated.law import initial_values
from simulations.stated.report import claims_of
from simulations.stated.system import UserTheorySystem
from simulations.stated.user_theory import load_theory
from symbolic.theory import TheoryError
from tests.closeness import close, within

#: W = a on the diagonal and b elsewhere; each entry decays as exp(-t).
DECAY = """\
n = Size("n", "tokens", least=3)
(s,) = constants(s="real")
token = Exchangeable("token", n)
W = Tensor("W", (token, token), start={"diagonal": normal(s / n), "other token": normal(2)})
v = Tensor("v", start=0.5)
THEORY = Theory(
    "decay", "this test", sizes=(n,), parameters=(W, v), names={"W[diagonal]": "a",
    "W[other token]": "b"}, defaults={"n": 4, "s": 1, "horizon": 2},
    loss=lambda W, v: 0.5 * ((W["i", "j"] ** 2).sum("i").sum("j") + v**2),
    claims=["a <= 0"],
)
"""
FLIPS = """\
d = Size("d", least=2)
x = Signed("coordinate", d)
W = Tensor("W", (x, x){W})
v = Tensor("v", x{v})
u = Tensor("u", start={u})
{MORE}
THEORY = Theory("flips", "none", sizes=(d,), parameters=(W, v, u), loss=lambda W, v, u:
    (W["i", "j"] ** 2).sum("i").sum("j") + (v["i"] ** 2).sum("i") + u**2)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("theory") / "decay.py"
    file.write_text(DECAY)
    return file


def test_each_order_parameter_has_one_number_times_its_scale(path):
    theory = load_theory(path).statement
    starts = np.array(
        [list(initial_values(theory, {"n": 4, "s": 3.0}, seed).values()) for seed in range(400)]
    )
    numbers = starts[:, :2] / [3.0 / 4.0, 2.0]
    within(numbers.mean(axis=0), 0.0, 4.0 / 20.0)  # four standard errors
    within(np.cov(numbers.T), np.eye(2), 4.0 * 2.0**0.5 / 20.0)
    assert np.all(starts[:, 2] == 0.5)
    other = list(initial_values(theory, {"n": 9, "s": 0.1}, 7).values())
    close(np.array(other[:2]) / [0.1 / 9, 2.0], numbers[7], rel=1e-14)


def test_start_of_the_full_model_is_symmetric(path):
    """All entries of an orbit have one value, unlike independent entries."""
    theory = load_theory(path).statement
    values = theory.checked({"n": 4, "s": 1.0})
    start = initial_values(theory, values, 3)
    tensors = FullModel(theory, values).embed(start)
    assert set(np.diag(tensors["W"]).tolist()) == {start["a"]}
    assert set(tensors["W"][~np.eye(4, dtype=bool)].tolist()) == {start["b"]}
    assert load_theory(path).check().agrees


def test_run_with_a_seed(path, capsys):
    def run(*words):
        assert main(["run", "--theory", str(path), "--json", *words]) == 0
        return json.loads(capsys.readouterr().out)

    first, again, other = run(), run("--seed", "0"), run("--seed", "1")
    assert first["problem"]["start"] == again["problem"]["start"] != other["problem"]["start"]
    assert other["problem"]["start"]["v"] == 0.5
    assert "--seed 1 " in other["command"]
    assert run(*other["command"].split()[4:])["final"] == other["final"]
    close(other["final"]["b"], other["initial"]["b"] * np.exp(-2.0), rel=1e-6)
    chosen = run("--seed", "1", "--a0", "0.25")
    assert chosen["problem"]["start"] == other["problem"]["start"] | {"a": 0.25}
    assert main(["run", "--theory", str(path), "--seed", "-1"]) == 2
    assert "seed = -1 is not allowed" in capsys.readouterr().err
    assert main(["run", "--theory", str(path), "--s", "-1"]) == 2
    assert "normal(s/n) is not allowed at these values" in capsys.readouterr().err


def test_risk_with_a_seed(path):
    system, theory = UserTheorySystem(path), load_theory(path)
    for seed in (0, 5):
        start = system.build({"seed": seed}).problem.start
        assert theory.risk(seed=seed).problem.start == start


@pytest.mark.slow
def test_sweep_over_seeds(path, tmp_path, capsys):
    config, folder = tmp_path / "grid.toml", tmp_path / "sweep"
    config.write_text("[grid]\nseed = [0, 1, 2]\ns = [1.0, 2.0]\n")
    words = ["sweep", str(config), "--out", str(folder), "--workers", "1"]
    assert main([*words, "--theory", str(path)]) == 0
    assert main(["map", str(folder), "--quantity", "a"]) == 0
    with xarray.open_dataset(folder / "maps" / "a.nc") as data:
        values = data["value"].values
    close(values[:, 1], 2.0 * values[:, 0], rel=1e-6)
    assert len(set(values[:, 0].tolist())) == 3
    capsys.readouterr()


def test_falsify_over_seeds(path):
    """a has the sign of its start, which is positive for about half of the seeds."""
    system = UserTheorySystem(path)
    report = falsify("a <= 0", system=system, budget=30, horizon=1.0)
    assert report.falsified
    seed = report.counterexample.case.values["seed"]
    assert system.build({"seed": seed}).problem.start["a"] > 0.0
    assert f"--seed {seed} " in report.command
    fixed = falsify("seed == 3", system=system, budget=30, most=5, fixed={"seed": 3}, horizon=1.0)
    assert not fixed.falsified
    assert fixed.tried > 0


def test_claim_is_checked_at_several_starts(path, monkeypatch):
    monkeypatch.setattr(conjectures, "QUICK_PROBLEMS", 3)
    _, claim = claims_of(UserTheorySystem(path))
    result = claim.run(Context(quick=True))
    runs = result.tables["runs"].data
    assert set(runs.index.get_level_values("start")) == set(range(5))
    assert {"holds", "violated"} == set(runs.result)  # it depends on the seed
    assert result.verdict == "fails"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"v": ", start=normal(1)"},
         "start = normal(1) of v is not allowed: sign changes of coordinate keep these entries"),
        ({"W": ", start={'other coordinate': normal(1)}"},
         "W starts on 'other coordinate', which is no orbit: there are diagonal; sign changes of "
         "coordinate keep all other entries at 0"),
        ({"W": ", start={'diagonal': normal(1)}", "MORE": "W.fix('diagonal', 1)"},
         "start = normal(1) of W on 'diagonal' is not allowed: the file fixes these entries"),
        ({"u": "normal(0)"}, "normal(0) is not allowed: the standard deviation must be a positive"),
        ({"u": "normal('1')"}, "normal('1') is not allowed"),
        ({"u": "normal(float('nan'))"}, "normal(nan) is not allowed"),
        ({"u": "2 * normal(1)"}, "start of u = 2*normal(1) is not allowed: it must be a number"),
        ({"MORE": "W.fix('diagonal', normal(1))"}, "W on 'diagonal' = normal(1) is not allowed"),
    ],
)  # fmt: skip
def test_rejected_random_start(tmp_path, changes, sentence):
    path, text = tmp_path / "flips.py", FLIPS
    for name, default in {"W": "", "v": "", "u": "0", "MORE": ""}.items():
        text = text.replace(f"{{{name}}}", changes.get(name, default))
    path.write_text(text)
    with pytest.raises(TheoryError) as error:
        load_theory(path)
    assert sentence in str(error.value)


def test_seed_is_a_reserved_name_with_a_random_start_only(tmp_path):
    path = tmp_path / "decay.py"
    path.write_text(DECAY.replace('"b"', '"seed"'))
    with pytest.raises(TheoryError, match="seed is not allowed as a name"):
        UserTheorySystem(path)
    path.write_text(DECAY.replace('"b"', '"seed"').replace("normal(2)", "0").replace("normal", ""))
    assert UserTheorySystem(path).parameter("seed") is None
