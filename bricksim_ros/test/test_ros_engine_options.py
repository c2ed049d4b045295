# SPDX-License-Identifier: Apache-2.0
"""Options of the engine: what reaches `create_engine`, what is ignored, what is refused."""

from __future__ import annotations

import dataclasses

import pytest
from launch import LaunchContext
from launch.actions import DeclareLaunchArgument

from bricksim_core.engines.isaacsim import IsaacOptions
from bricksim_core.errors import EngineError
from bricksim_ros import launching
from bricksim_ros.engine_options import ENGINE_OPTIONS, engine_options


def test_defaults_are_options_of_isaac_sim_and_nothing_for_the_others():
    options, ignored = engine_options("isaacsim", {})
    assert ignored == []
    assert set(options) <= {field.name for field in dataclasses.fields(IsaacOptions)}
    made = IsaacOptions(**options)
    assert (made.headless, made.ros_bridge, made.clock_topic) == (True, False, "isaac_clock")
    for engine in ("mujoco", "ovphysx"):
        assert engine_options(engine, {}) == ({}, [])


def test_options_reach_isaac_sim():
    options, ignored = engine_options(
        "isaacsim",
        {"headless": False, "window": "1600x900", "ros_bridge": True, "assets_root": "/assets"},
    )
    made = IsaacOptions(**options)
    assert ignored == []
    assert made.launch == {"window_width": 1600, "window_height": 900}
    assert (made.headless, made.ros_bridge, made.assets_root) == (False, True, "/assets")


@pytest.mark.parametrize("engine", ["mujoco", "ovphysx"])
def test_what_means_nothing_to_the_engine_is_told_in_one_line_each(engine):
    options, ignored = engine_options(engine, {"ros_bridge": True, "window": "wide"})
    assert options == {}
    assert ignored == [
        f"window is an option of isaacsim, ignored with {engine}",
        f"ros_bridge is an option of isaacsim, ignored with {engine}",
    ]


def test_what_means_nothing_without_another_option_is_told():
    _, ignored = engine_options("isaacsim", {"window": "800x600", "bridge_tf": "elsewhere"})
    assert [line.partition(" ")[0] for line in ignored] == ["window", "bridge_tf"]


@pytest.mark.parametrize(
    ("engine", "values", "text"),
    [
        ("bullet", {}, "engine is 'bullet', expected one of mujoco, ovphysx, isaacsim"),
        ("isaacsim", {"window": "wide"}, "window is 'wide', expected WIDTHxHEIGHT"),
        ("isaacsim", {"window": "0x600"}, "window is '0x600', expected WIDTHxHEIGHT"),
        ("isaacsim", {"ros_bridge": True, "bridge_tf": "a b"}, "bridge_tf is 'a b', expected"),
        ("isaacsim", {"ros_bridge": True, "bridge_clock": "/clock"}, "publish_clock:=false"),
    ],
)
def test_bad_values_are_refused_with_a_reason(engine, values, text):
    with pytest.raises(EngineError, match=text) as error:
        engine_options(engine, values)
    assert "\n" not in str(error.value)


def test_the_clock_may_be_the_bridges_if_the_simulator_leaves_it():
    values = {"ros_bridge": True, "bridge_clock": "clock", "publish_clock": False}
    assert engine_options("isaacsim", values)[0]["clock_topic"] == "clock"


def test_launch_arguments_become_parameters_of_the_same_names():
    context = LaunchContext()
    for action in launching.common_arguments(ros_bridge="true", assets_root="/assets"):
        assert isinstance(action, DeclareLaunchArgument)
        assert action.description
        action.visit(context)
    parameters = launching.engine_parameters(context)
    assert set(parameters) == {"engine", *(option.name for option in ENGINE_OPTIONS)}
    assert (parameters["ros_bridge"], parameters["assets_root"]) == (True, "/assets")
    for option in ENGINE_OPTIONS:
        assert type(parameters[option.name]) is type(option.default)
