"""The fields and sliders of the parameters: what is typed is the truth, a slider types for you."""

from collections.abc import Callable, Mapping
from typing import Any

from bokeh.layouts import column, row
from bokeh.models import Select, Slider, TextInput, Tooltip

from dynamics.core.parameters import Parameter
from simulations.explorer.plots import letters
from simulations.explorer.state import LONGEST, nearest, show, ticks, usual
from simulations.system import System


def on_change(model: Any, name: str, act: Callable[[], None]) -> None:
    """Let something be done whenever a property changes; what Bokeh tells of it is at hand."""

    def changed(attr: str, old: Any, new: Any) -> None:
        act()

    model.on_change(name, changed)


class Control:
    """One parameter: a field, and a slider beside it where it has slider values."""

    def __init__(self, theory: System, parameter: Parameter, changed: Callable[[], None]) -> None:
        self.parameter, self._changed, self._quiet = parameter, changed, False
        self.usual, self.ticks = usual(theory, parameter), ticks(parameter)
        words = parameter.help
        title = letters(parameter.name)
        common = {"title": title, "name": parameter.name, "width": 124,
                  "description": Tooltip(content=words, position="right")}  # fmt: skip
        self.field: Any
        if parameter.choices:
            options = [("", f"{self.usual or 'default'}"), *((one, one) for one in
                       parameter.choices if one != self.usual)]  # fmt: skip
            self.field = Select(value="", options=options, **common)
        else:
            holder = self.usual or "default"
            self.field = TextInput(value="", placeholder=holder, max_length=LONGEST, **common)
        on_change(self.field, "value", self._typed)
        self.slider = self._slider() if self.ticks else None
        self.widget = self.field if self.slider is None else row(self.field, self.slider)

    def _slider(self) -> Slider:
        made = Slider(start=0, end=len(self.ticks) - 1, step=1, value=self._stop(), width=124,
                      show_value=False, tooltips=False, title="", align="end",
                      name=f"slider of {self.parameter.name}", margin=(5, 5, 13, 5))  # fmt: skip
        on_change(made, "value", self._slid)
        return made

    def _stop(self) -> int:
        place = nearest(self.parameter, self.field.value or self.usual)
        return len(self.ticks) // 2 if place is None else place

    @property
    def text(self) -> str:
        """What is given; empty where the usual value holds."""
        return str(self.field.value)

    def set(self, text: str) -> None:
        """Show a value without telling that it changed."""
        self._quiet = True
        known = [value for value, _ in self.field.options] if isinstance(self.field, Select) else ()
        if known:
            text = "" if text == self.usual else text
            if text not in known:  # as it was given, to be refused with a sentence
                self.field.options = [*self.field.options, (text, text)]
        self.field.value = text
        if self.slider is not None:
            self.slider.value = self._stop()
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
    """All parameters of a theory: those with sliders, then, folded, the others."""

    def __init__(self, theory: System, changed: Callable[[], None]) -> None:
        made = [Control(theory, one, changed) for one in theory.parameters]
        self.by_name = {one.parameter.name: one for one in made}
        self.main = column([one.widget for one in made if one.slider is not None], name="main",
                           spacing=-4)  # fmt: skip
        others = [one.widget for one in made if one.slider is None]
        pairs = [row(others[k : k + 2]) for k in range(0, len(others), 2)]
        self.more = column(pairs, name="more", spacing=-4)

    @property
    def texts(self) -> dict[str, str]:
        """What is given, by parameter."""
        return {name: one.text for name, one in self.by_name.items() if one.text.strip()}

    def set(self, texts: Mapping[str, str]) -> None:
        """Show these values, and the usual ones of all others."""
        for name, one in self.by_name.items():
            one.set(texts.get(name, ""))
