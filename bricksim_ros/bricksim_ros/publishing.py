# SPDX-License-Identifier: Apache-2.0
"""Publishers of the simulator node: what goes out after every step, and how often."""

from __future__ import annotations

import math
import time

import numpy as np
from geometry_msgs.msg import TransformStamped
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from bricksim_core.events import StepResult
from bricksim_core.spatial import position_of, quaternion_of
from bricksim_msgs import msg
from bricksim_ros import conversions, parameters
from bricksim_ros.robots import RobotFrames
from bricksim_ros.world import ResetScope, World, part_names

LATCHED = QoSProfile(
    depth=1,
    reliability=QoSReliabilityPolicy.RELIABLE,
    durability=QoSDurabilityPolicy.TRANSIENT_LOCAL,
)
EVENTS = QoSProfile(depth=1000, reliability=QoSReliabilityPolicy.RELIABLE)
STREAM = QoSProfile(depth=10, reliability=QoSReliabilityPolicy.RELIABLE)
"""Reliable publishers also serve best-effort subscribers."""
TF_QOS = QoSProfile(depth=100, reliability=QoSReliabilityPolicy.RELIABLE)


class Rate:
    """Lets something through at most so many times a second of simulation time."""

    def __init__(self, hertz: float) -> None:
        self.hertz = hertz
        self._next = -math.inf

    def due(self, now: float) -> bool:
        """True if it is time; counts it then. A rate of 0 never is."""
        if self.hertz <= 0.0 or now < self._next - 1e-9:
            # A reset of time leaves the next time far ahead.
            if self.hertz > 0.0 and self._next - now > 2.0 / self.hertz:
                self._next = now
            else:
                return False
        period = 1.0 / self.hertz
        late = now - self._next
        self._next = self._next + period if late < period else now + period
        return True


class Publishing:
    """Everything the simulator node publishes.

    Args:
        node: The node.
        world: What is published.
    """

    def __init__(self, node: LifecycleNode, world: World) -> None:
        self._node = node
        self._world = world
        self._frame: str = parameters.value(node, "world_frame")
        self._prefix: str = parameters.value(node, "frame_prefix")
        self.states_rate = Rate(parameters.value(node, "states_rate"))
        self.utilization_rate = Rate(parameters.value(node, "utilization_rate"))
        self.tf_rate = Rate(parameters.value(node, "tf_rate"))
        self.topology_rate = Rate(parameters.value(node, "topology_rate"))
        self._topology_due = False
        self._components: dict[int, conversions.KnownComponent] = {}
        self._transforms: dict[int, TransformStamped] = {}
        self._robot_frames = [RobotFrames(robot) for robot in world.robots.values()]

        def publisher(kind: type, name: str, qos: QoSProfile):
            return node.create_publisher(kind, name, qos)

        self._clock = None
        if parameters.value(node, "publish_clock"):
            self._clock = publisher(Clock, "/clock", STREAM)
        self._topology = publisher(msg.BrickTopology, "bricksim/topology", LATCHED)
        self._events = publisher(msg.ConnectionEvent, "bricksim/connection_events", EVENTS)
        self._utilization = publisher(
            msg.ConnectionUtilizationArray, "bricksim/connection_utilization", STREAM
        )
        self._states = publisher(msg.BrickStateArray, "bricksim/brick_states", STREAM)
        self._candidates = publisher(
            msg.AssemblyCandidateArray, "bricksim/assembly_candidates", STREAM
        )
        self._statistics = publisher(msg.StepStatistics, "bricksim/statistics", STREAM)
        self._tf = publisher(TFMessage, "/tf", TF_QOS)
        self._joints = publisher(JointState, parameters.value(node, "joint_states_topic"), STREAM)
        self.last_publish_time = 0.0
        world.on_reset.append(self._after_reset)

    def destroy(self) -> None:
        """Takes all publishers away."""
        self._world.on_reset.remove(self._after_reset)
        for publisher in (
            self._clock,
            self._topology,
            self._events,
            self._utilization,
            self._states,
            self._candidates,
            self._statistics,
            self._tf,
            self._joints,
        ):
            if publisher is not None:
                self._node.destroy_publisher(publisher)

    def _after_reset(self, scope: ResetScope) -> None:
        # A recorder begins an episode with the topology as it is in the new time.
        if scope & ResetScope.TIME:
            self._topology_due = True

    def publish_clock(self) -> None:
        """Sends the time again: who comes while nothing moves must learn it too."""
        if self._clock is not None:
            self._clock.publish(Clock(clock=conversions.time_message(self._world.time)))

    def publish_step(self, result: StepResult, statistics: msg.StepStatistics) -> None:
        """Sends what one step brought: clock first, then state, then what changed."""
        start = time.perf_counter()
        now = self._world.time
        head = self._header(now)
        if self._clock is not None:
            self._clock.publish(Clock(clock=head.stamp))
        for event in result.events:
            self._events.publish(conversions.event_message(event, head))
        self._topology_due |= result.topology_changed
        if self._topology_due and self.topology_rate.due(now):
            self._publish_topology(head)
        if self.states_rate.due(now) and self._states.get_subscription_count():
            self._states.publish(conversions.states_message(result, head))
        if self.utilization_rate.due(now) and self._utilization.get_subscription_count():
            self._utilization.publish(conversions.utilization_message(result, head))
        if parameters.value(self._node, "publish_candidates"):
            self._candidates.publish(conversions.candidates_message(result.candidates, head))
        self._publish_joints(head)
        if self.tf_rate.due(now) and self._tf.get_subscription_count():
            self._publish_tf(result, head)
        statistics.header = head
        statistics.publish_time = self.last_publish_time
        self._statistics.publish(statistics)
        self.last_publish_time = time.perf_counter() - start

    def _header(self, now: float) -> Header:
        return conversions.header(conversions.time_message(now), self._frame)

    def publish_topology(self) -> None:
        """Sends a topology that waits for its turn: no step may come for a while."""
        if self._topology_due:
            self._publish_topology(self._header(self._world.time))

    def _publish_topology(self, head: Header) -> None:
        self._topology_due = False
        simulator = self._world.simulator
        self._topology.publish(
            conversions.topology_message(
                simulator.graph,
                simulator.poses(),
                simulator.fixed_parts,
                simulator.next_event,
                head,
                self._components,
            )
        )

    def _publish_tf(self, result: StepResult, head: Header) -> None:
        # Messages are kept and changed in place: building 200 of them takes milliseconds.
        part_ids = result.part_ids.tolist()
        names = part_names(part_ids)
        positions = position_of(result.world_T_part).tolist()
        quaternions = quaternion_of(result.world_T_part).tolist()
        kept = self._transforms
        self._transforms = {}
        for part_id, name, p, q in zip(part_ids, names, positions, quaternions, strict=True):
            item = kept.get(part_id)
            if item is None:
                item = TransformStamped(child_frame_id=f"{self._prefix}{name}")
            item.header = head
            translation, rotation = item.transform.translation, item.transform.rotation
            translation.x, translation.y, translation.z = p
            rotation.x, rotation.y, rotation.z, rotation.w = q
            self._transforms[part_id] = item
        transforms = list(self._transforms.values())
        for frames in self._robot_frames:
            for child, parent, pose in frames.transforms(self._world.simulator.engine):
                item = TransformStamped(child_frame_id=f"{self._prefix}{child}")
                item.header = conversions.header(
                    head.stamp, self._frame if parent is None else f"{self._prefix}{parent}"
                )
                item.transform = conversions.transform_message(pose)
                transforms.append(item)
        self._tf.publish(TFMessage(transforms=transforms))

    def _publish_joints(self, head: Header) -> None:
        states = [self._world.simulator.engine.joint_state(r) for r in self._world.robots]
        if not states:
            return
        self._joints.publish(
            JointState(
                header=head,
                name=[name for s in states for name in s.names],
                position=conversions.floats(np.concatenate([s.positions for s in states])),
                velocity=conversions.floats(np.concatenate([s.velocities for s in states])),
                effort=conversions.floats(np.concatenate([s.efforts for s in states])),
            )
        )
