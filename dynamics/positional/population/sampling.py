"""The expectation over a fixed random sample of images, with error bars."""

import math

import numpy as np

from dynamics.core.checks import scale
from dynamics.core.errors import ToleranceError
from dynamics.positional.population.expectation import Constants, certified_sums
from dynamics.positional.population.rare import rare_laws, unseen
from dynamics.positional.population.rounding import OUTWARD, UNIT
from dynamics.positional.population.states import LARGEST_SET, sample_states
from dynamics.positional.population.tables import StatePlan, Table
from dynamics.positional.population.ties import tie_law
from dynamics.positional.population.truncation import group_bounds, nothing
from dynamics.positional.population.value import Value, require_finite
from dynamics.positional.problem import Problem, State

_PILOT = 20_000
_FEWEST = 100  # images that tell a standard error
_LONGEST = 60.0  # seconds that drawing a sample may take
_SECONDS_PER_TYPE = 5e-8  # to draw how many sets of an image are of one type, and to weigh it
_BYTES_PER_ENTRY = 60  # of the table and of the buffers while it is drawn


class Sampling:
    """A sample of images drawn once, so that a trajectory descends one fixed empirical mean.

    With a tolerance, the sample is made large enough that three standard errors at the initial
    state stay below it; at later states :attr:`Value.bound` tells what is reached. Rare images
    carry most of the late loss: half of the sample is drawn where they are common
    (:mod:`dynamics.positional.population.rare`) and weighted back, and the error holds three
    standard errors plus a bound of the images with more features than the sample can be expected to
    hold. It is an estimate still: enumeration and Fourier are the methods to trust where they
    apply. ``clip`` reduces the sample to the memory budget instead of refusing.
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
        affordable = min(affordable, int(_LONGEST / (types * _SECONDS_PER_TYPE)))
        if problem.C > LARGEST_SET or affordable < _FEWEST:
            raise ToleranceError(
                f"sampling is out of reach: a set of C = {problem.C} patches has {types:.2g} types "
                f"(C may be at most {LARGEST_SET}), and {affordable} images are what the memory "
                f"budget and {_LONGEST:g} s allow"
            )
        if tolerance is not None:
            samples = self._samples_for(tolerance, affordable, seed)
        elif clip:
            samples = min(samples, affordable)
        elif samples > affordable:
            raise ToleranceError(
                f"samples = {samples} do not fit the memory budget and {_LONGEST:g} s: "
                f"at most {affordable}"
            )
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        self._draw(samples, rng)

    def _samples_for(self, tolerance: float, affordable: int, seed: int) -> int:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        self._draw(_PILOT, rng)
        pilot = self.evaluate(self.problem.initial_state)
        target = tolerance * scale((pilot.loss, *pilot.gradient))
        needed = max(_PILOT, math.ceil(1.2 * _PILOT * (pilot.bound / target) ** 2))
        if needed > affordable:
            best = pilot.bound * math.sqrt(1.2 * _PILOT / affordable)
            raise ToleranceError(
                f"tolerance = {tolerance:g} needs about {needed:.2g} samples, more than the memory "
                f"budget holds: with {affordable} samples three standard errors are {best:.1e}",
                reachable=best,
            )
        return needed

    def _draw(self, samples: int, rng: np.random.Generator) -> None:
        laws = rare_laws(self.problem)
        self.samples = samples
        self.states = sample_states(self.problem, samples, rng, laws)
        self._unseen = unseen(self.problem, samples, laws)
        self._heaviest = 2.0 / samples  # half of the images follow the data

    def table(self, state: State) -> Table:
        """Return the sample, which is the table for every state: nothing is truncated."""
        plan = StatePlan(self.states, nothing(), nothing(), self.constants, math.inf, False)
        return Table(self.problem, 0, -1, plan, 4.0 * UNIT)

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
        many = np.array([1.0, 1.0, *self.problem.multiplicity])
        with np.errstate(over="ignore", invalid="ignore"):
            deviation = sums[1] * math.sqrt(self.samples / (self.samples - 1.0))
            statistical, rounding = 3.0 * deviation / many, sums[2] / many * OUTWARD
            bounds = group_bounds(self._unseen, self.constants, *state).sum(axis=0)
            missed = np.insert(bounds, 1, self._unseen.mass.sum())
            total = statistical + rounding + missed
        require_finite(tuple(total.tolist()), state)
        negative, zero, undecided, squares = signs.tolist()
        error = negative + zero + 0.5 * undecided
        spread = max(squares - error**2 / self.samples, 0.0)
        # rule of three: where no error was drawn, three of the largest weight may have been missed
        lost = 3.0 * math.sqrt(spread) + 3.0 * self._heaviest + 0.5 * undecided
        worst = [0, 2, 3, 4][int(np.argmax(total[[0, 2, 3, 4]]))]
        loss, mean_sigmoid, *gradient = (sums[0] / many).tolist()
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
