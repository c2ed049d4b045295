# SPDX-License-Identifier: Apache-2.0
"""Drops a structure onto the ground and shows what breaks.

ros2 launch bricksim_ros demo_drop.launch.py structure:=guitar.txt height:=0.144 roll_deg:=30
"""

from pathlib import Path

from launch import LaunchContext, LaunchDescription

from bricksim_ros import launching


def _nodes(context: LaunchContext) -> list:
    entry = {
        "file": launching.value(context, "structure"),
        "height": launching.number(context, "height"),
        "rpy_deg": [launching.number(context, f"{a}_deg") for a in ("roll", "pitch", "yaw")],
        "fixed": False,
        "baseplate": "none",
    }
    if not entry["file"].startswith("package://"):
        entry["file"] = str(Path(entry["file"]).expanduser().resolve())
    scene = launching.write_scene([entry])
    return launching.simulation(context, {"scene": str(scene)})


def generate_launch_description() -> LaunchDescription:
    """Entry point of launch."""
    arguments = {
        "structure": ("package://bricksim_core/data/crane.json", "Structure file to drop"),
        "height": ("0.144", "Height of its lowest point above the ground [m]"),
        "roll_deg": ("0.0", "Roll about x [deg]"),
        "pitch_deg": ("0.0", "Pitch about y [deg]"),
        "yaw_deg": ("0.0", "Yaw about z [deg]"),
    }
    return launching.description(arguments, _nodes, duration="2.0")
