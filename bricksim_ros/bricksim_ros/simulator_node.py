# SPDX-License-Identifier: Apache-2.0
"""The simulator as a lifecycle node."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from bricksim_core.engines import RobotSpec
from bricksim_core.engines.factory import create_engine
from bricksim_core.errors import BrickSimError, EngineError
from bricksim_core.events import StepResult
from bricksim_core.experiments.setup import extent, standing
from bricksim_core.formats import read_structure
from bricksim_core.rehearsal import rehearse
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.spatial import transform
from bricksim_msgs import msg
from bricksim_ros import conversions, parameters
from bricksim_ros.bricksim_services import BricksimServices
from bricksim_ros.engine_options import ENGINE_OPTIONS, engine_options
from bricksim_ros.publishing import LATCHED, Publishing
from bricksim_ros.robots import robot_spec
from bricksim_ros.running import run_node
from bricksim_ros.scene import Scene, StructureEntry, read_scene, resolve_uri
from bricksim_ros.server import Server
from bricksim_ros.simulation_interfaces_server import SimulationInterfacesServer
from bricksim_ros.world import RunState, World

RCLError = rclpy_implementation.RCLError

_SPACING = 0.1
"""Gap [m] between structures that are put side by side."""
_MAX_BACKLOG = 0.25
"""Wall time [s] that the simulation may be late before it gives up catching up."""
_IDLE = 0.05
"""Wall time [s] to wait for callbacks while nothing is simulated."""


_IDLE_CLOCK = 0.5
"""Wall time [s] between clocks while nothing is simulated."""


class SimulationEndedError(Exception):
    """The node ends: whoever waits for a step must let go."""


class SimulatorNode(LifecycleNode):
    """Runs a `Simulator` and offers it to ROS.

    One thread steps the simulation and serves every callback in between, so that nothing is ever
    changed in the middle of a step.
    """

    def __init__(self) -> None:
        super().__init__("simulator")
        parameters.declare(self)
        self.world: World | None = None
        self._publishing: Publishing | None = None
        self._servers: list[Server] = []
        self.exit_code = 0
        self._active = False
        self._due = 0.0
        self._last_clock = 0.0
        self._handles: list = []
        self._statistics = _Statistics()
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._apply_parameters)

    # -- lifecycle ----------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Builds the simulator, puts the scene into it, opens topics and services."""
        try:
            self._configure()
        except BrickSimError as error:
            self.get_logger().error(str(error))
            self._clean_up()
            return TransitionCallbackReturn.FAILURE
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Starts stepping."""
        self._active = True
        self._statistics.restart()
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stops stepping; the world stays as it is."""
        self._active = False
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Closes the simulator and takes topics and services away."""
        self._clean_up()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Closes the simulator."""
        self._clean_up()
        return super().on_shutdown(state)

    def _LifecycleNodeMixin__on_change_state(self, request: Any, response: Any) -> Any:
        """Serves ChangeState: a transition that is not possible now is refused.

        rclpy lets the error of its state machine end the node, and has no other place to step in.
        """
        try:
            return LifecycleNode._LifecycleNodeMixin__on_change_state(  # type: ignore[attr-defined]
                self, request, response
            )
        except RCLError:
            wanted = request.transition.label or request.transition.id
            self.get_logger().error(f"transition {wanted} is not possible in the present state")
            response.success = False
            return response

    def _configure(self) -> None:
        config = SimulatorConfig(
            model=self._value("model"),
            seed=self._value("seed"),
            assembly=parameters.thresholds(self, "assembly"),
            breakage=parameters.thresholds(self, "breakage"),
        )
        names = (*(option.name for option in ENGINE_OPTIONS), "publish_clock")
        chosen = {name: self._value(name) for name in names}
        options, ignored = engine_options(self._value("engine"), chosen)
        for line in ignored:
            self.get_logger().warning(line)
        engine = create_engine(
            self._value("engine"),
            timestep=config.timestep,
            gravity=config.gravity,
            ground=config.ground,
            **options,
        )
        simulator = Simulator(engine, config)
        world = World(simulator, self._after_step)
        self.world = world
        scene = self._scene()
        for entry in scene.structures:
            structure = read_structure(entry.file, baseplate=entry.baseplate)
            pose = entry.world_T_structure
            if entry.height is not None:
                pose = standing(structure, pose[:3, :3], entry.height)
                pose[:2, 3] += entry.world_T_structure[:2, 3]
            world.spawn(entry.name, structure, pose, hold=entry.fixed, initial=True)
        for spec in self.robot_specs(scene):
            world.add_robot(spec)
        self.furnish(world)
        world.state = RunState.PAUSED if self._value("start_paused") else RunState.PLAYING
        self._publishing = Publishing(self, world)
        for number, text in enumerate(self.robot_descriptions(world)):
            topic = "robot_description" if number == 0 else f"robot_description_{number}"
            publisher = self.create_publisher(String, topic, LATCHED)
            publisher.publish(String(data=text))
            self._handles.append(publisher)
        self._handles.append(
            self.create_subscription(
                JointState, self._value("joint_commands_topic"), self._take_commands, 10
            )
        )
        self._handles.append(
            self.create_subscription(WrenchStamped, "bricksim/apply_wrench", self._take_wrench, 100)
        )
        self._servers = self.make_servers(world)
        self.publish_now()

    def robot_specs(self, scene: Scene) -> list[RobotSpec]:
        """Robots to add; nodes that know a robot better than its description tells replace it."""
        return [robot_spec(entry) for entry in scene.robots]

    def robot_descriptions(self, world: World) -> list[str]:
        """URDF texts to publish."""
        return [spec.urdf.read_text(encoding="utf-8") for spec in world.robots.values()]

    def furnish(self, world: World) -> None:
        """Puts more into a new world; nodes with a scene of their own do."""

    def command_joints(self, robot: str, targets: dict[str, float]) -> None:
        """Carries out a joint command (position targets [rad, m] by joint name).

        Raises:
            BrickSimError: It cannot be carried out now.
        """
        assert self.world is not None
        self.world.simulator.engine.set_joint_targets(robot, targets)

    def make_servers(self, world: World) -> list[Server]:
        """Services and actions of the node; nodes with more to offer extend the list."""
        return [SimulationInterfacesServer(self, world), BricksimServices(self, world)]

    def _clean_up(self) -> None:
        self._active = False
        for server in self._servers:
            server.destroy()
        self._servers = []
        for handle in self._handles:
            if handle in list(self.publishers):
                self.destroy_publisher(handle)
            else:
                self.destroy_subscription(handle)
        self._handles = []
        if self._publishing is not None:
            self._publishing.destroy()
            self._publishing = None
        if self.world is not None:
            self.world.simulator.engine.close()
            self.world = None

    def _scene(self) -> Scene:
        path = self._value("scene")
        scene = read_scene(resolve_uri(path)) if path else Scene()
        entries = list(scene.structures)
        edge, middle = self.row_start()
        for text in filter(None, self._value("structures")):
            file = resolve_uri(text)
            low, high = extent(read_structure(file), np.eye(4))
            place = (edge - low[0], middle - 0.5 * (low + high)[1], -low[2])
            entries.append(StructureEntry(file, "", transform(place)))
            edge += high[0] - low[0] + _SPACING
        return Scene(tuple(entries), scene.robots)

    def row_start(self) -> tuple[float, float]:
        """x, y [m] where the row of the parameter ``structures`` begins; it runs along +x."""
        return 0.0, 0.0

    def _value(self, name: str) -> Any:
        return parameters.value(self, name)

    # -- running ------------------------------------------------------------------------------

    def run(self) -> None:
        """Steps, serves and works on jobs until the context ends or the simulation quits."""
        self._due = time.perf_counter()
        while not self._ended():
            job = next((j for s in self._servers if (j := s.take_job()) is not None), None)
            try:
                if job is not None:
                    job(self.advance)
                else:
                    self._step_or_serve()
            except SimulationEndedError:
                # A job that was cut off by a cleanup of the node: the node itself goes on.
                continue
            except EngineError as error:
                self._halt(error)

    def _halt(self, error: EngineError) -> None:
        """Pauses after a step that the engine could not make; the state is that before it."""
        self.get_logger().error(
            f"{error}: paused; what causes it has to be moved, deleted or reset before it can go on"
        )
        self._statistics.engine_error = str(error)
        if self.world is not None:
            self.world.state = RunState.PAUSED

    def _ended(self) -> bool:
        if not self.context.ok():
            return True
        world = self.world
        return world is not None and (world.state == RunState.QUITTING or self._over(world))

    def advance(self) -> StepResult:
        """Serves callbacks until the next step is done, at the wanted pace: for jobs.

        Raises:
            SimulationEndedError: The node shuts down, the simulation quits or was closed.
        """
        world = self.world
        while (result := self._step_or_serve()) is None:
            if self.world is not world:
                raise SimulationEndedError
        return result

    def serve_waiting(self) -> None:
        """Serves callbacks that wait, without a step: for jobs that wait for something else.

        Raises:
            SimulationEndedError: As `advance`.
        """
        if self._ended() or self.world is None:
            raise SimulationEndedError
        self._serve(0.0)

    def until_playing(self) -> None:
        """Serves callbacks until the simulation goes, without a step: for jobs whose beginning
        nobody may miss who lets it go.

        Raises:
            SimulationEndedError: As `advance`.
        """
        world = self.world
        while self._is_held(world):
            self._step_or_serve()
            if self.world is not world:
                raise SimulationEndedError

    def until_step(self) -> float:
        """Wall time [s] until the next step is due."""
        return max(0.0, self._due - time.perf_counter())

    def _step_or_serve(self) -> StepResult | None:
        """One step if it is due, else callbacks until then."""
        world = self.world
        if self._ended():
            raise SimulationEndedError
        if world is None or self._is_held(world):
            if self._publishing is not None:
                self._publishing.publish_topology()
            self._serve(_IDLE)
            self._report(world)
            self._repeat_clock()
            self._due = time.perf_counter()
            return None
        factor = self._value("real_time_factor")
        now = time.perf_counter()
        if factor > 0.0 and now < self._due:
            self._serve(self._due - now)
            return None
        result = world.step()
        for server in self._servers:
            server.after_step()
        self._report(world)
        if factor > 0.0:
            self._pace(now, 1.0 / (world.simulator.config.frame_rate * factor))
        else:
            self._due = now
        # Else callbacks are served while the next step is waited for.
        if time.perf_counter() >= self._due:
            self._serve(0.0)
        return result

    def _repeat_clock(self) -> None:
        now = time.perf_counter()
        if self._publishing is not None and now - self._last_clock > _IDLE_CLOCK:
            self._last_clock = now
            self._publishing.publish_clock()

    def _pace(self, start: float, period: float) -> None:
        """Sets when the next step is due; a long delay is not caught up with."""
        self._due = max(self._due + period, start - _MAX_BACKLOG)
        if time.perf_counter() > self._due:
            self._statistics.overruns += 1

    def _serve(self, timeout: float) -> None:
        assert self.executor is not None
        try:
            self.executor.spin_once(timeout_sec=timeout)
        except ExternalShutdownException:
            raise SimulationEndedError from None

    def _is_held(self, world: World | None) -> bool:
        """Whether there is no step to make now."""
        if world is None or not self._active:
            return True
        return world.state != RunState.PLAYING and not any(s.wants_step() for s in self._servers)

    def _over(self, world: World) -> bool:
        return 0.0 < self._value("duration") <= world.time + 1e-9

    def publish_now(self) -> None:
        """Publishes the present state after a change, unless the next step is about to do it."""
        world = self.world
        if world is None or self._publishing is None:
            return
        if not (self._active and world.state == RunState.PLAYING):
            result = world.simulator.result()
            self._publishing.publish_step(result, self._statistics.message(result))
            self._publishing.publish_topology()

    def _after_step(self, result: StepResult) -> None:
        self._statistics.count(result)
        for note in result.solver_notes:
            self.get_logger().warning(
                f"component {note.component}: solver {note.status}: {note.message}",
                throttle_duration_sec=1.0,
            )
        if self._publishing is not None:
            self._publishing.publish_step(result, self._statistics.message(result))

    def _report(self, world: World | None) -> None:
        if world is None or not self._statistics.report_due():
            return
        status = DiagnosticStatus(name=f"{self.get_fully_qualified_name()}: simulation")
        status.hardware_id = self._value("engine")
        numbers = self._statistics
        status.level, status.message = numbers.health(world.state, self._value("real_time_factor"))
        values = {
            "run_state": world.state.name.lower(),
            "real_time_factor": f"{numbers.real_time_factor:.3f}",
            "step_time_ms": f"{1e3 * numbers.step_time:.3f}",
            "overruns": numbers.overruns,
            "solver_fallbacks": numbers.fallbacks,
            "solver_failures": numbers.failures,
            "overloaded_but_held": " ".join(map(str, numbers.bypassed_since_report())),
            "parts": len(world.simulator.graph),
            "connections": len(world.simulator.graph.connections),
        }
        status.values = [KeyValue(key=k, value=str(v)) for k, v in values.items()]
        array = DiagnosticArray(status=[status])
        array.header.stamp = conversions.time_message(world.time)
        self._diagnostics.publish(array)

    # -- callbacks ----------------------------------------------------------------------------

    def _take_commands(self, command: JointState) -> None:
        if self.world is None:
            return
        if len(command.position) != len(command.name):
            self.get_logger().error(
                f"joint command names {len(command.name)} joints and gives"
                f" {len(command.position)} positions: ignored",
                throttle_duration_sec=1.0,
            )
            return
        targets = dict(zip(command.name, command.position, strict=True))
        engine = self.world.simulator.engine
        known: set[str] = set()
        for robot in self.world.robots:
            own = {n: t for n, t in targets.items() if n in engine.joint_state(robot).names}
            known |= set(own)
            try:
                if own:
                    self.command_joints(robot, own)
            except BrickSimError as error:
                self.get_logger().error(str(error), throttle_duration_sec=1.0)
        if unknown := sorted(set(targets) - known):
            self.get_logger().error(
                f"joint command: no robot has joints {', '.join(unknown)}",
                throttle_duration_sec=1.0,
            )

    def _take_wrench(self, message: WrenchStamped) -> None:
        """Applies a wrench at a brick's COM for the next step, axes of the brick's frame."""
        if self.world is None:
            return
        frame = message.header.frame_id.removeprefix(self._value("frame_prefix"))
        force, torque = message.wrench.force, message.wrench.torque
        wrench = np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])
        try:
            (part_id,) = self.world.parts_of(frame)
            rotation = self.world.simulator.part_pose(part_id)[:3, :3]
            turned = np.concatenate([rotation @ wrench[:3], rotation @ wrench[3:]])
            self.world.simulator.apply_wrench(part_id, turned)
        except (BrickSimError, ValueError) as error:
            self.get_logger().error(
                f"wrench on {message.header.frame_id!r}: {error}", throttle_duration_sec=1.0
            )

    def _check_parameters(self, changes: Sequence[Parameter]) -> SetParametersResult:
        if self.world is None:
            return SetParametersResult(successful=True)
        try:
            for group in {parameters.threshold_group(p.name) for p in changes} - {None}:
                parameters.thresholds(self, str(group), changes)
        except (BrickSimError, TypeError, ValueError) as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _apply_parameters(self, changes: Sequence[Parameter]) -> None:
        if self.world is None:
            return
        for group in {parameters.threshold_group(p.name) for p in changes} - {None}:
            self.world.simulator.set_thresholds(
                **{str(group): parameters.thresholds(self, str(group))}
            )
        if self._publishing is not None:
            self._publishing.states_rate.hertz = self._value("states_rate")
            self._publishing.utilization_rate.hertz = self._value("utilization_rate")
            self._publishing.tf_rate.hertz = self._value("tf_rate")
            self._publishing.topology_rate.hertz = self._value("topology_rate")


class _Statistics:
    """Counts what the simulation costs and how its solvers do."""

    def __init__(self) -> None:
        self.overruns = 0
        self.fallbacks = 0
        self.failures = 0
        self._bypassed: set[int] = set()
        self.engine_error = ""
        self.step_time = 0.0
        self.real_time_factor = 0.0
        self._window: deque[tuple[float, float]] = deque()
        self._last_report = 0.0

    def restart(self) -> None:
        """Forgets the measuring window: the simulation stood still."""
        self._window.clear()

    def count(self, result: StepResult) -> None:
        self.step_time = result.timings.total
        self.engine_error = ""
        self.fallbacks += sum(note.status == "fallback" for note in result.solver_notes)
        self.failures += sum(note.status == "failed" for note in result.solver_notes)
        self._bypassed.update(result.bypassed.tolist())
        now = time.perf_counter()
        self._window.append((now, result.time))
        while now - self._window[0][0] > 1.0:
            self._window.popleft()
        wall = now - self._window[0][0]
        if wall > 0.0:
            self.real_time_factor = max(0.0, result.time - self._window[0][1]) / wall

    def report_due(self) -> bool:
        now = time.perf_counter()
        if now - self._last_report < 1.0:
            return False
        self._last_report = now
        return True

    def bypassed_since_report(self) -> list[int]:
        """Connections, ascending, that were overloaded but held by others since this was asked."""
        bypassed, self._bypassed = sorted(self._bypassed), set()
        return bypassed

    def health(self, state: RunState, wanted_factor: float) -> tuple[bytes, str]:
        if self.engine_error:
            return DiagnosticStatus.ERROR, self.engine_error
        if self.failures:
            return DiagnosticStatus.ERROR, f"{self.failures} solves failed"
        slow = 0.0 < self.real_time_factor < 0.9 * wanted_factor
        if state == RunState.PLAYING and slow:
            return DiagnosticStatus.WARN, f"real-time factor {self.real_time_factor:.2f}"
        if self.fallbacks:
            return DiagnosticStatus.WARN, f"{self.fallbacks} solves needed the robust solver"
        return DiagnosticStatus.OK, "running" if state == RunState.PLAYING else state.name.lower()

    def message(self, result: StepResult) -> msg.StepStatistics:
        timings = result.timings
        return msg.StepStatistics(
            step=result.step,
            parts=len(result.part_ids),
            components=len(set(result.component_of.tolist())),
            connections=len(result.connection_ids),
            engine_time=timings.engine,
            assembly_time=timings.assembly,
            mechanics_time=timings.mechanics,
            topology_time=timings.topology,
            total_time=timings.total,
            real_time_factor=self.real_time_factor,
            overruns=self.overruns,
            solver_fallbacks=self.fallbacks,
            solver_failures=self.failures,
            solver_notes=[
                f"component {n.component}: {n.status}: {n.message}" for n in result.solver_notes
            ],
        )


def main(args: list[str] | None = None) -> int:
    """Entry point of ``ros2 run bricksim_ros simulator``; exit code 2 if it cannot start."""
    rehearse()  # before interrupts wait for what goes on: it can take minutes, once
    return run_node(SimulatorNode, run_simulator, args)


def run_simulator(node: SimulatorNode, _executor: SingleThreadedExecutor) -> int:
    """Configures and activates the node if it shall, and runs it."""
    if parameters.value(node, "autostart"):
        if node.trigger_configure() != TransitionCallbackReturn.SUCCESS:
            return 2
        node.trigger_activate()
    node.run()
    return node.exit_code


if __name__ == "__main__":
    sys.exit(main())
