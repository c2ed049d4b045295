# SPDX-License-Identifier: Apache-2.0
"""Every error that BrickSim raises on purpose."""

from __future__ import annotations


class BrickSimError(Exception):
    """Base of all errors raised by BrickSim for bad input or an impossible request."""


class PartError(BrickSimError):
    """A part's dimensions, mass or colour are not acceptable."""


class TopologyError(BrickSimError):
    """A change of the Brick Topology Graph was refused; the graph is unchanged."""


class UnknownIdError(TopologyError):
    """A part or connection id does not exist."""


class AlreadyConnectedError(TopologyError):
    """The two interfaces are connected already."""


class NoOverlapError(TopologyError):
    """The stud and hole grids do not overlap at the given offset and yaw."""


class InconsistentTransformError(TopologyError):
    """The connection contradicts the relative pose that the graph implies already."""


class CollisionError(TopologyError):
    """Two bricks of one component would occupy the same space."""


class FormatError(BrickSimError):
    """A structure file cannot be read; the text names file, place, value and expectation."""


class StructureError(BrickSimError):
    """A structure was read but cannot stand as given (floating or disconnected parts)."""


class PoseError(BrickSimError):
    """A pose, twist or wrench is not finite or a pose is not rigid."""


class EngineError(BrickSimError):
    """The physics engine refused a request or is not available."""


class PictureError(BrickSimError):
    """A picture or video cannot be made: no headless OpenGL, or the file cannot be written."""


class NoGraphicsError(PictureError):
    """There is no headless OpenGL here: a result is complete, only its picture cannot be drawn."""


class SolverError(BrickSimError):
    """No solver could answer a mechanics problem."""
