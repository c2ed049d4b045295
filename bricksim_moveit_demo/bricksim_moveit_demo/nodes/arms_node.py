# SPDX-License-Identifier: Apache-2.0
"""The simulator node with Franka arms: controllers, tasks as actions, whole episodes."""

from __future__ import annotations

import re
import sys
from functools import partial

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

from bricksim_core.engines import RobotSpec
from bricksim_core.rehearsal import rehearse
from bricksim_core.spatial import Array
from bricksim_moveit_demo.description import (
    READY,
    ArmDescription,
    arms_of,
    robot_spec,
    robot_urdf,
)
from bricksim_moveit_demo.nodes import parameters as arm_parameters
from bricksim_moveit_demo.nodes.background import ForeignExecution, PlanningBackground
from bricksim_moveit_demo.nodes.episode import Episode, create_episode
from bricksim_moveit_demo.nodes.gripper_server import GripperServer
from bricksim_moveit_demo.nodes.tasks import TaskServer
from bricksim_moveit_demo.nodes.trajectory_server import TrajectoryServer
from bricksim_moveit_demo.planning.protocol import (
    MotionPlanner,
    PlanningOptions,
    TrajectoryExecutor,
    create_executor,
    create_planner,
)
from bricksim_moveit_demo.world import Noise, SimulatedWorld
from bricksim_ros import conversions
from bricksim_ros.publishing import STREAM, Rate
from bricksim_ros.robots import expanded
from bricksim_ros.running import run_node
from bricksim_ros.scene import RobotEntry, Scene, SceneError
from bricksim_ros.server import Server
from bricksim_ros.simulator_node import SimulatorNode, run_simulator
from bricksim_ros.world import ResetScope, World

_WRENCH_RATE = 60.0
"""Wrench estimates a second of simulation time."""

_ROW_START = (0.45, 0.0)
"""x, y [m] where structures begin that come with arms: one of 12 studs has its middle at 0.5 m."""


class ArmsNode(SimulatorNode):
    """A `SimulatorNode` whose FR3 arms have their controllers and handle bricks.

    Arms are those asked for by the parameter ``arms`` and every robot of the scene whose
    description is an FR3's.
    """

    def __init__(self) -> None:
        super().__init__()
        arm_parameters.declare(self)
        self._arms: list[ArmDescription] = []
        self._scene_of_arms: SimulatedWorld | None = None
        self._planner: MotionPlanner | None = None
        self._executor: TrajectoryExecutor | None = None
        self._background: PlanningBackground | None = None
        self._execution: ForeignExecution | None = None
        self._tasks: TaskServer | None = None
        self._episode: Episode | None = None

    def robot_specs(self, scene: Scene) -> list[RobotSpec]:
        """Arms with the drives of an FR3, other robots as their descriptions say."""
        self._arms = list(arms_of(self._value("arms")))
        specs = [robot_spec(arm) for arm in self._arms]
        others = []
        for entry in scene.robots:
            arm = _arm_of(entry)
            if arm is None:
                others.append(entry)
                continue
            self._arms.append(arm)
            specs.append(_spec(arm, entry))
        return [*specs, *super().robot_specs(Scene((), tuple(others)))]

    def row_start(self) -> tuple[float, float]:
        """In reach of the arms, whose first one stands at the origin."""
        return _ROW_START if self._value("arms") else super().row_start()

    def robot_descriptions(self, world: World) -> list[str]:
        """All arms in one description, other robots by themselves."""
        names = {arm.name for arm in self._arms}
        others = [s for n, s in world.robots.items() if n not in names]
        whole = [robot_urdf(self._arms)] if self._arms else []
        return [*whole, *(spec.urdf.read_text(encoding="utf-8") for spec in others)]

    def furnish(self, world: World) -> None:
        """Lays out what an episode needs."""
        self._episode = create_episode(self, self._noise())
        if self._episode is not None:
            self._episode.lay_out(world)

    def make_servers(self, world: World) -> list[Server]:
        """Services of the simulator, then controllers and tasks of the arms."""
        servers: list[Server] = super().make_servers(world)
        if not self._arms:
            return servers
        scene = SimulatedWorld(
            world.simulator, self._arms, self._noise(), self._value("seed"), add_robots=False
        )
        planner = self._make_planner(scene)
        self._scene_of_arms = scene
        controls = []

        def busy() -> str:
            return "" if self._tasks is None else self._tasks.busy()

        def refusal(arm: str) -> str:
            return busy() if self._execution is None else self._execution.refusal(arm, busy())

        for name, controller in scene.arms.items():
            controls.append(TrajectoryServer(self, world, controller, partial(refusal, name)))
            controls.append(GripperServer(self, world, controller, busy))

        def end_controls(reason: str) -> None:
            for server in controls:
                server.end(reason)

        tasks = self._tasks = TaskServer(self, scene, planner, end_controls)

        def reset(scope: ResetScope) -> None:
            if scope & ResetScope.STATE:
                end_controls("the simulation was reset")
                tasks.reset("the simulation was reset")

        world.on_reset.append(reset)
        servers += [*controls, tasks, _Wrenches(self, world, scene)]
        if self._episode is not None:
            servers.append(self._episode.server(scene, tasks))
        return servers

    def _make_planner(self, scene: SimulatedWorld) -> MotionPlanner:
        """Planner and executor, which work beside the simulation; returns the planner.

        Raises:
            PlanningError: One of them does not start.
        """
        name, options = self._value("planner"), PlanningOptions(seed=self._value("seed"))
        planner = self._planner = create_planner(name, self._arms, options)
        self._executor = create_executor(self._value("execution"), name, planner, self._arms)
        scene.background = self._background = PlanningBackground(self, scene)
        if self._executor is not None:
            scene.execution = self._execution = ForeignExecution(self._executor, lambda: scene.time)
        return planner

    def command_joints(self, robot: str, targets: dict[str, float]) -> None:
        """Joint commands of an arm go through its controller, so that both agree."""
        arms = {} if self._scene_of_arms is None else self._scene_of_arms.arms
        if robot in arms:
            arms[robot].command(targets)
        else:
            super().command_joints(robot, targets)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Starts stepping; everything answers from now on."""
        result = super().on_activate(state)
        if self._arms:
            names = ", ".join(arm.name for arm in self._arms)
            self.get_logger().info(f"ready: arms {names}, planner {self._value('planner')}")
        return result

    def _clean_up(self) -> None:
        super()._clean_up()
        self.close_helpers()
        self._tasks = self._scene_of_arms = self._episode = None

    def close_helpers(self) -> None:
        """Ends planner and executor: a node that is interrupted must not wait for their answers."""
        helpers = (self._background, self._execution, self._executor, self._planner)
        for helper in dict.fromkeys(h for h in helpers if h is not None):
            helper.close()
        self._background = self._execution = self._executor = self._planner = None

    def _noise(self) -> Noise:
        return Noise.of(self._value("noise_mm"), self._value("noise_deg"))


class _Wrenches(Server):
    """Publishes ``<arm>/wrench``: what the surroundings exert on the tool, in the tool's frame."""

    def __init__(self, node: SimulatorNode, world: World, scene: SimulatedWorld) -> None:
        self._node = node
        self._world = world
        self._scene = scene
        self._rate = Rate(_WRENCH_RATE)
        prefix = node.get_parameter("frame_prefix").value
        self._frames = {name: f"{prefix}{c.arm.tool}" for name, c in scene.arms.items()}
        self._publishers = {
            name: node.create_publisher(WrenchStamped, f"{name}/wrench", STREAM)
            for name in scene.arms
        }

    def after_step(self) -> None:
        """Publishes if it is due and somebody listens."""
        if not self._rate.due(self._world.time):
            return
        stamp = conversions.time_message(self._world.time)
        for name, publisher in self._publishers.items():
            if not publisher.get_subscription_count():
                continue
            controller = self._scene.arms[name]
            message = WrenchStamped(header=conversions.header(stamp, self._frames[name]))
            wrench = _turned(controller.wrench, controller.measured_tool[:3, :3].T)
            message.wrench.force = conversions.vector_message(wrench[:3])
            message.wrench.torque = conversions.vector_message(wrench[3:])
            publisher.publish(message)

    def destroy(self) -> None:
        """Takes the topics away."""
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)


def _turned(wrench: Array, rotation: Array) -> Array:
    return np.concatenate([rotation @ wrench[:3], rotation @ wrench[3:]])


def _arm_of(entry: RobotEntry) -> ArmDescription | None:
    """A robot of a scene as an arm, None if its description is not an FR3's.

    Raises:
        SceneError: Its description cannot be read.
    """
    found = re.search(r"<joint\s[^>]*name=\"(\w*)fr3_joint1\"", expanded(entry))
    if found is None:
        return None
    return ArmDescription(entry.name, found.group(1), entry.world_T_base)


def _spec(arm: ArmDescription, entry: RobotEntry) -> RobotSpec:
    if entry.drives:
        raise SceneError(f"robot {entry.name!r}: drives are given, expected none for an FR3")
    unknown = sorted(set(entry.joint_positions) - {*arm.joints, *arm.fingers})
    if unknown:
        raise SceneError(f"robot {entry.name!r}: no joints {', '.join(unknown)}")
    positions = [
        entry.joint_positions.get(joint, ready)
        for joint, ready in zip(arm.joints, READY, strict=True)
    ]
    spec = robot_spec(arm, positions)
    fingers = {j: entry.joint_positions[j] for j in arm.fingers if j in entry.joint_positions}
    spec.joint_positions.update(fingers)  # type: ignore[attr-defined]
    return spec


def main(args: list[str] | None = None) -> int:
    """Entry point of ``ros2 run bricksim_moveit_demo simulator``."""
    rehearse()  # as `bricksim_ros.simulator_node.main` does
    return run_node(ArmsNode, run_simulator, args, close=ArmsNode.close_helpers)


if __name__ == "__main__":
    sys.exit(main())
