"""Flags of every command, valid and not."""

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


def answered(code, output, given):
    """Check an exit code, and that a refusal is one sentence."""
    assert code in (0, 1, 2), given
    assert "Traceback" not in output.err, given
    if code == 2:
        said = [line for line in output.err.splitlines() if not line.startswith("patchdyn: note:")]
        assert said, given
        assert len(said) == 1 or "^" in said[-1], (
            given
        )  # a caret under the character of a conjecture
        assert len(said[0]) < 1000, given


def asks_for_hours(flags):
    """Tell steps that a run makes, but not at once: that is what was asked for."""
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
        if asks_for_hours(flags):
            continue
        arguments = ["run", *(f"--{name}={value}" for name, value in flags.items())]
        with in_time():
            code = main(arguments)
        answered(code, capsys.readouterr(), flags)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_run_of_the_masked_theory(cases, in_time, capsys):
    for rng in cases():
        flags = {"P": "64", "horizon": "10", "tolerance": "1e-4"}
        for name in rng.sample(MASKED, rng.randint(1, 3)):
            flags[name] = text(rng)
        if flags.get("solver") == "gd" or "steps" in flags:
            flags.pop("horizon", None)
        if asks_for_hours(flags):
            continue
        with in_time():
            code = main(
                [
                    "run",
                    "--system",
                    "masked",
                    *(f"--{name}={value}" for name, value in flags.items()),
                ]
            )
        answered(code, capsys.readouterr(), flags)


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
        if command == "falsify":  # budgets that would be spent are no slips
            arguments = ["falsify", "gamma >= ", *arguments[1:]]
        if command in ("reproduce", "sweep"):
            arguments += ["--out", str(tmp_path / "file")]
            (tmp_path / "file").write_text("mine")
        with in_time():
            code = main(arguments)
        answered(code, capsys.readouterr(), arguments)
        assert code == 2 or arguments == ["derive", "--"], arguments  # "--": no more flags follow
