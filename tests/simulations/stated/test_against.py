"""`patchdyn.against`: training runs in NumPy and JAX next to their theories."""

import json
from itertools import combinations
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure
from scipy.special import softmax

from dynamics import ParameterError, Problem
from dynamics.full import FullPopulation
from patchdyn import against
from simulations.cli import main
from simulations.commands.against import read
from simulations.figures.shared import draw_against
from simulations.stated import two_layers
from simulations.stated.against import Verdict, _error
from symbolic.theory import TheoryError
from tests.closeness import close, within
from tests.weights import write_weights

EXAMPLES = Path(__file__).parents[3] / "simulations" / "stated" / "examples"
#: Error of two implementations of the same descent, relative.
ROUNDING = 1e-10


def descend(gradient, weights, rate, steps, every):
    """Return a run of gradient descent on a mapping of weights, logged every few steps."""
    logged, at = {name: [x] for name, x in weights.items()}, [0]
    for step in range(1, steps + 1):
        slopes = gradient(weights)
        weights = {name: x - rate * slopes[name] for name, x in weights.items()}
        if step % every == 0:
            at.append(step)
            for name, x in weights.items():
                logged[name].append(x)
    arrays = {name: np.array(rows) for name, rows in logged.items()}
    return arrays | {"steps": np.array(at), "learning_rate": rate}


def without(run, *names):
    return {name: x for name, x in run.items() if name not in names}


@pytest.fixture(scope="module")
def exact():
    return TestPositional().run()


@pytest.fixture(scope="module")
def run():
    return TestSaadSolla().run()


class TestPositional:
    """D x D runs with hidden sets and a hidden feature."""

    CONSTANTS: ClassVar = {"C": 2, "q": 0.3, "nu": 0.05, "beta": 1.0}
    SETS = ((5, 2), (0, 4), (1, 3))

    def run(self, noise=0.0):
        problem = Problem(D=6, p=3, **self.CONSTANTS)
        rng = np.random.default_rng(0)
        w_star = rng.normal(size=6)
        w_star /= np.linalg.norm(w_star)
        population = FullPopulation(problem, w_star, self.SETS)

        def gradient(weights):
            value = population.evaluate(weights["A"], weights["v"])
            return {"A": value.dA, "v": value.dv}

        A = np.eye(6) + noise * rng.normal(size=(6, 6)) * (1.0 - np.eye(6))
        start = {"A": A, "v": problem.initial_state.alpha * w_star}
        return descend(gradient, start, 0.05, 600, 50)

    def test_run_follows_step_by_step_and_the_sets_are_identified(self, exact):
        result = against(exact, "positional", **self.CONSTANTS)
        assert result.verdict is Verdict.FOLLOWS
        assert result.follows
        within(result.error, 0.0, ROUNDING)
        within(result.projection.distance, 0.0, ROUNDING)
        order = np.array(result.projection.orders["patch"]).reshape(3, 2)
        assert {frozenset(row) for row in order.tolist()} == {frozenset(x) for x in self.SETS}
        assert result.projection.states[-1, 1] > 10.0 * abs(result.projection.states[0, 1])

    def test_another_rate(self, exact):
        result = against({**exact, "learning_rate": 0.08}, "positional", **self.CONSTANTS)
        assert result.verdict is Verdict.OTHER_RATE
        close(result.time_scale, 0.05, rel=0.02)
        assert "x the learning rate" in result.sentence

    def test_unknown_rate_is_fitted(self, exact):
        result = against(without(exact, "learning_rate"), "positional", **self.CONSTANTS)
        assert result.verdict is Verdict.FOLLOWS
        close(result.time_scale, 0.05, rel=0.02)

    def test_other_dynamics_on_the_manifold(self, exact):
        result = against(exact, "positional", **{**self.CONSTANTS, "q": 0.6})
        assert result.verdict is Verdict.DIFFERS
        assert result.error.max() > result.tolerance

    def test_random_start_leaves_the_manifold(self):
        result = against(self.run(noise=0.3), "positional", **self.CONSTANTS)
        assert result.verdict is Verdict.LEAVES
        assert "first off the manifold at step 0" in result.sentence

    @pytest.mark.slow
    def test_file_of_the_same_theory(self, exact):
        file = EXAMPLES.parents[2] / "symbolic" / "positional" / "stated.py"
        result = against(exact, file, **self.CONSTANTS, kappa=6.0, tau=1.0, p=3)
        within(result.error, 0.0, ROUNDING)

    def test_divergence_of_the_theory(self, exact):
        result = against({**exact, "learning_rate": 20.0}, "positional", **self.CONSTANTS)
        assert result.verdict is Verdict.OTHER_RATE
        assert np.isinf(result.error[-1])


class TestMasked:
    """Full matrices of the masked model, on all masks, with hidden areas."""

    SIZES: ClassVar = {"G": 2, "C": 2, "N": 2, "M": 3, "z": 1.0}
    AREAS = (2, 0, 1, 1, 2, 0)  # area 0 is the global one

    def gradient(self, weights):
        inside = np.eye(3)[list(self.AREAS)]
        slopes = {name: np.zeros_like(x) for name, x in weights.items()}
        masks = list(combinations(range(6), self.SIZES["M"]))
        for hidden in masks:
            masked = np.isin(np.arange(6), hidden)
            scores = weights["Upsilon"] + ~masked * (weights["Phi"] @ inside.T)
            attention = softmax(scores, axis=1)
            error = masked[:, None] * (inside - (attention * ~masked) @ inside)
            change = -(error @ inside.T) * ~masked
            change = attention * (change - (attention * change).sum(axis=1, keepdims=True))
            slopes["Upsilon"] += change / len(masks)
            slopes["Phi"] += (~masked * change) @ inside / len(masks)
        return slopes

    def run(self, scale):
        rng = np.random.default_rng(0)
        start = {
            "Phi": scale * rng.normal(size=(6, 3)),
            "Upsilon": scale * rng.normal(size=(6, 6)),
        }
        return descend(self.gradient, start, 2.0, 200, 20)

    @pytest.mark.slow
    def test_areas_are_identified(self):
        result = against(self.run(0.0), "masked", **self.SIZES)
        assert result.follows
        within(result.error, 0.0, ROUNDING)
        within(result.projection.distance, 0.0, ROUNDING)
        order = [self.AREAS[k] for k in result.projection.orders["patch"]]
        assert order[:2] == [0, 0]
        assert order[2] == order[3] != order[4] == order[5]

    @pytest.mark.slow
    def test_random_start_leaves_the_manifold(self):
        result = against(self.run(1.0), "masked", **self.SIZES)
        assert result.verdict is Verdict.LEAVES


class TestSaadSolla:
    """Descent on the closed form of the risk, with arcsines of inner products."""

    FILE = EXAMPLES / "saad_solla.py"

    def run(self, noise=0.0):
        rng = np.random.default_rng(3)
        axes = np.linalg.qr(rng.normal(size=(12, 12)))[0]
        teacher = axes[:3]
        start = 0.3 * axes[3:6] + 0.05 * teacher.sum(axis=0) + 0.1 * teacher
        start = start + noise * rng.normal(size=start.shape)

        def gradient(weights):
            """Return the slope of sum_ij c_i c_j arcsin(G_ij / sqrt((1+G_ii) (1+G_jj))) / pi."""
            rows = np.vstack([weights["J"], teacher])
            gram, signs = rows @ rows.T, np.repeat([1.0, -1.0], 3)
            norms = 1.0 + np.diag(gram)
            pairs = np.outer(signs, signs) / np.pi / np.sqrt(np.outer(norms, norms) - gram**2)
            own = (pairs * gram).sum(axis=1) / norms
            return {"J": (2.0 * pairs @ rows - 2.0 * own[:, None] * rows)[:3]}

        run = descend(gradient, {"J": start}, 0.5, 200, 20)
        return run | {"B": teacher[[2, 0, 1]]}

    def test_units_are_matched_with_those_of_the_teacher(self):
        result = against(self.run(), self.FILE)
        assert result.follows
        assert result.values == {"d": 12, "K": 3}
        assert result.projection.orders == {"B": [1, 2, 0]}
        within(result.error, 0.0, ROUNDING)
        states = dict(zip(result.projection.names, result.projection.states[-1]))
        assert states["R"] > 2.0 * states["S"]

    def test_unknown_rate(self):
        result = against(without(self.run(), "learning_rate"), self.FILE)
        assert result.follows
        close(result.time_scale, 0.5, rel=0.05)

    def test_random_start_leaves_the_manifold(self):
        assert against(self.run(noise=0.1), self.FILE).verdict is Verdict.LEAVES


class TestInContext:
    """Descent on the exact mean over normal data, with the coordinates in another order."""

    @pytest.mark.slow
    def test_coordinates_are_identified(self):
        deviations = np.sqrt([0.3, 1.0])
        nodes, weights = np.polynomial.hermite_e.hermegauss(4)
        grid = np.array(np.meshgrid(*[nodes] * 8, indexing="ij")).reshape(8, -1).T
        law = np.prod(
            np.array(np.meshgrid(*[weights / weights.sum()] * 8, indexing="ij")).reshape(8, -1), 0
        )
        w, query, x = grid[:, :2], grid[:, 2:4] * deviations, grid[:, 4:].reshape(-1, 2, 2)
        x = x * deviations
        y = np.einsum("bi,bni->bn", w, x)

        def gradient(weights):
            p, v, U, r = (weights[name] for name in "pvUr")
            value = x @ p + v * y
            key = x @ U + y[..., None] * r
            score = np.einsum("bnk,bk->bn", key, query)
            error = law * ((value * score).mean(axis=1) - (w * query).sum(axis=1))
            on_value, on_score = error[:, None] * score / 2.0, error[:, None] * value / 2.0
            on_key = on_score[..., None] * query[:, None]
            return {
                "p": np.einsum("bn,bni->i", on_value, x),
                "v": (on_value * y).sum(),
                "U": np.einsum("bnj,bnk->jk", x, on_key),
                "r": np.einsum("bn,bnk->k", y, on_key),
            }

        start = {"p": np.zeros(2), "v": 0.5, "U": np.diag([0.4, 0.4]), "r": np.zeros(2)}
        run = descend(gradient, start, 0.05, 20, 2)
        constants = {"N": 2, "m": 1, "n": 1, "lam": 1.0, "mu": 0.3, "v_start": 0.5, "u_start": 0.4}
        result = against(run, EXAMPLES / "in_context_regression.py", **constants)
        assert result.follows
        assert result.projection.orders == {"coordinate": [1, 0]}
        within(result.error, 0.0, ROUNDING)


class TestInductionHead:
    """Two layers of attention with all entries; a, b and g are coefficients of matrices."""

    N = 2

    def run(self, trained):
        """Return descent on the entries of the order parameters ``trained``."""
        full = two_layers.Entries(self.N)
        where = [two_layers.NAMES.index(name) for name in trained]
        x = np.zeros(len(two_layers.NAMES))
        x[[two_layers.NAMES.index(name) for name in two_layers.HEAD]] = 0.5

        def gradient(weights):
            slopes = two_layers.slopes_of(self.N, weights["x"]) / full.d
            mask = np.zeros_like(slopes)
            mask[where] = 1.0
            return {"x": mask * slopes}

        run = descend(gradient, {"x": x}, 2.0, 200, 20)
        matrices = [full.split(full.lift @ row) for row in run.pop("x")]
        head = [two_layers.NAMES.index(name) for name in two_layers.HEAD]
        directions = [full.split(full.lift[:, k])[layer] for layer, k in enumerate(head)]
        for layer, name in enumerate("abg"):
            run[name] = np.array([row[layer] for row in matrices])
            run[f"{name}.direction"] = directions[layer]
        return run

    def test_head_moves_at_the_rate_of_its_matrices(self):
        result = against(self.run(two_layers.HEAD), EXAMPLES / "induction.py", N=self.N)
        assert result.follows
        within(result.error, 0.0, ROUNDING)
        close(result.projection.norms, float(2 * self.N + 2), rel=1e-12)
        assert result.projection.states[-1].min() > 0.5

    def test_other_entries_leave_the_head(self):
        result = against(self.run(two_layers.NAMES), EXAMPLES / "induction.py", N=self.N)
        assert result.verdict is Verdict.LEAVES
        assert result.projection.distance[0] < ROUNDING


class TestStochasticDescent:
    """One-pass SGD on look-up: K features, prompts of N tokens."""

    def run(self, rate=0.5, batch=64, steps=150):
        rng = np.random.default_rng(5)

        def gradient(weights):
            query, tokens = rng.integers(3, size=batch), rng.integers(3, size=(batch, 2))
            slope = np.zeros((3, 3))
            for m, prompt in zip(query, tokens):
                score = weights["Q"][m, prompt]
                share = np.exp(score - score.max())
                share /= share.sum()
                error = np.bincount(prompt, share, 3) - np.eye(3)[m]
                pull = error[prompt]
                np.add.at(slope[m], prompt, share * (pull - share @ pull))
            return {"Q": slope / batch}

        return descend(gradient, {"Q": np.zeros((3, 3))}, rate, steps, 30) | {"batch": batch}

    def test_run_lies_within_the_band(self):
        run = self.run()
        options = {"N": 2, "runs": 20, "tolerance": 0.3}
        result = against(run, EXAMPLES / "look_up.py", **options)
        assert result.follows
        low, high = result.band
        assert (low[1:] < high[1:]).all()
        states = result.projection.states
        outside = np.maximum(np.maximum(low - states, states - high), 0.0)
        size = np.maximum(np.abs(states).max(axis=0), np.abs(result.predicted).max(axis=0))
        close(result.error, (outside / size).max(axis=1), rel=1e-12)
        assert (result.error < np.abs(states - result.predicted).max(axis=1) / size.min())[1:].all()
        other = against({**run, "learning_rate": 1.5}, EXAMPLES / "look_up.py", **options)
        assert other.verdict is Verdict.OTHER_RATE
        assert {"low", "high"} <= set(result.to_dataset())

    def test_run_in_jax(self):
        jax = pytest.importorskip("jax")
        jnp = jax.numpy
        prompts = jnp.array([(m, i, k) for m in range(3) for i in range(3) for k in range(3)])

        def loss(Q):
            score = Q[prompts[:, :1], prompts[:, 1:]]
            share = jax.nn.softmax(score, axis=1)
            attention = (share[..., None] * jnp.eye(3)[prompts[:, 1:]]).sum(axis=1)
            return 0.5 * ((attention - jnp.eye(3)[prompts[:, 0]]) ** 2).sum(axis=1).mean()

        step = jax.jit(jax.grad(loss))
        run = descend(
            lambda weights: {"Q": step(weights["Q"])}, {"Q": jnp.zeros((3, 3))}, 0.5, 100, 20
        )
        result = against(run, EXAMPLES / "look_up.py", N=2)
        assert result.follows
        assert result.error.max() < 1e-5  # single precision


class TestFiles:
    def test_file_and_folder_contain_the_same_run(self, run, tmp_path):
        np.savez(tmp_path / "run.npz", **run)
        folder = tmp_path / "checkpoints"
        folder.mkdir()
        for number, step in enumerate(run["steps"]):
            arrays = {"J": run["J"][number], "B": run["B"], "learning_rate": 0.5}
            np.savez(folder / f"step-{step}.npz", **arrays)
        first, second = read(tmp_path / "run.npz"), read(folder)
        np.testing.assert_array_equal(first["J"], second["J"])
        np.testing.assert_array_equal(first["steps"], second["steps"])
        assert against(second, TestSaadSolla.FILE).follows

    @pytest.mark.slow
    @pytest.mark.traced
    def test_command(self, run, tmp_path, capsys):
        np.savez(tmp_path / "run.npz", **{**without(run, "J"), "hidden.weight": run["J"]})
        out, plot = tmp_path / "both.nc", tmp_path / "both.svg"
        command = ["against", str(tmp_path / "run.npz"), "--theory", str(TestSaadSolla.FILE)]
        command += ["--name", "J=hidden.weight"]
        assert main([*command, "--out", str(out), "--plot", str(plot)]) == 0
        output = capsys.readouterr().out
        assert output.startswith("The run follows the theory (distance at most")
        assert "order of B: 1 2 0" in output
        assert b"<svg" in plot.read_bytes()
        with xarray.open_dataset(out, engine="h5netcdf") as data:
            assert data.logged.dims == ("step", "parameter")
            artists = draw_against(data.load(), Figure())
        close(artists["theory Q"].get_ydata()[-1], data.theory.values[-1, 0], rel=1e-15)
        close(artists["Q"].get_ydata()[-1], data.logged.values[-1, 0], rel=1e-15)
        assert main([*command, "--learning-rate", "0.8", "--json"]) == 1
        answer = json.loads(capsys.readouterr().out)
        assert answer["verdict"] == "follows the theory at another rate"

    def test_safetensors(self, run, tmp_path):
        """A file with all arrays, and a folder with a file for each checkpoint."""
        file = write_weights(tmp_path / "run.safetensors", run, "F64")
        assert against(read(file), TestSaadSolla.FILE).follows
        for step, J in zip(run["steps"], run["J"]):
            arrays = {"J": J, "B": run["B"], "learning_rate": 0.5}
            (tmp_path / "folder").mkdir(exist_ok=True)
            write_weights(tmp_path / f"folder/step-{step}.safetensors", arrays, "F64")
        loaded = read(tmp_path / "folder")
        np.testing.assert_array_equal(loaded["J"], run["J"])
        assert loaded["learning_rate"].shape == ()
        steps = write_weights(tmp_path / "steps.safetensors", {"steps": [0, 2**60]}, "I64")
        assert read(steps)["steps"].tolist() == [0, 2**60]

    def test_safetensors_of_the_library(self, run, tmp_path):
        numpy = pytest.importorskip("safetensors.numpy")
        arrays = {"J": run["J"], "steps": np.arange(3), "learning_rate": np.array(0.5)}
        numpy.save_file(arrays, tmp_path / "run.safetensors")
        for name, values in read(tmp_path / "run.safetensors").items():
            np.testing.assert_array_equal(values, arrays[name])

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["{run}", "--theory", "shallow"], "theory = shallow is not allowed: it has no"),
            (["{run}", "--theory", "other"], "it must be a file FILE.py or one of positional"),
            (["{run}", "--theory", "{file}", "--name", "J=x"], "--name x is not in the run"),
            (["{run}", "--theory", "{file}", "--tolerance", "0"], "tolerance = 0"),
            (["{run}", "--theory", "{file}", "--at", "K=2"], "J is not allowed: it has the shape"),
            (["{run}", "--theory", "{file}", "--at", "z=2"], "z"),
            (["{run}", "--theory", "{file}", "--at", "seed=2"], "--at seed is not allowed"),
            (["{run}", "--theory", "{file}", "--batch", "1.5"], "batch is not allowed"),
            (["{run}", "--theory", "{file}", "--batch", "2"], "is not allowed"),
            (["{damaged}", "--theory", "{file}"], "cannot read"),
            (["{short}", "--theory", "{file}"], "it does not begin like a file of safetensors"),
            (["{empty}", "--theory", "{file}"], "a file for each checkpoint"),
            (["{file}", "--theory", "{file}"], "it must be .npz, .safetensors or a folder"),
        ],
    )
    def test_bad_input(self, run, tmp_path, capsys, arguments, sentence):
        files = {"run": tmp_path / "run.npz", "damaged": tmp_path / "damaged.npz"}
        files |= {"empty": tmp_path / "empty", "file": TestSaadSolla.FILE}
        np.savez(files["run"], **run)
        files["damaged"].write_bytes(b"PK garbage")
        files["short"] = tmp_path / "short.safetensors"
        files["short"].write_bytes(b"")
        files["empty"].mkdir()
        assert main(["against", *(argument.format(**files) for argument in arguments)]) == 2
        assert sentence in (error := capsys.readouterr().err)
        assert error.count("\n") == 1

    def test_missing_and_damaged_arrays(self, run):
        cases = [
            (without(run, "B"), "B is missing in the run, which contains J"),
            ({**run, "J": run["J"] * np.nan}, "J is not allowed: it must be an array of finite"),
            ({**run, "steps": run["steps"][::-1]}, "increasing whole numbers"),
            ({**run, "J": run["J"][:1], "steps": [0]}, "at two times at least"),
            ({**run, "learning_rate": -1.0}, "learning_rate is not allowed"),
        ]
        for arrays, sentence in cases:
            with pytest.raises(ParameterError, match=sentence):
                against(arrays, TestSaadSolla.FILE)
        with pytest.raises(TheoryError, match="missing"):
            against({}, EXAMPLES / "in_context_regression.py")


def test_errors_are_relative_to_the_largest_value_of_each_order_parameter():
    states = np.array([[1.0, 0.2, 0.0], [2.0, 0.4, 1e-9]])
    predicted = np.array([[1.0, 0.2, 0.0], [1.0, 0.4, 2e-9]])
    close(_error(states, predicted, None), [0.0, 0.5], rel=1e-12)
    predicted[1] = [2.0, 0.3, 2e-9]
    close(_error(states, predicted, None), [0.0, 0.25], rel=1e-12)
    predicted[1] = [2.0, 0.4, 2e-9]  # tiny numbers are relative to 5 % of the largest
    close(_error(states, predicted, None), [0.0, 1e-8], rel=1e-12)


def test_errors_of_sgd_are_distances_from_the_band():
    states, mean = np.array([[1.0], [2.0], [0.2]]), np.ones((3, 1))
    band = np.array([0.9 * mean, 1.1 * mean])
    close(_error(states, mean, band), [0.0, 0.45, 0.35], rel=1e-12)
