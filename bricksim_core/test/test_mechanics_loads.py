# SPDX-License-Identifier: Apache-2.0
"""Loads against Newton, Euler and analytically integrated rigid bodies."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from mechanics_cases import data_structure
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.engines.protocol import NO_PART, BodySpec, Contacts, StepReport
from bricksim_core.mechanics.bodies import bodies_of
from bricksim_core.mechanics.loads import StepLoads, _acting
from bricksim_core.mechanics.steps import steps_of
from bricksim_core.parts import BRICK_HEIGHT, STUD_PITCH, BrickShape
from bricksim_core.spatial import transform, transform_points
from bricksim_core.topology.graph import BrickTopologyGraph

GRAVITY = np.array([0.0, 0.0, -9.81])
WEIGHTLESS = np.zeros(3)
DT = 1.0 / 240.0


def contacts_of(*rows) -> Contacts:
    """Contacts from rows (part a, part b, position, impulse on b)."""
    count = len(rows)
    impulse = np.array([row[3] for row in rows], dtype=float).reshape(-1, 3)
    return Contacts(
        part_a=np.array([row[0] for row in rows], dtype=np.int64),
        part_b=np.array([row[1] for row in rows], dtype=np.int64),
        shape_a=np.zeros(count, dtype=np.int64),
        shape_b=np.zeros(count, dtype=np.int64),
        other=np.zeros(count, dtype=np.int64),
        names=("ground",),
        position=np.array([row[2] for row in rows], dtype=float).reshape(-1, 3),
        normal=np.tile([0.0, 0.0, 1.0], (count, 1)),
        normal_impulse=impulse[:, 2],
        impulse=impulse,
    )


NO_CONTACTS = contacts_of()


def body(*stack: tuple[int, int, int, int]):
    """Bricks (length, width, offset x, offset y) each on the one before; part ids 10, 11, ..."""
    graph = BrickTopologyGraph()
    lower = None
    for k, (length, width, x, y) in enumerate(stack):
        part = graph.add_part(BrickShape(length, width), part_id=10 + k)
        if lower is not None:
            graph.connect(lower, part, (x, y), 0)
        lower = part
    return graph.layout(graph.component_of(10))


@dataclass
class Result:
    """Loads on the parts, and what the change of velocity demands beyond the known forces (force
    [N], torque about the COM [N m], component axes)."""

    loads: np.ndarray
    unexplained: np.ndarray


def report_of(poses, twists, next_poses, next_twists, contacts=NO_CONTACTS) -> StepReport:
    return StepReport(
        time=DT,
        dt=DT,
        component_ids=np.arange(len(poses)),
        world_T_component=np.array(next_poses),
        twist=np.array(next_twists, dtype=float),
        previous_world_T_component=np.array(poses),
        previous_twist=np.array(twists, dtype=float),
        contacts=contacts,
    )


def loads_in(layout, report, gravity=GRAVITY, applied=None, fixed=False) -> Result:
    """A single component in one step."""
    component = int(report.component_ids[0])
    bodies = bodies_of({component: layout}, [component], [component] if fixed else [])
    known = StepLoads(bodies, steps_of([replace(report, parts=None)]), gravity, [applied or {}])
    rotation = report.previous_world_T_component[0, :3, :3]
    next_rotation = report.world_T_component[0, :3, :3]
    before, after = report.previous_twist[0], report.twist[0]
    change = (after[:3] - before[:3]) @ rotation / report.dt
    turn = (after[3:] @ next_rotation - before[3:] @ rotation) / report.dt
    force = bodies.mass[0] * (change - known.acceleration[0, 0])
    torque = bodies.inertia[0] @ (turn - known.spin[0, 0])
    ((loads,), _) = known.summed(np.ones((1, 1, 1)), report.dt)
    return Result(loads, np.concatenate([force, torque]))


def step(layout, pose, twist, next_pose=None, next_twist=None, contacts=NO_CONTACTS, **options):
    next_pose = pose if next_pose is None else next_pose
    next_twist = twist if next_twist is None else next_twist
    return loads_in(
        layout, report_of([pose], [twist], [next_pose], [next_twist], contacts), **options
    )


def resultant(layout, loads):
    """Force and torque about the component's COM."""
    arm = layout.coms - layout.masses @ layout.coms / layout.masses.sum()
    return loads[:, :3].sum(axis=0), (loads[:, 3:] + np.cross(arm, loads[:, :3])).sum(axis=0)


TUMBLER = [(4, 2, 0, 0), (2, 4, 3, -1), (6, 1, -2, 2)]


def test_free_fall_loads_nothing():
    layout = body(*TUMBLER)
    pose = transform([0.3, 0.1, 1.0], Rotation.from_euler("xyz", [0.3, 1.0, -2.0]).as_quat())
    falling = np.array([0.5, 0.0, -2.0, 0.0, 0.0, 0.0])
    after = falling + np.array([0, 0, -9.81 * DT, 0, 0, 0])
    result = step(layout, pose, falling, next_twist=after)
    assert result.loads == pytest.approx(np.zeros((3, 6)), abs=1e-15)
    assert result.unexplained == pytest.approx(np.zeros(6), abs=1e-12)


def test_a_stack_at_rest_carries_the_weight_above_each_joint():
    layout = body((2, 2, 0, 0), (2, 2, 0, 0), (2, 2, 0, 0))
    mass = BrickShape(2, 2).mass
    corners = [(x * STUD_PITCH, y * STUD_PITCH, 0.0) for x in (0, 2) for y in (0, 2)]
    push = 3 * mass * 9.81 * DT / 4
    contacts = contacts_of(*((NO_PART, 10, c, (0, 0, push)) for c in corners))
    result = step(layout, np.eye(4), np.zeros(6), contacts=contacts)
    expected = np.zeros((3, 6))
    expected[:, 2] = [2 * mass * 9.81, -mass * 9.81, -mass * 9.81]
    assert result.loads == pytest.approx(expected, abs=1e-12)


def test_an_impact_from_below_loads_each_part_by_its_share_of_the_mass():
    layout = body((4, 2, 0, 0), (4, 2, 0, 0))
    centre = np.array([2 * STUD_PITCH, STUD_PITCH, 0.0])
    force = 30.0
    contacts = contacts_of((NO_PART, 10, centre, (0, 0, force * DT)))
    mass = layout.masses.sum()
    before = np.array([0, 0, -1.0, 0, 0, 0])
    after = before + np.array([0, 0, (force / mass - 9.81) * DT, 0, 0, 0])
    result = step(layout, np.eye(4), before, next_twist=after, contacts=contacts)
    expected = np.zeros((2, 6))
    expected[:, 2] = [force / 2, -force / 2]
    assert result.loads == pytest.approx(expected, abs=1e-12)
    assert result.unexplained == pytest.approx(np.zeros(6), abs=1e-10)


def test_an_eccentric_push_bends_the_joint_as_newton_and_euler_say():
    """Two cubes' worth of bricks pushed at the top: hand calculation in the plane."""
    layout = body((2, 2, 0, 0), (2, 2, 0, 0))
    mass, half = BrickShape(2, 2).mass, 0.5 * BRICK_HEIGHT
    inertia = BrickShape(2, 2).inertia[1, 1]
    force = 0.4  # along x at the COM of the upper brick
    result = step(
        layout, np.eye(4), np.zeros(6), gravity=WEIGHTLESS, applied={11: [force, 0, 0, 0, 0, 0]}
    )
    acceleration = force / (2 * mass)
    spin = force * half / (2 * inertia + 2 * mass * half**2)  # about y
    lower = -mass * (acceleration - spin * half)
    upper = force - mass * (acceleration + spin * half)
    assert result.loads[:, 0] == pytest.approx([lower, upper], abs=1e-12)
    assert result.loads[:, 4] == pytest.approx([-inertia * spin] * 2, abs=1e-12)
    assert np.count_nonzero(np.abs(result.loads) > 1e-12) == 4


def test_steady_spin_pulls_the_parts_outwards():
    graph = BrickTopologyGraph()
    beam = graph.add_part(BrickShape(8, 2))
    for x in (0, 6):
        graph.connect(beam, graph.add_part(BrickShape(2, 2)), (x, 0), 0)
    layout = graph.layout(graph.component_of(beam))
    omega = 25.0
    com = layout.masses @ layout.coms / layout.masses.sum()
    spin = np.array([0, 0, 0, 0, 0, omega])
    turned = transform(np.zeros(3), Rotation.from_rotvec([0, 0, omega * DT]).as_quat())
    turned[:3, 3] = com - turned[:3, :3] @ com
    result = step(layout, np.eye(4), spin, next_pose=turned, gravity=WEIGHTLESS)
    arm = layout.coms - com
    expected = layout.masses[:, None] * omega**2 * arm * [1, 1, 0]
    assert np.abs(expected).max() > 0.01
    assert result.loads[:, :3] == pytest.approx(expected, abs=1e-12)


def free_tumble(layout, spin_in_body, duration):
    """Torque-free motion integrated to 1e-12: pose and twist (COM at rest) as functions of time."""
    com = layout.masses @ layout.coms / layout.masses.sum()
    arm = layout.coms - com
    inertia = layout.inertias.sum(axis=0)
    inertia += sum(
        m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(layout.masses, arm, strict=True)
    )

    def rate(_, state):
        q, w = state[:4], state[4:]
        x, y, z, s = q
        drift = 0.5 * np.array(
            [
                s * w[0] + y * w[2] - z * w[1],
                s * w[1] + z * w[0] - x * w[2],
                s * w[2] + x * w[1] - y * w[0],
                -x * w[0] - y * w[1] - z * w[2],
            ]
        )
        return np.concatenate([drift, np.linalg.solve(inertia, -np.cross(w, inertia @ w))])

    start = np.concatenate([[0, 0, 0, 1.0], spin_in_body])
    dense = solve_ivp(
        rate, (0, duration), start, rtol=1e-12, atol=1e-13, method="DOP853", dense_output=True
    ).sol

    def at(t):
        state = dense(t)
        pose = transform(np.zeros(3), state[:4])
        pose[:3, 3] = -pose[:3, :3] @ com
        return pose, np.concatenate([np.zeros(3), pose[:3, :3] @ state[4:]]), state[4:]

    return at, inertia, arm


def test_a_tumbling_body_is_loaded_by_its_own_motion_alone():
    layout = body(*TUMBLER)
    at, inertia, arm = free_tumble(layout, np.array([12.0, -9.0, 15.0]), 0.2)
    for t in (0.0, 0.07, 0.15):
        pose, twist, _ = at(t)
        next_pose, next_twist, _ = at(t + DT)
        result = step(layout, pose, twist, next_pose, next_twist, gravity=WEIGHTLESS)
        force, torque = resultant(layout, result.loads)
        assert force == pytest.approx(np.zeros(3), abs=1e-12)
        assert torque == pytest.approx(np.zeros(3), abs=1e-15)

        # Truth: d'Alembert at many instants of the step, in component axes, averaged.
        mean = np.zeros_like(result.loads)
        times = t + DT * (np.arange(200) + 0.5) / 200
        for instant in times:
            _, _, w = at(instant)
            spin = np.linalg.solve(inertia, -np.cross(w, inertia @ w))
            mean[:, :3] -= layout.masses[:, None] * (
                np.cross(spin, arm) + np.cross(w, np.cross(w, arm))
            )
            mean[:, 3:] -= layout.inertias @ spin + np.cross(w, layout.inertias @ w)
        mean /= len(times)
        assert np.linalg.norm(result.loads - mean) < 1e-3 * np.linalg.norm(mean)
        scale = np.linalg.norm(inertia) * 15.0**2
        assert np.linalg.norm(result.unexplained[3:]) < 1e-3 * scale


def test_random_contacts_balance_and_are_explained():
    rng = np.random.default_rng(3)
    layout = body(*TUMBLER)
    pose = transform(rng.normal(size=3), Rotation.random(rng=rng).as_quat())
    points = transform_points(pose, rng.normal(scale=0.02, size=(7, 3)))
    parts = rng.choice(layout.part_ids, size=7)
    pushes = rng.normal(scale=0.01, size=(7, 3))
    contacts = contacts_of(*zip([NO_PART] * 7, parts.tolist(), points, pushes, strict=True))
    wrench = rng.normal(scale=0.1, size=6) * [1, 1, 1, 0.01, 0.01, 0.01]
    com = transform_points(pose, layout.masses @ layout.coms / layout.masses.sum())
    rotation = pose[:3, :3]
    arm = (layout.coms - layout.masses @ layout.coms / layout.masses.sum()) @ rotation.T
    inertia = rotation @ layout.inertias.sum(axis=0) @ rotation.T
    inertia += sum(
        m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(layout.masses, arm, strict=True)
    )
    # From rest the body gets the total impulse; its spin is small enough that it hardly turns.
    total = pushes.sum(axis=0) + wrench[:3] * DT + layout.masses.sum() * GRAVITY * DT
    angular = np.cross(points - com, pushes).sum(axis=0) + wrench[3:] * DT
    angular += np.cross(arm[1], wrench[:3]) * DT
    after = np.concatenate([total / layout.masses.sum(), np.linalg.solve(inertia, angular)])
    result = step(
        layout, pose, np.zeros(6), next_twist=after, contacts=contacts, applied={11: wrench}
    )
    force, torque = resultant(layout, result.loads)
    assert force == pytest.approx(np.zeros(3), abs=1e-10)
    assert torque == pytest.approx(np.zeros(3), abs=1e-12)
    size = np.linalg.norm(total / DT)
    assert np.linalg.norm(result.unexplained[:3]) < 1e-9 * size


def test_a_teleport_or_reset_loads_nothing():
    """Velocities set from outside are no load, however large the jump."""
    layout = body(*TUMBLER)
    far = transform([5.0, 5.0, 5.0])
    result = step(layout, np.eye(4), np.zeros(6), far, [30.0, 0, 0, 0, 0, 0], gravity=WEIGHTLESS)
    assert result.loads == pytest.approx(np.zeros((3, 6)), abs=1e-12)
    unexplained = layout.masses.sum() * 30.0 / DT
    assert result.unexplained[0] == pytest.approx(unexplained)


def test_what_no_contact_explains_is_told():
    layout = body((2, 2, 0, 0), (2, 2, 0, 0))
    result = step(layout, np.eye(4), np.zeros(6))  # hangs in the air by nothing
    assert result.unexplained[2] == pytest.approx(layout.masses.sum() * 9.81)
    assert result.loads == pytest.approx(np.zeros((2, 6)), abs=1e-12)


def test_a_held_component_does_not_accelerate():
    layout = body((2, 2, 0, 0), (2, 2, 0, 0))
    result = step(layout, np.eye(4), np.zeros(6), fixed=True, applied={11: [0, 0, 3.0, 0, 0, 0.1]})
    weight = BrickShape(2, 2).mass * 9.81
    expected = np.zeros((2, 6))
    expected[:, 2] = [-weight, 3.0 - weight]
    expected[1, 5] = 0.1
    assert result.loads == pytest.approx(expected, abs=1e-12)
    assert not result.unexplained.any()


def test_loads_are_in_component_axes():
    layout = body((2, 2, 0, 0), (2, 2, 0, 0))
    turned = transform([1, 2, 3], Rotation.from_euler("y", 90, degrees=True).as_quat())
    result = step(layout, turned, np.zeros(6), fixed=True)
    # The component's x axis points down in the world.
    assert result.loads[:, 0] == pytest.approx(layout.masses * 9.81)


def test_contacts_act_on_both_bricks_in_opposite_ways():
    contacts = contacts_of(
        (10, 20, (0, 0, 1), (0, 0, 2.0)),
        (NO_PART, 10, (1, 0, 0), (0, 0, 5.0)),
        (21, 22, (0, 1, 0), (7.0, 0, 0)),
    )
    graph = BrickTopologyGraph()
    for part_id in (10, 20, 21, 22):
        graph.add_part(BrickShape(2, 2), part_id=part_id)
    layouts = {c: graph.layout(c) for c in graph.component_ids}
    wanted = [graph.component_of(10), graph.component_of(20)]
    poses, still = [np.eye(4)] * 4, [np.zeros(6)] * 4
    report = report_of(poses, still, poses, still, contacts)
    bodies = bodies_of(layouts, wanted)
    part, at, wrench = _acting(bodies, steps_of([report, report]), ())
    arms = np.cross(np.array(contacts.position) - bodies.local[0], contacts.impulse)
    found = sorted(zip(at.tolist(), part.tolist(), (DT * wrench[:, 2]).tolist(), strict=True))
    once = [(0, -2.0), (0, 5.0), (1, 2.0)]
    assert found == [(0, *row) for row in once] + [(1, *row) for row in once]
    (pushed,) = wrench[(part == 0) & (at == 1) & (wrench[:, 2] > 0)]
    assert DT * pushed[3:] == pytest.approx(arms[1])


def random_scene(rng, steps: int):
    """Three components (one held, one of no interest) in random motion and contact."""
    graph = BrickTopologyGraph()
    stacks = [(10, 11, 12), (20, 21), (30,)]
    for ids in stacks:
        for k, part_id in enumerate(ids):
            graph.add_part(BrickShape(4, 2), part_id=part_id)
            if k:
                graph.connect(ids[k - 1], part_id, (1, 0), int(rng.integers(2)))
    layouts = {
        graph.component_of(ids[0]): graph.layout(graph.component_of(ids[0])) for ids in stacks
    }
    parts = [part_id for ids in stacks for part_id in ids]

    def poses():
        return [transform(rng.normal(size=3), Rotation.random(rng=rng).as_quat()) for _ in range(3)]

    reports = [
        replace(
            report_of(poses(), rng.normal(size=(3, 6)), poses(), rng.normal(size=(3, 6))),
            component_ids=np.array(sorted(layouts)),
            contacts=contacts_of(
                *(
                    (int(a), int(b), rng.normal(size=3), rng.normal(size=3))
                    for a, b in (rng.permutation([NO_PART, *parts])[:2] for _ in range(9))
                    if b != NO_PART
                )
            ),
        )
        for _ in range(steps)
    ]
    return layouts, reports


def test_steps_of_several_components_add_up_to_single_ones():
    """All at once is the sum of one component in one step at a time, with the given weights."""
    rng = np.random.default_rng(8)
    layouts, reports = random_scene(rng, 4)
    first, second, _ = sorted(layouts)
    applied = [{11: rng.normal(size=6), 30: rng.normal(size=6)} for _ in reports]
    bodies = bodies_of(layouts, [first, second], [second])
    weights = rng.uniform(0.0, 1.0, size=(4, 2))
    weights[1, 0] = 0.0
    both = np.array([np.ones((4, 2)), weights])
    _, loads = StepLoads(bodies, steps_of(reports), GRAVITY, applied).summed(both, DT)[0]
    for column, component in enumerate((first, second)):
        expected = np.zeros((len(layouts[component].part_ids), 6))
        for s, report in enumerate(reports):
            row = [int(np.searchsorted(report.component_ids, component))]
            single = replace(
                report,
                component_ids=np.array([component]),
                world_T_component=report.world_T_component[row],
                twist=report.twist[row],
                previous_world_T_component=report.previous_world_T_component[row],
                previous_twist=report.previous_twist[row],
                contacts=contacts_touching(report.contacts, layouts[component].part_ids),
            )
            result = loads_in(layouts[component], single, GRAVITY, applied[s], component == second)
            expected += weights[s, column] * result.loads
        assert np.abs(expected).max() > 1.0
        assert loads[bodies.parts_of(column)] == pytest.approx(expected, abs=1e-10)


def contacts_touching(contacts: Contacts, part_ids) -> Contacts:
    """Contacts with some parts; others become things that are no bricks."""
    rows = []
    for a, b, position, impulse in zip(
        contacts.part_a.tolist(),
        contacts.part_b.tolist(),
        contacts.position,
        contacts.impulse,
        strict=True,
    ):
        if b in part_ids:
            rows.append((a if a in part_ids else NO_PART, b, position, impulse))
        elif a in part_ids:
            rows.append((NO_PART, a, position, -impulse))
    return contacts_of(*rows)


def test_wrenches_on_other_components_are_passed_over():
    layout = body((2, 2, 0, 0), (2, 2, 0, 0))
    wrench = [0, 0, 9.0, 0, 0, 0]
    result = step(
        layout, np.eye(4), np.zeros(6), gravity=WEIGHTLESS, applied={9: wrench, 99: wrench}
    )
    assert not result.loads.any()


@pytest.mark.parametrize("tilt", [0.0, 1.0])
def test_a_real_engine_leaves_nothing_unexplained(tilt):
    """MuJoCo drops a guitar of 28 bricks: contacts and gravity account for all of its motion."""
    structure = data_structure("brickgpt/texture_guitar.txt", baseplate=None)
    (component,) = structure.graph.component_ids
    layout = structure.graph.layout(component)
    engine = MujocoEngine(timestep=DT)
    pose = transform([0, 0, 0.25], Rotation.from_euler("xyz", [tilt, 0.5 * tilt, 0.2]).as_quat())
    spin = tilt * np.array([3.0, -5.0, 8.0])
    twist = np.concatenate([[0, 0, -1.0], spin])
    colors = tuple((255, 255, 255) for _ in layout.part_ids)
    engine.update([], [BodySpec(component, layout, pose, twist, False, colors)])
    hardest = unexplained = imbalance = 0.0
    for _ in range(90):
        report = engine.step()
        result = loads_in(layout, report, engine.gravity)
        force, torque = resultant(layout, result.loads)
        hardest = max(hardest, np.abs(result.loads[:, :3]).max())
        unexplained = max(unexplained, np.linalg.norm(result.unexplained[:3]))
        imbalance = max(imbalance, np.linalg.norm(force), np.linalg.norm(torque))
    weight = 9.81 * layout.masses.sum()
    assert hardest > 8.0 * weight  # it did hit the ground
    assert unexplained < 1e-3 * hardest
    assert imbalance < 1e-9 * hardest
