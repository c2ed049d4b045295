# SPDX-License-Identifier: Apache-2.0
"""The breakage detector on real bricks in model "paper"."""

import dataclasses

import numpy as np
import pytest
from mechanics_cases import data_structure, single_component, text_structure, weights

from bricksim_core.errors import BrickSimError
from bricksim_core.mechanics import qp
from bricksim_core.mechanics.detector import (
    BreakageDetector,
    BreakageThresholds,
    Finding,
)
from bricksim_core.mechanics.models import UnknownModelError, get_model, model_names
from bricksim_core.mechanics.paper import PaperModel, PaperParameters
from bricksim_core.mechanics.qp import QpSettings
from bricksim_core.mechanics.slip import Sliding
from bricksim_core.mechanics.snapfit import SnapFitModel
from bricksim_core.mechanics.types import SolveStatus
from bricksim_core.parts import BrickShape
from bricksim_core.topology.graph import BrickTopologyGraph

DT = 1.0 / 60.0
GRADED = PaperModel(PaperParameters(friction_limits=False, solver=QpSettings(method="interior")))
PROMPT = BreakageThresholds(cooldown=0.0)
CAPACITY = 12 * 0.7  # of a 2x2 brick [N]


def tower(count=3):
    return single_component(text_structure("\n".join(f"2x2 (4,4,{i})" for i in range(count))))


def pulled(layout, force, part=-1):
    """(N, 6) loads: a pull [N] at the top, no weight."""
    loads = np.zeros((len(layout.part_ids), 6))
    loads[part, 2] = force
    return loads


def examine(detector, layout, anchored, loads, component=0) -> Finding:
    return detector.examine(component, layout, anchored, loads, DT)


def test_a_load_within_capacity_breaks_nothing():
    layout, anchored = tower()
    finding = examine(BreakageDetector(GRADED, PROMPT), layout, anchored, pulled(layout, 8.0))
    assert finding.broken == () and finding.message == ""
    assert finding.utilization == pytest.approx([8.0 / CAPACITY] * 3, abs=1e-3)


def test_the_most_loaded_joint_of_a_pulled_tower_breaks():
    layout, anchored = tower()
    loads = pulled(layout, 9.5)
    loads[1, 2] = 0.5  # the lowest joint carries 10 N, the others 9.5 N
    finding = examine(BreakageDetector(GRADED, PROMPT), layout, anchored, loads)
    lowest = int(layout.connection_ids[np.flatnonzero(layout.stud_index == 0)[0]])
    assert finding.broken == (lowest,)
    assert finding.utilization.max() == pytest.approx(10.0 / CAPACITY, abs=1e-3)


def test_a_threshold_above_one_lets_it_hold():
    layout, anchored = tower()
    strong = BreakageThresholds(cooldown=0.0, utilization=1.5)
    assert (
        examine(BreakageDetector(GRADED, strong), layout, anchored, pulled(layout, 10)).broken == ()
    )


def test_disabled_means_no_solve_and_no_break():
    layout, anchored = tower()
    detector = BreakageDetector(GRADED, BreakageThresholds(enabled=False))
    finding = examine(detector, layout, anchored, pulled(layout, 1e3))
    assert finding.broken == () and finding.solution is None
    assert np.isnan(finding.utilization).all() and len(finding.utilization) == 3
    detector.thresholds = PROMPT
    assert examine(detector, layout, anchored, pulled(layout, 1e3)).broken != ()


def test_breakage_is_on_by_default():
    assert BreakageThresholds().enabled


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("utilization", float("nan"), "nan, expected more than 0"),
        ("utilization", 0.0, "0.0, expected more than 0"),
        ("impact_time", 0.0, "0.0, expected more than 0"),
        ("engagement", -0.001, "-0.001, expected at least 0"),
        ("cooldown", -1.0, "-1.0, expected at least 0"),
        ("reuse", float("nan"), "nan, expected at least 0"),
        ("lateness", None, "None, expected at least 0"),
    ],
)
def test_thresholds_are_checked(name: str, value: float | None, expected: str):
    with pytest.raises(BrickSimError, match=f"breakage threshold {name} is {expected}"):
        BreakageThresholds(**{name: value})  # type: ignore[arg-type]


def test_nothing_breaks_during_the_cooldown_after_a_change():
    layout, anchored = tower()
    detector = BreakageDetector(GRADED)  # 0.05 s: three frames of 1/60 s
    hard = pulled(layout, 20.0)
    results = [examine(detector, layout, anchored, hard) for _ in range(4)]
    assert [bool(r.broken) for r in results] == [False, False, False, True]
    assert all(r.utilization.max() > 2.0 for r in results)
    # The component changed: another layout under the same id.
    shorter, held = tower(2)
    results = [examine(detector, shorter, held, pulled(shorter, 20.0)) for _ in range(4)]
    assert [bool(r.broken) for r in results] == [False, False, False, True]
    detector.follow({}, [0])
    assert examine(detector, shorter, held, pulled(shorter, 20.0)).broken == ()


@pytest.mark.parametrize("before", [1, 2])
def test_what_slides_while_a_join_settles_is_not_counted(before):
    detector = BreakageDetector(SnapFitModel())
    layout, anchored = tower(before)
    examine(detector, layout, anchored, pulled(layout, 1.0))
    layout, anchored = tower()
    detector.follow({0: (layout, anchored, 0)})
    assert examine(detector, layout, anchored, pulled(layout, 20.0)).utilization.max() > 2.0
    later = [examine(detector, layout, anchored, pulled(layout, 1.0)) for _ in range(6)]
    assert all(finding.broken == () for finding in later)


def test_what_slides_right_after_a_break_is_counted():
    structure = text_structure("2x2 (4,4,0)\n2x2 (4,4,1)\n2x2 (4,4,2)")
    graph, fixed = structure.graph.copy(), structure.fixed
    detector = BreakageDetector(SnapFitModel())

    def examined(force: float, source: int | None = 0) -> Finding:
        component = graph.component_of(next(iter(fixed)))
        layout = graph.layout(component)
        anchored = np.isin(layout.part_ids, list(fixed))
        detector.follow({0: (layout, anchored, source)})
        return examine(detector, layout, anchored, pulled(layout, force))

    examined(1.0, source=None)
    graph.disconnect([max(graph.connections)])
    assert examined(20.0).broken == ()
    later = [bool(examined(1.0).broken) for _ in range(3)]
    assert later == [False, False, True]  # as soon as it has cooled down


def test_an_equal_layout_keeps_its_equations():
    layout, anchored = tower()
    detector = BreakageDetector(GRADED)
    hard = pulled(layout, 20.0)
    for _ in range(3):
        examine(detector, layout, anchored, hard)
    copy = dataclasses.replace(layout)
    assert examine(detector, copy, anchored.copy(), hard).broken != ()


def test_a_failed_solve_breaks_nothing_and_says_so(monkeypatch):
    monkeypatch.setattr(qp, "solve_interior", lambda P, q, *_: (np.zeros_like(q), "numerics"))
    model = PaperModel(PaperParameters(solver=QpSettings(max_iterations=5)))
    layout, anchored = tower()
    finding = examine(BreakageDetector(model, PROMPT), layout, anchored, pulled(layout, 20.0))
    assert finding.solution is not None and finding.solution.status is SolveStatus.FAILED
    assert finding.broken == () and np.isnan(finding.utilization).all()
    assert "nothing breaks" in finding.message and "numerics" in finding.message


def test_a_fallback_breaks_and_says_so():
    model = PaperModel(PaperParameters(solver=QpSettings(max_iterations=5)))
    layout, anchored = tower()
    finding = examine(BreakageDetector(model, PROMPT), layout, anchored, pulled(layout, 20.0))
    assert finding.solution is not None and finding.solution.status is SolveStatus.FALLBACK
    assert finding.broken != () and "OSQP" in finding.message


def test_loads_that_nothing_balances_are_told():
    layout, _ = tower()
    free = np.zeros(len(layout.part_ids), dtype=bool)
    finding = examine(BreakageDetector(GRADED, PROMPT), layout, free, weights(layout))
    assert "cannot be balanced" in finding.message


def test_the_noise_of_free_fall_is_no_news():
    layout, _ = tower()
    free = np.zeros(len(layout.part_ids), dtype=bool)
    noise = np.random.default_rng(0).normal(scale=1e-12, size=(len(free), 6))
    for model in (GRADED, PaperModel()):
        finding = examine(BreakageDetector(model, PROMPT), layout, free, noise)
        assert finding.message == "" and finding.broken == ()


def test_an_overloaded_connection_that_sound_ones_bypass_does_not_break():
    # A bridge on two piers: the left pier is pulled up. Its joint with the plate is overloaded,
    # but over the bridge and the right pier sound joints hold it to the plate.
    layout, anchored = single_component(text_structure("2x2 (4,4,0)\n2x2 (8,4,0)\n6x2 (4,4,1)"))
    finding = examine(
        BreakageDetector(GRADED, PROMPT), layout, anchored, pulled(layout, 9.5, part=1)
    )
    (over,) = np.flatnonzero(finding.utilization > 1.0)
    assert (layout.stud_index[over], layout.hole_index[over]) == (0, 1)
    assert finding.broken == () and finding.bypassed == (int(layout.connection_ids[over]),)


def test_progressive_collapse_ends_in_pieces():
    """Breaking what is found, piece by piece, ends with nothing overloaded."""
    structure = data_structure("stablelego/stair_20.json", baseplate=(32, 32))
    graph, fixed = structure.graph.copy(), structure.fixed
    detector = BreakageDetector(GRADED, PROMPT)
    broken: list[int] = []
    for _ in range(len(graph.connections)):
        (component,) = {graph.component_of(p) for p in fixed}
        layout = graph.layout(component)
        anchored = np.isin(layout.part_ids, list(fixed))
        finding = detector.examine(component, layout, anchored, weights(layout), DT)
        if not finding.broken:
            break
        broken += finding.broken
        graph.disconnect(finding.broken)
    assert broken and not finding.broken and np.all(finding.utilization <= 1.0)
    assert len(graph.component_ids) == 2  # what tipped over left as one piece


class Reluctant:
    """Fails a connection only after it was overloaded three times."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    def failed(
        self, layout, anchored, system, loads, utilization, overloaded, tolerance, engagement, dt,
        brief, rest, change,
    ):  # fmt: skip
        for connection, u in zip(layout.connection_ids.tolist(), utilization, strict=True):
            self.counts[connection] = self.counts.get(connection, 0) + int(u > 1.0)
        yield 0.0
        failed = np.array([self.counts[c] >= 3 for c in layout.connection_ids.tolist()])
        return Sliding(failed, failed | overloaded, utilization)

    def forget(self, connection_ids):
        for connection in connection_ids:
            self.counts.pop(connection, None)

    def follow(self, layouts):
        """Motion is nothing to it."""

    def snapshot(self):
        return dict(self.counts)

    def restore(self, snapshot):
        self.counts = dict(snapshot)


def test_a_criterion_with_memory_outlasts_changes_and_snapshots():
    layout, anchored = tower()
    detector = BreakageDetector(GRADED, PROMPT, Reluctant())
    hard = pulled(layout, 20.0)
    assert examine(detector, layout, anchored, hard).broken == ()
    snapshot = detector.snapshot()
    detector.follow({}, [0])  # a join elsewhere: equations are rebuilt, the memory stays
    assert examine(detector, layout, anchored, hard).broken == ()
    first = examine(detector, layout, anchored, hard).broken
    assert len(first) == 1
    detector.restore(snapshot)
    assert examine(detector, layout, anchored, hard).broken == ()
    assert examine(detector, layout, anchored, hard).broken == first


def test_a_restored_detector_repeats_its_findings_bit_by_bit():
    layout, anchored = single_component(
        data_structure("stablelego/stair_19.json", baseplate=(32, 32))
    )
    detector = BreakageDetector(PaperModel(), BreakageThresholds(utilization=10.0))
    rng = np.random.default_rng(0)
    sequence = [weights(layout) * rng.uniform(0.2, 0.8) for _ in range(6)]
    for loads in sequence[:3]:
        examine(detector, layout, anchored, loads)
    snapshot = detector.snapshot()
    first = [examine(detector, layout, anchored, loads).utilization for loads in sequence[3:]]
    detector.follow({}, [0])
    detector.restore(snapshot)
    again = [examine(detector, layout, anchored, loads).utilization for loads in sequence[3:]]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_parts_without_connections_are_passed_over():
    graph = BrickTopologyGraph()
    layout = graph.layout(graph.component_of(graph.add_part(BrickShape(4, 2))))
    finding = BreakageDetector(GRADED).examine(0, layout, np.array([False]), np.ones((1, 6)), DT)
    assert finding.broken == () and finding.utilization.shape == (0,)


def test_models_by_name():
    assert {"paper", "default"} <= set(model_names())
    for name in model_names():
        assert get_model(name).name == name
    assert get_model(GRADED) is GRADED
    with pytest.raises(UnknownModelError, match="'papre', expected 'default' or 'paper'"):
        get_model("papre")


@pytest.mark.parametrize("model", [SnapFitModel(), GRADED])
def test_equations_set_up_beforehand_give_the_same_findings(model):
    layout, anchored = tower(4)
    loads = pulled(layout, 6.0)
    one, other = BreakageDetector(model, PROMPT), BreakageDetector(model, PROMPT)
    for detector in (one, other):
        detector.follow({0: (layout, anchored, None)})
    one.prepare()
    for force in (6.0, 6.0, 30.0):
        loads[-1, 2] = force
        a, b = (examine(detector, layout, anchored, loads) for detector in (one, other))
        assert a.broken == b.broken
        np.testing.assert_array_equal(a.utilization, b.utilization)
