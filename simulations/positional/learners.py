"""Learners of a downstream task, and the densities of random features they are compared at."""

#: Learners: v on A pre-trained on samples; v on A as initialized; v on uniform attention; a linear
#: classifier of all D d numbers; A and v together; v on A of the idealized process; a learner that
#: looks for the sets by coincidences (`dynamics.positional.baselines.set_finder`).
PRETRAINED = "pre-trained A"
INITIAL = "A at initialization"
UNIFORM = "uniform attention"
LOGISTIC = "logistic regression"
SCRATCH = "everything from scratch"
IDEALIZED = "idealized A"
FINDER = "looks for the sets"
LEARNERS = (PRETRAINED, INITIAL, UNIFORM, LOGISTIC, SCRATCH, IDEALIZED, FINDER)

#: Mean numbers of random features: far below, below and at C^2 = 16.
EASY, MIDDLE, HARD = 4.0, 8.0, 16.0
