# SPDX-License-Identifier: Apache-2.0
"""Headless pictures of bricks with MuJoCo's OpenGL renderer on EGL.

The renderer has a visual model of its own (one mesh per shape, no physics), so it draws the parts
of any engine. It works with a GPU or, through Mesa, without one, and needs no display. MUJOCO_GL
does not matter: the EGL context is made here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, Self

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bricksim_core.errors import NoGraphicsError, PictureError
from bricksim_core.parts import STUD_RADIUS
from bricksim_core.parts.mesh import Surface, brick_surface
from bricksim_core.pictures.camera import Camera
from bricksim_core.pictures.scene import Scene, SolidKind
from bricksim_core.pictures.shading import REACHES, occlusion
from bricksim_core.spatial import Array, transform

Image = NDArray[np.uint8]
"""(H, W, 3) sRGB, upper row first."""

MAX_SIZE = 4096
"""Greatest width and height of a picture [pixels]."""


@dataclass(frozen=True)
class Quality:
    """How much work goes into a picture.

    Attributes:
        lamps: Lamps close together that share the light; more make softer shadows.
        shadow_size: Width of each lamp's shadow map [pixels].
        samples: Samples per pixel against jagged edges (0 to 4 without a GPU).
        segments: Sides of a stud where it is large in the picture.
        occlusion: True darkens corners and seams.
    """

    lamps: int = 4
    shadow_size: int = 4096
    samples: int = 4
    segments: int = 20
    occlusion: bool = True


STILL = Quality()
"""For single pictures."""
VIDEO = Quality(lamps=1, shadow_size=2048, segments=12)
"""For many frames."""

_GROUND_COLOR = (0.97, 0.975, 0.98, 1.0)
_SKY_ABOVE, _SKY_BELOW = (0.80, 0.86, 0.92), (0.93, 0.945, 0.96)
_AMBIENT, _HEADLIGHT, _KEY, _HIGHLIGHT = 0.50, 0.16, 0.48, 0.30
"""Shares of light: from everywhere, from the camera, from the lamps; and the lamps' reflection."""
_LAMP_AZIMUTH = math.radians(-75.0)
"""From the view direction to the direction of the lamps' light: over the left shoulder."""
_LAMP_ELEVATION = math.radians(54.0)
_LAMP_SPREAD = 0.05
_LAMP_DISTANCE = 3.0
"""Distance of the lamps from the camera's target, in multiples of the extent."""
_NEAR, _FAR = 0.2, 80.0
"""Clipping planes, in multiples of the extent."""
_STUD_SIDE_PIXELS = 2.5
"""A stud has as many sides as make each about this long in the picture."""


class _Context(Protocol):
    """An OpenGL context."""

    def make_current(self) -> None: ...
    def free(self) -> None: ...


class Renderer:
    """Draws one scene at many moments. Use as a context manager, or call `close`."""

    def __init__(
        self,
        scene: Scene,
        size: tuple[int, int],
        extent: float,
        *,
        ground: float | None = 0.0,
        quality: Quality = STILL,
        hollow: bool = False,
        pixel: float = 1e-4,
    ) -> None:
        """Prepares the scene.

        Args:
            scene: What can appear.
            size: Width and height [pixels].
            extent: Radius of the space in which things happen [m]; shadows reach this far.
            ground: Height of the ground [m], None for none.
            quality: How much work goes into each picture.
            hollow: True draws the open underside of bricks, for scenes in which they tumble.
            pixel: Width of a pixel at the middle of the scene [m]; small studs get fewer sides.

        Raises:
            PictureError: There is no headless OpenGL here, or a number is out of range.
        """
        if not all(1 <= side <= MAX_SIZE for side in size):
            raise PictureError(
                f"picture size is {size[0]}x{size[1]}, expected 1 to {MAX_SIZE} pixels each"
            )
        if not (math.isfinite(extent) and extent > 0.0):
            raise PictureError(f"extent of the picture is {extent} m, expected a positive number")
        self._size, self._extent, self._quality = size, extent, quality
        self._has_ground = ground is not None
        sides = 2.0 * math.pi * STUD_RADIUS / pixel / _STUD_SIDE_PIXELS
        segments = int(min(max(sides, 8), quality.segments))
        self._model = _visual_model(scene, size, extent, ground, quality, segments, hollow)
        self._items = np.arange(int(self._has_ground), self._model.ngeom)
        self._part_count = len(scene.shapes)
        self._item_T_geom = _mesh_frames(self._model, self._items)
        self._data = mujoco.MjData(self._model)
        mujoco.mj_kinematics(self._model, self._data)
        self._option = mujoco.MjvOption()
        self._camera = mujoco.MjvCamera()
        self._context = _egl_context(size)
        self._scene = mujoco.MjvScene(self._model, maxgeom=self._model.ngeom + 1)
        self._scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        self._gl = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._gl)
        self._gl.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR

    def frame(
        self,
        camera: Camera,
        world_T_part: Array,
        *,
        world_T_solid: Array | None = None,
        colors: ArrayLike | None = None,
    ) -> Image:
        """One picture.

        Args:
            camera: Where it is taken from.
            world_T_part: (N, 4, 4) poses of the parts [m].
            world_T_solid: (M, 4, 4) poses of the other solids [m]; needed if the scene has any.
            colors: (N, 3) colours of the parts from now on, 0-255; None keeps them.

        Returns:
            The picture.
        """
        poses = world_T_part if world_T_solid is None else [*world_T_part, *world_T_solid]
        world_T_geom = np.asarray(poses).reshape(-1, 4, 4) @ self._item_T_geom
        self._data.geom_xpos[self._items] = world_T_geom[:, :3, 3]
        self._data.geom_xmat[self._items] = world_T_geom[:, :3, :3].reshape(-1, 9)
        if colors is not None:
            parts = self._items[: self._part_count]
            self._model.geom_rgba[parts, :3] = np.asarray(colors) / 255.0
        self._aim(camera)
        self._context.make_current()
        mujoco.mjv_updateScene(
            self._model,
            self._data,
            self._option,
            None,
            self._camera,
            mujoco.mjtCatBit.mjCAT_ALL.value,
            self._scene,
        )
        if self._has_ground:
            # Decoration receives shadows but casts none: the ground must not speckle itself.
            self._scene.geoms[0].category = mujoco.mjtCatBit.mjCAT_DECOR.value
        width, height = self._size
        image = np.empty((height, width, 3), dtype=np.uint8)
        depth = np.empty((height, width), dtype=np.float32) if self._quality.occlusion else None
        viewport = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_render(viewport, self._scene, self._gl)
        mujoco.mjr_readPixels(image, depth, viewport, self._gl)
        if depth is not None and len(self._items):
            rows, columns = self._region(camera, world_T_geom[:, :3, 3])
            near, far = self._extent * _NEAR, self._extent * _FAR
            inverse_depth = depth[rows, columns] * np.float32(1.0 / near - 1.0 / far)
            inverse_depth += np.float32(1.0 / far)
            light = 1.0 - occlusion(inverse_depth, camera.pixel(height))
            image[rows, columns] = image[rows, columns] * light[..., None]
        return np.ascontiguousarray(image[::-1])

    @property
    def device(self) -> str:
        """What draws: a graphics card or Mesa's software renderer."""
        from OpenGL import GL

        self._context.make_current()
        name = GL.glGetString(GL.GL_RENDERER)
        return name.decode() if name else "unknown"

    def close(self) -> None:
        """Frees what OpenGL holds."""
        self._context.make_current()
        self._gl.free()
        self._context.free()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _region(self, camera: Camera, centres: Array) -> tuple[slice, slice]:
        """Rows (counted from below) and columns that contain all items and what they darken."""
        width, height = self._size
        places = camera.project(centres, self._size)
        depth = np.maximum(places[:, 2], self._extent * _NEAR)
        reach = self._model.geom_rbound[self._items] + REACHES[-1]
        pixels = reach * camera.distance / (camera.pixel(height) * depth)
        columns = places[:, 0] + pixels * np.array([[-1.0], [1.0]])
        rows = height - places[:, 1] + pixels * np.array([[-1.0], [1.0]])
        return _span(rows, height), _span(columns, width)

    def _aim(self, camera: Camera) -> None:
        """Points camera and lamps; the lamps keep their place relative to the view."""
        self._camera.lookat = np.array(camera.target)
        self._camera.distance = camera.distance
        self._camera.azimuth = math.degrees(camera.azimuth)
        self._camera.elevation = -math.degrees(camera.elevation)
        self._model.vis.global_.fovy = math.degrees(camera.field_of_view)
        azimuth = camera.azimuth + _LAMP_AZIMUTH
        middle = np.array(
            [
                math.cos(azimuth) * math.cos(_LAMP_ELEVATION),
                math.sin(azimuth) * math.cos(_LAMP_ELEVATION),
                -math.sin(_LAMP_ELEVATION),
            ]
        )
        turns = 2.0 * math.pi * np.arange(self._quality.lamps) / self._quality.lamps
        spread = _LAMP_SPREAD if self._quality.lamps > 1 else 0.0
        directions = middle + spread * np.stack(
            [np.cos(turns), np.sin(turns), np.zeros_like(turns)], axis=1
        )
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        self._data.light_xdir[:] = directions
        self._data.light_xpos[:] = camera.target - directions * (_LAMP_DISTANCE * self._extent)


def _visual_model(
    scene: Scene,
    size: tuple[int, int],
    extent: float,
    ground: float | None,
    quality: Quality,
    segments: int,
    hollow: bool,
) -> mujoco.MjModel:
    """The ground (if any), then all parts, then all solids, as geoms of the world body."""
    spec = mujoco.MjSpec()
    spec.stat.extent = extent
    spec.stat.center = [0.0, 0.0, 0.0]
    visual = spec.visual
    visual.quality.shadowsize = quality.shadow_size
    visual.quality.offsamples = quality.samples
    visual.global_.offwidth, visual.global_.offheight = size
    visual.map.znear, visual.map.zfar = _NEAR, _FAR
    visual.map.shadowclip = 1.0
    visual.headlight.ambient = [_AMBIENT] * 3
    visual.headlight.diffuse = [_HEADLIGHT] * 3
    visual.headlight.specular = [0.0] * 3
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=_SKY_ABOVE,
        rgb2=_SKY_BELOW,
        width=64,
        height=384,
    )
    spec.add_material(name="plastic", specular=0.35, shininess=0.5)
    world = spec.worldbody
    for _ in range(quality.lamps):
        world.add_light(
            type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
            ambient=[0.0] * 3,
            diffuse=[_KEY / quality.lamps] * 3,
            specular=[_HIGHLIGHT / quality.lamps] * 3,
            castshadow=True,
        )
    still = {"contype": 0, "conaffinity": 0}
    if ground is not None:
        side = 0.5 * _FAR * extent
        world.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            pos=[0.0, 0.0, ground],
            size=[side, side, 0.1],
            rgba=_GROUND_COLOR,
            **still,
        )
    look = {"material": "plastic", **still}
    names: dict[tuple[int, int, int, bool], str] = {}
    for shape, color in zip(scene.shapes, scene.colors, strict=True):
        key = (shape.length, shape.width, shape.height, shape.has_studs)
        if key not in names:
            names[key] = f"part_{len(names)}"
            _add_mesh(spec, names[key], brick_surface(shape, segments=segments, hollow=hollow))
        world.add_geom(
            type=mujoco.mjtGeom.mjGEOM_MESH, meshname=names[key], rgba=_rgba(color), **look
        )
    for number, solid in enumerate(scene.solids):
        if solid.kind is SolidKind.MESH:
            if solid.surface is None:
                raise PictureError(f"solids[{number}] is a mesh, expected its surface")
            _add_mesh(spec, f"solid_{number}", solid.surface)
            shape = {"type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": f"solid_{number}"}
        else:
            kind = getattr(mujoco.mjtGeom, f"mjGEOM_{solid.kind.name}")
            shape = {"type": kind, "size": [*solid.size, 0.0, 0.0][:3]}
        world.add_geom(rgba=_rgba(solid.color), **shape, **look)
    return spec.compile()


def _span(values: Array, length: int) -> slice:
    """Whole pixels from the least to the greatest value, within 0 to ``length``."""
    low, high = np.clip([values.min(), values.max()], 0, length)
    return slice(math.floor(low), math.ceil(high))


def _rgba(color: tuple[int, int, int]) -> list[float]:
    return [*(channel / 255.0 for channel in color), 1.0]


def _add_mesh(spec: mujoco.MjSpec, name: str, surface: Surface) -> None:
    spec.add_mesh(
        name=name,
        uservert=surface.vertices.ravel(),
        usernormal=surface.normals.ravel(),
        userface=surface.faces.ravel(),
        userfacenormal=surface.faces.ravel(),
        # The surface is not closed, so only its own inertia can be computed (nothing uses it).
        inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
    )


def _mesh_frames(model: mujoco.MjModel, geoms: NDArray[np.int64]) -> Array:
    """(K, 4, 4) item_T_geom: MuJoCo moves each mesh into the frame of its inertia."""
    frames = np.broadcast_to(np.eye(4), (len(geoms), 4, 4)).copy()
    is_mesh = model.geom_type[geoms] == int(mujoco.mjtGeom.mjGEOM_MESH)
    meshes = model.geom_dataid[geoms[is_mesh]]
    frames[is_mesh] = transform(
        model.mesh_pos[meshes], np.roll(model.mesh_quat[meshes], -1, axis=1)
    )
    return frames


def _egl_context(size: tuple[int, int]) -> _Context:
    """A current OpenGL context without a window.

    Raises:
        NoGraphicsError: EGL is missing or offers no device.
    """
    try:
        # PyOpenGL looks for its platform when it is imported, which fails in many ways.
        from mujoco.egl import GLContext

        context = GLContext(*size)
        context.make_current()
    except Exception as error:
        raise NoGraphicsError(
            "pictures need headless OpenGL (EGL), which did not start here: "
            f"{str(error).strip(' .') or type(error).__name__}; on Debian and Ubuntu: "
            "apt-get install libegl1 libgl1-mesa-dri"
        ) from error
    return context
