"""The package `patchdyn`: light to import, complete, and the same objects as those underneath."""

import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest

import patchdyn

HEAVY = ("sympy", "scipy", "numba", "numpy", "pandas", "matplotlib", "xarray", "hypothesis")


def loaded_after(statement: str) -> set[str]:
    """Return the packages that a fresh interpreter has loaded after a statement."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in result.stdout.split()}


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not loaded_after("import patchdyn; dir(patchdyn)") & {*HEAVY}


def test_a_name_loads_no_more_than_its_own_package() -> None:
    loaded = loaded_after("from patchdyn import Problem")
    assert "dynamics" in loaded
    assert not loaded & {"sympy", "matplotlib", "hypothesis", "symbolic", "simulations"}


@pytest.mark.parametrize("name", patchdyn.__all__)
def test_each_public_name_is_the_object_of_its_module(name: str) -> None:
    assert getattr(patchdyn, name) is getattr(import_module(patchdyn._MODULES[name]), name)
    assert name in dir(patchdyn)


def test_every_public_name_has_a_module() -> None:
    assert sorted(patchdyn._MODULES) == patchdyn.__all__


def test_version() -> None:
    assert patchdyn.__version__ == version("patchdyn")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Populaton'"):
        patchdyn.Populaton  # noqa: B018
    with pytest.raises(ImportError, match="Populaton"):
        from patchdyn import Populaton  # noqa: F401
