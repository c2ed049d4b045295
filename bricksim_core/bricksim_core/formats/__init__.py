# SPDX-License-Identifier: Apache-2.0
"""Structure files: BrickSim topology JSON, StableText2Brick text, StableLego JSON, LDraw."""

from bricksim_core.formats.grid_builder import BaseplateOption
from bricksim_core.formats.registry import (
    Format,
    detect_format,
    format_structure,
    parse_structure,
    read_structure,
    write_structure,
)
from bricksim_core.formats.support import check_supported

__all__ = [
    "BaseplateOption",
    "Format",
    "check_supported",
    "detect_format",
    "format_structure",
    "parse_structure",
    "read_structure",
    "write_structure",
]
