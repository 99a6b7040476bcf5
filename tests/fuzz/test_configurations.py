"""Random TOML files of sweeps: a configuration, or an error with line and field."""

import pytest

from simulations.sweep.config import ConfigError, parse
from tests.fuzz.values import text

NAMES = (
    "D",
    "C",
    "q",
    "qD",
    "qD/C^2",
    "nu",
    "beta",
    "p",
    "tau",
    "kappa",
    "solver",
    "horizon",
    "tolerance",
    "steps",
    "magic",
    "P",
    "query",
)


def _value(rng):
    form = rng.randrange(5)
    if form == 0:
        return f'"{text(rng)}"'.replace("\\", "").replace("\t", "")
    if form == 1:
        return "[" + ", ".join(text(rng) for _ in range(rng.randint(0, 4))) + "]"
    if form == 2:
        ends = f"from = {text(rng)}, to = {text(rng)}, number = {text(rng)}"
        return "{ " + ends + rng.choice(("", ', scale = "log"', ", scale = 3")) + " }"
    return text(rng)


def test_any_file(cases, in_time):
    for rng in cases():
        for _ in range(5):
            lines = [rng.choice(("", 'system = "masked"', "system = 7", 'system = "no"'))]
            for table in rng.sample(
                ("[fixed]", "[grid]", "[[list]]", "[run]", "[no]", "fixed = 1"), 3
            ):
                lines.append(table)
                lines += [
                    f'"{name}" = {_value(rng)}' for name in rng.sample(NAMES, rng.randint(0, 3))
                ]
            content = "\n".join(lines)
            with in_time():
                message = _error_message(content)
            assert message is None or len(message.splitlines()) <= 2, content


def _error_message(content):
    try:
        assert parse(content).size >= 1
    except ConfigError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "content",
    [
        "x = " + "[" * 900 + "]" * 900,
        "[grid]\nnu = " + "9" * 5000,
        "[grid]\n"
        + "\n".join(
            f"{n} = {{ from = 1, to = 2, number = 1000000 }}"
            for n in ("nu", "q", "beta", "kappa", "tau", "d", "sigma", "alpha0")
        ),
        "\x00",
        "[grid]\nnu = [1e999]",
        "[fixed]\nD = " + "7" * 400 + "\n[grid]\nnu = [1.0]",
    ],
)
def test_files_that_once_exceeded_the_time_limit_or_failed(content, in_time):
    with in_time(), pytest.raises(ConfigError):
        parse(content)
