# SPDX-License-Identifier: Apache-2.0
"""What of the MoveIt planner works without MoveIt: configuration, messages, its process."""

import copy
import importlib.util
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pytest
import rclpy
from arms_support import resting_scene, tool_down, yawed
from rclpy.context import Context

from bricksim_moveit_demo.description import franka, one_arm, two_arms
from bricksim_moveit_demo.errors import (
    ControllerError,
    DescriptionError,
    Outcome,
    PlanningError,
    UnreachableError,
)
from bricksim_moveit_demo.planning.embedded import EmbeddedPlanner
from bricksim_moveit_demo.planning.isolated import IsolatedPlanner
from bricksim_moveit_demo.planning.move_group import namespace_arguments
from bricksim_moveit_demo.planning.moveit import joined
from bricksim_moveit_demo.planning.moveit_configuration import (
    move_group_parameters,
    moveit_configuration,
    namespace_of,
    parameter_file,
    request_parameters,
    validate_configuration,
)
from bricksim_moveit_demo.planning.moveit_messages import (
    allowed_matrix,
    attached_object,
    collision_object,
    execution_goal,
    ik_request,
    joint_goal,
    plan_request,
    pose_goal,
    raise_for_code,
    raise_for_execution,
    raise_for_status,
    scene_changes,
    trajectory_of,
)
from bricksim_moveit_demo.planning.protocol import PlanningOptions, create_executor, create_planner
from bricksim_moveit_demo.planning.scene import Box, PlanningScene
from bricksim_moveit_demo.world import _TRACKING

ARMS = one_arm()


@pytest.mark.parametrize("arms", [one_arm(), two_arms()], ids=["one", "two"])
def test_configuration_is_complete_and_names_what_exists(arms):
    config = moveit_configuration(arms)
    validate_configuration(config, arms)
    urdf = ElementTree.fromstring(config["robot_description"])
    joints = {j.get("name") for j in urdf.findall("joint")}
    assert set(config["robot_description_planning"]["joint_limits"]) <= joints
    controllers = config["moveit_simple_controller_manager"]
    driven = [j for n in controllers["controller_names"] for j in controllers[n]["joints"]]
    assert len(driven) == len(set(driven)) == 8 * len(arms)
    assert set(driven) <= joints
    groups = ElementTree.fromstring(config["robot_description_semantic"]).findall("group")
    assert set(config["robot_description_kinematics"]) <= {g.get("name") for g in groups}
    for arm in arms:
        planners = config["ompl"][arm.group]["planner_configs"]
        assert set(planners) <= set(config["ompl"]["planner_configs"])
    assert config["use_sim_time"] is True


@pytest.mark.parametrize("arms", [one_arm(), two_arms()], ids=["one", "two"])
def test_semantic_description_fits_robot_and_controllers(arms):
    """Chains, states, end effectors and controllers name joints and links that are there."""
    config = moveit_configuration(arms)
    urdf = ElementTree.fromstring(config["robot_description"])
    srdf = ElementTree.fromstring(config["robot_description_semantic"])
    links = {link.get("name") for link in urdf.findall("link")}
    limits = {j.get("name"): j.find("limit") for j in urdf.findall("joint")}
    parents = {
        child.get("link"): (joint.get("name"), parent.get("link"))
        for joint in urdf.findall("joint")
        for child, parent in [(joint.find("child"), joint.find("parent"))]
        if child is not None and parent is not None
    }
    table = config["moveit_simple_controller_manager"]
    for arm in arms:
        chain = srdf.find(f"group[@name='{arm.group}']/chain")
        assert chain is not None and chain.get("tip_link") == arm.tool
        link, joints = chain.get("tip_link"), []
        while link != chain.get("base_link"):
            joint, link = parents[link]
            joints.append(joint)
        moving = [j for j in reversed(joints) if limits[j] is not None]
        # MoveIt takes a controller for a group only if it drives all of its joints.
        assert moving == list(arm.joints) == table[f"{arm.name}_controller"]["joints"]
    for group in srdf.findall("group"):
        names = {item.get("name") for item in group.findall("link")}
        assert names <= links
        assert {j.get("name") for j in group.findall("joint")} <= limits.keys()
    states = srdf.findall("group_state")
    assert {state.get("name") for state in states} == {"ready", "open", "close"}
    for joint in (joint for state in states for joint in state.findall("joint")):
        limit, value = limits[joint.get("name")], float(joint.get("value", "nan"))
        assert limit is not None
        assert float(limit.get("lower", "nan")) <= value <= float(limit.get("upper", "nan"))
    for effector in srdf.findall("end_effector"):
        groups = {group.get("name") for group in srdf.findall("group")}
        assert {effector.get("group"), effector.get("parent_group")} <= groups
        assert effector.get("parent_link") in links
    # Limits of planning are not beyond those of the robot.
    for name, planned in config["robot_description_planning"]["joint_limits"].items():
        limit = limits[name]
        assert limit is not None
        assert planned["max_velocity"] <= float(limit.get("velocity", "nan"))


def test_pipelines_have_what_their_planners_read():
    config = moveit_configuration(ARMS)
    names = config["planning_pipelines"]["pipeline_names"]
    for name in names:
        assert config[name]["planning_plugins"] and config[name]["request_adapters"]
        assert (
            "default_planning_response_adapters/ValidateSolution"
            in (config[name]["response_adapters"])
        )
    # OMPL gives a path without times; Pilz gives times by itself.
    timing = "default_planning_response_adapters/AddTimeOptimalParameterization"
    assert timing in config["ompl"]["response_adapters"]
    planners = {"ompl": config["ompl"]["planner_configs"], names[1]: {"PTP", "LIN", "CIRC"}}
    for name in ("free_rrt_connect", "free_ptp", "straight_lin"):
        request = request_parameters(name)
        assert request["planner_id"] in planners[request["planning_pipeline"]]
    cartesian = config["robot_description_planning"]["cartesian_limits"]
    signs = {"max_trans_vel": 1, "max_trans_acc": 1, "max_trans_dec": -1, "max_rot_vel": 1}
    assert {key: int(np.sign(value)) for key, value in cartesian.items()} == signs
    # A plan may begin from the reference, which the drives follow with a lag.
    assert config["trajectory_execution"]["allowed_start_tolerance"] >= _TRACKING


def test_limits_are_those_of_the_description():
    limits = moveit_configuration(ARMS)["robot_description_planning"]["joint_limits"]
    for i in range(1, 8):
        source = franka()["joints"][f"joint{i}"]
        assert limits[f"fr3_joint{i}"]["max_velocity"] == source["velocity"]
        assert limits[f"fr3_joint{i}"]["max_acceleration"] == source["acceleration"]


@pytest.mark.parametrize(
    "path",
    [
        ("robot_description",),
        ("use_sim_time",),
        ("planning_pipelines", "pipeline_names"),
        ("robot_description_kinematics", "fr3_arm"),
        ("robot_description_planning", "joint_limits", "fr3_joint3", "max_acceleration"),
        ("straight_lin", "plan_request_params", "planner_id"),
        ("ompl", "planning_plugins"),
        ("qos_overrides./clock.subscription.durability",),
        ("moveit_simple_controller_manager", "fr3_controller"),
    ],
)
def test_missing_parameters_are_named(path):
    config = copy.deepcopy(moveit_configuration(ARMS))
    inner = config
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    with pytest.raises(DescriptionError, match=re.escape(".".join(path))):
        validate_configuration(config, ARMS)


def test_wrong_simulation_time_flag_is_named():
    config = moveit_configuration(ARMS)
    config["use_sim_time"] = "yes"
    with pytest.raises(DescriptionError, match="use_sim_time is 'yes'"):
        validate_configuration(config, ARMS)


def test_collision_objects_carry_pose_and_size():
    message = collision_object("brick_3", "world", Box((0.032, 0.016, 0.0113), yawed(1, 2, 3, 90)))
    assert message["id"] == "brick_3"
    assert message["primitives"][0] == {"type": 1, "dimensions": [0.032, 0.016, 0.0113]}
    assert message["pose"]["position"] == {"x": 1.0, "y": 2.0, "z": 3.0}
    half = np.sqrt(0.5)
    assert message["pose"]["orientation"] == pytest.approx({"x": 0, "y": 0, "z": half, "w": half})


def test_attached_bricks_always_have_touch_links():
    message = attached_object("brick_1", ARMS[0], Box((0.03, 0.01, 0.01), np.eye(4)))
    assert message["link_name"] == "fr3_hand_tcp"
    assert set(message["touch_links"]) == {"fr3_hand", "fr3_leftfinger", "fr3_rightfinger"}


def _ids(message):
    """Objects that a difference adds and removes, in the world and in the hand."""
    world = message["world"]["collision_objects"]
    hand = [a["object"] for a in message["robot_state"]["attached_collision_objects"]]
    return tuple(
        sorted(o["id"] for o in objects if o["operation"] == operation)
        for objects in (world, hand)
        for operation in (b"\x00", b"\x01")
    )


def test_the_first_difference_carries_the_whole_scene():
    objects = {f"brick_{i}": Box((0.03, 0.01, 0.01), yawed(0.1 * i, 0.0)) for i in range(4)}
    scene = resting_scene(ARMS, objects=objects).attaching("fr3", ["brick_2"], tool_down(0, 0, 0))
    message = scene_changes(None, scene, ARMS)
    assert message["is_diff"] and message["robot_state"]["is_diff"]
    assert _ids(message) == (["brick_0", "brick_1", "brick_3"], [], ["brick_2"], [])
    state = message["robot_state"]["joint_state"]
    assert dict(zip(state["name"], state["position"], strict=True)) == dict(scene.positions)


def test_differences_lead_from_scene_to_scene():
    tool = tool_down(0, 0, 0)
    size = (0.03, 0.01, 0.01)
    objects = {f"brick_{i}": Box(size, yawed(0.1 * i, 0.0)) for i in range(4)}
    loose = resting_scene(ARMS, objects=objects)
    held = loose.attaching("fr3", ["brick_2"], tool)
    assert _ids(scene_changes(loose, loose, ARMS)) == ([], [], [], [])
    # Attached: leaves the world by itself. A brick moved, one removed.
    moved = {**held.objects, "brick_0": Box(size, yawed(0.5, 0.0))}
    moved.pop("brick_1")
    other = PlanningScene(held.positions, moved, held.attached)
    assert _ids(scene_changes(loose, other, ARMS)) == (["brick_0"], ["brick_1"], ["brick_2"], [])
    # Let go: detached, and put where it lies.
    assert _ids(scene_changes(held, loose, ARMS)) == (["brick_2"], [], [], ["brick_2"])
    # Let go and gone: what detaching leaves in the world is removed.
    gone = loose.without(["brick_2"])
    assert _ids(scene_changes(held, gone, ARMS)) == ([], ["brick_2"], [], ["brick_2"])
    # Slipped in the hand: attached anew.
    slipped = loose.attaching("fr3", ["brick_2"], tool @ yawed(0.001, 0.0))
    assert _ids(scene_changes(held, slipped, ARMS)) == ([], [], ["brick_2"], [])


def test_a_handover_lets_go_before_the_other_takes():
    arms = two_arms()
    brick = {"brick_1": Box((0.03, 0.01, 0.01), yawed(0.5, 0.0))}
    left = resting_scene(arms, objects=brick).attaching("left", ["brick_1"], tool_down(0, 0, 0))
    right = resting_scene(arms, objects=brick).attaching("right", ["brick_1"], tool_down(0, 0, 0))
    message = scene_changes(left, right, arms)
    attached = message["robot_state"]["attached_collision_objects"]
    links = [(a["link_name"], a["object"]["operation"]) for a in attached]
    assert links == [("left_fr3_hand_tcp", b"\x01"), ("right_fr3_hand_tcp", b"\x00")]
    assert set(attached[1]["touch_links"]) == set(arms[1].hand_links)
    assert message["world"]["collision_objects"] == []


def test_allowed_pairs_extend_the_matrix_that_is_there():
    matrix = allowed_matrix(
        ["fr3_link0", "fr3_link1"], [[False, True], [True, False]], [("brick_1", "fr3_link1")]
    )
    names = matrix["entry_names"]
    rows = np.array([entry["enabled"] for entry in matrix["entry_values"]])
    assert names == ["fr3_link0", "fr3_link1", "brick_1"]
    np.testing.assert_array_equal(rows, [[0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_requests_begin_where_the_scene_is():
    scene = resting_scene(ARMS)
    goal = joint_goal(ARMS[0].joints, np.zeros(7))
    for name in ("free_rrt_connect", "free_ptp", "straight_lin"):
        request = plan_request(scene, ARMS[0], goal, request_parameters(name))
        state = request["start_state"]["joint_state"]
        assert dict(zip(state["name"], state["position"], strict=True)) == dict(scene.positions)
        assert (
            request["pipeline_id"]
            in moveit_configuration(ARMS)["planning_pipelines"]["pipeline_names"]
        )
        assert 0.0 < request["max_velocity_scaling_factor"] <= 1.0
        assert request["allowed_planning_time"] > 0.0
    seed = np.arange(7.0)
    request = ik_request(scene, ARMS[0], tool_down(0.5, 0.1, 0.2), seed, 0.25)
    state = request["robot_state"]["joint_state"]
    given = dict(zip(state["name"], state["position"], strict=True))
    assert [given[joint] for joint in ARMS[0].joints] == seed.tolist()
    assert request["avoid_collisions"] is True
    assert request["timeout"] == {"sec": 0, "nanosec": 250_000_000}


def test_move_group_has_its_own_names_for_pipelines():
    parameters = move_group_parameters(ARMS)
    assert parameters["planning_pipelines"] == ["ompl", "pilz_industrial_motion_planner"]
    assert parameters["default_planning_pipeline"] == "ompl"
    assert parameters["moveit_manage_controllers"] is False


def test_simulation_time_comes_with_the_clock_s_quality_of_service():
    config = moveit_configuration(ARMS)
    given = {k.rpartition(".")[2] for k in config if k.startswith("qos_overrides./clock.")}
    assert given == {"depth", "durability", "history", "reliability"}


@pytest.mark.skipif(importlib.util.find_spec("moveit_msgs") is not None, reason="MoveIt is here")
def test_move_group_without_its_messages_is_one_clear_line():
    with pytest.raises(PlanningError, match="moveit_msgs is not installed, expected a sourced ROS"):
        create_planner("move_group", ARMS)


def test_goals_name_joints_and_tool():
    goal = joint_goal(ARMS[0].joints, np.arange(7.0))
    assert [c["position"] for c in goal["joint_constraints"]] == list(range(7))
    goal = pose_goal(ARMS[0], tool_down(0.5, 0.1, 0.2))
    assert goal["position_constraints"][0]["link_name"] == "fr3_hand_tcp"
    region = goal["position_constraints"][0]["constraint_region"]
    assert region["primitive_poses"][0]["position"] == {"x": 0.5, "y": 0.1, "z": 0.2}


def _message(count, joints=ARMS[0].joints):
    points = [
        SimpleNamespace(
            positions=[0.1 * i + j for j in range(len(joints))],
            velocities=[0.2] * len(joints),
            accelerations=[],
            time_from_start=SimpleNamespace(sec=i, nanosec=500_000_000),
        )
        for i in range(count)
    ]
    return SimpleNamespace(joint_names=list(joints), points=points)


def test_planned_trajectories_are_read_by_joint_name():
    message = _message(3, ARMS[0].joints[::-1])
    trajectory = trajectory_of(message, ARMS[0].joints)
    assert trajectory.joints == ARMS[0].joints
    np.testing.assert_allclose(trajectory.times, [0.5, 1.5, 2.5])
    np.testing.assert_allclose(trajectory.positions[1], 0.1 + np.arange(7.0)[::-1])
    np.testing.assert_allclose(trajectory.accelerations, 0.0)


def test_a_trajectory_of_one_point_is_a_rest():
    trajectory = trajectory_of(_message(1), ARMS[0].joints)
    assert len(trajectory.times) == 2
    np.testing.assert_array_equal(trajectory.positions[0], trajectory.positions[1])


def test_unusable_trajectories_are_refused():
    with pytest.raises(PlanningError, match=r"lacks joints \['fr3_joint7'\]"):
        trajectory_of(_message(2, ARMS[0].joints[:6]), ARMS[0].joints)
    with pytest.raises(PlanningError, match="0 points"):
        trajectory_of(_message(0), ARMS[0].joints)


def test_error_codes_become_named_errors():
    raise_for_code(1, "x")
    with pytest.raises(UnreachableError, match="no inverse kinematics solution"):
        raise_for_code(-31, "arm")
    with pytest.raises(PlanningError, match=r"start state in collision \(-10\)"):
        raise_for_code(-10, "arm")
    with pytest.raises(PlanningError, match="unknown error"):
        raise_for_code(-4711, "arm")


def test_results_of_executions_become_named_errors():
    raise_for_execution(SimpleNamespace(val=1), "fr3")
    with pytest.raises(ControllerError, match=r"fr3: .* ended with control failed \(-4\): stuck"):
        raise_for_execution(SimpleNamespace(val=-4, message="stuck"), "fr3")
    with pytest.raises(ControllerError, match="timed out") as info:
        raise_for_execution(SimpleNamespace(val=-6), "fr3")
    assert info.value.outcome is Outcome.CONTROLLER_FAILED
    # Somebody has told MoveIt to stop: another try is not wanted.
    with pytest.raises(ControllerError) as info:
        raise_for_execution(SimpleNamespace(val=-7), "fr3")
    assert info.value.outcome is Outcome.CANCELED
    for status, outcome in (("ABORTED", "controller_failed"), ("PREEMPTED", "canceled")):
        with pytest.raises(ControllerError, match=status.lower()) as info:
            raise_for_status(status, "fr3")
        assert info.value.outcome == outcome


def test_executed_trajectories_carry_no_stamp():
    """One in wall time under simulation time would begin in the far future, or be over."""
    planned = trajectory_of(_message(3), ARMS[0].joints)
    goal = execution_goal(planned, "fr3_controller")
    message = goal["trajectory"]["joint_trajectory"]
    assert "header" not in message and goal["controller_names"] == ["fr3_controller"]
    assert message["joint_names"] == list(ARMS[0].joints)
    last = message["points"][-1]
    assert last["time_from_start"] == {"sec": 2, "nanosec": 500_000_000}
    assert last["positions"] == planned.positions[-1].tolist()


def test_what_executes_goes_with_the_planner():
    planner = EmbeddedPlanner(ARMS, PlanningOptions())
    for name in ("auto", "controller"):
        assert create_executor(name, "embedded", planner, ARMS) is None
    with pytest.raises(PlanningError, match="execution is 'moveit', planner 'embedded'"):
        create_executor("moveit", "embedded", planner, ARMS)
    with pytest.raises(PlanningError, match="execution is 'magic', expected"):
        create_executor("magic", "embedded", planner, ARMS)


def test_a_helper_process_keeps_the_namespace_but_not_the_name():
    given = ["simulator", "--ros-args", "-r", "__node:=simulator", "-r", "__ns:=/cell"]
    assert namespace_arguments(given) == ["--ros-args", "-r", "__ns:=/cell"]
    assert namespace_arguments(given[:4]) == []


@pytest.mark.parametrize(
    ("arguments", "name"), [([], "/moveit_py"), (["-r", "__ns:=/cell"], "/cell/moveit_py")]
)
def test_moveit_finds_its_parameters_in_the_namespace_of_the_program(arguments, name, tmp_path):
    """Read by rcl, as MoveItPy's node does: a name that does not fit leaves it without any."""
    config = moveit_configuration(ARMS)
    namespace = namespace_of(["simulator", "--ros-args", *arguments])
    file = tmp_path / "moveit_py.yaml"
    file.write_text(parameter_file(config, namespace, "moveit_py"))
    context = Context()
    rclpy.init(args=["--ros-args", "--params-file", str(file)], context=context)
    try:
        node = rclpy.create_node(
            "moveit_py",
            context=context,
            namespace=namespace,
            automatically_declare_parameters_from_overrides=True,
        )
        assert node.get_fully_qualified_name() == name
        assert node.get_parameter("use_sim_time").value is True
        assert node.get_parameter("robot_description").value == config["robot_description"]
        limit = "robot_description_planning.joint_limits.fr3_joint5.max_velocity"
        assert node.get_parameter(limit).value == 5.26
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)


def test_straight_pieces_are_joined_in_time():
    piece = trajectory_of(_message(3), ARMS[0].joints)
    both = joined([piece, piece])
    assert len(both.times) == 5
    assert np.all(np.diff(both.times) > 0.0)


def _broken_planner(arms, options):
    raise ValueError("no such robot")


class _CrashingPlanner(EmbeddedPlanner):
    """Dies in the middle of a request and at its end, as native code does."""

    def plan_straight(self, *arguments, **keywords):
        os.abort()

    def close(self):
        os.abort()


def test_isolated_planner_answers_like_the_one_inside():
    scene = resting_scene(ARMS)
    isolated = IsolatedPlanner(EmbeddedPlanner, ARMS, PlanningOptions())
    try:
        direct = EmbeddedPlanner(ARMS, PlanningOptions())
        goal = tool_down(0.5, 0.1, 0.2)
        a = isolated.plan_to_pose(scene, ARMS[0], goal)
        b = direct.plan_to_pose(scene, ARMS[0], goal)
        np.testing.assert_array_equal(a.positions, b.positions)
        with pytest.raises(UnreachableError, match="no joint position"):
            isolated.plan_to_pose(scene, ARMS[0], tool_down(2.0, 0.0, 0.2))
        assert isolated.reach(scene, ARMS[0], goal)
    finally:
        isolated.close()


def test_a_planner_that_does_not_start_says_why():
    with pytest.raises(PlanningError, match="did not start: no such robot"):
        IsolatedPlanner(_broken_planner, ARMS, PlanningOptions())


def test_a_crash_of_the_planner_is_an_error_not_a_crash():
    isolated = IsolatedPlanner(_CrashingPlanner, ARMS, PlanningOptions())
    with pytest.raises(PlanningError, match="ended with code -6"):
        isolated.plan_straight(resting_scene(ARMS), ARMS[0], [tool_down(0.5, 0.1, 0.2)])
    isolated.close()


PROGRAM = """
from arms_support import resting_scene, tool_down
from test_arms_moveit import ARMS, _CrashingPlanner
from bricksim_moveit_demo.errors import PlanningError
from bricksim_moveit_demo.planning.isolated import IsolatedPlanner
from bricksim_moveit_demo.planning.protocol import PlanningOptions, create_planner

if __name__ == "__main__":
    planner = IsolatedPlanner(_CrashingPlanner, ARMS, PlanningOptions())
    try:
        planner.plan_to_pose(resting_scene(ARMS), ARMS[0], tool_down(2.0, 0.0, 0.2))
    except PlanningError:
        print("result first")
    planner.close()
"""


def test_exit_code_is_zero_after_a_failed_plan_and_a_crash_at_the_end(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "result first" in done.stdout
