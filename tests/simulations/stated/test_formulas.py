"""Observables and events of a theory file in every tool, with a run in closed form."""

import json
import math

import numpy as np
import pytest
import xarray

from dynamics.core.trajectory import Status
from simulations.cli import main
from simulations.explorer import fragments
from simulations.explorer.run_job import Task, run_data
from simulations.falsify import Conjecture, Result
from simulations.reproduction.claim import Context
from simulations.stated import conjectures
from simulations.stated.report import claims_of
from simulations.stated.system import UserTheorySystem
from tests.closeness import close, within

#: w = (1 - exp(-t)) / n: the gradient in each entry is w - 1/n.
MARK = """\
n = Size("n", "tokens", least=2)
token = Exchangeable("token", n)
mark = Choice("mark", token)
w = Tensor("w", token)
THEORY = Theory(
    "mark", "this test", sizes=(n,), parameters=(w,), data=Data(mark),
    loss=lambda w, mark: 0.5 * ((w["i"] - mark["i"]) ** 2).sum("i"),
    defaults={"n": 4, "horizon": 100},
    observables={"missing": "1/n - w", "share": "1 - n*missing", "ratio": "w/time"},
    events={EVENTS},
    claims=[{CLAIMS}],
)
"""
EVENTS = {
    "half": "share > 0.5",
    "narrow": "(time - 50)^2 < 1e-4",
    "lower": "loss <= at_start(loss) - 0.1",
    "at_once": "w >= w0",
    "never": "share > 1.5",
    "undefined": "log(w - 1) > 0",
    "either": "share > 0.75 or share > 0.5 and time > 1",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("theory") / "mark.py"
    file.write_text(MARK.replace("{EVENTS}", repr(EVENTS)).replace("{CLAIMS}", ""))
    return file


@pytest.fixture(scope="module")
def system(path):
    return UserTheorySystem(path)


def outcomes(system, records=80, **values):
    case = system.build(values)
    population = system.population(case)
    run = system.solve(case, records=records, population=population)
    return system.summarize(case, run, population)


@pytest.mark.slow
def test_events_are_located_between_the_records(system):
    """The risk is ((1 - 1/n) + n missing^2) / 2; it decreases by (1 - exp(-2t)) / (2n)."""
    expected = {
        "half": math.log(2.0),
        "narrow": 49.99,
        "lower": -0.5 * math.log(0.2),
        "at_once": 0.0,
        "either": 1.0,
    }
    for records in (2, 80):
        times = outcomes(system, records=records)
        for name, time in expected.items():
            within(times[name], time, 2e-6 * max(time, 1e-3))
        assert math.isnan(times["never"])
        assert math.isnan(times["undefined"])


def test_event_is_not_beyond_the_horizon(system):
    assert math.isnan(outcomes(system, horizon=0.69)["half"])
    within(outcomes(system, horizon=0.7)["half"], math.log(2.0), 1e-6)


@pytest.mark.parametrize("records", [2, 10, 80])
def test_event_of_gradient_descent_is_a_step(system, records):
    """The share 1 - 0.999^k exceeds 1/2 at step 693, for any records."""
    given = {"solver": "gd", "learning_rate": 0.001, "steps": 5000}
    close(outcomes(system, records=records, **given)["half"], 0.693, rel=1e-12)
    assert outcomes(system, records=records, **given)["at_once"] == 0.0
    given |= {"optimizer": "sign", "learning_rate": 0.0003, "steps": 1000}
    close(outcomes(system, records=records, **given)["half"], 0.0003 * 417, rel=1e-12)


@pytest.mark.slow
def test_event_of_momentum_is_between_two_records(system):
    given = {"solver": "gd", "learning_rate": 0.001, "steps": 2000, "optimizer": "momentum"}
    few, all_steps = outcomes(system, records=60, **given), outcomes(system, records=3000, **given)
    within(few["half"], all_steps["half"], 0.005)


def test_observables_and_their_errors(system):
    case = system.build({})
    run = system.solve(case)
    columns, errors = system.observe(case, run), system.errors(case, run)
    close(columns["share"], 1.0 - np.exp(-run.time), rel=1e-6)
    assert np.isnan(columns["ratio"][0])
    assert np.isinf(errors["ratio"][0])
    assert np.all(errors["share"] >= 4 * errors["w"])  # the error of w, times n
    assert np.all(errors["share"] <= 4.01 * errors["w"] + 1e-12)


@pytest.mark.slow
@pytest.mark.traced
def test_run_prints_and_writes_observables_and_events(path, tmp_path, capsys):
    out = tmp_path / "run.nc"
    assert main(["run", "--theory", str(path), "--n", "5", "--json", "--out", str(out)]) == 0
    result = json.loads(capsys.readouterr().out)
    within(result["final"]["share"], 1.0, 1e-6)
    assert result["initial"]["share"] == 0.0
    assert result["initial"]["ratio"] is None
    within(result["outcomes"]["half"], math.log(2.0), 1e-5)
    with xarray.open_dataset(out) as data:
        within(data["share"].values, 5 * data["w"].values, 2e-15)
        assert data["share"].attrs["long_name"] == "1 - n*missing"
    assert main(["run", "--theory", str(path)]) == 0
    assert "first time with share > 0.5" in capsys.readouterr().out


@pytest.mark.slow
def test_sweep_and_map(path, tmp_path, capsys):
    config, folder = tmp_path / "grid.toml", tmp_path / "sweep"
    config.write_text("[grid]\nn = [2, 4]\nw0 = [0.0, 0.1]\n")
    words = ["--theory", str(path)]
    assert main(["sweep", str(config), "--out", str(folder), "--workers", "1", *words]) == 0
    assert main(["map", str(folder), "--quantity", "half", "--quantity", "missing"]) == 0
    assert (folder / "maps" / "half.png").is_file()
    with xarray.open_dataset(folder / "maps" / "half.nc") as data:
        # n w - 1 = (n w0 - 1) exp(-t)
        close(data["value"].values, np.log([[2.0, 1.6], [2.0, 1.2]]), rel=1e-5)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("conjecture", "result"),
    [
        ("missing >= -1e-6", Result.HOLDS),
        ("share <= 0.6", Result.VIOLATED),
        pytest.param("half <= lower and narrow > 49", Result.HOLDS, marks=pytest.mark.slow),
        pytest.param("half >= 0.8", Result.VIOLATED, marks=pytest.mark.slow),
        pytest.param("never >= 10", Result.HOLDS, marks=pytest.mark.slow),
        ("at_start(ratio) > 0.001", Result.UNDEFINED),
        ("always(ratio < 0.001)", Result.VIOLATED),  # in spite of 0/0 at the start
    ],
)
def test_conjectures_use_observables_and_events(system, conjecture, result):
    case = system.build({})
    run = system.solve(case)
    assert run.status is Status.COMPLETED
    trial = Conjecture(conjecture, system).evaluate(case, run, system.population(case))
    assert trial.result is result


@pytest.mark.slow
@pytest.mark.traced
def test_explorer_plots_observables_and_marks_events(system):
    case = system.build({})
    population = system.population(case)
    run = system.solve(case, population=population)
    columns = run_data(Task(system, case), population, run).columns
    assert columns["share"].meaning == "1 - n*missing"
    marked = fragments.events(system, system.summarize(case, run, population))
    assert set(marked) == {"half", "narrow", "lower", "at_once", "either"}


@pytest.mark.slow
@pytest.mark.traced
def test_report_has_a_table_of_each(path, tmp_path, capsys):
    folder = tmp_path / "report"
    assert main(["theory", str(path), "--report", str(folder), "--quick"]) == 0
    (record,) = json.loads((folder / "report.json").read_text())
    tables = {table["name"]: table for table in record["tables"]}
    rows = {row["at"]["event"]: row["values"] for row in tables["events"]["rows"]}
    within(rows["half"][1], math.log(2.0), 1e-5)
    names = [row["at"]["observable"] for row in tables["observables"]["rows"]]
    assert names == ["missing", "share", "ratio"]
    capsys.readouterr()


VERDICTS = {
    "half < 1": "holds",
    "share <= 0.5": "fails",
    "at_end(share) < 0.9": "finding",  # violated at the longer horizon only
    "half < never": "holds",
    "never < half": "fails",
    "narrow < 60": "finding",  # no run is long enough
    "n*missing + share == 1": "holds",  # up to rounding
    "log(w - 1) > 0": "finding",  # undefined
}


@pytest.fixture(scope="module")
def claims(tmp_path_factory):
    path = tmp_path_factory.mktemp("claims") / "mark.py"
    texts = [f"Claim('Lemma 7', 'Text {i}.', {x!r})" for i, x in enumerate(VERDICTS)]
    text = MARK.replace('"horizon": 100', '"horizon": 2').replace("{EVENTS}", repr(EVENTS))
    path.write_text(text.replace("{CLAIMS}", ", ".join(texts)))
    return dict(zip(VERDICTS, list(claims_of(UserTheorySystem(path)))[1:], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("condition", VERDICTS)
def test_verdict_on_a_claim(claims, monkeypatch, condition):
    """A claim fails only if it is violated at every horizon and number of records."""
    monkeypatch.setattr(conjectures, "QUICK_PROBLEMS", 3)
    checked = claims[condition]
    assert checked.place == "Lemma 7"
    assert checked.statement == f"Text {list(VERDICTS).index(condition)}."
    result = checked.run(Context(quick=True))
    assert result.verdict == VERDICTS[condition]
    runs, searches = result.tables["runs"].data, result.tables["searches"].data
    assert sorted(runs.index) == [(0, t, records) for t in (2.0, 20.0) for records in (80, 240)]
    assert sorted(searches.index) == [(2.0, 0), (2.0, 1), (20.0, 0), (20.0, 1)]
    assert result.finding.startswith(f"{(runs.result == 'violated').sum()} of 4 runs violate it")


def test_search_without_problems_is_no_evidence():
    """The claim is a finding if no search tried a problem."""
    columns = {"violation": math.nan, "error": math.nan, "holds": 0, "everywhere": False}
    rows = [{"horizon": 1.0, "seed": seed, "tried": 0, **columns} for seed in (0, 1)]
    frame = conjectures.SEARCHES.frame(rows)
    tried = conjectures.SEARCHES.predicates["a search tried a problem"]
    assert not np.any(tried(frame))
    assert np.all(tried(frame.assign(tried=[0, 1])))
