# SPDX-License-Identifier: Apache-2.0
"""Brick Topology Graph: parts, connections, components and exact poses."""

from bricksim_core.topology.graph import BrickTopologyGraph, Component, Connection
from bricksim_core.topology.grid import GridPose
from bricksim_core.topology.structure import PoseHint, Structure

__all__ = ["BrickTopologyGraph", "Component", "Connection", "GridPose", "PoseHint", "Structure"]
