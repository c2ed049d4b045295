# SPDX-License-Identifier: Apache-2.0
"""The MuJoCo engine: physics shared by all engines and what is its own."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import engine_suite as suite
import mujoco
import numpy as np
import pytest
from engine_suite import at, body, brick_layout

from bricksim_core.engines.contact_lists import take_contacts
from bricksim_core.engines.mujoco import ContactParameters, MujocoEngine
from bricksim_core.engines.mujoco.contact import ContactReader
from bricksim_core.errors import EngineError
from bricksim_core.parts import PLATE_HEIGHT, STUD_HEIGHT, BrickShape


def make(
    *, gravity: Sequence[float] = (0.0, 0.0, -9.81), ground: float | None = 0.0
) -> MujocoEngine:
    return MujocoEngine(gravity=gravity, ground=ground)


def make_sleepless(
    *, gravity: Sequence[float] = (0.0, 0.0, -9.81), ground: float | None = 0.0
) -> MujocoEngine:
    contact = ContactParameters(sleep_velocity=0.0)
    return MujocoEngine(gravity=gravity, ground=ground, contact=contact)


def test_free_fall() -> None:
    suite.check_free_fall(make)


def test_brick_at_rest_reads_its_weight() -> None:
    suite.check_rest_impulse(make_sleepless, relative=1e-9)
    suite.check_rest_impulse(make, relative=1e-4)


def test_impulses_are_the_change_of_momentum() -> None:
    suite.check_impulse_is_momentum_change(make_sleepless, relative=1e-4)
    # Falling asleep takes what is left of the velocity.
    suite.check_impulse_is_momentum_change(make, relative=1e-4)


def test_collision_conserves_momentum() -> None:
    suite.check_collision_conserves_momentum(make, relative=1e-9)


def test_wrench_acts_in_the_next_step_only() -> None:
    suite.check_wrench_acts_once(make)


def test_fixed_bodies_stay() -> None:
    suite.check_fixed_stays(make)


def test_snapshot_repeats_bit_by_bit() -> None:
    suite.check_snapshot_repeats(make)
    suite.check_snapshot_repeats(make_sleepless)


def test_two_runs_are_equal_bit_by_bit() -> None:
    def run() -> list[np.ndarray]:
        engine = make()
        layouts = [brick_layout(BrickShape(4, 2), i) for i in range(8)]
        poses = [at(0.003 * i, 0.002 * i, 0.013 * i, (0.1 * i, 0, 0.2)) for i in range(8)]
        engine.update(
            [], [body(i, la, p) for i, (la, p) in enumerate(zip(layouts, poses, strict=True))]
        )
        found = []
        for i in range(60):
            if i == 30:
                engine.update([3], [])
            found.append(engine.step().world_T_component)
        return found

    for a, b in zip(run(), run(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_cost_of_a_step_is_what_there_was_to_do() -> None:
    """More in contact than in free fall, nothing asleep, and the same the second time."""

    def costs() -> list[float]:
        engine = make()
        poses = [at(0.1 * i, 0.0, 0.02, (0.3, 0.2, 0.0)) for i in range(3)]
        engine.update(
            [], [body(i, brick_layout(BrickShape(4, 2), i), p) for i, p in enumerate(poses)]
        )
        return [engine.step().cost for _ in range(480)]

    told = costs()
    assert 0.0 < told[0] < max(told)
    assert told[-1] == 0.0
    assert costs() == told


def test_update_keeps_the_others_bit_by_bit() -> None:
    """Positions, velocities and warm starts: with and without an update far away."""

    def run(update: bool) -> list[np.ndarray]:
        engine = make_sleepless()
        layouts = [brick_layout(BrickShape(4, 2), i) for i in range(2)]
        engine.update(
            [],
            [
                body(0, layouts[0], at(0, 0, 0.01, (0.2, 0.1, 0))),
                body(1, layouts[1], at(9.0, 0, 5.0)),
            ],
        )
        found = []
        for i in range(80):
            if update and i == 40:
                engine.update([1], [body(5, layouts[1], at(9.0, 3.0, 5.0))])
            report = engine.step()
            found += [report.world_T_component[0], report.twist[0]]
        return found

    for a, b in zip(run(False), run(True), strict=True):
        np.testing.assert_array_equal(a, b)


def test_velocities_are_taken_as_given() -> None:
    engine = make(gravity=(0, 0, 0), ground=None)
    twist = np.array([0.1, -0.2, 0.3, 1.0, 2.0, -3.0])
    pose = at(0.1, 0.2, 0.3, (0.3, -0.4, 0.5))
    engine.update([], [body(0, brick_layout(), pose, twist)])
    np.testing.assert_allclose(engine.twists[0], twist, rtol=0, atol=1e-15)
    np.testing.assert_allclose(engine.poses[0], pose, rtol=0, atol=1e-15)


def test_bricks_at_rest_sleep_and_wake() -> None:
    """A sleeping stack reports its weights still, and a hit or a lost support wakes it."""
    engine = make()
    layouts = [brick_layout(BrickShape(2, 2), i) for i in range(2)]
    height = 3 * PLATE_HEIGHT + STUD_HEIGHT
    engine.update([], [body(i, la, at(0, 0, height * i)) for i, la in enumerate(layouts)])
    for _ in range(300):
        report = engine.step()
    assert (engine.data.tree_asleep >= 0).all()
    np.testing.assert_array_equal(report.twist, np.zeros((2, 6)))
    weight = layouts[0].masses[0] * 9.81 * engine.timestep
    on_ground = report.contacts.part_a == -1
    assert report.contacts.normal_impulse[on_ground].sum() == pytest.approx(2 * weight, rel=1e-3)
    assert report.contacts.normal_impulse[~on_ground].sum() == pytest.approx(weight, rel=1e-3)

    engine.apply_wrench(1, np.array([0.5, 0, 0.5, 0, 0, 0]))
    assert np.abs(engine.step().twist[1]).max() > 0.1

    for _ in range(600):
        engine.step()
    engine.update([0], [])
    for _ in range(60):
        report = engine.step()
    assert engine.poses[0][2, 3] < height - 0.5e-3


def test_still_components_are_bit_by_bit_where_they_were() -> None:
    """MuJoCo asked itself, on a copy, says the same of a scene that sleeps."""
    engine = make()
    layouts = [brick_layout(BrickShape(4, 2), i) for i in range(6)]
    poses = [at(0.05 * i, 0, 0.004 * i, (0.1 * i, 0, 0)) for i in range(6)]
    engine.update(
        [], [body(i, la, p) for i, (la, p) in enumerate(zip(layouts, poses, strict=True))]
    )
    last = engine.step()
    stages = set()
    for _ in range(400):
        copied = copy.copy(engine.data)
        mujoco.mj_step(engine.model, copied)
        report = engine.step()
        rows = report.still
        assert rows is not None
        stages.add(int(rows.sum()))
        for name in ("world_T_component", "twist"):
            np.testing.assert_array_equal(
                getattr(report, name)[rows], getattr(last, name)[rows], err_msg=name
            )
        for part in np.flatnonzero(rows).tolist():
            own, before = (
                r.contacts.normal_impulse[r.contacts.part_b == part] for r in (report, last)
            )
            np.testing.assert_array_equal(own, before)
        if rows.all():
            np.testing.assert_array_equal(copied.qpos, engine.data.qpos)
            np.testing.assert_array_equal(copied.qvel, engine.data.qvel)
            assert report.world_T_component is last.world_T_component
        last = report
    assert {0, 6} <= stages and len(stages) > 2  # they fell asleep one after the other
    assert engine.time == pytest.approx(401 * engine.timestep, rel=1e-12)


@pytest.mark.parametrize("push", [0.06, 0.2, 2.0])
def test_steps_in_parts_count_once_for_falling_asleep(push: float) -> None:
    """A push on one brick divides the steps in which another falls asleep: it stands on contacts of
    a whole step then."""
    engine = make()
    layouts = [brick_layout(BrickShape(2, 2), i) for i in range(2)]
    engine.update([], [body(i, la, at(0.1 * i, 0, 0)) for i, la in enumerate(layouts)])
    asleep = False
    for _ in range(60):
        engine.apply_wrench(1, np.array([0, 0, -push, 0, 0, 0]))
        report = engine.step()
        asleep = engine.data.tree_asleep[engine._index.tree[0]] >= 0
        if asleep:
            break
    assert asleep
    weight = layouts[0].masses[0] * 9.81 * engine.timestep
    for seen in (report.contacts, engine.step().contacts):
        own = seen.normal_impulse[seen.part_b == 0]
        assert own.sum() == pytest.approx(weight, rel=1e-2)


def test_seated_pair_is_not_pushed_apart() -> None:
    """A brick in the studs of another without a connection rests there; free to leave."""
    engine = make()
    layouts = [brick_layout(BrickShape(2, 2), i) for i in range(2)]
    height = 3 * PLATE_HEIGHT
    specs = [body(0, layouts[0], at(0, 0, 0), fixed=True), body(1, layouts[1], at(0, 0, height))]
    engine.update([], specs, seated={(0, 1)})
    for _ in range(120):
        report = engine.step()
    assert abs(report.world_T_component[1, 2, 3] - height) < 2e-5
    engine.update([], [], seated=set())
    for _ in range(60):
        report = engine.step()
    assert report.world_T_component[1, 2, 3] - height > 0.9 * STUD_HEIGHT


def test_overlaps() -> None:
    engine = make()
    layout = brick_layout(BrickShape(2, 2))
    engine.update([], [body(0, layout, at(0, 0, 0))])
    before = engine.data.qpos.copy()
    height = 3 * PLATE_HEIGHT + STUD_HEIGHT
    other = brick_layout(BrickShape(2, 2), 1)
    cases = [
        (at(0, 0, height), False),
        (at(0, 0, height - 0.001), True),
        (at(0.016, 0, 0), False),  # beside it on the grid
        (at(0.015, 0, 0), True),
        (at(0.5, 0, 0), False),
        (at(0.5, 0, -0.001), True),  # in the ground
        (at(0.009, 0.004, 0.001, (0, 0, 0.7)), True),
    ]
    answers = engine.overlaps([body(9, other, pose) for pose, _ in cases])
    assert answers.tolist() == [taken for _, taken in cases]
    assert not engine.overlaps([body(9, other, at(0, 0, 0))], ignore=[0])[0]
    np.testing.assert_array_equal(engine.data.qpos, before)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda e: e.update([7], []), "component 7"),
        (lambda e: e.update([], [body(0, brick_layout(), np.eye(4))]), "already"),
        (
            lambda e: e.update([], [body(1, brick_layout(part_id=1), np.full((4, 4), np.nan))]),
            "pose",
        ),
        (lambda e: e.update([], [body(1, brick_layout(part_id=1), 2 * np.eye(4))]), "pose"),
        (
            lambda e: e.update([], [body(1, brick_layout(part_id=1), np.eye(4), [np.inf] * 6)]),
            "twist",
        ),
        (lambda e: e.apply_wrench(5, np.zeros(6)), "part 5"),
        (lambda e: e.apply_wrench(0, np.full(6, np.nan)), "wrench"),
        (lambda e: e.restore(object()), "snapshot"),
        (lambda e: e.joint_state("arm"), "arm"),
    ],
)
def test_bad_input_is_refused_and_nothing_changes(edit, message: str) -> None:
    engine = make()
    engine.update([], [body(0, brick_layout(), np.eye(4))])
    with pytest.raises(EngineError, match=message):
        edit(engine)
    assert engine.component_ids.tolist() == [0]
    engine.step()


@pytest.mark.parametrize("force", [1e9, 1e200])
def test_unstable_state_is_an_error_and_survived(force: float) -> None:
    engine = make()
    engine.update([], [body(0, brick_layout(), at(0, 0, 0.1))])
    engine.step()
    pose = engine.poses[0].copy()
    engine.apply_wrench(0, np.array([force, 0, 0, 0, 0, 0]))
    with pytest.raises(EngineError, match="unstable"):
        engine.step()
    np.testing.assert_array_equal(engine.poses[0], pose)
    falling = engine.twists[0, 2]
    assert np.isfinite(engine.step().world_T_component).all()
    assert engine.twists[0, 2] == pytest.approx(falling - 9.81 * engine.timestep, abs=1e-12)


def test_a_step_that_failed_keeps_nothing_asleep() -> None:
    """A sleeper loses its support before a step that becomes unstable: it falls in the next one."""
    engine = make()
    height = 3 * PLATE_HEIGHT + STUD_HEIGHT
    poses = [at(0, 0, 0), at(0, 0, height), at(0.1, 0, 0)]
    engine.update([], [body(i, brick_layout(part_id=i), p) for i, p in enumerate(poses)])
    for _ in range(60):
        engine.step()
    engine.update([0], [])
    engine.apply_wrench(2, np.array([0, 0, 1e9, 0, 0, 0]))
    with pytest.raises(EngineError, match="unstable"):
        engine.step()
    for _ in range(60):
        engine.step()
    assert engine.poses[0][2, 3] < 1e-4


def test_what_is_put_into_a_sleeper_and_held_wakes_it() -> None:
    """MuJoCo does not compare sleepers with what the world holds."""
    engine = make()
    layouts = [brick_layout(BrickShape(2, 2), i) for i in range(3)]
    engine.update([], [body(i, layouts[i], at(0.1 * i, 0, 0), fixed=i == 2) for i in range(3)])
    for _ in range(60):
        engine.step()
    engine.update([2], [body(2, layouts[2], at(0.015, 0, 0), fixed=True)])
    for _ in range(60):
        report = engine.step()
    assert engine.poses[0][0, 3] < -0.5e-3
    assert report.still is not None and report.still[1]


def test_time_step_has_to_be_positive() -> None:
    with pytest.raises(EngineError, match="timestep"):
        MujocoEngine(timestep=0.0)


@pytest.mark.parametrize("rate", [240.0, 480.0, 1920.0])
def test_a_contact_fades_from_step_to_step_as_in_time(rate: float):
    """MuJoCo accelerates a contact by - damping speed - stiffness depth, both as they are before a
    step: the step's eigenvalues are those of critically damped motion, exp(-step / (1/120 s))."""
    contact, step = ContactParameters(), 1.0 / rate
    constant, ratio = contact.solref(step)
    greatest = contact.impedance[1]
    damping = 2.0 / (greatest * constant)
    stiffness = 1.0 / (greatest * constant * ratio) ** 2
    faster = np.array([1.0 - step * damping, -step * stiffness])
    once = np.stack([faster, [step * faster[0], 1.0 + step * faster[1]]])  # (speed, depth)
    np.testing.assert_allclose(np.trace(once), 2.0 * math.exp(-120.0 * step))
    np.testing.assert_allclose(np.linalg.det(once), math.exp(-240.0 * step))


def test_contacts_of_steps_in_a_row_are_read_one_after_the_other():
    """However many they are: each step's are those that it has alone."""
    engine = MujocoEngine()
    engine.update([], [body(i, brick_layout(part_id=i), at(0.1 * i, 0, -1e-5)) for i in range(3)])
    report = engine.step()
    geoms, reader, dt = engine._index.geoms, ContactReader(), engine.timestep
    alone = report.contacts
    assert len(alone) == 12  # four corners each
    rows = [reader.read(engine.data, geoms, (k + 1) * dt) for k in range(50)]
    whole = reader.contacts(geoms)
    assert len(whole) == 50 * len(alone)
    for k, own in enumerate(rows):
        part = take_contacts(whole, own)
        np.testing.assert_array_equal(part.part_b, alone.part_b)
        np.testing.assert_array_equal(part.position, alone.position)
        np.testing.assert_allclose(part.impulse, (k + 1) * alone.impulse, rtol=1e-12)
        np.testing.assert_array_equal(part.impulse, reader.contacts(geoms, own).impulse)
    joined = reader.followed_by(geoms, alone)
    np.testing.assert_array_equal(joined.impulse[:-12], whole.impulse)
    for name, values in vars(take_contacts(joined, slice(-12, None))).items():
        np.testing.assert_array_equal(values, getattr(alone, name))
    assert len(reader.contacts(geoms)) == len(whole)
    before = whole.impulse.copy()
    reader.clear()
    assert len(reader.contacts(geoms)) == 0
    assert reader.followed_by(geoms, alone) is alone
    reader.read(engine.data, geoms, dt)
    np.testing.assert_array_equal(whole.impulse, before)  # what was handed out stays as it was
