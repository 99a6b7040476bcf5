"""Students of Figure 2: gradients, labels, association and matching of the sets, training."""

import numpy as np
import pytest

from dynamics.core.errors import ParameterError
from dynamics.positional.baselines.gaussian_patches import (
    Student,
    Task,
    association,
    linear_level,
    loss_and_gradient,
    match_to_sets,
    output,
    softmax,
    train,
)
from tests.closeness import close

TASK = Task(D=6, C=2, d=3, shared_filter=False)
STUDENTS = [
    Student("gram", encoding=4),
    Student("free", init=0.5, diagonal=1.0),
    Student("heads", heads=3, encoding=4, init=2.0),
]


@pytest.fixture(params=STUDENTS, ids=lambda student: student.score_type)
def case(request):
    rng = np.random.default_rng(3)
    parameters = request.param.initial(TASK, rng)
    parameters["v"] *= 10.0
    X, y = TASK.sample(TASK.filters(rng), 40, rng)
    return request.param, parameters, X, y


class TestGradient:
    def test_gradient_equals_complex_step_derivative(self, case):
        student, parameters, X, y = case
        rng = np.random.default_rng(0)
        loss, gradient = loss_and_gradient(student, parameters, X, y)
        assert set(gradient) == set(parameters)
        for name, value in parameters.items():
            direction = rng.normal(size=value.shape)
            if name == "A":
                np.fill_diagonal(direction, 0.0)  # the diagonal is not trained
            shifted = parameters | {name: value + 1e-30j * direction}
            losses = np.log(1.0 + np.exp(-y * output(student, shifted, X)))
            close(losses.real.mean(), loss, rel=1e-12)
            assert losses.imag.mean() / 1e-30 == pytest.approx(
                np.sum(direction * gradient[name]), rel=1e-9, abs=1e-14
            )

    def test_gradient_equals_torch_autograd(self, case):
        torch = pytest.importorskip("torch")
        student, parameters, X, y = case
        tensors = {k: torch.tensor(v, requires_grad=True) for k, v in parameters.items()}
        if student.score_type == "free":
            scores = tensors["A"][None]
        elif student.score_type == "gram":
            scores = (tensors["P"].T @ tensors["P"])[None]
        else:
            queries, keys = (tensors["P"].T @ tensors[k] for k in ("Q", "K"))
            scores = queries @ keys.transpose(1, 2) / np.sqrt(student.encoding)
        S = torch.softmax(scores, dim=2)
        U = torch.einsum("njd,hd->nhj", torch.tensor(X), tensors["v"])
        F = (torch.einsum("hij,nhj->ni", S, U) ** 3).sum(dim=1)
        loss = torch.nn.functional.softplus(-torch.tensor(y) * F).mean()
        loss.backward()
        value, gradient = loss_and_gradient(student, parameters, X, y)
        close(value, float(loss.detach()), rel=1e-12)
        for name, tensor in tensors.items():
            expected = tensor.grad.numpy().copy()
            if name == "A":
                np.fill_diagonal(expected, 0.0)
            np.testing.assert_allclose(gradient[name], expected, rtol=1e-9, atol=1e-14)


class TestTask:
    def test_labels_equal_the_definition(self):
        rng = np.random.default_rng(1)
        w = TASK.filters(rng)
        X, y = TASK.sample(w, 20, rng)
        for image, label in zip(X, y):
            hidden = [sum(w[c] @ image[2 * number + c] for c in range(2)) for number in range(3)]
            assert label == np.sign(np.sum(np.power(hidden, 3)))

    def test_filters_are_unit_vectors_and_optionally_shared(self):
        rng = np.random.default_rng(2)
        w = TASK.filters(rng)
        close(np.linalg.norm(w, axis=1), 1.0, rel=1e-12)
        assert np.abs(w[0] - w[1]).max() > 1e-3
        assert np.ptp(Task(6, 2, 3, True).filters(rng), axis=0).max() == 0.0

    def test_linear_level(self):
        rng = np.random.default_rng(0)
        assert linear_level(2, rng, 1_000) == 0.0  # a + b and a^3 + b^3 have one sign
        assert linear_level(4, rng, 400_000) == pytest.approx(0.0956, abs=0.002)

    def test_invalid_arguments_raise(self):
        with pytest.raises(ParameterError, match="C = 4"):
            Task(D=6, C=4, d=3, shared_filter=True)
        with pytest.raises(ParameterError, match="score_type = cnn"):
            Student("cnn")
        with pytest.raises(ParameterError, match="heads = 2"):
            Student("gram", heads=2)


class TestAssociation:
    def test_association_of_block_and_identity_matrices(self):
        owner = np.arange(12) // 3
        blocks = (owner[:, None] == owner).astype(float)
        assert association(blocks, 3) == (1.0, 1.0)
        assert association(np.eye(12), 3)[1] == 0.5
        assert association(-blocks, 3) == (0.0, 0.0)

    def test_random_matrices_have_auc_one_half(self):
        rng = np.random.default_rng(0)
        auc = [association(P.T @ P, 4)[1] for P in rng.normal(size=(200, 8, 16))]
        assert np.mean(auc) == pytest.approx(0.5, abs=0.02)


class TestMatching:
    """Matching does not depend on the order of the rows."""

    def test_rows_that_attend_to_sets_in_any_order_are_matched(self):
        rng = np.random.default_rng(0)
        read = np.concatenate([rng.permutation(4), rng.integers(0, 4, 12)])
        S = np.repeat(np.eye(4)[read], 4, axis=1)[None] / 4.0
        matching = match_to_sets(S, [1.0], 4)
        close(matching.matched, 1.0, rel=1e-12)
        assert matching.attended == matching.auc == matching.accuracy == 1.0
        close(matching.own, np.mean(read == np.arange(16) // 4), rel=1e-12)

    def test_heads_that_attend_to_single_positions_add_up_to_the_sets(self):
        """Head c attends to position c of a set, like a convolution with C filters."""
        rows = np.tile(np.arange(4), 4)  # the set to which each row attends
        S = np.zeros((4, 16, 16))
        for head in range(4):
            S[head, np.arange(16), 4 * rows + head] = 1.0
        assert match_to_sets(S, np.ones(4), 4).accuracy == 1.0
        assert match_to_sets(S, [1.0, 0.0, 0.0, 0.0], 4).accuracy < 1.0

    def test_other_partitions_and_noise_are_not_matched(self):
        rng = np.random.default_rng(1)
        S = np.repeat(np.eye(4), 4, axis=1)[:, rng.permutation(16)]
        wrong = match_to_sets(np.tile(S, (4, 1))[None] / 4.0, [1.0], 4)
        assert wrong.accuracy < 0.8
        noise = [
            match_to_sets(softmax(rng.normal(size=(2, 16, 16))), [1.0, 2.0], 4) for _ in range(50)
        ]
        assert np.mean([matching.accuracy for matching in noise]) < 0.6
        assert np.mean([matching.auc for matching in noise]) == pytest.approx(0.5, abs=0.05)

    def test_heads_match_the_sets_without_association_of_the_encodings(self):
        task, student = Task(8, 2, 2, False), Student("heads", heads=3, encoding=8, init=4.0)
        run = train(task, student, steps=500, rate=1e-2, seed=1, batch=256, test=4_000)
        assert run.test_error[-1] < 0.5 * run.linear_error
        weights = np.linalg.norm(run.parameters["v"], axis=1)
        matching = match_to_sets(softmax(student.scores(run.parameters)), weights, 2)
        assert matching.accuracy == 1.0
        assert association(student.encodings_gram(run.parameters), 2)[1] < 0.9
        assert not np.array_equal(run.start["P"], run.parameters["P"])


class TestTraining:
    def test_gram_with_a_shared_filter_learns_association(self):
        task = Task(D=8, C=2, d=2, shared_filter=True)
        student = Student("gram", encoding=8)
        fractions = []
        run = train(
            task,
            student,
            steps=400,
            rate=2e-2,
            seed=0,
            batch=256,
            test=5_000,
            progress=fractions.append,
        )
        assert run.test_error[0] > 0.15
        assert run.test_error[-1] < 0.5 * run.linear_error
        assert association(student.encodings_gram(run.parameters), 2)[1] > 0.95
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1.0

    def test_same_seed_gives_same_result(self):
        runs = [
            train(TASK, STUDENTS[2], steps=5, rate=1e-2, seed=seed, batch=16, test=100, records=2)
            for seed in (0, 0, 1)
        ]
        assert np.array_equal(runs[0].parameters["P"], runs[1].parameters["P"])
        assert not np.array_equal(runs[0].parameters["P"], runs[2].parameters["P"])

    def test_fixed_diagonal_is_not_trained(self):
        run = train(TASK, STUDENTS[1], steps=5, rate=1e-2, seed=0, batch=16, test=100)
        assert np.all(np.diag(run.parameters["A"]) == 1.0)
        close(softmax(run.parameters["A"]).sum(axis=1), 1.0, rel=1e-12)
