"""Configurations of sweeps: what they mean, and errors that point at the line and the field."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulations.sweep.config import ConfigError, parse, read
from simulations.sweep.toml_lines import line_of
from tests.closeness import close

GOOD = """\
# a comment
[fixed]
D = 64
C = 4   # size

[grid]
"qD/C^2" = { from = 0.01, to = 1.0, number = 3, scale = "log" }
nu = [1e-3, 1]

[run]
horizon = 1e3
"""


class TestMeaning:
    def test_cells_are_the_product_of_the_axes_last_axis_fastest(self):
        config = parse(GOOD)
        assert (config.system, config.shape, config.size) == ("positional", (3, 2), 6)
        cells = list(config)
        assert [cell["nu"] for cell in cells] == [1e-3, 1.0] * 3
        close([cell["qD/C^2"] for cell in cells[::2]], [0.01, 0.1, 1.0], rel=1e-12)
        assert all(cell["D"] == 64 and cell["horizon"] == 1e3 for cell in cells)

    def test_ends_of_an_axis_are_exact(self):
        values = parse(GOOD).axes["qD/C^2"]
        assert (values[0], values[-1]) == (0.01, 1.0)

    def test_list_gives_cells_one_by_one(self):
        config = parse("[fixed]\nD = 8\n[[list]]\nC = 2\n[[list]]\nC = 4\nnu = 0.5\n")
        assert list(config) == [{"D": 8, "C": 2}, {"D": 8, "C": 4, "nu": 0.5}]

    def test_axis_of_integers(self):
        axis = '{ from = 16, to = 256, number = 5, scale = "log" }'
        assert parse(f"[grid]\nD = {axis}\n").axes["D"] == (16, 32, 64, 128, 256)

    def test_comments_do_not_change_what_is_computed(self):
        assert parse(GOOD).digest == parse(GOOD.replace("# a comment", "")).digest
        assert parse(GOOD).digest != parse(GOOD.replace("C = 4", "C = 8")).digest

    @given(st.integers(1, 3000))
    def test_blocks_cover_every_cell_once(self, number):
        values = ", ".join(str(1 + n / 4096) for n in range(number))
        config = parse(f"[grid]\nnu = [{values}]\n")
        covered = [cell for block in range(config.blocks) for cell in config.cells_of(block)]
        assert covered == list(range(number))


ERRORS = [
    ("[grid\nnu = [1]\n", "is not TOML.*line 1"),
    ("color = 3\n[grid]\nnu = [1]\n", "line 1, color: color is not known: use system, fixed"),
    ('system = "other"\n[grid]\nnu = [1]\n', "line 1, system: system = 'other' is not allowed"),
    ("[fixed]\nD = 8\nqd = 3\n[grid]\nnu = [1]\n", "line 3, fixed.qd: qd is not a parameter"),
    ("[fixed]\nD = 8.5\n[grid]\nnu = [1]\n", "line 2, fixed.D: D = 8.5 is not allowed"),
    ("[fixed]\nD = true\n[grid]\nnu = [1]\n", "line 2, fixed.D: D = True is not allowed"),
    ("[fixed]\nnu = [1, 2]\n[grid]\nC = [2]\n", r"line 2, fixed.nu: .* move it to \[grid\]"),
    ("fixed = 3\n[grid]\nnu = [1]\n", "line 1, fixed: it must be a table"),
    ("[fixed]\nnu = 1\n[grid]\nnu = [1]\n", r"line 4, grid.nu: nu has one value in \[fixed\]"),
    ("[fixed]\nnu = 1\n[run]\nnu = 2\n[grid]\nC = [2]\n", "line 4, run.nu: nu is given in .fixed"),
    ("[fixed]\nD = 8\n", r"a sweep needs either \[grid\] or \[\[list\]\]"),
    ("[grid]\n", "line 1, grid: it is empty"),
    ("[grid]\nnu = []\n", "line 2, grid.nu: an axis is a list such as"),
    ("[grid]\nnu = 0.1\n", "line 2, grid.nu: an axis is a list such as"),
    ("[grid]\nnu = [1, 1]\n", "line 2, grid.nu: a value occurs twice"),
    ('[grid]\nnu = ["a"]\n', "line 2, grid.nu: nu = 'a' is not allowed"),
    ("[grid]\nnu = { from = 1, to = 2 }\n", "line 2, grid.nu: .* so number is missing"),
    ("[grid]\nnu = { from = 1, to = 2, n = 3 }\n", "line 2, grid.nu: .* so n is not known"),
    ("[grid]\nnu = { from = 1, to = 2, number = 1 }\n", "number = 1 is not allowed"),
    ('[grid]\nnu = { from = 0, to = 2, number = 3, scale = "log" }\n', "greater than 0"),
    ('[grid]\nnu = { from = 1, to = 2, number = 3, scale = "cubic" }\n', "scale = 'cubic'"),
    ("[grid]\nnu = { from = 2, to = 2, number = 3 }\n", "from and to are both 2"),
    ("[grid]\nD = { from = 8, to = 11, number = 3 }\n", "line 2, grid.D: D = 9.5 is not allowed"),
    ("list = 3\n", "line 1, list: list must consist of tables"),
    ("[[list]]\nC = 2\n[[list]]\nCC = 2\n", "line 4, list.CC: CC is not a parameter"),
    ("[fixed]\nC = 2\n[[list]]\nnu = 2\n[[list]]\nC = 2\n", "line 6, list.C: C is given in"),
    ("[fixed]\nD = 8\n[grid]\nC = [3, 5]\n", "line 4, grid.C: no cell can be run: C = 3"),
    ("[fixed]\nq = 0.1\nqD = 2\n[grid]\nnu = [1]\n", "line 2, fixed.q: no cell can be run"),
    ("[grid]\nnu = { from = 1, to = 2, number = 1000000 }\nbeta = [1, 2]\n", "too many"),
]


@pytest.mark.parametrize(("text", "sentence"), ERRORS)
def test_errors_point_at_the_line_and_the_field(text, sentence):
    with pytest.raises(ConfigError, match=sentence) as refusal:
        parse(text, "sweep.toml")
    assert str(refusal.value).startswith("sweep.toml")
    assert "\n" not in str(refusal.value)


def test_unreadable_file_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read .*none.toml: No such file"):
        read(tmp_path / "none.toml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="it is not a text file"):
        read(tmp_path / "binary")


def test_lines_of_inline_tables_and_quoted_keys():
    text = "fixed = { D = 8 }\n\n[grid]\n'qD/C^2' = [1]\n"
    assert line_of(text, "fixed", "D") == 1
    assert line_of(text, "grid", "qD/C^2") == 4
    assert line_of(text, "run", "rtol") is None
