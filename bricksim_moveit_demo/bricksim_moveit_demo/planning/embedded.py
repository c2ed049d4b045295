# SPDX-License-Identifier: Apache-2.0
"""Motion planning with roboplan: RRT-Connect, shortcutting, numeric IK, straight lines, TOPP-RA."""

from __future__ import annotations

import itertools
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import yaml
from roboplan.cartesian_planning import (
    CartesianPathPlanner,
    CartesianPlannerOptions,
    CartesianSpeedMode,
)
from roboplan.core import (
    Box as PlannerBox,
)
from roboplan.core import (
    CartesianConfiguration,
    CartesianPath,
    JointConfiguration,
    JointPath,
    JointTrajectory,
    PathShortcutter,
    PathShortcuttingOptions,
    Scene,
    hasCollisionsAlongPath,
    loadJointLimitsConfig,
    loadUrdfSceneDescriptionFromXml,
)
from roboplan.rrt import RRT, RRTOptions
from roboplan.simple_ik import SimpleIk, SimpleIkOptions
from roboplan.toppra import PathParameterizerTOPPRA, SplineFittingMode, TOPPRAOptions

from bricksim_core.spatial import Array, inverse, transform
from bricksim_moveit_demo.description import (
    READY,
    ArmDescription,
    franka,
    robot_srdf,
    robot_urdf,
)
from bricksim_moveit_demo.errors import PlanningError, UnreachableError
from bricksim_moveit_demo.planning.protocol import MotionPlanner, PlanningOptions, Trajectory
from bricksim_moveit_demo.planning.scene import Box, PlanningScene
from bricksim_moveit_demo.planning.solutions import Solutions

_CHECK_STEP = 0.02
"""Joint distance between collision checks while a motion is searched [rad]: 17 mm at 0.85 m reach;
half of it after each failure."""
_TRACE_STEP = 0.005
"""The same along the trajectory that comes out of it, and along the direct motion [rad]."""
_BLEND = 0.01
"""How far a trajectory rounds the corners of a path [rad]; half of it after each failure."""
_IK_POSITION = 1e-5
"""Greatest position error of an IK solution [m]."""
_IK_ROTATION = 1e-4
"""Greatest rotation error of an IK solution [rad]."""
_IK_MARGIN = 0.15
"""Distance of IK solutions from the joint limits [rad]: room for what follows."""
_LINE_MARGIN = 0.03
"""Distance of straight motions from the joint limits [rad], where they begin farther away."""
_POSTURES = (0.05, 0.0)
"""Weights of roboplan's wish for a posture against keeping to a straight line [-], the first one
with which the line is kept to. (With the first one alone, arms far from singular ones left it by
0.5001 mm, and did not move.)"""
_GRID = 0.01
"""Time step of planned trajectories [s]."""
_SAME = 1e-4
"""Goals closer than this to the start [rad] are reached already."""
_SEPARATOR = "#"
_COLOR = np.array([0.6, 0.6, 0.6, 1.0])

Pair = tuple[str, str]


def _pair(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)


class EmbeddedPlanner(MotionPlanner):
    """`MotionPlanner` on one roboplan scene that is brought up to date before every request."""

    def __init__(self, arms: Sequence[ArmDescription], options: PlanningOptions) -> None:
        self._arms = {arm.name: arm for arm in arms}
        self._options = options
        self._scene = Scene("bricksim", loadUrdfSceneDescriptionFromXml(robot_urdf(arms)))
        self._scene.importSrdf(robot_srdf(arms))
        self._import_accelerations()
        self._joints = self._scene.getJointNames()
        self._sizes: dict[str, tuple[float, float, float]] = {}
        self._placed: dict[str, tuple[str, bytes]] = {}
        self._ignored: set[Pair] = set()
        robot = ElementTree.fromstring(robot_urdf(arms))
        self._links = {link.get("name", "") for link in robot.iter("link")}
        ready = np.zeros(len(self._joints))
        # Attached boxes are placed in the last joint's frame, which roboplan treats exactly.
        self._last_T_tool = {
            name: inverse(self._scene.forwardKinematics(ready, self._last_link(arm)))
            @ self._scene.forwardKinematics(ready, arm.tool)
            for name, arm in self._arms.items()
        }
        self._reaches = {name: self._reach_bound(arm, ready) for name, arm in self._arms.items()}

    def close(self) -> None:
        """Nothing to end."""

    # -- interface --------------------------------------------------------------------------

    def reach(
        self, scene: PlanningScene, arm: ArmDescription, world_T_tool: Array, count: int = 1
    ) -> list[Array]:
        """See `MotionPlanner.reach`."""
        self._synchronize(scene)
        here = scene.arm_positions(arm.joints)
        goal = CartesianConfiguration("world", arm.tool, np.asfortranarray(world_T_tool))
        where = "x, y, z = {:.3f}, {:.3f}, {:.3f} m".format(*world_T_tool[:3, 3])
        nowhere = f"{arm.name}: no joint position puts the tool at {where}"
        shoulder, longest = self._reaches[arm.name]
        if np.linalg.norm(world_T_tool[:3, 3] - shoulder) > longest:
            raise UnreachableError(nowhere)
        found = Solutions(here, count)
        blocked: Array | None = None
        for attempt, seed in enumerate(self._seeds(arm, here, world_T_tool)):
            solution = self._solve(arm, goal, seed, attempt)
            if solution is None or self._margin(arm, solution) < _IK_MARGIN:
                continue
            q = self._full(scene, arm, solution)
            if self._scene.hasCollisions(q):
                blocked = q
            elif found.add(solution):
                break
        if reached := found.nearest_first():
            return reached
        if blocked is None:
            raise UnreachableError(nowhere)
        raise UnreachableError(
            f"{arm.name}: every joint position found for {where} is in collision:"
            f" {self._culprit(blocked)}"
        )

    def plan_to_joints(
        self, scene: PlanningScene, arm: ArmDescription, goals: Sequence[Array]
    ) -> Trajectory:
        """See `MotionPlanner.plan_to_joints`."""
        self._synchronize(scene)
        start = scene.arm_positions(arm.joints)
        q_start = self._full(scene)
        if self._scene.hasCollisions(q_start):
            raise PlanningError(f"{arm.name}: start is in collision: {self._culprit(q_start)}")
        failures: list[str] = []
        for goal in goals:
            q_goal = self._full(scene, arm, goal)
            if self._scene.hasCollisions(q_goal):
                failures.append(f"goal is in collision: {self._culprit(q_goal)}")
                continue
            if np.abs(goal - start).max() < _SAME:
                return _resting(arm, start)
            for attempt in range(self._options.tries):
                try:
                    path = self._search(arm, start, goal, attempt)
                    planned = self._parametrize(arm, path, attempt)
                except (RuntimeError, ValueError) as error:
                    failures.append(str(error))
                    continue
                touched = self._touched(scene, arm, planned.positions)
                if not touched:
                    return planned
                failures.append(f"the motion found collides: {touched}")
        raise PlanningError(f"{arm.name}: no free motion: " + "; ".join(dict.fromkeys(failures)))

    def plan_straight(
        self,
        scene: PlanningScene,
        arm: ArmDescription,
        poses: Sequence[Array],
        speed: float | None = None,
    ) -> Trajectory:
        """See `MotionPlanner.plan_straight`."""
        self._synchronize(scene)
        start = self._full(scene)
        here = self._scene.forwardKinematics(start, arm.tool)
        path = CartesianPath(
            ["world"], [arm.tool], [[np.asfortranarray(pose) for pose in (here, *poses)]]
        )
        trajectory = _trajectory(self._traced(arm, start, path, speed), arm)
        margins = [self._margin(arm, positions) for positions in trajectory.positions]
        if min(margins) < min(_LINE_MARGIN, margins[0]) - 1e-9:
            raise PlanningError(
                f"{arm.name}: straight motion comes within {min(margins):.3f} rad of a joint limit"
            )
        for i, positions in enumerate(trajectory.positions):
            q = self._full(scene, arm, positions)
            if self._scene.hasCollisions(q):
                share = 100.0 * i / max(len(trajectory.positions) - 1, 1)
                raise PlanningError(
                    f"{arm.name}: straight motion collides after {share:.0f} % of its points:"
                    f" {self._culprit(q)}"
                )
        return trajectory

    # -- inside -----------------------------------------------------------------------------

    def _traced(
        self, arm: ArmDescription, start: Array, path: CartesianPath, speed: float | None
    ) -> JointTrajectory:
        """Joint motion of an arm along a path of its tool, from positions of all joints.

        Raises:
            PlanningError: It does not keep to the path.
        """
        failures: list[str] = []
        for posture in _POSTURES:
            options = CartesianPlannerOptions(
                group_name=arm.group,
                dt=_GRID,
                speed_mode=CartesianSpeedMode.Bounded,
                max_linear_speed=speed or self._options.linear_speed,
                max_angular_speed=self._options.angular_speed,
                max_position_error=5e-4,
                max_orientation_error=5e-3,
                config_task_weight=posture,
                velocity_scale=self._options.velocity_scale,
                acceleration_scale=self._options.acceleration_scale,
            )
            try:
                planner = CartesianPathPlanner(self._scene, options)
                return planner.plan(path, JointConfiguration(self._joints, start))
            except (RuntimeError, ValueError) as error:
                failures.append(str(error))
        raise PlanningError(f"{arm.name}: no straight motion: {failures[0]}")

    def _reach_bound(self, arm: ArmDescription, positions: Array) -> tuple[Array, float]:
        """Where the shoulder is ((3,) [m]) and a length [m] that the tool is never farther from it:
        what lies between one joint and the next is rigid."""
        links = [*(f"{arm.prefix}fr3_link{i}" for i in range(2, 8)), arm.tool]
        places = [self._scene.forwardKinematics(positions, link)[:3, 3] for link in links]
        pieces = np.linalg.norm(np.diff(places, axis=0), axis=1)
        return places[0], float(pieces.sum())

    def _seeds(self, arm: ArmDescription, here: Array, world_T_tool: Array) -> Iterable[Array]:
        """Where IK starts from: here, Franka's ready pose turned to the goal, then at random."""
        base_T_tool = inverse(arm.world_T_base) @ world_T_tool
        towards = np.array(READY)
        towards[0] = np.arctan2(base_T_tool[1, 3], base_T_tool[0, 3])
        low, high = self._scene.getPositionLimitVectors(arm.group)
        yield here
        for wrist in (0.0, np.pi / 2, -np.pi / 2, np.pi):
            turned = towards.copy()
            turned[6] += wrist
            yield np.clip(turned, low, high)
        generator = np.random.default_rng(self._options.seed)
        for _ in range(4 * self._options.tries):
            yield generator.uniform(low, high)

    def _solve(
        self, arm: ArmDescription, goal: CartesianConfiguration, seed: Array, attempt: int
    ) -> Array | None:
        # The time limit is far away: a result must not depend on the machine's load.
        options = SimpleIkOptions(
            group_name=arm.group,
            max_iters=150,
            max_time=60.0,
            max_restarts=0,
            step_size=0.5,
            max_linear_error_norm=_IK_POSITION,
            max_angular_error_norm=_IK_ROTATION,
            check_collisions=False,
        )
        solver = SimpleIk(self._scene, options)
        solver.setRngSeed(self._options.seed + attempt)
        solution = JointConfiguration()
        joints = list(arm.joints)
        if not solver.solveIk(goal, JointConfiguration(joints, seed), solution):
            return None
        return np.array(solution.positions)

    def _margin(self, arm: ArmDescription, positions: Array) -> float:
        """Least distance [rad] of joint positions from their limits."""
        low, high = self._scene.getPositionLimitVectors(arm.group)
        return float(np.minimum(positions - low, high - positions).min())

    def _search(self, arm: ArmDescription, start: Array, goal: Array, attempt: int) -> JointPath:
        q_start = self._scene.toFullJointPositions(arm.group, start)
        q_goal = self._scene.toFullJointPositions(arm.group, goal)
        if not hasCollisionsAlongPath(self._scene, q_start, q_goal, _TRACE_STEP):
            path = JointPath()
            path.joint_names = list(arm.joints)
            path.positions = [start, goal]
            return path
        step = _CHECK_STEP * 0.5**attempt
        options = RRTOptions(
            group_name=arm.group,
            max_nodes=4000,
            max_connection_distance=1.0,
            collision_check_step_size=step,
            rrt_connect=True,
        )
        search = RRT(self._scene, options)
        search.setRngSeed(self._options.seed + 101 * attempt + 1)
        joints = list(arm.joints)
        path = search.plan(JointConfiguration(joints, start), JointConfiguration(joints, goal))
        shortcutting = PathShortcuttingOptions(
            group_name=arm.group, max_step_size=step, max_iters=100, seed=attempt
        )
        return PathShortcutter(self._scene, shortcutting).shortcut(path)

    def _touched(self, scene: PlanningScene, arm: ArmDescription, positions: Array) -> str:
        """What an arm runs into along joint positions ((T, 7) [rad]); empty if nothing.

        Bricks pass between the checks of a search, and blended corners leave the path it found.
        """
        travelled = np.abs(np.diff(positions, axis=0)).max(axis=1).cumsum()
        travelled = np.concatenate([[0.0], travelled])
        marks = np.arange(_TRACE_STEP, travelled[-1], _TRACE_STEP)
        for row in np.column_stack([np.interp(marks, travelled, joint) for joint in positions.T]):
            q = self._full(scene, arm, row)
            if self._scene.hasCollisions(q):
                return self._culprit(q)
        return ""

    def _parametrize(self, arm: ArmDescription, path: JointPath, attempt: int) -> Trajectory:
        options = TOPPRAOptions(
            dt=_GRID,
            mode=SplineFittingMode.LinearBlend,
            max_blend_deviation=_BLEND * 0.5**attempt,
            velocity_scale=self._options.velocity_scale,
            acceleration_scale=self._options.acceleration_scale,
        )
        return _trajectory(
            PathParameterizerTOPPRA(self._scene, arm.group).generate(path, options), arm
        )

    def _full(
        self,
        scene: PlanningScene,
        arm: ArmDescription | None = None,
        positions: Array | None = None,
    ) -> Array:
        """Positions of all joints: the scene's, with one arm elsewhere."""
        values = dict(scene.positions)
        if arm is not None and positions is not None:
            values.update(zip(arm.joints, positions.tolist(), strict=True))
        # Measured fingers may be open by a micrometre more than they can: no search starts there.
        return self._scene.clampToValidConfiguration(np.array([values[j] for j in self._joints]))

    @staticmethod
    def _last_link(arm: ArmDescription) -> str:
        return f"{arm.prefix}fr3_link7"

    def _import_accelerations(self) -> None:
        numbers = franka()
        limits = {}
        for arm in self._arms.values():
            for i, joint in enumerate(arm.joints, 1):
                limits[joint] = [numbers["joints"][f"joint{i}"]["acceleration"]]
            limits[arm.fingers[0]] = [numbers["finger"]["acceleration"]]
        document = {"joint_limits": {j: {"max_acceleration": a} for j, a in limits.items()}}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "joint_limits.yaml"
            path.write_text(yaml.safe_dump(document), encoding="utf-8")
            self._scene.importJointLimitsFromConfig(loadJointLimitsConfig(path))

    # -- scene ------------------------------------------------------------------------------

    def _synchronize(self, scene: PlanningScene) -> None:
        """Makes roboplan's scene equal to the snapshot."""
        wanted: dict[str, tuple[str, Box]] = {}
        shapes: dict[str, str] = {}
        for name, box in scene.objects.items():
            shapes[name] = _shape_name(name, box)
            wanted[shapes[name]] = ("world", box)
        for arm_name, boxes in scene.attached.items():
            link = self._last_link(self._arms[arm_name])
            last_T_tool = self._last_T_tool[arm_name]
            for name, box in boxes.items():
                shapes[name] = _shape_name(name, box)
                wanted[shapes[name]] = (link, Box(box.size, last_T_tool @ box.pose))
        for shape, (_, box) in wanted.items():
            if shape not in self._sizes:
                place = np.asfortranarray(_parking_place(shape))
                self._scene.addBoxGeometry(shape, "world", PlannerBox(*box.size), place, _COLOR)
                self._sizes[shape] = box.size
        for shape in self._sizes.keys() - wanted.keys():
            # Removing geometry leaves roboplan's queries inconsistent: park it far away instead.
            wanted[shape] = ("world", Box(self._sizes[shape], _parking_place(shape)))
        for shape, (parent, box) in wanted.items():
            key = (parent, box.pose.tobytes())
            if self._placed.get(shape) != key:
                self._scene.updateGeometryPlacement(shape, parent, np.asfortranarray(box.pose))
                self._placed[shape] = key
        self._apply_ignored(self._pairs_to_ignore(scene, shapes))
        self._scene.setJointPositions(self._full(scene))

    def _pairs_to_ignore(self, scene: PlanningScene, shapes: dict[str, str]) -> set[Pair]:
        carried = {shapes[name]: arm for arm, boxes in scene.attached.items() for name in boxes}
        ignored = {_pair(shapes.get(a, a), shapes.get(b, b)) for a, b in scene.allowed}
        known = self._sizes.keys() | self._links
        ignored = {pair for pair in ignored if known.issuperset(pair)}
        names = sorted(self._sizes)
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                # Only what an arm carries can collide with another object.
                if carried.get(a) == carried.get(b):
                    ignored.add((a, b))
        for shape, arm_name in carried.items():
            arm = self._arms[arm_name]
            ignored.update(_pair(shape, link) for link in arm.hand_links)
        for arm in self._arms.values():
            ignored.update(_pair(shape, f"{arm.prefix}fr3_link0") for shape in names)
        return ignored

    def _apply_ignored(self, ignored: set[Pair]) -> None:
        off, on = ignored - self._ignored, self._ignored - ignored
        if off:
            self._scene.setCollisions(sorted(off), False)
        if on:
            self._scene.setCollisions(sorted(on), True)
        self._ignored = ignored

    def _culprit(self, q: Array) -> str:
        """Names an object without which there would be no collision."""
        for name, (parent, data) in sorted(self._placed.items()):
            place = np.frombuffer(data).reshape(4, 4)
            self._scene.updateGeometryPlacement(
                name, "world", np.asfortranarray(_parking_place(name))
            )
            free = not self._scene.hasCollisions(q)
            self._scene.updateGeometryPlacement(name, parent, np.asfortranarray(place))
            if free:
                object_name = name.split(_SEPARATOR)[0]
                return f"robot or load touches {object_name}"
        for first, second in itertools.combinations(self._arms.values(), 2):
            pairs = {
                _pair(a, b)
                for a in self._links
                for b in self._links
                if a.startswith(first.prefix) and b.startswith(second.prefix)
            }
            pairs = sorted(pairs - self._ignored)
            self._scene.setCollisions(pairs, False)
            free = not self._scene.hasCollisions(q)
            self._scene.setCollisions(pairs, True)
            if free:
                return f"arms {first.name} and {second.name} touch each other"
        return "the robot touches itself or several objects"


def _shape_name(name: str, box: Box) -> str:
    """Name of an object's geometry: another one when a name is used again with another size."""
    return name + _SEPARATOR + "x".join(f"{1e3 * side:.3f}" for side in box.size)


def _parking_place(name: str) -> Array:
    """A pose out of reach, different for each name so that parked boxes do not pile up."""
    return transform([10.0 + sum(name.encode()), 0.0, -100.0])


def _resting(arm: ArmDescription, positions: Array) -> Trajectory:
    """Standing still for one time step."""
    rows, rest = np.array([positions, positions]), np.zeros((2, len(positions)))
    return Trajectory(arm.joints, np.array([0.0, _GRID]), rows, rest, rest)


def _trajectory(planned: JointTrajectory, arm: ArmDescription) -> Trajectory:
    """The arm's columns of a roboplan trajectory."""
    columns = [planned.joint_names.index(joint) for joint in arm.joints]
    return Trajectory(
        arm.joints,
        np.array(planned.times),
        np.array(planned.positions)[:, columns],
        np.array(planned.velocities)[:, columns],
        np.array(planned.accelerations)[:, columns],
    )
