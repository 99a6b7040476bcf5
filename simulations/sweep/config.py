"""The configuration of a sweep: a TOML file, read into cells; errors name the line and the field.

.. code-block:: toml

    system = "positional"            # the theory (the default)

    [fixed]                          # one value for all cells
    D = 64
    C = 4

    [grid]                           # one axis each, in the order of the result
    "qD/C^2" = { from = 0.01, to = 1.0, number = 10, scale = "log" }
    nu = [0.001, 0.01, 0.1]

    [run]                            # how each cell is solved
    horizon = 1e6
    rtol = 1e-6

Instead of ``[grid]``, tables ``[[list]]`` give the cells one by one.
"""

import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dynamics.core.checks import finite
from dynamics.core.errors import ParameterError
from dynamics.core.parameters import Parameter
from simulations import theories
from simulations.sweep.lines import line_of
from simulations.system import System

_TABLES = ("system", "fixed", "grid", "list", "run")
_AXIS = ("from", "to", "number", "scale")
#: More cells than this are taken for a slip of the keyboard.
MOST_CELLS = 1_000_000
_BLOCKS, _LARGEST_BLOCK = 256, 32


class ConfigError(Exception):
    """A configuration cannot be used; one sentence that points at the line and the field."""


@dataclass(frozen=True)
class Config:
    """What a sweep computes.

    Attributes
    ----------
    system
        Name of the theory.
    fixed
        Values of all cells.
    axes
        Axis name -> its values; the cells are their product, the last axis running fastest. Empty
        for a list.
    listed
        The cells of a list, each what it adds to ``fixed``.
    text
        The file as it was written.
    """

    system: str
    fixed: Mapping[str, Any]
    axes: Mapping[str, tuple[Any, ...]]
    listed: tuple[Mapping[str, Any], ...] = ()
    text: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values along each axis; of cells for a list."""
        if self.listed:
            return (len(self.listed),)
        return tuple(len(values) for values in self.axes.values())

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @property
    def block(self) -> int:
        """Number of cells that are stored together; it does not depend on who computes them."""
        return max(1, min(_LARGEST_BLOCK, math.ceil(self.size / _BLOCKS)))

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return math.ceil(self.size / self.block)

    def cells_of(self, block: int) -> range:
        """Return the numbers of the cells of a block."""
        return range(block * self.block, min(self.size, (block + 1) * self.block))

    def values(self, cell: int) -> dict[str, Any]:
        """Return everything that a cell sets."""
        if self.listed:
            return {**self.fixed, **self.listed[cell]}
        place = np.unravel_index(cell, self.shape)
        axes = zip(self.axes.items(), place)
        return {**self.fixed, **{name: values[int(index)] for (name, values), index in axes}}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self.values(cell) for cell in range(self.size))

    def plain(self) -> dict[str, Any]:
        """Return what identifies the computation, as JSON knows it: comments do not matter."""
        axes = [[name, list(values)] for name, values in self.axes.items()]
        listed = [dict(cell) for cell in self.listed]
        return {"system": self.system, "fixed": dict(self.fixed), "axes": axes, "list": listed}

    @property
    def digest(self) -> str:
        """A short hash of that."""
        content = json.dumps(self.plain(), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def read(path: Path, theory: str | None = None) -> Config:
    """Read a configuration file; ``theory`` is the system if the file does not choose.

    Raises
    ------
    ConfigError
        If it cannot be read or is not a configuration.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        reason = getattr(failure, "strerror", None) or "it is not a text file"
        raise ConfigError(f"cannot read {path}: {reason}") from None
    return parse(text, str(path), theory)


def parse(text: str, name: str = "configuration", theory: str | None = None) -> Config:
    """Return the configuration in a text; ``name`` is how errors call it."""
    try:
        content = tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{name} is nested too deeply") from None
    except ValueError as failure:  # TOMLDecodeError, and integers of more than 4300 digits
        raise ConfigError(f"{name} is not TOML: {failure}") from None
    return _Reader(content, text, name, theory).config()


class _Reader:
    """Turns parsed TOML into a configuration, and tells where it cannot."""

    def __init__(
        self, content: dict[str, Any], text: str, name: str, theory: str | None = None
    ) -> None:
        self.content, self.text, self.name, self.theory = content, text, name, theory

    def refuse(self, sentence: str, table: str = "", key: str = "", number: int = 0) -> NoReturn:
        """Raise the error, with the line of the key (or of the table)."""
        line = line_of(self.text, table, key, number)
        field = ".".join(part for part in (table, key) if part)
        where = "".join(
            [self.name, f", line {line}" if line else "", f", {field}" if field else ""]
        )
        raise ConfigError(f"{where}: {sentence}")

    def config(self) -> Config:
        """Return the configuration."""
        for key in self.content:
            if key not in _TABLES:
                self.refuse(f"{key} is not known: use {', '.join(_TABLES)}", "", key)
        self.system = self._system()
        fixed = self._constants("fixed")
        for key, value in self._constants("run").items():
            if key in fixed:
                self.refuse(f"{key} is given in [fixed] too", "run", key)
            fixed[key] = value
        if ("grid" in self.content) == ("list" in self.content):
            self.refuse("a sweep needs either [grid] or [[list]]")
        axes = self._axes(fixed) if "grid" in self.content else {}
        listed = self._listed(fixed) if "list" in self.content else ()
        config = Config(self.system.name, fixed, axes, listed, self.text)
        if config.size > MOST_CELLS:
            self.refuse(
                f"{config.size} cells are too many: at most {MOST_CELLS} are allowed", "grid"
            )
        self._check_cells(config)
        return config

    def _system(self) -> System:
        wanted = self.content.get("system", self.theory or theories.DEFAULT)
        if self.theory is not None and wanted != self.theory:
            self.refuse(f"system = {wanted!r} is not allowed with --theory", "", "system")
        try:
            return theories.load(wanted)
        except ParameterError as refusal:
            self.refuse(str(refusal), "", "system")

    def _table(self, name: str) -> dict[str, Any]:
        table = self.content.get(name, {})
        if not isinstance(table, dict):
            self.refuse(f"it must be a table: write [{name}] and its keys below", "", name)
        return table

    def _constants(self, name: str) -> dict[str, Any]:
        table = self._table(name)
        return {key: self._value(value, name, key) for key, value in table.items()}

    def _parameter(self, table: str, key: str, number: int = 0) -> Parameter:
        parameter = self.system.parameter(key)
        if parameter is None:
            known = ", ".join(one.name for one in self.system.parameters)
            self.refuse(f"{key} is not a parameter: choose among {known}", table, key, number)
        return parameter

    def _value(self, value: Any, table: str, key: str, number: int = 0) -> Any:
        parameter = self._parameter(table, key, number)
        if isinstance(value, dict) and table != "grid":
            self.refuse(
                f"{key} has several values: an axis belongs into [grid]", table, key, number
            )
        if isinstance(value, list):
            self.refuse(
                f"{key} has several values: an axis belongs into [grid]", table, key, number
            )
        try:
            parameter.check_type(value)
        except ParameterError as refusal:
            self.refuse(str(refusal), table, key, number)
        if parameter.dtype is str:
            return value
        return int(value) if parameter.dtype is int else float(value)

    def _axes(self, fixed: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        table = self._table("grid")
        if not table:
            self.refuse("it is empty: give at least one axis, as in nu = [0.001, 0.01]", "grid")
        self._count(table)
        axes: dict[str, tuple[Any, ...]] = {}
        for key, axis in table.items():
            if key in fixed:
                self.refuse(f"{key} has one value in [fixed] or [run] too", "grid", key)
            if isinstance(axis, dict):
                axis = self._scale(key, axis)
            if not isinstance(axis, list) or not axis:
                self.refuse(
                    "an axis is a list such as [0.001, 0.01] or "
                    '{ from = 0.001, to = 1.0, number = 4, scale = "log" }', "grid", key,
                )  # fmt: skip
            values = tuple(self._value(value, "grid", key) for value in axis)
            if len(set(values)) < len(values):
                self.refuse("a value occurs twice", "grid", key)
            axes[key] = values
        return axes

    def _count(self, table: Mapping[str, Any]) -> None:
        """Refuse axes that make too many cells, before the values of any of them are made."""
        size = 1
        for key, axis in table.items():
            self._parameter("grid", key)
            size *= self._length(axis)
            if size > MOST_CELLS:
                self.refuse(
                    f"{size} cells and more are too many: at most {MOST_CELLS} are allowed",
                    "grid", key,
                )  # fmt: skip

    def _length(self, axis: Any) -> int:
        """Return how many values an axis has, before they are made (1 if it is not one)."""
        if isinstance(axis, dict):
            axis = axis.get("number")
            return axis if isinstance(axis, int) and 1 <= axis <= 10**6 else 1
        return max(len(axis), 1) if isinstance(axis, list) else 1

    def _scale(self, key: str, axis: dict[str, Any]) -> list[Any]:
        """Return the values of an axis given by its ends."""
        for name in (*axis, *_AXIS[:3]):
            if name not in _AXIS or name not in axis:
                known = f"an axis has from, to, number and scale, so {name} is "
                self.refuse(known + ("missing" if name in _AXIS else "not known"), "grid", key)
        low, high = (self._finite(axis[name], key, name) for name in ("from", "to"))
        number, scale = axis["number"], axis.get("scale", "linear")
        if not isinstance(number, int) or isinstance(number, bool) or not 2 <= number <= 10**6:
            self.refuse(f"number = {number!r} is not allowed: it must be an integer, at least 2",
                        "grid", key)  # fmt: skip
        if scale not in ("log", "linear"):
            self.refuse(f"scale = {scale!r} is not allowed: it must be log or linear", "grid", key)
        if low == high:
            self.refuse(f"from and to are both {low:g}", "grid", key)
        if scale == "log":
            if min(low, high) <= 0.0:
                self.refuse("a logarithmic axis needs from and to greater than 0", "grid", key)
            values = np.geomspace(low, high, number)
        else:
            values = np.linspace(low, high, number)
        if self._parameter("grid", key).dtype is int:
            whole = values.round()
            return [
                int(n) if abs(n - v) < 1e-9 * abs(n) else v for n, v in zip(whole, values.tolist())
            ]
        return [float(f"{value:.12g}") for value in values]  # 2 rather than 1.9999999999999996

    def _finite(self, value: Any, key: str, name: str) -> float:
        try:
            return finite(name, value)
        except ParameterError as refusal:
            self.refuse(str(refusal), "grid", key)

    def _listed(self, fixed: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        cells = self.content["list"]
        if not isinstance(cells, list) or not cells or not all(isinstance(c, dict) for c in cells):
            self.refuse("cells are given as tables: write [[list]] above each", "", "list")
        listed = []
        for number, cell in enumerate(cells):
            for key in cell:
                if key in fixed:
                    self.refuse(f"{key} is given in [fixed] or [run] too", "list", key, number)
            listed.append({k: self._value(v, "list", k, number) for k, v in cell.items()})
        return tuple(listed)

    def _check_cells(self, config: Config) -> None:
        """Refuse a sweep without a single valid cell, with the reason of its first."""
        first = ""
        for values in itertools.islice(config, 100_000):
            try:
                self.system.build(values)
            except ParameterError as refusal:
                first = first or str(refusal)
            else:
                return
        table = "grid" if config.axes else "list"
        words = first.split()
        mentioned = sorted(
            (words.index(key), candidate, key)
            for candidate in ("fixed", "run", "grid")
            for key in self._table(candidate)
            if key in words
        )
        if mentioned:
            self.refuse(f"no cell can be run: {first}", *mentioned[0][1:])
        self.refuse(f"no cell can be run: {first}", table)
