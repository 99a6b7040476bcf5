"""Configuration of a sweep: a TOML file; errors give the line and the field.

.. code-block:: toml

    system = "positional"            # theory (this is the default)

    [fixed]                          # parameters with one value
    D = 64
    C = 4

    [grid]                           # axes, in the order of the result
    "qD/C^2" = { from = 0.01, to = 1.0, number = 10, scale = "log" }
    nu = [0.001, 0.01, 0.1]

    [run]                            # solver of all cells
    horizon = 1e6
    rtol = 1e-6

A list of cells is given by tables ``[[list]]`` instead of ``[grid]``.
"""

import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from dynamics.core.checks import finite
from dynamics.core.errors import ParameterError
from dynamics.core.parameters import Parameter
from simulations import theories
from simulations.sweep.toml_lines import line_of
from simulations.system import System

_TABLES = ("system", "fixed", "grid", "list", "run")
_AXIS = ("from", "to", "number", "scale")
#: Largest number of cells; more are probably a typing error.
MOST_CELLS = 1_000_000
#: Target number of blocks, and largest number of cells in a block.
_BLOCKS, _LARGEST_BLOCK = 256, 32


class ConfigError(Exception):
    """A configuration is not allowed; the message is one sentence with the line and the field."""


@dataclass(frozen=True)
class Config:
    """Configuration of a sweep.

    Attributes
    ----------
    system
        Name of the theory.
    fixed
        Parameters with one value for all cells.
    axes
        Mapping from parameter to its values. The cells are their product; the last axis varies
        fastest. Empty for a list.
    listed
        Cells of a list: their parameters in addition to ``fixed``.
    text
        Content of the configuration file.
    """

    system: str
    fixed: Mapping[str, Any]
    axes: Mapping[str, tuple[Any, ...]]
    listed: tuple[Mapping[str, Any], ...] = ()
    text: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values along each axis; for a list, the number of cells."""
        if self.listed:
            return (len(self.listed),)
        return tuple(len(values) for values in self.axes.values())

    @property
    def size(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    @property
    def block(self) -> int:
        """Number of cells that are stored together; it does not depend on the engine."""
        return max(1, min(_LARGEST_BLOCK, math.ceil(self.size / _BLOCKS)))

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return math.ceil(self.size / self.block)

    def cells_of(self, block: int) -> range:
        """Return the numbers of the cells of a block."""
        return range(block * self.block, min(self.size, (block + 1) * self.block))

    def values(self, cell: int) -> dict[str, Any]:
        """Return a mapping from parameter to value for a cell."""
        if self.listed:
            return {**self.fixed, **self.listed[cell]}
        axes = zip(self.axes.items(), np.unravel_index(cell, self.shape))
        return {**self.fixed, **{name: values[int(index)] for (name, values), index in axes}}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self.values(cell) for cell in range(self.size))

    def plain(self) -> dict[str, Any]:
        """Return the JSON-safe content of the configuration, without comments."""
        axes = [[name, list(values)] for name, values in self.axes.items()]
        listed = [dict(cell) for cell in self.listed]
        return {"system": self.system, "fixed": dict(self.fixed), "axes": axes, "list": listed}

    @property
    def digest(self) -> str:
        """Hash of the content, 16 characters."""
        content = json.dumps(self.plain(), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def read(
    path: Path, theory: str | None = None, options: Mapping[str, Any] = MappingProxyType({})
) -> Config:
    """Read a configuration file.

    Parameters
    ----------
    path
        TOML file.
    theory
        Name of the theory if the file does not choose one.
    options
        Parameters of the table ``[run]`` in addition to those of the file.

    Raises
    ------
    ConfigError
        If the file cannot be read or is not a configuration.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise ConfigError(f"cannot read {path}: {reason}") from None
    return parse(text, str(path), theory, options)


def parse(
    text: str,
    name: str = "configuration",
    theory: str | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Config:
    """Return the configuration in a TOML text.

    Parameters
    ----------
    text
        TOML text.
    name
        Name of the text in error messages.
    theory
        Name of the theory if the text does not choose one.
    options
        Parameters of the table ``[run]`` in addition to those of the text.

    Raises
    ------
    ConfigError
        If the text is not a configuration.
    """
    try:
        content = tomllib.loads(text)
    except RecursionError:
        raise ConfigError(f"{name} is nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, and integers of more than 4300 digits
        raise ConfigError(f"{name} is not TOML: {error}") from None
    run = content.setdefault("run", {}) if options else {}
    if isinstance(run, dict):
        for key, value in options.items():
            if any(key in content.get(table, {}) for table in ("fixed", "grid", "run")):
                raise ConfigError(
                    f"{key} = {value} is not allowed: {name} gives {key} too; remove one of the two"
                )
            run[key] = value
    return _Reader(content, text, name, theory).config()


class _Reader:
    """Converter of parsed TOML to a configuration, with errors that give the line."""

    def __init__(
        self, content: dict[str, Any], text: str, name: str, theory: str | None = None
    ) -> None:
        self.content, self.text, self.name, self.theory = content, text, name, theory

    def reject(self, sentence: str, table: str = "", key: str = "", number: int = 0) -> NoReturn:
        """Raise ConfigError with the line of the key, or of the table."""
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
                self.reject(f"{key} is not known: use {', '.join(_TABLES)}", "", key)
        self.system = self._system()
        fixed = self._constants("fixed")
        for key, value in self._constants("run").items():
            if key in fixed:
                self.reject(f"{key} is given in [fixed] too", "run", key)
            fixed[key] = value
        if ("grid" in self.content) == ("list" in self.content):
            self.reject("a sweep needs either [grid] or [[list]]")
        axes = self._axes(fixed) if "grid" in self.content else {}
        listed = self._listed(fixed) if "list" in self.content else ()
        config = Config(self.system.name, fixed, axes, listed, self.text)
        if config.size > MOST_CELLS:
            self.reject(
                f"{config.size} cells are too many: at most {MOST_CELLS} are allowed", "grid"
            )
        self._check_cells(config)
        return config

    def _system(self) -> System:
        name = self.content.get("system", self.theory or theories.DEFAULT)
        if self.theory is not None and name != self.theory:
            self.reject(f"system = {name!r} is not allowed with --theory", "", "system")
        try:
            return theories.load(name)
        except ParameterError as error:
            self.reject(str(error), "", "system")

    def _table(self, name: str) -> dict[str, Any]:
        table = self.content.get(name, {})
        if not isinstance(table, dict):
            self.reject(f"it must be a table: write [{name}] and its keys below", "", name)
        return table

    def _constants(self, name: str) -> dict[str, Any]:
        table = self._table(name)
        return {key: self._value(value, name, key) for key, value in table.items()}

    def _parameter(self, table: str, key: str, number: int = 0) -> Parameter:
        parameter = self.system.parameter(key)
        if parameter is None:
            known = ", ".join(parameter.name for parameter in self.system.parameters)
            self.reject(f"{key} is not a parameter: choose among {known}", table, key, number)
        return parameter

    def _value(self, value: Any, table: str, key: str, number: int = 0) -> Any:
        parameter = self._parameter(table, key, number)
        if isinstance(value, list) or (isinstance(value, dict) and table != "grid"):
            self.reject(f"{key} has several values: move it to [grid]", table, key, number)
        try:
            parameter.check_type(value)
        except ParameterError as error:
            self.reject(str(error), table, key, number)
        if parameter.dtype is str:
            return value
        return int(value) if parameter.dtype is int else float(value)

    def _axes(self, fixed: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
        table = self._table("grid")
        if not table:
            self.reject("it is empty: give at least one axis, as in nu = [0.001, 0.01]", "grid")
        self._count(table)
        axes: dict[str, tuple[Any, ...]] = {}
        for key, axis in table.items():
            if key in fixed:
                self.reject(f"{key} has one value in [fixed] or [run] too", "grid", key)
            if isinstance(axis, dict):
                axis = self._scale(key, axis)
            if not isinstance(axis, list) or not axis:
                self.reject(
                    "an axis is a list such as [0.001, 0.01] or "
                    '{ from = 0.001, to = 1.0, number = 4, scale = "log" }',
                    "grid",
                    key,
                )
            values = tuple(self._value(value, "grid", key) for value in axis)
            if len(set(values)) < len(values):
                self.reject("a value occurs twice", "grid", key)
            axes[key] = values
        return axes

    def _count(self, table: Mapping[str, Any]) -> None:
        """Reject axes with too many cells before their values are computed."""
        size = 1
        for key, axis in table.items():
            self._parameter("grid", key)
            size *= self._length(axis)
            if size > MOST_CELLS:
                self.reject(
                    f"{size} cells and more are too many: at most {MOST_CELLS} are allowed",
                    "grid",
                    key,
                )

    def _length(self, axis: Any) -> int:
        """Return the number of values of an axis without computing them, 1 if it is invalid."""
        if isinstance(axis, dict):
            axis = axis.get("number")
            return axis if isinstance(axis, int) and 1 <= axis <= 10**6 else 1
        return max(len(axis), 1) if isinstance(axis, list) else 1

    def _scale(self, key: str, axis: dict[str, Any]) -> list[Any]:
        """Return the values of an axis that is given by its ends."""
        for name in (*axis, *_AXIS[:3]):
            if name not in _AXIS or name not in axis:
                known = f"an axis has from, to, number and scale, so {name} is "
                self.reject(known + ("missing" if name in _AXIS else "not known"), "grid", key)
        low, high = (self._finite(axis[name], key, name) for name in ("from", "to"))
        number, scale = axis["number"], axis.get("scale", "linear")
        if not isinstance(number, int) or isinstance(number, bool) or not 2 <= number <= 10**6:
            self.reject(
                f"number = {number!r} is not allowed: it must be an integer, at least 2",
                "grid",
                key,
            )
        if scale not in ("log", "linear"):
            self.reject(f"scale = {scale!r} is not allowed: it must be log or linear", "grid", key)
        if low == high:
            self.reject(f"from and to are both {low:g}: they must differ", "grid", key)
        if scale == "log":
            if min(low, high) <= 0.0:
                self.reject("a logarithmic axis needs from and to greater than 0", "grid", key)
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
        except ParameterError as error:
            self.reject(str(error), "grid", key)

    def _listed(self, fixed: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        cells = self.content["list"]
        if not isinstance(cells, list) or not cells or not all(isinstance(c, dict) for c in cells):
            self.reject("list must consist of tables: write [[list]] above each cell", "", "list")
        listed = []
        for number, cell in enumerate(cells):
            for key in cell:
                if key in fixed:
                    self.reject(f"{key} is given in [fixed] or [run] too", "list", key, number)
            listed.append({k: self._value(v, "list", k, number) for k, v in cell.items()})
        return tuple(listed)

    def _check_cells(self, config: Config) -> None:
        """Reject a sweep without valid cells; the message is that of its first cell."""
        first = ""
        for values in itertools.islice(config, 100_000):
            try:
                self.system.build(values)
            except ParameterError as error:
                first = first or str(error)
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
            self.reject(f"no cell can be run: {first}", *mentioned[0][1:])
        self.reject(f"no cell can be run: {first}", table)
