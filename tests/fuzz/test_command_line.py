"""Random flags of every command, valid or not."""

import pytest

from simulations.cli import main
from tests.fuzz.values import text

RUN = (
    "D C p nu beta temperature output-scale d sigma q qD horizon rtol learning-rate steps alpha "
    "gamma rho tolerance method"
).split()
SMALL = {"D": "8", "C": "2", "tolerance": "1e-6", "horizon": "10"}
MASKED = (
    "P kappa-c kappa-s mask-ratio z-low z-high query horizon rtol solver learning-rate steps "
    "tolerance"
).split()


def assert_documented(code, output, arguments):
    """Check that the exit code is documented, and that an error is one sentence."""
    assert code in (0, 1, 2), arguments
    assert "Traceback" not in output.err, arguments
    if code == 2:
        lines = [line for line in output.err.splitlines() if not line.startswith("patchdyn: note:")]
        assert lines, arguments
        assert len(lines) == 1 or "^" in lines[-1], arguments  # errors in conjectures have a caret
        assert len(lines[0]) < 1000, arguments


def takes_hours(flags):
    """Return whether the number of steps is valid but larger than a test can run."""
    try:
        return 1e6 < float(flags.get("steps", 0)) <= 1e15
    except (ValueError, OverflowError):
        return False


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_run(cases, in_time, capsys):
    for rng in cases():
        flags = dict(SMALL)
        for name in rng.sample(RUN, rng.randint(1, 3)):
            flags[name] = text(rng)
        if rng.random() < 0.3:
            flags["solver"] = "gd"
            flags.setdefault("steps", "20")
            flags.pop("horizon", None)
        if {"q", "qD"} <= set(flags):
            del flags["qD"]
        if takes_hours(flags):
            continue
        arguments = ["run", *(f"--{name}={value}" for name, value in flags.items())]
        with in_time():
            code = main(arguments)
        assert_documented(code, capsys.readouterr(), flags)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_run_of_the_masked_theory(cases, in_time, capsys):
    for rng in cases():
        flags = {"P": "64", "horizon": "10", "tolerance": "1e-4"}
        for name in rng.sample(MASKED, rng.randint(1, 3)):
            flags[name] = text(rng)
        if flags.get("solver") == "gd" or "steps" in flags:
            flags.pop("horizon", None)
        if takes_hours(flags):
            continue
        with in_time():
            code = main(["run", "--system", "masked", *(f"--{x}={y}" for x, y in flags.items())])
        assert_documented(code, capsys.readouterr(), flags)


def test_flags_of_other_commands(cases, in_time, capsys, tmp_path):
    known = {
        "reproduce": ("--workers", "--only", "--out"),
        "derive": ("--format", "", ""),
        "sweep": ("--workers", "--scheduler", ""),
        "map": ("--at", "--quantity", ""),
        "falsify": ("--budget", "--seed", "--fix", "--where", "--horizon", "--precision", "--box"),
        "nonsense": ("--x",),
    }
    for rng in cases():
        command = rng.choice(sorted(known))
        flag = rng.choice(known[command])
        value = text(rng)
        arguments = [command, f"{flag}={value}" if flag else value]
        if command == "falsify":  # an invalid conjecture, because a valid search takes its budget
            arguments = ["falsify", "gamma >= ", *arguments[1:]]
        if command in ("reproduce", "sweep"):
            arguments += ["--out", str(tmp_path / "file")]
            (tmp_path / "file").write_text("mine")
        with in_time():
            code = main(arguments)
        assert_documented(code, capsys.readouterr(), arguments)
        assert code == 2 or arguments == ["derive", "--"], arguments  # "--" ends the flags
