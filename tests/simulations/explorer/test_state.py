"""Pages as text: addresses and back, parameters read as the command line reads them."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamics import ParameterError
from simulations import theories
from simulations.cli import build_parser
from simulations.commands.arguments import given_parameters
from simulations.explorer import state
from simulations.explorer.state import View

TEXT = st.text(min_size=1, max_size=30)
NAME = TEXT.filter(lambda name: name != "system" and not name.startswith("."))


@pytest.fixture(scope="module", params=theories.names())
def theory(request):
    return theories.load(request.param)


def on_the_command_line(command):
    """Return what the parser of `patchdyn run` makes of a command: an independent reading."""
    words = shlex.split(command)[1:]
    return given_parameters(build_parser().parse_args(words))


class TestAddress:
    @pytest.mark.slow
    @given(TEXT, st.dictionaries(NAME, TEXT), st.dictionaries(st.text(max_size=9), TEXT))
    def test_round_trip(self, system, texts, drawn):
        view = View(system, texts, drawn)
        assert state.read(state.address(view)) == view

    def test_empty_values_are_omitted(self):
        view = View("masked", {"P": "1e9", "K": ""}, {"x": "", "map": "ratio"})
        assert state.address(view) == "?system=masked&P=1e9&.map=ratio"

    def test_default_system(self):
        assert state.read("nu=0.1", "masked") == View("masked", {"nu": "0.1"})
        assert state.read("") == View("positional")

    @pytest.mark.parametrize(
        "query", ["&".join(["a=1"] * 101), f"nu={'1' * 201}", f"{'n' * 201}=1"]
    )
    def test_long_addresses_are_rejected(self, query):
        with pytest.raises(ParameterError, match="is not allowed: it must have at most"):
            state.read(query)

    def test_arguments_of_a_request(self):
        query = state.query_of({"qD/C^2": [b"2/64"], ".x": [b"gamma"], "nu": [b"\xff&b=1"]})
        view = state.read(query)
        assert view == View("positional", {"qD/C^2": "2/64", "nu": "\ufffd&b=1"}, {"x": "gamma"})


class TestValues:
    @pytest.mark.parametrize(
        "flags",
        ["--q 2/64 --nu 1e-3", "--D 128 --qD 4 --solver gd --steps 20", "--alpha 0.2 --beta -1.5"],
    )
    def test_parsed_as_on_the_command_line(self, flags):
        positional = theories.load("positional")
        parsed = on_the_command_line(f"patchdyn run {flags}")
        names = {parameter.flag: parameter.name for parameter in positional.parameters}
        words = flags.split()
        texts = {names[flag]: text for flag, text in zip(words[::2], words[1::2])}
        assert state.values(positional, texts) == parsed

    @pytest.mark.parametrize(
        ("texts", "words"),
        [
            ({"nu": "__import__('os')"}, "nu = \"__import__('os')\" is not allowed: it must be a"),
            ({"nu": "many"}, "nu = 'many' is not allowed: it must be a number"),
            ({"nu": "9" * 5000}, "must be finite"),
            ({"nu": "nan"}, "nu = nan is not allowed: nu must be finite"),
            ({"nu": "-1"}, "nu = -1.0 is not allowed: nu must be greater than 0"),
            ({"D": "2.5"}, "D = 2.5 is not allowed"),
            ({"C": "5"}, "C = 5 is not allowed: C must be a divisor of D = 64"),
            ({"solver": "euler"}, "solver = 'euler' is not allowed: solver must be flow or gd"),
            ({"q": "0.1", "qD": "2"}, "q and qD are not allowed together"),
            ({"__class__": "1"}, "__class__ is not a parameter of this system: choose among D"),
        ],
    )
    def test_rejected_with_one_sentence(self, texts, words):
        with pytest.raises(ParameterError) as error:
            state.case(theories.load("positional"), texts)
        assert words in str(error.value)
        assert "\n" not in str(error.value)

    def test_empty_is_not_given(self, theory):
        empty = {parameter.name: " " for parameter in theory.parameters}
        assert state.values(theory, empty) == {}

    def test_command_makes_the_same_run(self, theory):
        case = state.case(theory, {})
        again = theory.build(on_the_command_line(theories.command(case)))
        assert (again.problem, again.solver) == (case.problem, case.solver)
        assert dict(again.settings) == dict(case.settings)

    def test_preview_gives_way(self):
        """Values that the user sets are preserved; the other solver has no rtol."""
        positional = theories.load("positional")
        assert state.case(positional, {}).settings["tolerance"] == 1e-6
        assert state.case(positional, {"tolerance": "1e-9"}).settings["tolerance"] == 1e-9
        assert state.case(positional, {"solver": "gd"}).solver == "gd"

    def test_texts_give_values_again(self):
        positional = theories.load("positional")
        given = {"D": 64, "nu": 0.1 + 0.2, "qD": 2.0, "horizon": 1e6, "solver": "flow"}
        texts = state.texts_of(positional, given)
        assert state.values(positional, texts) == given
        assert texts["qD"] == "2"


class TestStops:
    def test_default_text_is_the_default(self, theory):
        bare = theory.build({})
        checked = 0
        for parameter in theory.parameters:
            if parameter.default is not None:
                case = theory.build({parameter.name: parameter.default})
                assert (case.problem, case.solver) == (bare.problem, bare.solver), parameter.name
                assert dict(case.settings) == dict(bare.settings), parameter.name
                checked += 1
        assert checked > 5

    def test_choices_are_what_is_allowed(self, theory):
        for parameter in theory.parameters:
            for word in parameter.choices:
                theory.build({parameter.name: word})
            if parameter.choices:
                with pytest.raises(ParameterError):
                    theory.build({parameter.name: "no such word"})

    def test_nearest_slider_value_of_each_tick(self, theory):
        for parameter in theory.parameters:
            ticks = state.ticks(parameter)
            assert list(ticks) == sorted(set(ticks))
            for index, tick in enumerate(ticks):
                assert float(state.show(tick)) == tick
                assert state.nearest(parameter, state.show(tick)) == index
            if ticks and parameter.default is not None:
                assert (
                    ticks[state.nearest(parameter, state.default_text(theory, parameter))]
                    == parameter.default
                )

    @pytest.mark.parametrize(
        ("text", "stop"), [("0.0095", 0.01), ("2e-9", 1e-5), ("1/50", 0.02), ("7", 1.0)]
    )
    def test_nearest_on_a_logarithmic_slider(self, text, stop):
        nu = theories.load("positional").parameter("nu")
        assert state.ticks(nu)[state.nearest(nu, text)] == stop

    @pytest.mark.parametrize("text", ["", "many", "nan", "inf", "9" * 400])
    def test_no_number_has_no_place(self, text):
        assert state.nearest(theories.load("positional").parameter("nu"), text) is None

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_to_the_last_bit(self, value):
        assert float(state.show(value)) == value

    @pytest.mark.parametrize(
        ("value", "text"),
        [(1e6, "1e6"), (1e-5, "1e-5"), (0.01, "0.01"), (2**20, "1048576"), (10**18, "1e18")],
    )
    def test_short(self, value, text):
        assert state.show(value) == text
