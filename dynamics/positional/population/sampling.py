"""The population expectation by importance sampling, with statistical errors."""

import math

import numpy as np

from dynamics.core.checks import scale
from dynamics.core.errors import ToleranceError
from dynamics.positional.population.expectation import Constants, certified_sums
from dynamics.positional.population.importance import proposal_laws, unsampled
from dynamics.positional.population.rounding import OUTWARD, UNIT
from dynamics.positional.population.states import LARGEST_SET, sample_states
from dynamics.positional.population.tables import GradientData, Table
from dynamics.positional.population.ties import tie_law
from dynamics.positional.population.truncation import group_bounds, no_groups
from dynamics.positional.population.value import Value, require_finite
from dynamics.positional.problem import Problem, State

_PILOT = 20_000  # images of the sample that determines the sample size
_MIN_SAMPLES = 100
_MAX_SECONDS = 60.0  # for generating a sample
_SECONDS_PER_TYPE = 5e-8  # per image and type, for generating it and its weight
_BYTES_PER_ENTRY = 60  # of the table and of the buffers while it is generated


class Sampling:
    """Mean over a fixed random sample of images.

    The sample is generated once, so that a trajectory minimizes one fixed function. Rare images
    dominate the loss late in training: half of the images are sampled from proposals under which
    they are frequent (:mod:`dynamics.positional.population.importance`). The errors are three
    standard errors plus a bound for images with more features than sampled. They are estimates:
    prefer the certified methods where these are affordable.

    Parameters
    ----------
    problem
        Constants of data and model.
    tolerance
        If given, the sample is large enough for three standard errors at the initial state to be
        below it, and ``samples`` is not used. At other states see :attr:`Value.bound`.
    memory_budget
        Largest memory of the sample in bytes.
    samples
        Number of images.
    seed
        Root seed.
    clip
        Whether to reduce the sample to the memory budget instead of raising an error.

    Raises
    ------
    ToleranceError
        If the sample exceeds the memory budget or the time limit.
    """

    name = "sampling"

    def __init__(
        self,
        problem: Problem,
        tolerance: float | None,
        memory_budget: float,
        samples: int,
        seed: int,
        clip: bool = False,
    ) -> None:
        self.problem = problem
        self.tolerance = tolerance
        self.constants = Constants.of(problem)
        types = (problem.C + 1) * (problem.C + 2) / 2.0
        features = min(problem.q * (problem.D - problem.C), problem.L - 1.0, types)
        affordable = int(memory_budget / (_BYTES_PER_ENTRY * (1.0 + features)))
        affordable = min(affordable, int(_MAX_SECONDS / (types * _SECONDS_PER_TYPE)))
        if problem.C > LARGEST_SET or affordable < _MIN_SAMPLES:
            raise ToleranceError(
                f"sampling is out of reach: a set of C = {problem.C} patches has {types:.2g} types "
                f"(C may be at most {LARGEST_SET}), and the memory budget and {_MAX_SECONDS:g} s "
                f"allow {affordable} images"
            )
        if tolerance is not None:
            samples = self._samples_for(tolerance, affordable, seed)
        elif clip:
            samples = min(samples, affordable)
        elif samples > affordable:
            raise ToleranceError(
                f"samples = {samples} do not fit the memory budget and {_MAX_SECONDS:g} s: "
                f"at most {affordable}"
            )
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        self._sample(samples, rng)

    def _samples_for(self, tolerance: float, affordable: int, seed: int) -> int:
        """Return the sample size for a tolerance at the initial state, from a pilot sample."""
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        self._sample(_PILOT, rng)
        pilot = self.evaluate(self.problem.initial_state)
        target = tolerance * scale((pilot.loss, *pilot.gradient))
        needed = max(_PILOT, math.ceil(1.2 * _PILOT * (pilot.bound / target) ** 2))
        if needed > affordable:
            best = pilot.bound * math.sqrt(1.2 * _PILOT / affordable)
            raise ToleranceError(
                f"tolerance = {tolerance:g} needs about {needed:.2g} samples, more than the memory "
                f"budget allows: with {affordable} samples three standard errors are {best:.1e}",
                reachable=best,
            )
        return needed

    def _sample(self, samples: int, rng: np.random.Generator) -> None:
        """Generate the sample and the groups of images that it is not expected to contain."""
        proposals = proposal_laws(self.problem)
        self.samples = samples
        self.states = sample_states(self.problem, samples, rng, proposals)
        self._unsampled = unsampled(self.problem, samples, proposals)
        self._largest_weight = 2.0 / samples  # half of the images follow the data distribution

    def table(self, state: State) -> Table:
        """Return the sample as a table, the same for every state and without truncation."""
        empty = no_groups()
        data = GradientData(self.states, empty, empty, self.constants, math.inf, False)
        return Table(self.problem, 0, -1, data, 4.0 * UNIT)

    def gradient(self, state: State) -> State:
        """Return the entrywise gradient of the sample mean."""
        return self.table(state).gradient(state)[0]

    def jacobian(self, state: State) -> np.ndarray:
        """Return d gradient_i / d state_k of the sample mean, shape (3, 3)."""
        return self.table(state).jacobian(state)

    def certified_loss(self, state: State) -> Value:
        """Return the full value."""
        return self.evaluate(state)

    def evaluate(self, state: State) -> Value:
        """Return the full :class:`Value` with three standard errors as its bound.

        Raises
        ------
        OverflowError
            If F, a derivative or the error overflows.
        """
        tie = tie_law(self.problem, state, self.states.plus, self.states.minus)
        sums, signs = certified_sums(self.states, self.constants, *state, 4.0 * UNIT, tie)
        require_finite(tuple(sums[0].tolist()), state)
        counts = np.array([1.0, 1.0, *self.problem.multiplicity])
        with np.errstate(over="ignore", invalid="ignore"):
            deviation = sums[1] * math.sqrt(self.samples / (self.samples - 1.0))
            statistical, rounding = 3.0 * deviation / counts, sums[2] / counts * OUTWARD
            bounds = group_bounds(self._unsampled, self.constants, *state).sum(axis=0)
            missed = np.insert(bounds, 1, self._unsampled.mass.sum())
            total = statistical + rounding + missed
        require_finite(tuple(total.tolist()), state)
        negative, zero, undecided, squares = signs.tolist()
        error = negative + zero + 0.5 * undecided
        spread = max(squares - error**2 / self.samples, 0.0)
        # rule of three: up to three errors of the largest weight may be missing from the sample
        lost = 3.0 * math.sqrt(spread) + 3.0 * self._largest_weight + 0.5 * undecided
        worst = [0, 2, 3, 4][int(np.argmax(total[[0, 2, 3, 4]]))]
        loss, mean_sigmoid, *gradient = (sums[0] / counts).tolist()
        return Value(
            loss=loss,
            gradient=State(*gradient),
            test_error=min(1.0, error),
            ties=min(1.0, zero),
            mean_sigmoid=mean_sigmoid,
            bound=float(total[worst]),
            bounds={
                "three standard errors": float(statistical[worst]),
                "images with more features than sampled": float(missed[worst]),
                "rounding": float(rounding[worst]),
            },
            test_error_bound=lost,
            loss_bound=float(total[0]),
            gradient_bound=State(*total[2:].tolist()),
            mean_sigmoid_bound=float(total[1]),
            ties_bound=lost + 0.5 * undecided,
        )
