# SPDX-License-Identifier: Apache-2.0
"""Presses one structure onto another with a growing force until they connect.

It ends a simulated second later; exit code 1 if they did not connect.

ros2 launch bricksim_ros demo_press.launch.py lower:=plate.json upper:=brick.json force:=5.0
"""

from launch import LaunchContext, LaunchDescription

from bricksim_ros import launching


def _nodes(context: LaunchContext) -> list:
    presser = launching.program(
        "press_demo",
        name="press_demo",
        namespace=launching.value(context, "namespace"),
        parameters=[
            {
                "use_sim_time": True,
                "lower": launching.value(context, "lower"),
                "upper": launching.value(context, "upper"),
                "offset": [launching.whole_number(context, f"offset_{a}") for a in "xy"],
                "yaw": launching.whole_number(context, "yaw"),
                "force": launching.number(context, "force"),
            }
        ],
    )
    return [
        *launching.simulation(context, {}),
        presser,
        launching.ends_with(presser),
    ]


def generate_launch_description() -> LaunchDescription:
    """Entry point of launch."""
    arguments = {
        "lower": ("", "Structure file that stays below; empty: a 4x4 plate"),
        "upper": ("", "Structure file that is pressed on; empty: a 2x4 brick"),
        "offset_x": ("0", "Offset of the upper part's interface frame along x [studs]"),
        "offset_y": ("0", "Offset of the upper part's interface frame along y [studs]"),
        "yaw": ("0", "Yaw of the upper part [quarter turns]"),
        "force": ("5.0", "Greatest force [N]"),
    }
    return launching.description(arguments, _nodes)
