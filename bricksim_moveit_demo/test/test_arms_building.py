# SPDX-License-Identifier: Apache-2.0
"""Building structures with one arm and with two, joining in the hands of two."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from arms_support import bench, bricks, yawed

from bricksim_core.errors import StructureError
from bricksim_core.formats import parse_structure
from bricksim_core.parts import BrickShape
from bricksim_core.sequencing import SequenceError
from bricksim_core.sequencing.plan import SubAssembly
from bricksim_core.sequencing.planner import plan_assembly
from bricksim_core.simulator import Simulator
from bricksim_moveit_demo.building import (
    Insertion,
    StructureBuilder,
    base_part,
    insertions,
    loose_bricks,
)
from bricksim_moveit_demo.description import one_arm, two_arms
from bricksim_moveit_demo.errors import Outcome, TaskError
from bricksim_moveit_demo.foreseeing import plan_bearable
from bricksim_moveit_demo.handling import BrickHandler
from bricksim_moveit_demo.inhand import (
    LOWER,
    PLATE,
    UPPER,
    InHandScene,
    join_in_hand,
    lay_out_in_hand,
)
from bricksim_moveit_demo.layout import Region, TableLayout, arrange, packing, read_layout
from bricksim_moveit_demo.parameters import TaskParameters
from bricksim_moveit_demo.planning.embedded import EmbeddedPlanner
from bricksim_moveit_demo.planning.protocol import PlanningOptions
from bricksim_moveit_demo.reports import InsertionGoal, Stage
from bricksim_moveit_demo.supplying import Supply
from bricksim_moveit_demo.world import Noise, SimulatedWorld

TOWER = "2x4 (4,4,0)\n2x4 (4,8,0)\n2x6 (4,5,1)\n2x2 (4,5,2)\n4x2 (3,7,2)\n"
NOISE = Noise.of(1.0, 2.0)


def _build(text, seed, **more):
    structure = parse_structure(text, baseplate=(12, 14))
    plan = plan_assembly(structure, arms=1)
    simulator = Simulator()
    Supply(simulator, structure, TableLayout(), seed, NOISE.sample)
    world = SimulatedWorld(simulator, one_arm(), NOISE, seed)
    handler = BrickHandler(world, EmbeddedPlanner(one_arm(), PlanningOptions(seed=seed)), "fr3")
    builder = StructureBuilder(world, {"fr3": handler})
    return structure, simulator, builder.build(insertions(structure, plan), **more)


def _same_connections(graph, other):
    def keys(g):
        return {(c.stud_part, c.hole_part, c.offset, c.yaw) for c in g.connections.values()}

    return keys(graph) == keys(other)


def test_five_bricks_are_built_with_noise():
    structure, simulator, summary = _build(TOWER, seed=3)
    assert summary.success, summary.message
    assert (summary.inserted, summary.total) == (5, 5)
    assert _same_connections(simulator.graph, structure.graph)
    assert summary.duration < 5 * 20.0
    assert summary.to_dict()["reports"][0]["outcome"] == "succeeded"


def test_fingers_let_go_in_a_gap_that_they_hardly_fit():
    """Two columns that face each other over two studs: 16 mm, a finger is 15.2 mm thick."""
    _, _, summary = _build("2x2 (4,4,0)\n2x2 (8,4,0)\n2x2 (4,6,0)\n2x2 (8,6,0)\n", seed=0)
    assert summary.success, summary.message
    assert [report.tries for report in summary.reports] == [1, 1, 1, 1]


def test_sub_assembly_is_joined_on_the_table_and_put_in_place_whole():
    """A brick that hangs from the one above it can only come with it."""
    text = "2x4 (4,4,0)\n2x2 (6,6,1)\n4x2 (4,6,2)\n2x2 (4,6,1)\n"
    structure = parse_structure(text, baseplate=(12, 14))
    plan = plan_assembly(structure, arms=1)
    assert any(step.subassembly is not None for step in plan.steps)
    simulator = Simulator()
    Supply(simulator, structure, TableLayout(), seed=1)
    world = SimulatedWorld(simulator, one_arm())
    handler = BrickHandler(world, EmbeddedPlanner(one_arm(), PlanningOptions()), "fr3")
    summary = StructureBuilder(world, {"fr3": handler}).build(insertions(structure, plan))
    assert summary.success, summary.message
    assert _same_connections(simulator.graph, structure.graph)


def test_sub_assembly_is_joined_where_it_has_room():
    # Brick 2 is to hang below brick 3, four studs beside brick 1: where brick 4 lies.
    line = BrickShape(8, 1)
    there = bench(
        {1: BrickShape(4, 1), 2: line, 3: line, 4: BrickShape(2, 2)},
        {
            1: yawed(0.4, -0.2),
            2: yawed(0.45, 0.3),
            3: yawed(0.45, 0.2),
            4: yawed(0.48, -0.2),
        },
    )
    onto_the_line = InsertionGoal(3, 2, (-6, 0), 0)
    onto_the_short_one = InsertionGoal(3, 1, (2, 0), 0)
    goals = [onto_the_line, onto_the_short_one]
    before = there.world.part_pose(1)
    refused = there.handler.make_room(goals, most=0)
    assert refused.outcome is Outcome.UNREACHABLE, refused
    assert "brick 1" in refused.message
    np.testing.assert_allclose(there.world.part_pose(1), before, atol=1e-4)
    obstacle = there.world.part_pose(4)
    builder = StructureBuilder(there.world, {there.handler.motion.arm.name: there.handler})
    summary = builder.build(
        [Insertion(onto_the_line, (), release=False), Insertion(onto_the_short_one, ())]
    )
    assert summary.success, summary
    assert [report.tries for report in summary.reports] == [1, 1]
    assert np.linalg.norm((there.world.part_pose(1) - before)[:2, 3]) > 0.02
    np.testing.assert_allclose(there.world.part_pose(4), obstacle, atol=1e-3)


def test_grasp_fits_all_seats_of_a_brick_that_stays_in_the_hand():
    """The second seat is out of reach: the brick is not pressed onto the first one, either."""
    line = BrickShape(8, 1)
    there = bench(
        {1: BrickShape(4, 1), 2: line, 3: line},
        {1: yawed(1.2, 0.0), 2: yawed(0.45, 0.3), 3: yawed(0.45, 0.2)},
    )
    before = there.world.part_pose(3)
    goal, then = InsertionGoal(3, 2, (-6, 0), 0), [InsertionGoal(3, 1, (2, 0), 0)]
    report = there.handler.pick_and_insert(goal, release=False, then=then)
    assert report.outcome is Outcome.UNREACHABLE, report
    np.testing.assert_allclose(there.world.part_pose(3), before, atol=1e-4)
    assert there.handler.pick_and_insert(goal, release=False).success


def test_press_ends_when_what_is_in_the_hand_breaks():
    """Brick 2 hangs from brick 3 by two studs; its far end comes down on a plate."""
    line = BrickShape(8, 1)
    there = bench(
        {1: BrickShape(4, 1), 2: line, 3: line, 4: BrickShape(2, 2, 1)},
        {
            1: yawed(0.4, -0.2),
            2: yawed(0.45, 0.3),
            3: yawed(0.45, 0.2),
            # 13 studs from brick 1, where the end of brick 2 will be.
            4: yawed(0.4 + 13 * 0.008, -0.2),
        },
        parameters=TaskParameters(tries=1),
    )
    there.simulator.connect(2, 3, (-6, 0), 0)
    report = there.handler.pick_and_insert(InsertionGoal(3, 1, (2, 0), 0))
    assert report.outcome is Outcome.STRUCTURE_BROKE, report
    assert "of what is in the hand broke" in report.message
    # It would have gone on to 25 N.
    assert report.press_force < 8.0


def test_same_seed_same_run():
    runs = [_build("2x4 (4,4,0)\n", seed=11) for _ in range(2)]
    poses = [simulator.part_pose(1) for _, simulator, _ in runs]
    np.testing.assert_array_equal(poses[0], poses[1])
    assert runs[0][2].duration == runs[1][2].duration
    assert runs[0][2].reports[0].press_force == runs[1][2].reports[0].press_force


def _arms_touching(engine):
    """Whether links of both arms are in contact."""
    model, data = engine.model, engine.data
    for contact in data.contact[: data.ncon]:
        bodies = [model.body(int(model.geom_bodyid[geom])).name for geom in contact.geom]
        if {name.split("/")[0] for name in bodies} == {"left", "right"}:
            return True
    return False


def test_two_arms_take_the_bricks_next_to_them_and_do_not_meet():
    """Two bricks beside each arm; each insertion finds the other arm standing back."""
    structure = parse_structure("2x4 (4,4,0)\n2x4 (4,8,0)\n2x6 (4,5,1)\n", baseplate=(12, 14))
    plan = plan_assembly(structure, arms=2)
    order = [step.parts[0] for step in plan.steps]
    near, far = (0.36, -0.25, 0.0), (0.74, 0.25, 0.4)
    places = dict(zip(order, (near, far, (0.36, 0.25, 0.4)), strict=True))
    simulator = Simulator()
    layout = replace(packing(2), places=places)
    Supply(simulator, structure, layout, 2, NOISE.sample)
    arms = two_arms()
    world = SimulatedWorld(simulator, arms, NOISE, 2)
    planner = EmbeddedPlanner(arms, PlanningOptions(seed=2))
    handlers = {arm.name: BrickHandler(world, planner, arm.name) for arm in arms}
    met = []
    world.listeners.append(lambda _: met.append(_arms_touching(simulator.engine)))
    summary = StructureBuilder(world, handlers).build(insertions(structure, plan))
    assert summary.success, summary.message
    assert [report.arm for report in summary.reports] == ["left", "right", "left"]
    assert _same_connections(simulator.graph, structure.graph)
    assert met and not any(met)


def test_brick_that_one_arm_does_not_reach_is_brought_by_the_other():
    """It lies where only the right arm picks; its seat is where only the left arm presses."""
    structure = parse_structure("2x4 (4,4,0)\n", baseplate=(8, 8))
    simulator = Simulator()
    layout = TableLayout(seat=(0.3, 0.0), places={1: (0.98, 0.3, 0.3)})
    Supply(simulator, structure, layout)
    arms = two_arms(1.2)
    world = SimulatedWorld(simulator, arms)
    planner = EmbeddedPlanner(arms, PlanningOptions())
    handlers = {arm.name: BrickHandler(world, planner, arm.name) for arm in arms}
    plan = insertions(structure, plan_assembly(structure, arms=2))
    hands = []
    world.listeners.append(lambda _: hands.extend(set(world.held) - set(hands)))
    summary = StructureBuilder(world, handlers).build(plan)
    assert summary.success, summary.message
    assert hands == ["right", "left"]
    assert summary.reports[0].arm == "left"


@pytest.mark.parametrize(
    "scene", [InHandScene(), InHandScene(BrickShape(4, 1), BrickShape(2, 1))], ids=["4x2", "4x1"]
)
def test_two_arms_join_two_bricks_in_the_air_and_place_them(scene):
    simulator, seed = Simulator(), 0
    lay_out_in_hand(simulator, scene, seed)
    arms = two_arms()
    world = SimulatedWorld(simulator, arms, NOISE, seed)
    planner = EmbeddedPlanner(arms, PlanningOptions(seed=seed))
    taker, giver = (BrickHandler(world, planner, arm.name) for arm in arms)
    heights = []

    def watch(result):
        for event in result.events:
            if {event.connection.stud_part, event.connection.hole_part} == {LOWER, UPPER}:
                heights.append(event.world_T_connection[2, 3])

    world.listeners.append(watch)
    summary = join_in_hand(world, taker, giver, scene)
    assert summary.success, summary.message
    assert summary.handed_over
    assert heights[0] > 0.3
    graph = simulator.graph
    assert {(c.stud_part, c.hole_part) for c in graph.connections.values()} == {
        (PLATE, LOWER),
        (LOWER, UPPER),
    }


HANGING = "1x2 (7,4,0)\n1x2 (7,4,1)\n8x2 (0,4,2)\n2x2 (5,4,1)\n"
"""A brick that hangs from a long one: both tip over on the table, joined or not."""


@pytest.mark.timeout(900)  # 25 s of one core
def test_sub_assembly_that_does_not_stand_is_joined_in_the_air_by_two_arms():
    structure = parse_structure(HANGING, baseplate=(16, 12))
    with pytest.raises(SequenceError, match="part 4 would hang in the air"):
        plan_bearable(structure, TaskParameters(), arms=1)
    steps = plan_bearable(structure, TaskParameters(), arms=2)
    assert [(step.goal.part, step.holder) for step in steps] == [
        (1, None),
        (2, None),
        (3, 4),
        (3, None),
    ]
    simulator = Simulator()
    Supply(simulator, structure, packing(2), 0, NOISE.sample)
    arms = two_arms()
    world = SimulatedWorld(simulator, arms, NOISE, 0)
    planner = EmbeddedPlanner(arms, PlanningOptions())
    handlers = {arm.name: BrickHandler(world, planner, arm.name) for arm in arms}
    joined, holding = {}, set()

    def watch(result):
        holding.update(arm for arm, part in world.held.items() if part == 4)
        for event in result.events:
            key = (event.connection.stud_part, event.connection.hole_part)
            joined.setdefault(key, event.world_T_connection[2, 3])

    world.listeners.append(watch)
    summary = StructureBuilder(world, handlers).build(steps)
    assert summary.success, summary.message
    assert holding == {"left", "right"}  # it was handed over
    assert joined[4, 3] > 0.3
    assert joined[2, 3] < 0.1
    assert _same_connections(simulator.graph, structure.graph)
    assert not world.held


@pytest.mark.timeout(900)  # 30 s of one core
def test_joining_in_the_air_goes_on_after_a_cancel_at_each_stage_of_it():
    structure = parse_structure(HANGING, baseplate=(16, 12))
    steps = plan_bearable(structure, TaskParameters(), arms=2)[2:]
    simulator = Simulator()
    standing = structure.without([3, 4])
    loose = loose_bricks(structure, {3: yawed(0.45, 0.25, degrees=6.0), 4: yawed(0.6, 0.22)})
    for part, place in ((standing, yawed(0.486, -0.048)), (loose, np.eye(4))):
        simulator.spawn(part, place, part_ids={p: p for p in part.graph.part_ids})
    arms = two_arms()
    world = SimulatedWorld(simulator, arms, NOISE, 0)
    planner = EmbeddedPlanner(arms, PlanningOptions())

    def joined():
        return simulator.graph.component_of(3) == simulator.graph.component_of(4)

    cancels = [
        (Stage.TRANSFERRING, lambda: set(world.held.values()) == {4}),  # on its way to the other
        (Stage.GRASPING, lambda: set(world.held.values()) == {4}),  # both hands at it
        (Stage.PRESSING, lambda: 4 in world.held.values()),
        (Stage.APPROACHING, joined),  # taking the whole
        (Stage.INSERTING, lambda: joined() and len(world.held) == 1),
    ]
    waiting = list(cancels)

    def feedback(now):
        if waiting and now.stage is waiting[0][0] and waiting[0][1]():
            del waiting[0]
            world.cancel()

    handlers = {a.name: BrickHandler(world, planner, a.name, feedback=feedback) for a in arms}
    builder = StructureBuilder(world, handlers)
    for stage, _ in cancels:
        summary = builder.build(steps)
        assert summary.reports[-1].outcome is Outcome.CANCELED, (stage, summary)
        world.forget_cancel()
        for _ in range(20):
            world.advance()
        for arm in arms:
            assert np.abs(simulator.engine.joint_state(arm.name).velocities).max() < 0.02, stage
    assert joined()  # nothing came apart
    assert world.held
    summary = builder.build(steps)
    assert summary.success, summary
    assert _same_connections(simulator.graph, structure.graph)
    assert not world.held


def test_failed_brick_does_not_stop_what_does_not_rest_on_it():
    b = bench(
        {1: BrickShape(4, 2), 2: BrickShape(4, 2), 3: BrickShape(2, 2)},
        {1: yawed(1.4, 0.6), 2: yawed(0.42, 0.22), 3: yawed(0.42, -0.22)},
    )
    goals = [
        InsertionGoal(1, 0, (0, 0), 0),
        InsertionGoal(3, 1, (0, 0), 0),
        InsertionGoal(2, 0, (4, 6), 0),
    ]
    summary = StructureBuilder(b.world, {"fr3": b.handler}).build([Insertion(g, ()) for g in goals])
    assert not summary.success
    assert [r.part_id for r in summary.reports] == [1, 2]
    assert summary.reports[0].outcome is Outcome.UNREACHABLE
    assert summary.reports[1].success
    assert summary.message.startswith("brick 1: ")


def test_base_is_the_fixed_or_the_largest_lowest_part():
    assert base_part(parse_structure(TOWER)) == 0
    free = parse_structure("2x4 (0,0,0)\n2x6 (4,0,0)\n2x8 (0,0,1)\n", baseplate=None)
    assert free.graph.part(base_part(free)).shape.length == 6


def test_plan_that_needs_two_hands_is_refused():
    structure = parse_structure(TOWER, baseplate=(12, 14))
    plan = plan_assembly(structure, arms=1)
    steps = (replace(plan.steps[0], needs_support=0), *plan.steps[1:])
    with pytest.raises(StructureError, match="need a second hand at part 0"):
        insertions(structure, replace(plan, steps=steps))
    assert len(insertions(structure, replace(plan, steps=steps), arms=2)) == 5
    first = plan.steps[0]
    inner = SubAssembly((), holder=first.parts[0])
    steps = (replace(first, subassembly=inner), *plan.steps[1:])
    with pytest.raises(StructureError, match=r"second hand that holds part .* in the air"):
        insertions(structure, replace(plan, steps=steps), arms=1)
    nested = SubAssembly((steps[0],), holder=0)
    with pytest.raises(StructureError, match=r"third hand that holds part .* in the air"):
        steps = (replace(first, subassembly=nested), *plan.steps[1:])
        insertions(structure, replace(plan, steps=steps), arms=2)
    held = SubAssembly((replace(first, needs_support=0),), holder=0)
    with pytest.raises(StructureError, match="third hand at part 0"):
        steps = (replace(first, subassembly=held), *plan.steps[1:])
        insertions(structure, replace(plan, steps=steps), arms=2)
    steps = (replace(plan.steps[0], subassembly=replace(inner, from_below=True)), *plan.steps[1:])
    with pytest.raises(StructureError, match="from below"):
        insertions(structure, replace(plan, steps=steps), arms=2)


def test_two_arms_have_room_for_what_they_join_on_the_table():
    hanging = parse_structure("1x2 (7,4,0)\n1x2 (7,4,1)\n8x2 (0,4,2)\n2x2 (1,4,1)\n")
    plain, roomy = packing(2), packing(2, hanging)
    # The structure is two studs deep, fingers come down on either side.
    assert roomy.regions[0].y0 - plain.regions[0].y0 == pytest.approx(2 * 0.008 + 0.1)
    assert roomy.regions[1] == plain.regions[1]
    assert packing(2, parse_structure(TOWER)) == plain
    wide = "2x40 (0,0,0)\n2x40 (1,0,1)\n1x2 (2,38,0)\n2x2 (2,38,2)\n1x2 (3,38,1)\n"
    assert len(packing(2, parse_structure(wide, baseplate=(50, 50))).regions) == 1


def test_bricks_lie_apart_inside_their_regions():
    layout = TableLayout()
    shapes = {i: BrickShape(4, 2) for i in range(30)}
    poses = arrange(shapes, layout, np.random.default_rng(0))
    centres = np.array([pose[:2, 3] for pose in poses.values()])
    gaps = np.linalg.norm(centres[:, None] - centres[None], axis=2) + np.eye(30)
    # Centres of bricks that are 16 mm wide, a gap apart, each off by the spread.
    assert gaps.min() > 0.016 + layout.gap - 2.0 * np.sqrt(2.0) * layout.spread
    for x, y in centres:
        assert any(r.x0 <= x <= r.x1 and r.y0 <= y <= r.y1 for r in layout.regions)


def test_bricks_that_do_not_fit_come_later():
    """A table with room for one brick, besides one whose place is given."""
    columns = "".join(f"2x4 (2,{y},{z})\n" for z in (0, 1) for y in (0, 4, 8))
    structure = parse_structure(columns, baseplate=(16, 16))
    region = Region(0.3, 0.2, 0.36, 0.26)
    layout = TableLayout(regions=(region,), places={5: (0.5, -0.3, 0.0)})
    simulator = Simulator()
    supply = Supply(simulator, structure, layout, seed=3)
    assert set(simulator.graph.part_ids) == {0, 5}
    supply.begin([3, 1, 2, 4])
    supply(0, 3)
    assert set(simulator.graph.part_ids) == {0, 5, 3}
    with pytest.raises(TaskError, match="does not fit"):
        supply(2)
    simulator.remove([3])  # used
    supply(2)
    assert set(simulator.graph.part_ids) == {0, 5, 2}
    x, y, _ = simulator.part_pose(2)[:3, 3]
    assert region.x0 <= x <= region.x1 and region.y0 <= y <= region.y1


def test_what_a_scene_lacks_is_supplied_beside_what_is_there():
    structure = parse_structure("2x4 (4,4,0)\n2x4 (4,8,0)\n2x2 (4,4,1)\n", baseplate=(16, 16))
    simulator = Simulator()
    brick = BrickShape(4, 2)
    there = bricks({7: brick, 8: BrickShape(2, 1)}, {7: yawed(0.33, 0.23), 8: yawed(0.5, 0.0)})
    simulator.spawn(there, part_ids={7: 7, 8: 8})
    region = Region(0.3, 0.15, 0.5, 0.3)
    layout = TableLayout(regions=(region,), seat=(0.5, 0.0))
    with pytest.raises(
        TaskError, match=r"something lies where it would be put, about x, y = 0\.50"
    ):
        Supply(simulator, structure, layout, there={})
    simulator.remove([8])
    supply = Supply(simulator, structure, layout, there={1: 7})
    assert set(supply.ids) == {0, 1} and supply.ids[0] in simulator.fixed_parts
    supply.begin([1, 2, 3])
    assert supply.ids[1] == 7
    supply(2, 3)
    assert set(supply.ids) == {0, 1, 2, 3}
    places = [simulator.part_pose(supply.ids[part])[:2, 3] for part in (1, 2, 3)]
    for a, b in itertools.combinations(places, 2):
        assert np.hypot(*(a - b)) > layout.gap


def test_too_many_bricks_are_refused():
    layout = TableLayout(regions=(Region(0.4, 0.2, 0.5, 0.3),))
    with pytest.raises(TaskError, match="does not fit on the table after"):
        arrange({i: BrickShape(4, 2) for i in range(9)}, layout, np.random.default_rng(0))


def test_packed_bricks_keep_off_those_whose_place_is_given():
    """The given one lies where the first one would be packed."""
    layout = TableLayout(places={1: (0.36, 0.16, 0.3)})
    shapes = {i: BrickShape(4, 2) for i in range(1, 6)}
    for seed in range(10):
        poses = arrange(shapes, layout, np.random.default_rng(seed))
        given = poses.pop(1)[:2, 3]
        np.testing.assert_allclose(given, [0.36, 0.16])
        gaps = [np.linalg.norm(pose[:2, 3] - given) for pose in poses.values()]
        assert min(gaps) > 0.008 * np.hypot(4, 2) + layout.gap - np.sqrt(2.0) * layout.spread


def test_a_layout_that_names_other_bricks_says_which_there_are():
    structure = parse_structure("2x4 (4,4,0)\n2x4 (4,4,1)\n", baseplate=(8, 8))
    layout = TableLayout(places={99: (0.4, 0.2, 0.0)})
    with pytest.raises(TaskError, match=r"bricks \[99\], expected some of \[1, 2\]"):
        Supply(Simulator(), structure, layout)


def test_a_layout_file_says_where_bricks_lie(tmp_path):
    path = tmp_path / "layout.yaml"
    path.write_text("seat: [0.45, 0.1]\nbricks: {1: [0.4, 0.2, 90]}\n")
    layout = read_layout(path)
    assert layout.seat == (0.45, 0.1)
    poses = arrange({i: BrickShape(4, 2) for i in (1, 2)}, layout, np.random.default_rng(0))
    np.testing.assert_allclose(poses[1], yawed(0.4, 0.2, degrees=90.0), atol=1e-12)
    assert set(poses) == {1, 2}
    for text, complaint in [
        ("bricks: {1: [0.4, 0.2]}", "bricks.1"),
        ("gap: wide", "gap"),
        ("plate: 1", "expected keys"),
        ("gap: -0.01", "gap is -0.01, expected 0 or more"),
        ("regions: [[0, 0, 1]]", "regions"),
        ("regions: [[0.3, 0.4, 0.6, 0.1]]", "x0 < x1"),
    ]:
        path.write_text(text)
        with pytest.raises(TaskError, match=complaint):
            read_layout(path)
    path.write_text("bricks: {9: [0.4, 0.2, 0]}")
    with pytest.raises(TaskError, match="9"):
        arrange({1: BrickShape(4, 2)}, read_layout(path), np.random.default_rng(0))
