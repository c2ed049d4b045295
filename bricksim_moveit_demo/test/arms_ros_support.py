# SPDX-License-Identifier: Apache-2.0
"""What the tests of the arms over ROS share: scenes that are spawned, time that is made to pass."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from arms_support import bricks, yawed
from geometry_msgs.msg import Point, Pose, Quaternion
from launch import LaunchDescription
from launch_pytest.actions import ReadyToTest
from launch_ros.actions import Node
from launched import finished
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from ros_client import RosClient
from sensor_msgs.msg import JointState
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import EntityState, Result, SimulationState
from simulation_interfaces.srv import ResetSimulation, SetEntityState, SetSimulationState

from bricksim_core.formats import Format, format_structure
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import Array, quaternion_of
from bricksim_core.topology import Structure
from bricksim_msgs import msg, srv
from bricksim_ros.publishing import LATCHED

BRICK, PLATE = BrickShape(4, 2), BrickShape(8, 8, 1)


def one_arm_cell(namespace: str = "") -> LaunchDescription:
    """One arm in an empty scene, as fast as possible."""
    node = Node(
        package="bricksim_moveit_demo",
        executable="simulator",
        namespace=namespace or None,
        parameters=[{"arms": 1, "real_time_factor": 0.0}],
        output="screen",
    )
    return LaunchDescription([node, ReadyToTest()])


@contextmanager
def running(
    command: Sequence[str],
    ready: str,
    patience: float,
    environment: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """A process that has just told that it is ready; it has to end with 0 when it is interrupted.

    Args:
        command: The program and its arguments.
        ready: What it says then.
        patience: After which it is killed if it has not said so [s].
        environment: Its environment; None: this one.
    """
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    # Without this a process that is never ready would be waited for without end.
    watchdog = threading.Timer(patience, os.killpg, (process.pid, signal.SIGKILL))
    watchdog.start()
    try:
        lines = []
        for line in iter(process.stdout.readline, ""):
            lines.append(line)
            if ready in line:
                break
        watchdog.cancel()
        assert lines and ready in lines[-1], "".join(lines)
        yield
        os.killpg(process.pid, signal.SIGINT)
        output = finished(process)
        assert process.returncode == 0, output
        assert "Traceback" not in output, output
    finally:
        watchdog.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def spawn(ros: RosClient, structure: Structure, fixed: bool = False) -> list[int]:
    """Spawns a structure; ids of its parts in the scene."""
    text = format_structure(structure, Format.TOPOLOGY)
    answer = ros.call(srv.SpawnStructure, "bricksim/spawn_structure", text=text, fixed=fixed)
    assert answer.success, answer.message
    return list(answer.part_ids)


def lay_out(ros: RosClient, shape: BrickShape = BRICK) -> list[int]:
    """An empty scene but for a plate and two loose bricks; ids of plate and bricks."""
    reset = ros.call(ResetSimulation, "reset_simulation", scope=7)
    assert reset.result.result == Result.RESULT_OK
    held = spawn(ros, bricks({0: PLATE}, {0: yawed(0.5, 0.0)}), fixed=True)
    places = {1: yawed(0.42, 0.2), 2: yawed(0.52, 0.2)}
    return [*held, *spawn(ros, bricks({1: shape, 2: shape}, places))]


def parameter(ros: RosClient, name: str, value: bool | float | list[float]) -> None:
    """Sets a parameter of the simulator."""
    changes = [Parameter(name, value=value).to_parameter_msg()]
    answer = ros.call(SetParameters, "simulator/set_parameters", parameters=changes)
    assert answer.results[0].successful, answer.results[0].reason


def connections(ros: RosClient) -> list[tuple[int, int]]:
    """Stud and hole part of all connections."""
    received = ros.collect(msg.BrickTopology, "bricksim/topology", LATCHED)
    ros.wait_for(lambda: received, "the topology")
    ros.spin_for(0.3)
    return sorted((c.stud_part, c.hole_part) for c in received[-1].connections)


def move(ros: RosClient, part: int, pose: Array) -> None:
    """Puts a brick elsewhere, at rest."""
    x, y, z, w = quaternion_of(pose)
    place = Pose(
        position=Point(**dict(zip("xyz", map(float, pose[:3, 3]), strict=True))),
        orientation=Quaternion(x=x, y=y, z=z, w=w),
    )
    state = EntityState(pose=place)
    answer = ros.call(SetEntityState, "set_entity_state", entity=f"brick_{part}", state=state)
    assert answer.result.result == Result.RESULT_OK, answer.result.error_message


def set_state(ros: RosClient, state: int) -> None:
    """Plays or pauses."""
    ros.call(SetSimulationState, "set_simulation_state", state=SimulationState(state=state))


class StoppedTask:
    """A goal of a task whose time passes only as the test wants.

    So it does not matter how fast this machine is: what the test does in a stage happens in it.
    """

    def __init__(self, ros: RosClient, client: Any, goal: Any) -> None:
        self._ros = ros
        self.told: list = []
        set_state(ros, SimulationState.STATE_PAUSED)
        self._steps = ros.action(SimulateSteps, "simulate_steps")
        self.handle = ros.goal(client, goal, self.told)
        self._result = self.handle.get_result_async()

    @property
    def stages(self) -> list[str]:
        """Stages so far."""
        return list(dict.fromkeys(f.stage for f in self.told))

    def until(self, stage: str) -> None:
        """Lets time pass until a stage has begun."""
        while stage not in self.stages:
            assert not self._result.done(), (stage, self._result.result().result)
            handle = self._ros.goal(self._steps, SimulateSteps.Goal(steps=5))
            over = handle.get_result_async()
            # The last steps of the task itself may be among them.
            self._ros.wait_for(over.done, "five steps")
            # What the task tells comes by another way than these, and may come after them.
            self._ros.spin_for(0.02)

    def cancel(self) -> Any:
        """Asks for the end of the task and returns its answer."""
        self._ros.wait_for(self.handle.cancel_goal_async().done, "the cancel to be answered")
        return self.answer()

    def answer(self) -> Any:
        """Lets time pass by itself until the task is over; its answer."""
        set_state(self._ros, SimulationState.STATE_PLAYING)
        self._ros.wait_for(self._result.done, "the result of the task")
        return self._result.result()


def rested(ros: RosClient, states: Sequence[JointState], seconds: float = 0.5) -> JointState:
    """The state of the joints after some simulated time more."""

    def stamp(message: JointState) -> float:
        return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec

    ros.wait_for(lambda: states, "joint states")
    begin = stamp(states[-1])
    ros.wait_for(lambda: stamp(states[-1]) > begin + seconds, "time to pass")
    return states[-1]
