"""Names of the learners of a downstream task, and the densities at which they are compared.

The figures import these names, so that this module imports nothing.
"""

#: v is trained on A from pre-training on samples, on A at initialization, or on uniform attention.
PRETRAINED = "pre-trained A"
INITIAL = "A at initialization"
UNIFORM = "uniform attention"
#: A linear classifier of all D d numbers.
LOGISTIC = "logistic regression"
#: A and v are trained together.
SCRATCH = "everything from scratch"
#: v is trained on A of the idealized process.
IDEALIZED = "idealized A"
#: The sets are found from coincidences (`dynamics.positional.baselines.set_finder`).
FINDER = "looks for the sets"
LEARNERS = (PRETRAINED, INITIAL, UNIFORM, LOGISTIC, SCRATCH, IDEALIZED, FINDER)

#: Mean numbers of random features: far below, below and at C^2 = 16.
EASY, MIDDLE, HARD = 4.0, 8.0, 16.0
