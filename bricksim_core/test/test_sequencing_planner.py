# SPDX-License-Identifier: Apache-2.0
"""Plans are replayed brick by brick with rules written anew: cells, sets, public analysis."""

from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sequencing_gripper import hits, swept

from bricksim_core.errors import StructureError, UnknownIdError
from bricksim_core.formats import parse_structure, read_structure
from bricksim_core.mechanics.analysis import analyze
from bricksim_core.sequencing import (
    GripperModel,
    SequenceError,
    Verdict,
    no_check,
    plan_assembly,
)
from bricksim_core.sequencing.gripper import Held
from bricksim_core.spatial import transform, transform_points

DATA = Path(__file__).parent / "data"
FREE = {"gripper": None, "check": no_check}
"""Geometry of the bricks alone."""


def cells_of(structure):
    """Cells (x, y, z) of each part, from its pose in the world."""
    result = {}
    for part_id, pose in structure.part_poses().items():
        shape = structure.graph.part(part_id).shape
        half = np.abs(pose[:2, :2] @ [shape.length, shape.width]) / 2
        low = np.round(pose[:2, 3] / 0.008 - half).astype(int)
        high = np.round(pose[:2, 3] / 0.008 + half).astype(int)
        z = round(pose[2, 3] / 0.0032)
        result[part_id] = {
            (x, y, z + k)
            for x in range(low[0], high[0])
            for y in range(low[1], high[1])
            for k in range(shape.height)
        }
    return result


def body(structure, part_id, studs=True):
    pose, shape = structure.part_poses()[part_id], structure.graph.part(part_id).shape
    half = np.abs(pose[:3, :3]) @ (np.array(shape.size) / 2)
    centre = pose[:3, 3] + [0, 0, half[2]]
    top = 0.0017 if studs and shape.has_studs else 0.0
    return np.array([*(centre - half), *(centre + half + [0, 0, top])])


def replay(structure, steps, start, *, ground, from_below=False, gripper=None):
    """Builds from the parts in ``start`` and checks every rule of each step; what is there then."""
    cells = cells_of(structure)
    if from_below:
        cells = {p: {(x, y, -z) for x, y, z in c} for p, c in cells.items()}
    graph = structure.graph.graph
    connections = structure.graph.connections
    there = set(start)
    for step in steps:
        new = set(step.parts)
        assert len(new) == len(step.parts) and not new & there
        for p in new:
            tops = {
                (x, y): max(k for i, j, k in cells[p] if (i, j) == (x, y)) for x, y, _ in cells[p]
            }
            over = {q for q in there for x, y, z in cells[q] if tops.get((x, y), z) < z}
            assert not over, f"{over} are above {p}"
        lower, upper = ("hole_part", "stud_part") if from_below else ("stud_part", "hole_part")
        made = {
            i for i, c in connections.items()
            if getattr(c, lower) in there and getattr(c, upper) in new
        }  # fmt: skip
        assert set(step.connections) == made
        assert set(step.supports) == {getattr(connections[i], lower) for i in made}
        bottom = min(z for p in new for _, _, z in cells[p])
        assert made or (ground is not None and bottom == ground), f"{new} stand on nothing"
        assert nx.is_connected(graph.subgraph(new))
        if gripper is not None:
            check_grasps(structure, step, there, gripper)
        inner = step.subassembly
        assert (inner is None) == (len(new) == 1)
        if inner is not None and inner.in_hand:
            assert not from_below
            assert replay_in_hand(structure, inner, gripper) == new
        elif inner is not None:
            lowest = min(z for p in new for _, _, z in cells_of(structure)[p])
            base = set() if inner.holder is None else {inner.holder}
            built = replay(
                structure,
                inner.steps,
                base,
                ground=lowest if inner.holder is None else None,
                from_below=inner.from_below,
                gripper=gripper,
            )
            assert built == new
        there |= new
        for part in nx.connected_components(graph.subgraph(there)):
            on_ground = ground is not None and any(
                z == ground for p in part for _, _, z in cells[p]
            )
            assert part & set(start) or on_ground, f"{part} float"
    return there


def replay_in_hand(structure, inner, gripper):
    """Each step puts all that is in the hand onto a part on the table, the lowest of all."""
    cells, connections = cells_of(structure), structure.graph.connections
    held = set(inner.steps[0].parts)
    assert len(held) == 1
    for step in inner.steps:
        (below,) = step.supports
        assert set(step.parts) == held and below not in held
        bottom = min(z for _, _, z in cells[below])
        assert all(z > bottom for p in held for _, _, z in cells[p])
        columns = {(x, y) for x, y, _ in cells[below]}
        top = max(z for _, _, z in cells[below])
        assert all(z > top for p in held for x, y, z in cells[p] if (x, y) in columns)
        made = {
            i for i, c in connections.items() if c.stud_part == below and c.hole_part in held
        }  # fmt: skip
        assert made and set(step.connections) == made
        if gripper is not None:
            check_grasps(structure, step, {below}, gripper)
        held.add(below)
    return held


def check_grasps(structure, step, there, gripper):
    assert step.grasps
    for grasp in step.grasps[:2]:
        if grasp.from_below:
            continue
        between = {grasp.part} | ({grasp.beside} - {None})
        assert between <= set(step.parts)
        others = (there | set(step.parts)) - between
        obstacles = np.array([body(structure, p) for p in others]).reshape(-1, 6)
        box = body(structure, grasp.part, studs=False)
        pose = structure.part_poses()[grasp.part]
        yaw = round(np.arctan2(pose[1, 0], pose[0, 0]) / (np.pi / 2)) % 4
        part = Held(grasp.part, tuple(pose[:2, 3]), yaw, tuple(box[:3]), tuple(box[3:]))
        assert not hits(swept(part, grasp, gripper), obstacles).any()


def check_plan(structure, plan, gripper=None):
    base = set(plan.base)
    cells = cells_of(structure)
    ground = min(z for c in cells.values() for _, _, z in c)
    if not base and structure.ground is not None:
        ground = round(structure.ground / 0.0032)
    assert replay(structure, plan.steps, base, ground=ground, gripper=gripper) == set(cells)
    assert sorted(plan.order) == sorted(cells)


def text(*lines, **options):
    return parse_structure("\n".join(lines), **options)


@pytest.mark.parametrize("name", ["texture_guitar", "demo_table", "fewshot_0_ac97ffc6", "demo_car"])
def test_real_structures_by_geometry(name):
    """Structures with bricks that hang from others."""
    structure = read_structure(DATA / f"brickgpt/{name}.txt")
    check_plan(structure, plan_assembly(structure, **FREE))


@pytest.mark.parametrize("name", ["texture_guitar", "demo_table"])
def test_real_structures_with_the_gripper(name):
    structure = read_structure(DATA / f"brickgpt/{name}.txt")
    plan = plan_assembly(structure, check=no_check, arms=1)
    assert plan.arms == 1
    check_plan(structure, plan, GripperModel())


def test_guitar_with_everything():
    """28 bricks: each state stands and bears the press, by the analysis of states made anew."""
    structure = read_structure(DATA / "brickgpt/texture_guitar.txt")
    plan = plan_assembly(structure, press_force=3.0, arms=1)
    check_plan(structure, plan, GripperModel())
    there = set(plan.base)
    for step in plan.steps:
        before = structure.without(set(structure.graph.part_ids) - there)
        joints = [structure.graph.connection(i) for i in step.connections]
        poses, cells = structure.part_poses(), cells_of(structure)
        engaged = {
            c.id: [(x, y) for x, y, z in cells[c.hole_part] if (x, y, z - 1) in cells[c.stud_part]]
            for c in joints
        }
        total = sum(map(len, engaged.values()))
        loads = {}
        for c in joints:
            share = -3.0 * len(engaged[c.id]) / total
            centre = (np.mean(engaged[c.id], axis=0) + 0.5) * 0.008
            arm = centre - poses[c.stud_part][:2, 3]
            wrench = np.array([0, 0, share, arm[1] * share, -arm[0] * share, 0])
            loads[c.stud_part] = loads.get(c.stud_part, np.zeros(6)) + wrench
        pressed = analyze(before, loads=loads, limit=False)
        assert pressed.stable
        assert step.press_utilization == pytest.approx(pressed.max_utilization, abs=1e-6)
        there |= set(step.parts)
        after = analyze(structure.without(set(structure.graph.part_ids) - there), limit=False)
        assert after.stable
        assert step.utilization == pytest.approx(after.max_utilization, abs=1e-6)


def test_demo_of_bricksim():
    """A tower on a plate: the plate is the base though the file does not call it fixed."""
    structure = read_structure(DATA / "bricksim/demo_assembly_structure1.json")
    plan = plan_assembly(structure, arms=1)
    assert plan.base == (0,) and [s.parts for s in plan.steps] == [(1,), (2,), (3,), (4,)]
    assert [s.connections for s in plan.steps] == [(1,), (0,), (2,), (3,)]
    check_plan(structure, plan, GripperModel())


sides = st.integers(1, 4)
bricks = st.lists(
    st.tuples(sides, sides, st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)),
    min_size=1,
    max_size=14,
)


def without_overlap(entries):
    taken, result = set(), []
    for h, w, x, y, z in entries:
        own = {(i, j, z) for i in range(x, x + h) for j in range(y, y + w)}
        if not own & taken:
            taken |= own
            result.append(f"{h}x{w} ({x},{y},{z})")
    return result


@settings(deadline=None, max_examples=80)
@given(bricks, st.sampled_from(["auto", None]))
def test_random_structures(entries, baseplate):
    """Found plans hold, floating bricks are named; without hanging bricks a plan is found."""
    structure = text(*without_overlap(entries), baseplate=baseplate)
    graph = structure.graph
    cells = cells_of(structure)
    lower = {c.hole_part: c.stud_part for c in graph.connections.values()}
    rooted = {p for p, c in cells.items() if min(z for _, _, z in c) <= 0}
    reached = set().union(*(nx.node_connected_component(graph.graph, p) for p in rooted), set())
    if reached != set(cells):
        with pytest.raises(SequenceError, match="not connected to the ground") as error:
            plan_assembly(structure, **FREE)
        assert set(error.value.reasons) == set(cells) - reached
        assert error.value.proven
        return
    stands_alone = all(p in lower or p in rooted for p in cells)
    try:
        plan = plan_assembly(structure, **FREE)
    except SequenceError:
        assert not stands_alone
        return
    check_plan(structure, plan)
    if stands_alone:
        assert all(len(s.parts) == 1 for s in plan.steps)
        heights = [min(z for _, _, z in cells[s.parts[0]]) for s in plan.steps]
        assert heights == sorted(heights)  # layer by layer


@settings(deadline=None, max_examples=25)
@given(bricks, st.integers(0, 3))
def test_rotation_and_place_do_not_matter(entries, quarter):
    """The same order when the structure stands elsewhere, turned by any angle."""
    structure = text(*without_overlap(entries), baseplate=None)
    structure.ground = None
    angle = quarter * 0.7
    turn = transform([0.3, -0.2, 0.1], [0, 0, np.sin(angle / 2), np.cos(angle / 2)])
    poses = {c: turn @ p for c, p in structure.component_poses.items()}
    moved = replace(structure, component_poses=poses)

    def outcome(s):
        try:
            return [step.parts for step in plan_assembly(s, gripper=None, check=no_check).steps]
        except SequenceError as error:
            return str(error)

    assert outcome(moved) == outcome(structure)


HOOK = (
    "2x2 (0,0,0)", "2x2 (0,0,1)", "2x2 (0,0,2)", "4x2 (0,0,3)",  # a post with an arm
    "4x2 (2,0,1)", "2x2 (4,0,2)", "2x2 (4,0,3)", "4x2 (2,0,4)",  # a hook around the arm
)  # fmt: skip


def test_hook_around_an_arm():
    """The arm itself has to be part of what is put on, which takes two levels of joining before."""
    structure = text(*HOOK)
    plan = plan_assembly(structure)
    check_plan(structure, plan, GripperModel())
    last = plan.steps[-1]
    assert set(last.parts) == {4, 5, 6, 7, 8}
    assert last.subassembly is not None
    assert last.subassembly.steps[-1].parts == (4, 8)


def test_hook_around_a_beam_that_is_held_cannot_be_put_on():
    structure = text(*HOOK, baseplate=None)
    with pytest.raises(SequenceError, match=r"part 8 \(4x2 brick\), line 8: without it .*5.* hang"):
        plan_assembly(structure, base=[1, 2, 3, 4], **FREE)


def test_closed_box():
    """A brick inside four walls under a roof: it goes in before the roof does."""
    structure = text(
        "8x8 (0,0,0)",
        "8x2 (0,0,1)", "8x2 (0,6,1)", "2x4 (0,2,1)", "2x4 (6,2,1)",
        "2x2 (3,3,1)",
        "8x8 (0,0,2)",
    )  # fmt: skip
    plan = plan_assembly(structure, **FREE)
    check_plan(structure, plan)
    assert plan.steps[-1].parts == (7,)
    assert 6 in plan.order[:-1]


def test_brick_below_an_overhang_comes_first():
    structure = text("2x2 (0,0,0)", "2x2 (0,0,1)", "6x2 (0,0,2)", "2x2 (4,0,0)")
    order = plan_assembly(structure, **FREE).order
    assert order.index(4) < order.index(3)


def test_bricks_hanging_from_a_bridge():
    """A beam on two posts with a brick under it: beam and brick go up together."""
    structure = text("2x2 (0,0,0)", "2x2 (6,0,0)", "2x2 (0,0,1)", "2x2 (6,0,1)", "8x2 (0,0,2)",
                     "2x2 (3,0,1)")  # fmt: skip
    plan = plan_assembly(structure)
    check_plan(structure, plan, GripperModel())
    assert set(plan.steps[-1].parts) == {5, 6}


def test_joined_in_the_air():
    """Two small bricks hang from the end of a beam: standing on them it would tip over."""
    structure = text("2x2 (0,0,0)", "2x2 (0,0,1)", "9x2 (0,0,2)", "1x1 (8,0,1)", "1x1 (8,1,1)")
    with pytest.raises(SequenceError, match="cannot be joined before: it does not stand"):
        plan_assembly(structure, arms=1, base=[0, 1, 2])
    plan = plan_assembly(structure, base=[0, 1, 2])
    check_plan(structure, plan)
    (step,) = plan.steps
    assert step.parts[0] == 3 and plan.arms == 2
    inner = step.subassembly
    assert inner is not None and inner.holder == 3 and inner.from_below
    assert {s.parts for s in inner.steps} == {(4,), (5,)}
    assert all(g.from_below for s in inner.steps for g in s.grasps)
    assert "joined before held at 3, from below" in plan.table()


def test_four_bricks_in_a_square_leave_no_room_for_fingers():
    """Whichever comes last has neighbours on two adjacent sides: no two opposite faces are free."""
    square = text("2x2 (0,0,0)", "2x2 (2,0,0)", "2x2 (0,2,0)", "2x2 (2,2,0)")
    with pytest.raises(SequenceError, match="no room for the fingers") as error:
        plan_assembly(square)
    assert "parts" in error.value.reasons[4] and set(error.value.reasons) == {1, 2, 3, 4}
    check_plan(square, plan_assembly(square, gripper=None))
    apart = text("2x2 (0,0,0)", "2x2 (5,0,0)", "2x2 (0,5,0)", "2x2 (5,5,0)")
    check_plan(apart, plan_assembly(apart), GripperModel())


def test_square_on_a_common_brick_is_put_on_together():
    """On a brick of their own two of the four are joined before and held side by side."""
    structure = text("4x4 (0,0,0)", "4x2 (0,0,1)", "4x2 (0,2,1)", "4x4 (4,0,0)", "4x2 (4,0,1)",
                     "4x2 (4,2,1)")  # fmt: skip
    plan = plan_assembly(structure, check=no_check)
    check_plan(structure, plan, GripperModel())
    assert any(step.grasps[0].beside is not None for step in plan.steps)


def test_two_bricks_side_by_side_are_pressed_on_only_if_each_bears_it_alone():
    """Two closed rings, one on the other: the lower one's last brick could come with two on top of
    it between the fingers, but one of these hangs by one stud."""
    structure = text("6x2 (0,0,0)", "2x6 (6,0,0)", "6x2 (2,6,0)", "2x6 (0,2,0)", "4x2 (1,1,1)",
                     "2x4 (5,1,1)", "4x2 (3,5,1)", "2x4 (1,3,1)", "4x2 (2,2,2)",
                     "4x2 (2,4,2)")  # fmt: skip

    def pairs(plan):
        return [s.parts for s in plan.steps if any(g.beside is not None for g in s.grasps)]

    assert pairs(plan_assembly(structure, check=no_check)) == [(3, 7, 8)]
    plan = plan_assembly(structure)
    check_plan(structure, plan, GripperModel())
    assert not pairs(plan)


def test_what_is_in_balance_on_an_edge_does_not_stand():
    """A 4x2 across a 4x2, two equal weights: their centre lies 4 mm inside of the lower one's edge,
    or on it, where `analyze` finds forces that carry it."""
    firm, balanced = (text("2x4 (0,0,0)", f"4x2 ({x},1,1)").without([0]) for x in (0, 1))
    check_plan(firm, plan_assembly(firm), GripperModel())
    assert analyze(balanced, limit=False).stable
    with pytest.raises(SequenceError, match="does not stand when finished: 1, 2 would tip over"):
        plan_assembly(balanced)


def test_too_large_for_the_gripper():
    with pytest.raises(SequenceError, match="it does not fit between the fingers"):
        plan_assembly(text("12x12 (0,0,0)"))


def test_collapsing_structure():
    """StableLego's stair of 20 fell when it was built."""
    structure = read_structure(DATA / "stablelego/stair_20.json")
    with pytest.raises(SequenceError, match="it does not stand when finished: part 0") as error:
        plan_assembly(structure)
    assert error.value.proven


def test_press_on_a_cantilever():
    """Two columns of studs hold a long arm, a brick goes on its far end."""
    structure = text("8x2 (0,0,0)", "8x2 (6,0,1)", "2x2 (12,0,2)")
    # With one hand arm and brick are joined before, and pressed on over the studs of the arm.
    joined = plan_assembly(structure, press_force=20.0, arms=1)
    assert joined.steps[-1].parts == (2, 3) and joined.arms == 1
    # Where the arm is there already, only a hand that pushes up under it helps.
    there = [0, 1, 2]
    with pytest.raises(SequenceError, match=r"part 3 .* pressing it on with 4 N breaks") as error:
        plan_assembly(structure, base=there, press_force=4.0, arms=1)
    assert not error.value.proven
    helped = plan_assembly(structure, base=there, press_force=4.0)
    assert helped.arms == 2 and helped.steps[0].needs_support == 2
    # It follows the press with a lag: of a hard one too much is left to the arm.
    with pytest.raises(SequenceError, match=r"part 3 .* pressing it on with 20 N breaks"):
        plan_assembly(structure, base=there, press_force=20.0)
    assert plan_assembly(structure, base=there, press_force=0.1).arms == 1


def test_stair_is_joined_in_one_hand_from_the_top_down():
    """StableLego's stair of 19 stood with hardly any reserve: neither a press on its upper bricks
    nor one with a sixth of it borne elsewhere."""
    structure = read_structure(DATA / "stablelego/stair_19.json")
    with pytest.raises(SequenceError, match=r"pressing it on with 2.4 N breaks what is there"):
        plan_assembly(structure, arms=1, press_force=2.4)
    plan = plan_assembly(structure, press_force=2.4, press_on_rims=True)
    check_plan(structure, plan, GripperModel())
    last = plan.steps[-1]
    assert plan.arms == 2 and last.subassembly is not None and last.subassembly.in_hand
    assert last.needs_support is None and "joined before in one hand" in plan.table()
    # What hangs in the hand is checked there: all but the two lowest bricks.
    tip = max(last.parts, key=lambda p: structure.part_poses()[p][2, 3])
    assert last.parts[0] == tip and len(last.parts) == 17
    for step in last.subassembly.steps:
        outside = set(structure.graph.part_ids).difference(step.parts, step.supports)
        whole = replace(structure.without(outside), ground=None)
        hung = replace(whole, fixed=frozenset({step.grasps[0].part}))
        assert analyze(hung).max_utilization == pytest.approx(step.utilization, abs=1e-6)


def test_presses_act_on_rims_where_asked_for():
    """Middles of the four sides of the engaged studs, computed by hand."""
    structure = text("8x2 (0,0,0)", "4x2 (2,0,1)")
    seen = set()

    def check(state, loads):
        if loads:
            com = transform_points(state.part_poses()[1], state.graph.part(1).shape.com)
            (wrench,) = loads.values()
            # Torque of a vertical force about the COM: where it acts.
            x, y = com[0] + wrench[4] / -wrench[2], com[1] + wrench[3] / wrench[2]
            seen.add((round(1e3 * x, 6), round(1e3 * y, 6)))
        return Verdict(True, 0.0)

    plan_assembly(structure, gripper=None, check=check, base=[0, 1], press_on_rims=True)
    middle = np.round(1e3 * structure.part_poses()[2][:2, 3], 6)
    half_x, half_y = 1.5 * 8.0 + 2.4, 0.5 * 8.0 + 2.4
    sides = [(0.0, 0.0), (half_x, 0.0), (-half_x, 0.0), (0.0, half_y), (0.0, -half_y)]
    expected = sorted(map(tuple, np.add(middle, sides).tolist()))
    np.testing.assert_allclose(sorted(seen), expected, atol=1e-5)
    seen.clear()
    plan_assembly(structure, gripper=None, check=check, base=[0, 1])
    assert seen == {tuple(middle.tolist())}


def test_counterweight_comes_first():
    """An order that a check forbids is avoided: the arm must not be there before the weight."""
    structure = text("2x2 (4,0,0)", "8x2 (0,0,1)", "2x2 (0,0,2)", "2x2 (6,0,2)")

    def check(state, loads):
        ids = set(state.graph.part_ids)
        return Verdict(not (4 in ids and 3 not in ids), 0.0, "tips over")

    plan = plan_assembly(structure, gripper=None, check=check)
    assert plan.order.index(3) < plan.order.index(4)

    def reverse(state, loads):
        ids = set(state.graph.part_ids)
        return Verdict(not (3 in ids and 4 not in ids), 0.0, "tips over")

    plan = plan_assembly(structure, gripper=None, check=reverse)
    assert plan.order.index(4) < plan.order.index(3)


def test_order_that_greedy_removal_misses():
    """The check wants a brick of a low layer to be put on after one of a high layer."""
    structure = text("2x2 (0,0,0)", "2x2 (0,0,1)", "2x2 (0,0,2)", "2x2 (5,0,0)")

    def check(state, loads):
        ids = set(state.graph.part_ids)
        return Verdict(not (4 in ids and 3 not in ids), 0.0, "needs the tower")

    plan = plan_assembly(structure, gripper=None, check=check)
    assert plan.order[-1] == 4


def test_nothing_stands_until_finished():
    structure = text("2x2 (0,0,0)", "2x2 (0,0,1)", "2x2 (0,0,2)")

    def check(state, loads):
        return Verdict(len(state.graph) == 4, 0.0, "falls")

    with pytest.raises(
        SequenceError, match=r"part 3 .*what is there before it does not stand: falls"
    ):
        plan_assembly(structure, gripper=None, check=check)


def test_table_and_data():
    structure = text(*HOOK, name="hook.txt")
    plan = plan_assembly(structure)
    lines = plan.table().splitlines()
    assert lines[0] == "hook: 4 steps on 0 (6x2 plate), base plate; press 5 N"
    assert lines[1].split() == ["step", "part", "on", "grasp", "press", "after", "notes"]
    assert len(lines) == 2 + 4 + 4 + 2
    assert "joined before on the table" in plan.table()
    data = plan.to_dict()
    assert data["base"] == [0] and len(data["steps"]) == 4
    assert data["steps"][0]["grasps"][0]["closing_axis"] in "xy"
    assert data["steps"][3]["subassembly"]["steps"][0]["parts"] == [5]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"arms": 3}, SequenceError, "arms is 3"),
        ({"press_force": -1.0}, SequenceError, "press_force is -1.0 N"),
        ({"press_force": float("nan")}, SequenceError, "press_force is nan N"),
        ({"base": [99]}, UnknownIdError, "99"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        plan_assembly(text("2x2 (0,0,0)"), **options)


def test_empty_structure():
    structure = text("2x2 (0,0,0)").without([0, 1])
    with pytest.raises(SequenceError, match="holds no part"):
        plan_assembly(structure)


def test_going_on_from_what_is_there():
    """Only the rest is planned; what is there is not taken to be held by the world."""
    structure = read_structure(DATA / "brickgpt/texture_guitar.txt")
    there = plan_assembly(structure, **FREE).order[:12]
    plan = plan_assembly(structure, base=there, **FREE)
    assert set(plan.base) == set(there)
    check_plan(structure, plan)


def test_tilted_structures_cannot_be_planned():
    structure = text("2x2 (0,0,0)", baseplate=None)
    structure.component_poses = {0: transform([0, 0, 0], [0.1, 0, 0, 0.995])}
    with pytest.raises(StructureError, match="tilted"):
        plan_assembly(structure)


@settings(max_examples=25, deadline=None)
@given(order=st.permutations(range(5)))
def test_rows_of_short_bricks_are_not_closed_in_their_middle(order):
    """Whatever the order of the file: fingers are wider than bricks of two studs, and between two
    others they would scrape along both."""
    lines = ["10x2 (0,0,0)", *(f"2x2 ({2 * i},0,1)" for i in order)]
    plan = plan_assembly(parse_structure("\n".join(lines)), check=no_check)
    assert not any(step.grasps[0].scrapes for step in plan.steps)
