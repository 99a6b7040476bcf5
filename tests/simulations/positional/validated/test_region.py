"""Regions that no flow leaves, and maps of them, against flows of the certified expectation."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from dynamics import ParameterError, Population, Problem, gradient_flow
from simulations.cli import main
from simulations.figures import regime_map
from simulations.files import StoreError
from simulations.positional.invariance import certified
from simulations.positional.invariance.box import read_box
from simulations.positional.invariance.certified import Answer
from simulations.positional.validated import association_map, region
from simulations.positional.validated.association_map import FALSE, PROVED, Axis, prove_map
from simulations.positional.validated.region import Ends, prove_association
from simulations.workers import Event

PROBLEM = Problem(16, 2, 0.125)
NU, Q = (0.009, 0.011), (1.95 / 16, 2.05 / 16)
AXES = Axis("qD", (1.95, 2.05), Q), Axis("nu", NU, NU)


@pytest.fixture(scope="module")
def proof():
    return prove_association(PROBLEM, NU, Q, 1e3)


class TestProof:
    @pytest.mark.slow
    def test_flows_stay_in_the_region(self, proof):
        """Flows from all corners and the centre of the box, with 300 records each."""
        assert proof.proved
        bends, heights = proof.region.gamma, proof.region.height
        for nu in (*NU, np.mean(NU)):
            for q in (*Q, np.mean(Q)):
                problem = PROBLEM.replace(nu=float(nu), q=float(q))
                flow = gradient_flow(Population(problem), horizon=1e3, records=300)
                alpha, gamma, rho = flow.states.T
                assert np.all(alpha <= np.interp(gamma, bends, heights))
                assert np.all(gamma[1:] > rho[1:])
                assert np.all(rho[1:] < 0.0)
                assert proof.region.rho <= rho.min()
                assert gamma.max() <= bends[-1]

    @pytest.mark.slow
    @pytest.mark.traced
    def test_boundary_is_above_the_flow_by_a_few_percent(self, proof):
        """So that the test above would notice a lower one."""
        flow = gradient_flow(Population(PROBLEM.replace(nu=0.011, q=Q[0])), horizon=1e3)
        heights = np.interp(flow.states[:, 1], proof.region.gamma, proof.region.height)
        assert 1.0 < np.min(heights / flow.states[:, 0]) < 1.1

    @pytest.mark.slow
    @pytest.mark.traced
    @pytest.mark.parametrize(
        ("factor", "face"), [(0.93, "alpha = A"), (1.12, "rho = 0"), (0.2, "alpha(0)")]
    )
    def test_other_regions_are_not_proved(self, proof, factor, face):
        search = region._Search(PROBLEM, Ends(*NU), Ends(*Q), 1e3)
        heights = tuple(factor * x for x in proof.region.height)
        assert face in search.failure(replace(proof.region, height=heights))

    @pytest.mark.slow
    @pytest.mark.traced
    def test_all_faces_are_proved(self, proof, monkeypatch):
        """rho = 0 from gamma = 0 on, alpha = A from the smallest gamma on, without a gap."""
        ends = {True: [], False: []}
        monkeypatch.setattr(
            region, "boxes_of_face", lambda is_rho, segment, *_: ends[is_rho].append(segment) or 1
        )
        search = region._Search(PROBLEM, Ends(*NU), Ends(*Q), 1e3)
        assert search.failure(proof.region) == ""
        for is_rho, first in ((True, 0.0), (False, search.rho)):
            left, right = zip(*ends[is_rho])
            assert left == (first, *right[:-1])
            assert right[-1] == search.gamma

    @pytest.mark.slow
    @pytest.mark.traced
    def test_corners(self):
        """At nu = 0.1, qD = 4 there is no region; one such corner suffices."""
        assert region.corners_have_regions(PROBLEM, Ends(*NU), Ends(*Q), 10.0)
        assert not region.corners_have_regions(PROBLEM, Ends(0.05, 0.1), Ends(0.2, 0.25), 10.0)

    @pytest.mark.slow
    @pytest.mark.traced
    def test_certificate_covers_the_face(self, proof, monkeypatch):
        boxes, fake = [], SimpleNamespace(answer=Answer.PROVED, cells=1)
        monkeypatch.setattr(region, "certify", lambda box, **_: boxes.append(box) or fake)
        monkeypatch.setattr(region, "boxes_of_face", lambda *_: 1)
        search = region._Search(PROBLEM, Ends(*NU), Ends(*Q), 1e3)
        assert search.failure(proof.region) == ""
        (box,) = boxes
        assert box.alpha[0] == 0
        assert box.alpha[1] > proof.region.height[0]
        assert box.x == (Fraction(search.rho), 0)
        assert (box.nu, box.q) == (tuple(map(Fraction, NU)), tuple(map(Fraction, Q)))

    @pytest.mark.slow
    @pytest.mark.traced
    def test_gap_that_does_not_grow_is_noticed(self, proof):
        """With alpha up to 2, d(gamma - rho)/dt < 0 somewhere on gamma = rho."""
        search = region._Search(PROBLEM, Ends(*NU), Ends(3.0 / 16, 3.01 / 16), 1e3)
        heights = tuple(2.0 + 0.0 * x for x in proof.region.height)
        assert search.failure(replace(proof.region, height=heights)) == "gamma = rho"

    @pytest.mark.slow
    @pytest.mark.traced
    @pytest.mark.parametrize(("nu", "qD"), [((0.1, 0.1), (4.0, 4.0)), ((0.05, 0.1), (3.5, 4.0))])
    def test_boxes_with_a_counterexample_are_not_proved(self, nu, qD):
        """At nu = 0.1, qD = 4, gamma < rho right after the start."""
        proof = prove_association(PROBLEM, nu, (qD[0] / 16, qD[1] / 16), 1e3)
        assert not proof.proved
        assert proof.failure

    @pytest.mark.slow
    @pytest.mark.traced
    def test_bounds_of_gamma_and_rho_grow_with_the_horizon(self):
        """As the root of the horizon; at a loss of at most log 2 = 0.6931."""
        search = [region._Search(PROBLEM, Ends(*NU), Ends(*Q), T) for T in (10.0, 1000.0)]
        assert search[1].gamma == pytest.approx(10.0 * search[0].gamma, rel=1e-12, abs=0)
        assert search[1].rho == pytest.approx(-search[1].gamma / 14**0.5, rel=1e-12, abs=0)
        assert 0.75 < search[0].gamma ** 2 * 16 / 10.0 / 0.6931 < 1.0

    @pytest.mark.parametrize(
        ("problem", "arguments", "sentence"),
        [
            (PROBLEM, (NU, Q, 0.0), "horizon = 0.0 is not allowed"),
            (PROBLEM, (NU, Q, 1e7), "from 1e-6 to 1.44e+06 here"),
            (PROBLEM, (NU[::-1], Q, 1.0), "nu = 0.011..0.009 is not allowed"),
            (PROBLEM, (NU, (0.1, 2.0), 1.0), "q = 2.0 is not allowed"),
            (PROBLEM.replace(beta=-1.0), (NU, Q, 1.0), "beta = -1.0 is not allowed"),
            (Problem(64, 4, 0.1), (NU, Q, 1.0), "D = 64, C = 4 is not allowed: 7.76e"),
        ],
    )
    def test_bad_input(self, problem, arguments, sentence):
        with pytest.raises(ParameterError, match=re.escape(sentence)):
            prove_association(problem, *arguments)

    def test_strict_certificate(self, monkeypatch):
        """A bound of 0 proves the weak sign only."""
        box = read_box("D=8, C=4, q=0.1, alpha=0..1, x=0, beta=1")
        monkeypatch.setattr(certified, "bounds", lambda *_: (0.0, 1.0, Fraction(0)))
        assert certified.certify(box).answer is Answer.PROVED
        assert certified.certify(box, most=20, strict=True).answer is not Answer.PROVED


class _NoPool:
    """A pool that expects no task."""

    def __init__(self, *_):
        pass

    def events(self, tasks):
        assert not tasks
        return tasks


class TestMap:
    @pytest.mark.slow
    def test_cells(self):
        """Near a problem whose gamma falls below rho, nothing is proved; edges have one ratio."""
        seen = []
        axes = Axis("q", (0.249, 0.25), (0.249, 0.25)), Axis("nu", (0.0999, 0.1), (0.0999, 0.1))
        data = prove_map(PROBLEM, *axes, cells=2, horizon=50.0, progress=seen.append)
        assert seen == [0.25, 0.5, 0.75, 1.0]
        assert set(data["status"].values.ravel()) == {FALSE}
        assert data.attrs["fraction"] == 0.0
        np.testing.assert_allclose(data["q_edge"][1], (0.249 * 0.25) ** 0.5, rtol=1e-12, atol=0)

    def test_process_that_dies(self, monkeypatch):
        """Its cell is computed again, but not for ever."""
        died, done = (
            Event("died", "killed"),
            Event("done", {"status": PROVED, "boxes": 1, "failure": ""}),
        )

        class Pool:
            def __init__(self, *_):
                self.waiting = []

            def events(self, tasks):
                self.waiting += tasks
                while self.waiting:
                    yield self.waiting.pop(), ends.pop(0)

            def retry(self, task):
                self.waiting.append(task)

        monkeypatch.setattr(association_map, "WorkerPool", Pool)
        ends = [died, died, done]
        data = prove_map(PROBLEM, *AXES, cells=1, horizon=1.0)
        assert data["status"].values.tolist() == [[PROVED]]
        ends = [died, died, died]
        with pytest.raises(RuntimeError, match="3 times: killed"):
            prove_map(PROBLEM, *AXES, cells=1, horizon=1.0)

    def test_divided_cells_are_covered(self, monkeypatch):
        """The parts that are proved make up the whole cell; a part that is not proved is seen."""
        proved, cell = [], association_map.Cell(0, 0, Ends(0.01, 0.02), Ends(0.1, 0.15))
        hole = 0.0

        def narrow(problem, nu, q, horizon):
            done = q.high / q.low < 1.3 and nu.high / nu.low < 1.6 and not nu.low <= hole < nu.high
            proved.extend([(nu, q)] * done)
            failure = "" if done else "wide"
            return region.AssociationProof(nu, q, horizon, None, failure, 1)

        monkeypatch.setattr(association_map, "prove_association", narrow)
        monkeypatch.setattr(association_map, "corners_have_regions", lambda *_: True)
        channel = SimpleNamespace(check=lambda: None)
        result = association_map._measure(PROBLEM, 1.0, cell, channel)
        assert result["status"] == PROVED
        area = sum((nu.high - nu.low) * (q.high - q.low) for nu, q in proved)
        assert area == pytest.approx(0.01 * 0.05, rel=1e-12, abs=0)
        assert result["boxes"] > len(proved) >= 4
        hole = 0.0151
        assert association_map._measure(PROBLEM, 1.0, cell, channel)["failure"] == "wide"

    @pytest.mark.slow
    @pytest.mark.traced
    def test_resumes(self, tmp_path, monkeypatch):
        """All stored cells are used; another map, or another code, is rejected."""
        file = tmp_path / "cells"
        first = prove_map(PROBLEM, *AXES, cells=1, horizon=1e3, unfinished=file)
        monkeypatch.setattr(association_map, "WorkerPool", _NoPool)
        assert prove_map(PROBLEM, *AXES, cells=1, horizon=1e3, unfinished=file).identical(first)
        with pytest.raises(StoreError, match="cells of another map"):
            prove_map(PROBLEM, *AXES, cells=1, horizon=999.0, unfinished=file)
        monkeypatch.setattr(association_map, "code_fingerprint", lambda: "another")
        with pytest.raises(StoreError, match="cells of another map"):
            prove_map(PROBLEM, *AXES, cells=1, horizon=1e3, unfinished=file)

    @pytest.mark.parametrize(
        ("nu", "q", "true"),
        [(0.01, 2.0, True), (0.1, 4.0, False), (0.05, 3.0, True), (0.0999, 3.99, False)],
    )
    def test_centre(self, nu, q, true):
        cell = association_map.Cell(0, 0, Ends(nu, nu), Ends(q / 16, q / 16))
        assert association_map._is_true(PROBLEM, cell, 100.0) is true

    def test_centre_right_after_the_start(self, monkeypatch):
        """gamma < rho is noticed even if no record is in that time."""
        monkeypatch.setattr(association_map, "_RECORDS", 2)
        cell = association_map.Cell(0, 0, Ends(0.1, 0.1), Ends(0.25, 0.25))
        assert not association_map._is_true(PROBLEM, cell, 100.0)

    @pytest.mark.slow
    @pytest.mark.traced
    def test_command(self, tmp_path, capsys):
        given = "prove --D 16 --C 2 --qD 1.95..2.05 --nu 0.009..0.011 --horizon 100 --map 1".split()
        file = tmp_path / "cells.json"
        files = ["--out", str(file), "--plot", str(tmp_path / "map.png")]
        assert main([*given, *files]) == 0
        printed = capsys.readouterr().out
        assert "proved in 1 of 1 cells (100.0% of the area, logarithmic)" in printed
        assert "0 < t <= 100" in printed
        assert "qD from 1.95 to 2.05, nu from 0.009 to 0.011; D = 16, C = 2; each proof" in printed
        record = json.loads(file.read_text())
        assert record["status"] == [[PROVED]]
        assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
        assert not list(tmp_path.glob("*unfinished*"))
        assert main([*given, *files]) == 2
        assert "--force" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            ("--qD 1..2 --map 2", "--map needs an interval of nu and one of q, qD or qD/C^2"),
            ("--qD 1..2 --beta 1..2 --map 2", "--map needs an interval"),
            ("--qD 1..2 --nu 0.1..0.2 --map 0", "map = 0 is not allowed"),
            ("--qD 1..2 --nu 0.1..0.2 --map 2 --tolerance 0.1", "--tolerance is not allowed"),
            ("--qD 1..2 --nu 0.1..0.2 --map 2 --solver gd", "with descent or an initial state"),
            ("--qD 1..2 --nu 0.2..0.1 --map 2", "nu = 0.2..0.1 is not allowed"),
            ("--qD 1..2 --nu 0..0.1 --map 2", "nu = 0"),
        ],
    )
    def test_bad_input(self, arguments, sentence, capsys):
        assert main(["prove", "--D", "16", "--C", "2", *arguments.split()]) == 2
        assert sentence in capsys.readouterr().err

    @pytest.mark.slow
    @pytest.mark.traced
    def test_figure(self):
        data = prove_map(PROBLEM, *AXES, cells=1, horizon=1.0)
        data = data.assign(status=(("nu", "q"), [[FALSE]]))
        figure = plt.figure()
        regime_map.draw_association(data, figure)
        faces = [x.get_facecolor()[0] for x in figure.axes[0].collections if x.get_array().count()]
        assert len(faces) == 1
        plt.close(figure)
