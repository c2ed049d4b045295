# SPDX-License-Identifier: Apache-2.0
"""Pictures and videos of bricks, headless."""

from bricksim_core.pictures.annotate import (
    Marker,
    MarkerKind,
    add_colorbar,
    add_markers,
    add_text,
    sheet,
    strip,
)
from bricksim_core.pictures.camera import Camera, corner_points, fit_camera
from bricksim_core.pictures.drawing import (
    connection_markers,
    draw_motion,
    draw_sequence,
    draw_structure,
    overload_markers,
)
from bricksim_core.pictures.files import write_png, write_video
from bricksim_core.pictures.palette import utilization_colors
from bricksim_core.pictures.renderer import STILL, VIDEO, Image, Quality, Renderer
from bricksim_core.pictures.scene import (
    ABSENT,
    Scene,
    Solid,
    SolidKind,
    geom_poses,
    model_solids,
    part_utilization,
    structure_scene,
)

__all__ = [
    "ABSENT",
    "STILL",
    "VIDEO",
    "Camera",
    "Image",
    "Marker",
    "MarkerKind",
    "Quality",
    "Renderer",
    "Scene",
    "Solid",
    "SolidKind",
    "add_colorbar",
    "add_markers",
    "add_text",
    "connection_markers",
    "corner_points",
    "draw_motion",
    "draw_sequence",
    "draw_structure",
    "fit_camera",
    "geom_poses",
    "model_solids",
    "overload_markers",
    "part_utilization",
    "sheet",
    "strip",
    "structure_scene",
    "utilization_colors",
    "write_png",
    "write_video",
]
