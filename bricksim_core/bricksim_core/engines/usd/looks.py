# SPDX-License-Identifier: Apache-2.0
"""How bricks look: one mesh for each shape, one material for each colour."""

from __future__ import annotations

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade, Vt

from bricksim_core.engines.usd import names
from bricksim_core.parts import BrickShape, Color
from bricksim_core.parts.mesh import brick_surface
from bricksim_core.spatial import Array

ROUGHNESS = 0.15
"""Roughness of new ABS [-] (BrickSim)."""
REFRACTION = 1.53
"""Index of refraction of ABS [-]."""

FINE_STUDS = 64
"""Most studs of a part that is drawn with round studs and a hollow underside; larger ones are base
plates, whose meshes would make the file."""


def linear_color(color: Color) -> tuple[float, float, float]:
    """An sRGB colour (0-255) in linear light (0-1), as USD means colours (IEC 61966-2-1)."""
    encoded = np.array(color) / 255.0
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return tuple(linear.tolist())


def srgb_color(linear: Array | tuple[float, float, float]) -> Color:
    """The sRGB colour (0-255) of a linear one (0-1)."""
    linear = np.clip(np.asarray(linear, dtype=float), 0.0, 1.0)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    red, green, blue = np.rint(255.0 * encoded).astype(int).tolist()
    return red, green, blue


def author_looks(stage: Usd.Stage, path: str, shape: BrickShape, color: Color) -> None:
    """Gives a brick its visible surface: an instance of its shape's mesh in its colour."""
    looks = UsdGeom.Xform.Define(stage, f"{path}/Looks")
    looks.GetPrim().GetReferences().AddInternalReference(_shape(stage, shape))
    looks.GetPrim().SetInstanceable(True)
    primvar = UsdGeom.PrimvarsAPI(looks).CreatePrimvar(
        "displayColor", Sdf.ValueTypeNames.Color3fArray, UsdGeom.Tokens.constant
    )
    primvar.Set(Vt.Vec3fArray([Gf.Vec3f(*linear_color(color))]))
    UsdShade.MaterialBindingAPI.Apply(looks.GetPrim()).Bind(_material(stage, color))


def _shape(stage: Usd.Stage, shape: BrickShape) -> str:
    """Path of a shape's mesh, made where it does not exist."""
    kind = "brick" if shape.has_studs else "tile"
    path = f"{names.SHAPES}/{kind}_{shape.length}x{shape.width}x{shape.height}"
    if stage.GetPrimAtPath(path):
        return path
    stage.CreateClassPrim(names.SHAPES)
    UsdGeom.Xform.Define(stage, path)
    fine = shape.length * shape.width <= FINE_STUDS
    surface = brick_surface(shape, segments=16 if fine else 8, hollow=fine)
    mesh = UsdGeom.Mesh.Define(stage, f"{path}/Surface")
    mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(surface.vertices.astype(np.float32)))
    mesh.CreateNormalsAttr(Vt.Vec3fArray.FromNumpy(surface.normals.astype(np.float32)))
    mesh.SetNormalsInterpolation(UsdGeom.Tokens.vertex)
    counts = np.full(len(surface.faces), 3, dtype=np.int32)
    mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(counts))
    indices = surface.faces.astype(np.int32).ravel()
    mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(indices))
    mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    extent = np.stack([surface.vertices.min(axis=0), surface.vertices.max(axis=0)])
    mesh.CreateExtentAttr(Vt.Vec3fArray.FromNumpy(extent.astype(np.float32)))
    return path


def _material(stage: Usd.Stage, color: Color) -> UsdShade.Material:
    """The material of a colour, made where it does not exist."""
    path = f"{names.COLORS}/color_{color[0]:02x}{color[1]:02x}{color[2]:02x}"
    if stage.GetPrimAtPath(path):
        return UsdShade.Material.Get(stage, path)
    material = UsdShade.Material.Define(stage, path)
    shader = UsdShade.Shader.Define(stage, f"{path}/Surface")
    shader.CreateIdAttr("UsdPreviewSurface")
    diffuse = shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f)
    diffuse.Set(Gf.Vec3f(*linear_color(color)))
    shader.CreateInput("roughness", Sdf.ValueTypeNames.Float).Set(ROUGHNESS)
    shader.CreateInput("ior", Sdf.ValueTypeNames.Float).Set(REFRACTION)
    output = shader.CreateOutput("surface", Sdf.ValueTypeNames.Token)
    material.CreateSurfaceOutput().ConnectToSource(output)
    return material
