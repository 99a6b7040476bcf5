"""A parameter is declared in one line, from which every tool knows it."""

import dataclasses
import math
import pickle
from dataclasses import dataclass
from typing import Annotated

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from dynamics import ParameterError
from dynamics.core.annotations import Alias, Doc, Draw, Ticks, above, as_text, at_most, words_of
from dynamics.core.parameters import Parameters, declared
from dynamics.masked import MaskedProblem
from dynamics.positional.problem import Problem
from dynamics.shallow import ShallowProblem
from simulations import theories
from simulations.cli import build_parser, main
from simulations.commands.arguments import given_parameters
from simulations.explorer import state
from simulations.parameter_strategies import fields, invalid
from simulations.sweep import config
from tests.toy.dynamics.population import ToyProblem
from tests.toy.simulations.system import Toy


@dataclass(frozen=True)
class Leaky(ToyProblem):
    leak: Annotated[float, above(0), at_most(9), Doc("leakage"), Ticks(1, 3), Draw(1, 4)] = 2.0


class LeakyToy(Toy):
    problem = Leaky


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """The toy theory with one parameter more."""
    with theories.registered("toy", "tests.toy"):
        monkeypatch.setattr("tests.toy.simulations.system.SYSTEM", LeakyToy())
        yield theories.load("toy")


class TestOneLine:
    @pytest.mark.parametrize("value", [0, -1.0, 9.5, math.nan, "1", None, True])
    def test_validation(self, value):
        assert Leaky(leak=9).leak == 9.0
        with pytest.raises(ParameterError, match=r"^leak = .* is not allowed: leak must be "):
            Leaky(leak=value)

    def test_sentence(self):
        with pytest.raises(ParameterError) as error:
            Leaky(leak=9.5)
        assert str(error.value) == "leak = 9.5 is not allowed: leak must be in (0, 9]"

    def test_option_and_help(self, toy, capsys):
        words = ["run", "--system", "toy", "--leak", "5/2"]
        assert given_parameters(build_parser().parse_args(words)) == {"leak": 2.5}
        assert main(["run", "--system", "toy", "--help"]) == 0
        assert "leakage (default: 2); in (0, 9]" in " ".join(capsys.readouterr().out.split())
        assert main(["run", "--system", "toy", "--leak", "10"]) == 2
        assert "leak = 10.0 is not allowed: leak must be in (0, 9]" in capsys.readouterr().err

    def test_toml_key(self):
        text = 'system = "toy"\n[grid]\nleak = [1, 2]\n'
        assert config.parse(text).axes == {"leak": (1.0, 2.0)}
        with pytest.raises(
            config.ConfigError, match=r"line 3, grid\.leak: no cell can be run: leak"
        ):
            config.parse(text.replace("[1, 2]", "[10]"))

    def test_slider(self, toy):
        leak = toy.parameter("leak")
        assert state.ticks(leak) == (1.0, 2.0, 3.0)
        assert state.case(toy, {"leak": "3"}).problem.leak == 3.0

    def test_draws(self, toy):
        drawn = find(toy.cases(), lambda values: values["leak"] > 3.5)
        assert 3.5 < drawn["leak"] <= 4.0
        assert find(toy.cases(leak=1.5), lambda values: True)["leak"] == 1.5
        assert find(invalid(Leaky), lambda pair: pair[0] == "leak")

    def test_workers_receive_the_theory(self):
        positional = theories.load("positional")
        assert positional.parameters  # whose conversions no process can send
        assert pickle.loads(pickle.dumps(positional)).parameter("qD").ticks

    def test_describe_and_rerun_command(self, toy):
        case = toy.build({"leak": 2.5})
        assert toy.describe(case)["leak"] == 2.5
        assert {one.name: one.meaning for one in toy.constants}["leak"] == "leakage"
        words = theories.command(case).split()
        assert words[words.index("--leak") + 1] == "2.5"
        again = toy.build(given_parameters(build_parser().parse_args(words[1:])))
        assert (again.problem, again.settings) == (case.problem, case.settings)


@dataclass(frozen=True)
class Scaled(Parameters):
    n: Annotated[int, Doc("number")] = 10
    share: Annotated[
        float,
        above(0),
        at_most(1),
        Doc("fraction"),
        Alias("amount", Doc("n times"), lambda x, at: x / at["n"], lambda x, at: x * at["n"]),
        Alias("part", Doc("the same")),
    ] = 0.5


class TestAlias:
    def test_converted(self):
        assert Scaled.from_values({"amount": 3, "n": 12}) == Scaled(12, 0.25)
        assert Scaled.from_values({"part": 0.1}, {"amount": 3}) == Scaled(10, 0.1)
        assert Scaled.from_values({}, {"amount": 4}) == Scaled(10, 0.4)

    @pytest.mark.parametrize(
        ("values", "sentence"),
        [
            ({"amount": 11}, "amount = 11.0 is not allowed: amount must be in (0, 10], so that "
             "share is in (0, 1]"),
            ({"part": 2}, "part = 2.0 is not allowed: part must be in (0, 1]"),
            ({"part": 1, "amount": 1},
             "amount and part are not allowed together: they set the same thing"),
        ],
    )  # fmt: skip
    def test_refused(self, values, sentence):
        with pytest.raises(ParameterError) as error:
            Scaled.from_values(values)
        assert str(error.value) == sentence

    def test_a_closed_bound_missed_by_rounding_is_met(self):
        n = 49  # 1/49 * 49 < 1, and 49 * (1/49) rounded up elsewhere: the largest amount is allowed
        assert Scaled.from_values({"n": n, "amount": n}).share == 1.0


@pytest.mark.parametrize("cls", [Problem, MaskedProblem, ShallowProblem])
class TestTheories:
    def test_every_field_is_declared(self, cls):
        known, names = declared(cls), [field.name for field in dataclasses.fields(cls)]
        assert set(names) <= set(known)
        assert all(one.meaning and one.field in names for one in known.values())

    def test_draws_are_within_the_bounds(self, cls):
        known = declared(cls)

        @given(fields(cls))
        def check(drawn):
            for name, value in drawn.items():
                known[name].validate(value)

        check()

    def test_invalid_values_are_refused(self, cls):
        known = declared(cls)

        @given(invalid(cls))
        def check(pair):
            with pytest.raises(ParameterError, match=rf"^{pair[0]} = .* is not allowed: "):
                known[pair[0]].validate(pair[1])

        check()

    def test_sliders_are_within_the_bounds(self, cls):
        for name, one in declared(cls).items():
            if one.field == name:
                assert [one.validate(tick) for tick in one.ticks] == list(one.ticks)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_text_reproduces_a_value(value):
    assert float(as_text(value)) == value


@pytest.mark.parametrize(
    ("bounds", "kind", "words"),
    [
        ((above(0), at_most(1)), float, "in (0, 1]"),
        ((above(0), at_most(10**9)), int, "greater than 0 and at most 10^9"),
        ((at_most(0.01),), float, "at most 0.01"),
        ((), float, ""),
    ],
)
def test_words_of_bounds(bounds, kind, words):
    assert words_of(bounds, kind) == words
