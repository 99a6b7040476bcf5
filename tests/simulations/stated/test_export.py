"""Exported modules, compared with the compiled kernel and with derivatives by JAX."""

import ast
import json
import subprocess
import sys

import numpy as np
import pytest

import patchdyn
import symbolic
from dynamics.core.errors import ParameterError
from dynamics.theory.data import orbits
from dynamics.theory.kernel import mean, mean_function
from simulations.cli import main
from simulations.reproduction.typeset import displayed
from simulations.stated.law import law
from symbolic.theory import load_theory
from symbolic.theory.export.printed import latex_equations
from symbolic.theory.source import source
from tests.closeness import close, within
from tests.symbolic.theory.random_theories import random_theory

EXAMPLES = "simulations/stated/examples"
PAPERS = {
    f"{EXAMPLES}/teacher.py": {"D": 12, "K": 3, "nu": 0.7},
    f"{EXAMPLES}/look_up.py": {"K": 4, "N": 3},
    f"{EXAMPLES}/look_up_imbalanced.py": {"K": 4, "N": 3, "p": 0.4},
    f"{EXAMPLES}/induction.py": {"N": 5},
    f"{EXAMPLES}/in_context_regression.py": {
        "N": 4,
        "m": 2,
        "n": 3,
        "lam": 0.5,
        "mu": 2.0,
        "u_start": 0.1,
        "v_start": 0.2,
    },
    "symbolic/masked/stated.py": {"G": 3, "C": 2, "N": 3, "M": 2, "z": 0.8},
    "symbolic/positional/stated.py": {
        "D": 12,
        "C": 3,
        "q": 0.3,
        "nu": 0.1,
        "beta": 1.0,
        "p": 3.0,
        "kappa": 12.0,
        "tau": 1.5,
    },
}


def module(text):
    names = {}
    exec(compile(text, "<exported>", "exec"), names)
    return names


def expected(theory, values, state):
    """Return loss and gradient of the kernel."""
    checked = theory.checked(values)
    function = mean_function(source(theory), theory.name)
    return mean(function, orbits(law(theory, checked)), state, list(checked.values()))


def assert_same(exported, theory, values, state):
    loss, gradient = expected(theory, values, state)
    close(exported["loss"](state, **values), loss, rel=1e-12)
    largest = max([1e-300, *np.abs(gradient)])
    within(np.asarray(exported["gradient"](state, **values)), gradient, absolute=1e-12 * largest)


@pytest.mark.parametrize(
    "path",
    [pytest.param(x, marks=pytest.mark.slow if "masked" in x else ()) for x in PAPERS],
)
def test_numpy_equals_the_kernel(path):
    theory, values = load_theory(path), PAPERS[path]
    state = 0.5 * np.random.default_rng(1).normal(size=len(theory.orders))
    assert_same(module(theory.export("python")), theory, values, state)


@pytest.mark.parametrize("seed", range(20))
def test_random_theories(tmp_path, seed):
    path = tmp_path / "mine.py"
    path.write_text(random_theory(seed))
    theory = load_theory(path)
    exported = module(theory.export("python"))
    state = 0.6 * np.random.default_rng(seed).normal(size=len(theory.orders))
    for n, m in ((2, 2), (3, 1), (1, 3)):
        values = {"n": n, "m": m} | dict.fromkeys(theory.free_constants, 0.3)
        try:
            assert_same(exported, theory, values, state)
        except ParameterError:
            continue


@pytest.fixture
def jax():
    """Return JAX, and reset the precision after the test, because exported modules set it."""
    module = pytest.importorskip("jax")
    before = module.config.jax_enable_x64
    yield module
    module.config.update("jax_enable_x64", before)


@pytest.mark.slow
@pytest.mark.parametrize("path", list(PAPERS)[:2] + list(PAPERS)[-1:])
def test_jax_differentiates_the_loss_to_the_gradient(path, jax):
    theory, values = load_theory(path), PAPERS[path]
    exported = module(theory.export("jax"))
    state = np.array([0.0] * len(theory.orders))  # equal scores: the largest is not unique
    for x in (state, state + 0.4):
        assert_same(exported, theory, values, x)
        slopes = jax.jit(jax.grad(lambda y: exported["loss"](y, **values)))(x)
        counts = [float(n.subs(values)) for n in theory.order_parameters.values()]
        _, gradient = expected(theory, values, x)
        largest = max([1e-300, *np.abs(gradient)])
        within(np.asarray(slopes) / counts, gradient, absolute=1e-12 * largest)


def test_exported_module_imports_only_numpy(tmp_path):
    text = load_theory(f"{EXAMPLES}/look_up.py").export("python")
    imported = {
        alias.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert imported == {"itertools", "math", "numpy"}
    (tmp_path / "look_up.py").write_text(text)
    code = "import json, look_up; print(json.dumps(float(look_up.loss([0.1, 0.2], K=3, N=2))))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True
    )
    theory = load_theory(f"{EXAMPLES}/look_up.py")
    close(json.loads(run.stdout), expected(theory, {"K": 3, "N": 2}, [0.1, 0.2])[0], rel=1e-12)


def test_theory_without_sizes_and_constants(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        'w = Tensor("w", start=1)\n'
        'THEORY = Theory("mine", "none", sizes=(), parameters=(w,), loss=lambda w: w * w)\n'
    )
    exported = module(load_theory(path).export("python"))
    assert exported["loss"]([3.0]) == 9.0
    assert exported["gradient"]([3.0]).tolist() == [6.0]


def test_missing_or_unknown_value_is_reported():
    exported = module(load_theory(f"{EXAMPLES}/look_up.py").export("python"))
    with pytest.raises(TypeError, match="'N'"):
        exported["loss"]([0.1, 0.2], K=3)
    with pytest.raises(TypeError, match="'M'"):
        exported["loss"]([0.1, 0.2], K=3, N=2, M=1)


def test_loaded_theory():
    theory = patchdyn.load_theory(f"{EXAMPLES}/teacher.py")
    assert list(theory.order_parameters) == ["v", "c_in", "c_out"]
    assert theory.check().agrees
    risk = theory.risk(K=2)  # D and nu are the defaults of the file
    assert dict(risk.problem.values) == {"D": 16, "K": 2, "nu": 1.0}
    run = patchdyn.gradient_flow(risk, horizon=10.0)
    assert run.loss[-1] < run.loss[0]
    exported = module(theory.export("python"))
    x = run.states[-1]
    close(exported["loss"](x, D=16, K=2, nu=1.0), run.loss[-1], rel=1e-12)


def test_command_prints_equations(capsys):
    file = f"{symbolic.__path__[0]}/positional/stated.py"
    assert main(["theory", file, "--export", "text"]) == 0
    assert "  p2 = exp(gamma/tau)/a1" in capsys.readouterr().out
    assert main(["theory", file, "--export", "latex", "--at", "D=4"]) == 2
    assert "--at" in capsys.readouterr().err


def test_equations_of_pages_agree_with_the_export():
    theory = load_theory(f"{EXAMPLES}/teacher.py")
    rows = latex_equations(theory)
    exported = theory.export("latex")
    assert [row.partition(" = ")[0] for row in rows] == [
        row.partition(" &= ")[0].strip() for row in exported.splitlines() if " &= " in row
    ]
    assert all(displayed(row).startswith('<math display="block"') for row in rows)
