"""Fields and sliders of the parameters; a slider writes its value to the field."""

from collections.abc import Callable, Mapping
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import Select, Slider, TextInput, Tooltip

from dynamics.core.parameters import Parameter
from simulations.explorer.plots import letters, on_change
from simulations.explorer.state import LONGEST, default_text, nearest, show, ticks
from simulations.system import System


class Control:
    """Field of a parameter, with a slider if the parameter has slider values.

    Parameters
    ----------
    theory, parameter
        Parameter and its theory.
    changed
        Called when the user changes the value.
    """

    def __init__(self, theory: System, parameter: Parameter, changed: Callable[[], None]) -> None:
        self.parameter, self._changed, self._quiet = parameter, changed, False
        self.default, self.ticks = default_text(theory, parameter), ticks(parameter)
        common = {
            "title": letters(parameter.name),
            "name": parameter.name,
            "width": 124,
            "description": Tooltip(content=parameter.help, position="right"),
        }
        self.field: Any
        if parameter.choices:
            others = (choice for choice in parameter.choices if choice != self.default)
            options = [("", self.default or "default"), *((choice, choice) for choice in others)]
            self.field = Select(value="", options=options, **common)
        else:
            placeholder = self.default or "default"
            self.field = TextInput(value="", placeholder=placeholder, max_length=LONGEST, **common)
        on_change(self.field, "value", self._typed)
        self.slider = self._slider() if self.ticks else None
        self.widget = self.field if self.slider is None else row(self.field, self.slider)

    def _slider(self) -> Slider:
        slider = Slider(
            start=0,
            end=len(self.ticks) - 1,
            step=1,
            value=self._slider_index(),
            width=124,
            show_value=False,
            tooltips=False,
            title="",
            align="end",
            name=f"slider of {self.parameter.name}",
            margin=(5, 5, 13, 5),
        )
        on_change(slider, "value", self._slid)
        return slider

    def _slider_index(self) -> int:
        index = nearest(self.parameter, self.field.value or self.default)
        return len(self.ticks) // 2 if index is None else index

    @property
    def text(self) -> str:
        """Text of the field; empty for the default."""
        return str(self.field.value)

    def set(self, text: str) -> None:
        """Show a value without calling ``changed``."""
        self._quiet = True
        known = [value for value, _ in self.field.options] if isinstance(self.field, Select) else ()
        if known:
            text = "" if text == self.default else text
            if text not in known:  # shown as given; the run rejects it with a message
                self.field.options = [*self.field.options, (text, text)]
        self.field.value = text
        if self.slider is not None:
            self.slider.value = self._slider_index()
        self._quiet = False

    def _typed(self) -> None:
        if not self._quiet:
            self.set(self.text)
            self._changed()

    def _slid(self) -> None:
        if not self._quiet and self.slider is not None:
            self._quiet = True
            self.field.value = show(self.ticks[round(self.slider.value)])
            self._quiet = False
            self._changed()


class Controls:
    """All parameters of a theory: those with sliders, and the others in a collapsed list."""

    def __init__(self, theory: System, changed: Callable[[], None]) -> None:
        controls = [Control(theory, parameter, changed) for parameter in theory.parameters]
        self.by_parameter = {control.parameter.name: control for control in controls}
        with_slider = [control.widget for control in controls if control.slider is not None]
        self.main = column(with_slider, name="main", spacing=-4)
        others = [control.widget for control in controls if control.slider is None]
        pairs = [row(others[k : k + 2]) for k in range(0, len(others), 2)]
        self.more = column(pairs, name="more", spacing=-4)

    @property
    def texts(self) -> dict[str, str]:
        """Mapping from parameter to text, without empty fields."""
        return {n: control.text for n, control in self.by_parameter.items() if control.text.strip()}

    def set(self, texts: Mapping[str, str]) -> None:
        """Show these values, and the defaults of all other parameters."""
        for name, control in self.by_parameter.items():
            control.set(texts.get(name, ""))
