# SPDX-License-Identifier: Apache-2.0
"""Options and arguments that are none of what they should be: errors that name them."""

import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bricksim_core.assembly.types import AssemblyThresholds
from bricksim_core.engines import RobotSpec, create_engine
from bricksim_core.engines.mujoco import MujocoEngine
from bricksim_core.engines.mujoco.contact import ContactParameters
from bricksim_core.engines.physx_settings import PhysxSettings
from bricksim_core.errors import BrickSimError
from bricksim_core.experiments.setup import standing
from bricksim_core.formats import parse_structure
from bricksim_core.mechanics import analyze
from bricksim_core.mechanics.detector import BreakageThresholds
from bricksim_core.mechanics.paper import PaperParameters
from bricksim_core.mechanics.qp import QpSettings
from bricksim_core.mechanics.snapfit import SnapFitConstants
from bricksim_core.parts import BrickShape
from bricksim_core.sequencing.gripper import GripperModel
from bricksim_core.simulator import Simulator, SimulatorConfig
from bricksim_core.values import as_number, as_vector, as_whole

OPTIONS = [
    SimulatorConfig,
    AssemblyThresholds,
    BreakageThresholds,
    ContactParameters,
    PhysxSettings,
    SnapFitConstants,
    PaperParameters,
    QpSettings,
    GripperModel,
]
LATER = {"model", "solver", "enhanced_determinism", "sleeping"}
"""Fields that are looked at where they are used, or whose truth alone counts."""
PAIR = "2x4 (0,0,0)\n2x4 (0,2,1)"


@pytest.mark.parametrize("bad", ["x", math.nan, -1, [1, 2, "y"], {}, 10**400, b"1"], ids=repr)
@pytest.mark.parametrize(
    ("kind", "name"),
    [(k, f.name) for k in OPTIONS for f in fields(k) if f.name not in LATER],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_options_name_the_value_that_is_none(kind, name, bad):
    if name == "ground" and bad == -1:
        return
    with pytest.raises(BrickSimError, match=rf"{name}.* is .*, expected"):
        kind(**{name: bad})


def other(value: object) -> Any:
    """A value of another type than is asked for."""
    return value


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: BrickShape(2, 2, mass=other("light")), "mass is 'light' kg, expected"),
        (lambda: AssemblyThresholds(window=math.inf), "window is inf, expected 0 to 60"),
        (lambda: MujocoEngine(gravity=other((0, 0))), "gravity is .*, expected 3 numbers"),
        (lambda: MujocoEngine(ground=math.inf), "ground is inf"),
        (lambda: BrickShape(2, 2, mass=1e-12), "mass is 1e-12 kg, expected 1e-08 to 1e\\+06 kg"),
        (lambda: MujocoEngine(timestep=25.0), "timestep is 25.0 s, expected .* at most 1 s"),
        (lambda: MujocoEngine(timestep=other(None)), "timestep is None s"),
        (lambda: create_engine("mujoco", contact="soft"), "contact is 'soft'"),
        (lambda: create_engine(other(["mujoco"])), "engine is .*, expected one of"),
        (lambda: Simulator(config=SimulatorConfig(model=other(None))), "model is None, expected"),
        (lambda: Simulator().set_thresholds(breakage=other(0.5)), "breakage is 0.5"),
        (lambda: analyze(parse_structure(PAIR), model=other(3)), "model is 3, expected"),
        (lambda: analyze(parse_structure(PAIR), loads=other("all")), "loads are 'all'"),
        (lambda: standing(parse_structure(PAIR), other("upright")), "rotation is 'upright'"),
        (lambda: standing(parse_structure(PAIR), -np.eye(3)), "rotation is"),
        (lambda: standing(parse_structure(PAIR), height=math.nan), "height is nan m"),
    ],
)
def test_arguments_are_named(call, told):
    with pytest.raises(BrickSimError, match=told):
        call()


@pytest.mark.parametrize("threshold", [f.name for f in fields(BreakageThresholds)][1:])
@pytest.mark.parametrize("great", [1e300, math.inf])
def test_thresholds_without_end_can_be_simulated_with(threshold, great):
    simulator = Simulator(config=SimulatorConfig(breakage=BreakageThresholds(**{threshold: great})))
    ids = simulator.spawn(parse_structure(PAIR, baseplate=None))
    simulator.apply_wrench(ids[1], [0, 0, 30.0, 0, 0, 0])
    for _ in range(5):
        simulator.step()


@pytest.mark.parametrize(
    "threshold",
    sorted({f.name for f in fields(AssemblyThresholds)} - {"enabled", "sustained", "window"}),
)
@pytest.mark.parametrize("great", [1e300, math.inf])
def test_bricks_can_be_pressed_with_thresholds_without_end(threshold, great):
    simulator = Simulator(config=SimulatorConfig(assembly=AssemblyThresholds(**{threshold: great})))
    lone = parse_structure("2x4 (0,0,0)", baseplate=None)
    simulator.spawn(lone, fixed=(1,))
    upper = simulator.spawn(lone, standing(lone, height=0.0115))[1]
    for _ in range(10):
        simulator.apply_wrench(upper, [0, 0, -5.0, 0, 0, 0])
        simulator.step()


def test_numbers_of_a_range():
    assert as_number(np.float32(0.5), "share", 0.0, 1.0) == 0.5
    assert as_number(math.inf, "time", 0.0, finite=False) == math.inf
    assert as_whole(np.int64(3), "count", 1, 5) == 3
    assert as_vector((1, 2), "pair", 2, 2.0).tolist() == [1.0, 2.0]
    for call, told in (
        (lambda: as_number(True, "share", 0.0, 1.0), "share is True, expected 0 to 1"),
        (lambda: as_number(0, "share", 0.0, above=True), "share is 0, expected more than 0"),
        (lambda: as_number("1", "share"), "share is '1', expected a number"),
        (lambda: as_number([1.0], "share"), r"share is \[1.0\], expected a number"),
        (lambda: as_whole(2.0, "count", 1, 5), "count is 2.0, expected a whole number of 1 to 5"),
        (lambda: as_vector((1, 3), "pair", 2, 2.0), "expected 2 numbers of at most 2"),
    ):
        with pytest.raises(BrickSimError, match=told):
            call()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"joint_positions": {"j": math.nan}}, "j of robot a is nan"),
        ({"joint_positions": {"j": "x"}}, "j of robot a is 'x'"),
        ({"drives": {"j": (1.0, 2.0)}}, "drive of j of robot a is .*, expected stiffness"),
        (
            {"drives": {"j": (math.nan, 1.0, 1.0)}},
            "drive of j of robot a is .*nan",
        ),
        ({"drives": {"j": (-1.0, 1.0, 1.0)}}, "drive of j of robot a is .*, expected stiffness"),
        ({"joint_limits": {"j": -1.0}}, "joint limit of j of robot a is -1.0, expected 0 to"),
        ({"armature": {"j": math.nan}}, "armature of j of robot a is nan, expected 0 to"),
    ],
)
def test_numbers_of_robots_are_named(changes, told):
    with pytest.raises(BrickSimError, match=told):
        RobotSpec("a", Path("a.urdf"), np.eye(4), **changes)


def test_the_force_of_a_drive_may_have_no_limit():
    RobotSpec("a", Path("a.urdf"), np.eye(4), drives={"j": (1.0, 2.0, math.inf)})
