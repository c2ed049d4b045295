# SPDX-License-Identifier: Apache-2.0
"""Arms on PhysX as users start them: a whole episode over ROS, with errors of places and a bag."""

from __future__ import annotations

import importlib.util
import json

import pytest

if importlib.util.find_spec("ovphysx") is None:
    pytest.skip("extra [ovphysx] is not installed", allow_module_level=True)

from launched import finished, launch, left

from bricksim_core.episodes.messages import structure_from_topology
from bricksim_core.episodes.reader import read_episode, verify


def test_one_of_two_arms_builds_on_ovphysx(ros_domain_id, tmp_path) -> None:
    bricks = tmp_path / "one.txt"
    bricks.write_text("2x4 (4,4,0)\n")
    process = launch(
        "bricksim_moveit_demo",
        "assemble.launch.py",
        "engine:=ovphysx",
        "arms:=2",
        f"structure:={bricks}",
        f"out:={tmp_path}",
        "film:=false",
    )
    output = finished(process, 240.0)
    assert process.returncode == 0, output
    assert "Traceback" not in output, output
    assert left(process) == []
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["engine"] == "ovphysx"
    assert summary["success"] and summary["inserted"] == summary["total"] == 1
    episode = read_episode(tmp_path / "bag")
    assert verify(episode) == []
    built = structure_from_topology(episode.topologies[-1][1]).graph
    assert len(built) == 2 and len(built.component_ids) == 1
