# SPDX-License-Identifier: Apache-2.0
"""Models changed in place against models that MuJoCo's compiler makes."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest
from engine_suite import at, body, tower

from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.engines.mujoco import engine as mujoco_engine
from bricksim_core.engines.mujoco.bodies import make_body, wxyz
from bricksim_core.engines.mujoco.bvh import box_tree
from bricksim_core.engines.mujoco.masking import BOX_AFFINITY
from bricksim_core.engines.protocol import BODY_SHAPE, STUD_SHAPE, BodySpec
from bricksim_core.errors import EngineError
from bricksim_core.parts import BrickShape
from bricksim_core.topology import BrickTopologyGraph
from bricksim_core.topology.layout import ComponentLayout


def staircase(count: int, first_part: int) -> ComponentLayout:
    """Bricks each a stud further than the last: inertia axes turned, boxes along a slope."""
    graph = BrickTopologyGraph()
    for i in range(count):
        graph.add_part(BrickShape(4, 2), part_id=first_part + i)
        if i:
            offset, yaw = ((1, 1), 0) if i % 2 else ((3, 0), 1)
            graph.connect(first_part + i - 1, first_part + i, offset, yaw)
    return graph.layout(graph.component_of(first_part))


def specs(seed: int, first: int, sizes: list[int]) -> list[BodySpec]:
    """Staircases at random orientations, apart from each other above the ground."""
    rng = np.random.default_rng(seed)
    found = []
    for i, size in enumerate(sizes):
        pose = at(0.15 * i, 0.02 * seed, 0.1, rng.uniform(-1.0, 1.0, 3))
        component = first + i
        layout = staircase(size, 100 * component)
        found.append(body(component, layout, pose, rng.uniform(-0.3, 0.3, 6)))
    return found


def edited() -> MujocoEngine:
    """An engine with a history of edits in place that ends in a known scene."""
    engine = MujocoEngine()
    engine.update([], [*specs(0, 0, [5, 2, 5, 1, 5]), body(90, staircase(2, 9000), at(-1, 0, 0))])
    pool = engine.model
    for turn in range(1, 12):
        sizes = [(turn + i) % 5 + 1 for i in range(5)]
        engine.update([0, 1, 2, 3, 4], specs(turn, 0, sizes))
        engine.step()
        held = turn % 2 == 0
        engine.update([90], [body(90, staircase(2, 9000), at(-1, 0, 0), fixed=held)])
    engine.update([0, 1, 3], specs(3, 0, [3, 1]))
    engine.update([2, 4], specs(4, 5, [2, 4, 1]))
    engine.update([0, 1, 5, 6, 7], final())
    assert engine.model is pool  # all of it happened in place
    return engine


def final() -> list[BodySpec]:
    return specs(8, 10, [4, 1, 2, 6])


def compiled(bodies: list[BodySpec]) -> mujoco.MjModel:
    """What MuJoCo's compiler makes of components, each a body with its own boxes."""
    spec = mujoco.MjSpec()
    for one in map(make_body, bodies):
        pose = one.spec.world_T_component @ one.component_T_body
        element = spec.worldbody.add_body(
            name=f"component_{one.spec.component}", pos=pose[:3, 3], quat=wxyz(pose[:3, :3])
        )
        element.add_freejoint()
        element.explicitinertial = True
        element.mass, element.inertia = one.mass.mass, one.moments
        element.ipos, element.iquat = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
        boxes = one.boxes.moved(one.body_T_component)
        for i, part in enumerate(boxes.part_ids.tolist()):
            element.add_geom(
                name=f"{part}_{boxes.shapes[i]}",
                type=mujoco.mjtGeom.mjGEOM_BOX,
                pos=boxes.centres[i],
                quat=wxyz(boxes.axes[i]),
                size=boxes.halves[i],
                conaffinity=BOX_AFFINITY,
            )
    return spec.compile()


def test_a_changed_model_is_the_compiled_one() -> None:
    engine, bodies = edited(), final()
    truth, pool, model = compiled(bodies), engine._pool, engine.model
    np.testing.assert_allclose(
        model.stat.meaninertia, np.append(truth.dof_M0, _of_90(engine)).mean(), rtol=1e-12
    )
    for one in bodies:
        element = truth.body(f"component_{one.component}").id
        slot = pool.slots.body[pool.component == one.component][0]
        for name in (
            "mass",
            "inertia",
            "subtreemass",
            "ipos",
            "iquat",
            "contype",
            "conaffinity",
            "margin",
            "geomnum",
            "bvhnum",
            "simple",
            "sameframe",
            "gravcomp",
        ):
            here, there = getattr(model, f"body_{name}"), getattr(truth, f"body_{name}")
            np.testing.assert_allclose(here[slot], there[element], rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(model.body_invweight0[slot], truth.body_invweight0[element])
        dofs, theirs = model.body_dofadr[slot] + np.arange(6), truth.body_dofadr[element]
        for name in ("invweight0", "M0", "length", "armature", "damping"):
            here, there = getattr(model, f"dof_{name}"), getattr(truth, f"dof_{name}")
            np.testing.assert_allclose(
                here[dofs], there[theirs + np.arange(6)], rtol=1e-12, err_msg=name
            )
        # The whole of either tree bounds the same boxes.
        roots = model.body_bvhadr[slot], truth.body_bvhadr[element]
        np.testing.assert_allclose(
            model.bvh_aabb[roots[0]], truth.bvh_aabb[roots[1]], rtol=0, atol=1e-15
        )
        for geom in range(
            truth.body_geomadr[element], truth.body_geomadr[element] + truth.body_geomnum[element]
        ):
            part, shape = map(int, truth.geom(geom).name.split("_"))
            mine = pool.geoms([(part, shape)])[0]
            assert model.geom_bodyid[mine] == slot
            for name in (
                "type",
                "size",
                "pos",
                "aabb",
                "rbound",
                "contype",
                "conaffinity",
                "dataid",
                "priority",
            ):
                here, there = getattr(model, f"geom_{name}"), getattr(truth, f"geom_{name}")
                np.testing.assert_allclose(
                    here[mine], there[geom], rtol=0, atol=1e-15, err_msg=name
                )
            turned = abs(float(model.geom_quat[mine] @ truth.geom_quat[geom]))
            assert turned > 1.0 - 1e-15


def _of_90(engine: MujocoEngine) -> np.ndarray:
    """(6,) inertias of the component that the known scene has besides."""
    one = engine._bodies[90]
    return np.concatenate([np.full(3, one.mass.mass), one.moments])


def test_history_changes_nothing_that_happens() -> None:
    """Free flight, impacts and rest among several bodies, with and without edits before."""
    changed, fresh = edited(), MujocoEngine()
    others = [body(90, staircase(2, 9000), at(-1, 0, 0))]
    fresh.update([], [*final(), *others])
    changed.update([90], others)
    for _ in range(40):
        a, b = changed.step(), fresh.step()
        np.testing.assert_array_equal(a.component_ids, b.component_ids)
        np.testing.assert_allclose(a.world_T_component, b.world_T_component, rtol=0, atol=1e-10)
        np.testing.assert_allclose(a.twist, b.twist, rtol=0, atol=1e-7)
        assert len(a.contacts) == len(b.contacts)


def test_the_first_copy_of_a_model_is_a_full_one() -> None:
    """What is copied to the spare model is all that edits and steps have changed."""
    engine = edited()
    assert engine._pool._spare is not None
    (spare, _), layout = engine._pool._spare, staircase(4, 7000)
    engine.update([], [body(70, layout, at(-2, 0, 0.3))], {(7000, 7001)})
    for _ in range(30):
        engine.step()
    first, second = (engine._pool.copy().model for _ in range(2))
    assert first is spare and second is not spare
    names = [n for n in dir(second) if isinstance(getattr(second, n), np.ndarray)]
    assert {"geom_pos", "pair_margin", "bvh_aabb"} <= set(names)
    assert not [n for n in names if not np.array_equal(getattr(first, n), getattr(second, n))]
    for part in ("opt", "stat"):
        assert str(getattr(first, part)) == str(getattr(second, part))


def test_hierarchies_lose_no_contact() -> None:
    """Interlocked staircases: with the hierarchy and with every box against every other one."""
    engine = MujocoEngine(gravity=(0, 0, 0), ground=None)
    layouts = [staircase(12, 0), staircase(9, 100), staircase(15, 200)]
    poses = [at(0, 0, 0), at(0.01, 0.02, 0.03, (0.5, 0.2, 0.1)), at(-0.02, 0, 0.02, (1, 1, 0))]
    engine.update(
        [], [body(i, la, p) for i, (la, p) in enumerate(zip(layouts, poses, strict=True))]
    )
    with_tree = copy.copy(engine.data)
    mujoco.mj_forward(engine.model, with_tree)
    engine.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE
    without = copy.copy(engine.data)
    mujoco.mj_forward(engine.model, without)
    assert without.ncon > 50
    pairs = [sorted(map(tuple, d.contact.geom.tolist())) for d in (with_tree, without)]
    assert pairs[0] == pairs[1]


def test_boxes_are_found_in_their_tree() -> None:
    rng = np.random.default_rng(0)
    for count in (1, 2, 3, 7, 64, 301):
        centres, reach = rng.normal(size=(count, 3)), rng.uniform(0.1, 1.0, (count, 3))
        tree = box_tree(centres, reach)
        low, high = tree.bounds[:, :3] - tree.bounds[:, 3:], tree.bounds[:, :3] + tree.bounds[:, 3:]
        assert sorted(tree.leaf[tree.leaf >= 0].tolist()) == list(range(count))
        inner = np.flatnonzero(tree.leaf < 0)
        children = tree.child[inner]
        assert sorted(children.ravel().tolist()) == list(range(1, 2 * count - 1))
        assert np.all(low[inner, None] <= low[children] + 1e-14)
        assert np.all(high[inner, None] >= high[children] - 1e-14)
        leaves = np.flatnonzero(tree.leaf >= 0)
        np.testing.assert_allclose(low[leaves], (centres - reach)[tree.leaf[leaves]], atol=1e-14)


def test_boxes_move_together_when_gaps_are_too_small() -> None:
    """Sleepers keep their places and contacts although their boxes are elsewhere in the model."""
    engine = MujocoEngine()
    count = 24
    single = [body(i, staircase(1, 100 * i), at(0.1 * i, 0, 0)) for i in range(count)]
    engine.update([], single)
    for _ in range(60):
        engine.step()
    assert (engine.data.tree_asleep >= 0).all()
    capacity, model = engine._pool.capacity, engine.model
    gone = list(range(0, count, 2))
    engine.update(gone, [])
    free = capacity.boxes - 2 * (count - len(gone))
    size = (free - 2) // 2  # more in a row than there are anywhere
    rest = {c: engine.poses[i].copy() for i, c in enumerate(engine.component_ids.tolist())}
    engine.update([], [body(50, staircase(size, 5000), at(5, 5, 1))])
    assert engine.model is model
    weight = single[0].layout.masses[0] * 9.81 * engine.timestep
    for _ in range(30):
        report = engine.step()
        contacts = report.contacts
        for c, pose in rest.items():
            row = report.component_ids.tolist().index(c)
            np.testing.assert_array_equal(report.world_T_component[row], pose)
            own = contacts.normal_impulse[(contacts.part_b == 100 * c)]
            np.testing.assert_allclose(own.sum(), weight, rtol=1e-3)
    engine.apply_wrench(100, np.array([0, 0, 1.0, 0, 0, 0]))
    assert engine.step().twist[0, 2] > 0.1


def test_what_leaned_on_something_wakes_when_it_goes() -> None:
    """Free or held by the world: support that is taken away lets the sleeper fall."""
    for fixed in (False, True):
        engine = MujocoEngine()
        layouts = [staircase(1, 100 * i) for i in range(3)]
        height = 0.0096 + 0.0018
        poses = [at(0, 0, 0), at(0, 0, height), at(1, 0, 0)]
        engine.update(
            [],
            [body(i, layouts[i], poses[i], fixed=fixed and i == 0) for i in range(3)],
        )
        for _ in range(300):
            engine.step()
        asleep = engine._resting.asleep
        assert asleep.all()
        engine.update([0], [])
        for _ in range(30):
            report = engine.step()
        assert engine.poses[0][2, 3] < height - 1e-3
        assert not report.twist[1].any()  # nobody woke the one far away


def test_growing_keeps_states_bit_by_bit() -> None:
    engine = MujocoEngine(gravity=(0, 0, 0), ground=None)
    twist = np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0])
    engine.update([], [body(0, staircase(3, 0), at(0, 0, 0), twist)])
    engine.step()
    model, before = engine.model, (engine.poses.copy(), engine.twists.copy())
    many = [body(i, staircase(1, 100 * i), at(0.1 * i, 1, 0)) for i in range(1, 60)]
    engine.update([], many)
    assert engine.model is not model
    np.testing.assert_array_equal(engine.poses[0], before[0][0])
    np.testing.assert_array_equal(engine.twists[0], before[1][0])


def test_growing_beside_what_sleeps_and_what_falls() -> None:
    """One goes on as without it, bit by bit, the other is asleep again at once; and a snapshot from
    before leads back to the smaller model."""
    engine, other = MujocoEngine(), MujocoEngine()
    start = [body(0, staircase(1, 0), at(0, 0, 0)), body(1, staircase(3, 10), at(1, 0, 0.3))]
    for each in (engine, other):
        each.update([], start)
        for _ in range(40):
            each.step()
    assert engine._resting.asleep.tolist() == [True, False]
    saved, model = engine.snapshot(), engine.model
    many = [body(i, staircase(1, 100 * i), at(0.1 * i, 1, 0)) for i in range(2, 62)]
    engine.update([], many)
    assert engine.model is not model
    weight = start[0].layout.masses[0] * 9.81 * engine.timestep
    for _ in range(12):
        grown, usual = engine.step(), other.step()
        np.testing.assert_array_equal(grown.world_T_component[1], usual.world_T_component[1])
        np.testing.assert_allclose(
            grown.world_T_component[0], usual.world_T_component[0], atol=1e-6
        )
        own = grown.contacts.normal_impulse[grown.contacts.part_b == 0]
        np.testing.assert_allclose(own.sum(), weight, rtol=1e-3)
    assert engine._resting.asleep[0]
    engine.restore(saved)
    for _ in range(12):
        again = engine.step()
    assert again.component_ids.tolist() == [0, 1]
    np.testing.assert_array_equal(again.world_T_component, usual.world_T_component)


def test_more_bodies_than_pairs_can_tell_apart_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(mujoco_engine, "MOST_BODIES", 70)
    engine = MujocoEngine()
    engine.update([], [body(0, staircase(1, 0), at(0, 0, 0))])
    many = [body(i, staircase(1, 100 * i), at(0.1 * i, 1, 0)) for i in range(1, 70)]
    with pytest.raises(EngineError, match="free components"):
        engine.update([], many)
    assert engine.component_ids.tolist() == [0]
    engine.step()


def test_tower_has_two_boxes_a_brick() -> None:
    graph = tower(3).graph
    layout = graph.layout(graph.component_ids[0])
    boxes = make_body(body(0, layout, np.eye(4))).boxes
    assert (boxes.shapes == BODY_SHAPE).sum() == 3 and len(boxes.shapes) == 6


def test_edits_after_the_first_snapshot_copy_nothing_and_leave_it_as_it_is() -> None:
    engine, other = edited(), edited()
    model, saved = engine.model, engine.snapshot()
    engine.update([10], [body(70, staircase(4, 7000), at(-2, 0, 0.3))])
    assert engine.model is model
    for _ in range(20):
        engine.step()
    engine.restore(saved)
    for _ in range(30):
        a, b = engine.step(), other.step()
        np.testing.assert_array_equal(a.component_ids, b.component_ids)
        np.testing.assert_array_equal(a.world_T_component, b.world_T_component)
        np.testing.assert_array_equal(a.contacts.impulse, b.contacts.impulse)


def test_seats_that_end_leave_the_index_of_the_scene_as_it_is() -> None:
    engine = MujocoEngine()
    layouts = [staircase(1, 0), staircase(1, 100)]
    poses = [at(0, 0, 0), at(0, 0, 0.0096)]
    specs = [body(i, la, p) for i, (la, p) in enumerate(zip(layouts, poses, strict=True))]
    engine.update([], specs, {(0, 100)})

    def studs_touch() -> bool:
        contacts = engine.step().contacts
        return bool((contacts.shape_a[contacts.part_a >= 0] == STUD_SHAPE).any())

    assert not studs_touch()
    index = engine._index
    engine.update([], [], ())
    assert engine._index is index and studs_touch()
