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
    @given(TEXT, st.dictionaries(NAME, TEXT), st.dictionaries(st.text(max_size=9), TEXT))
    def test_there_and_back(self, system, texts, drawn):
        view = View(system, texts, drawn)
        assert state.read(state.address(view)) == view

    def test_what_is_empty_is_left_out(self):
        view = View("masked", {"P": "1e9", "K": ""}, {"x": "", "map": "ratio"})
        assert state.address(view) == "?system=masked&P=1e9&.map=ratio"

    def test_default_system(self):
        assert state.read("nu=0.1", "masked") == View("masked", {"nu": "0.1"})
        assert state.read("") == View("positional")

    @pytest.mark.parametrize(
        "query", ["&".join(["a=1"] * 101), f"nu={'1' * 201}", f"{'n' * 201}=1"]
    )
    def test_too_much(self, query):
        with pytest.raises(ParameterError, match="is not allowed: it must have at most"):
            state.read(query)

    def test_as_a_server_takes_it_apart(self):
        query = state.query_of({"qD/C^2": [b"2/64"], ".x": [b"gamma"], "nu": [b"\xff&b=1"]})
        view = state.read(query)
        assert view == View("positional", {"qD/C^2": "2/64", "nu": "\ufffd&b=1"}, {"x": "gamma"})


class TestValues:
    @pytest.mark.parametrize(
        "flags",
        ["--q 2/64 --nu 1e-3", "--D 128 --qD 4 --solver gd --steps 20", "--alpha 0.2 --beta -1.5"],
    )
    def test_as_the_command_line_reads_them(self, flags):
        positional = theories.load("positional")
        parsed = on_the_command_line(f"patchdyn run {flags}")
        names = {one.flag: one.name for one in positional.parameters}
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
    def test_refused_in_one_sentence(self, texts, words):
        with pytest.raises(ParameterError) as refusal:
            state.case(theories.load("positional"), texts)
        assert words in str(refusal.value)
        assert "\n" not in str(refusal.value)

    def test_empty_is_not_given(self, theory):
        empty = {one.name: " " for one in theory.parameters}
        assert state.values(theory, empty) == {}

    def test_command_makes_the_same_run(self, theory):
        case = state.case(theory, {})
        again = theory.build(on_the_command_line(theories.command(case)))
        assert (again.problem, again.solver) == (case.problem, case.solver)
        assert dict(again.settings) == dict(case.settings)

    def test_sketch_gives_way(self):
        """What is set by hand is kept, and the other solver knows no rtol."""
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
    def test_what_is_usual_is_the_default(self, theory):
        bare = theory.build({})
        checked = 0
        for one in theory.parameters:
            if one.usual is not None:
                case = theory.build({one.name: one.usual})
                assert (case.problem, case.solver) == (bare.problem, bare.solver), one.name
                assert dict(case.settings) == dict(bare.settings), one.name
                checked += 1
        assert checked > 5

    def test_choices_are_what_is_allowed(self, theory):
        for one in theory.parameters:
            for word in one.choices:
                theory.build({one.name: word})
            if one.choices:
                with pytest.raises(ParameterError):
                    theory.build({one.name: "no such word"})

    def test_every_stop_has_its_place(self, theory):
        for one in theory.parameters:
            ticks = state.ticks(one)
            assert list(ticks) == sorted(set(ticks))
            for place, stop in enumerate(ticks):
                assert float(state.show(stop)) == stop
                assert state.nearest(one, state.show(stop)) == place
            if ticks and one.usual is not None:
                assert ticks[state.nearest(one, state.default_text(theory, one))] == one.usual

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
