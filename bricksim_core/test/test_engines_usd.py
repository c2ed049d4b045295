# SPDX-License-Identifier: Apache-2.0
"""Stages: what a USD reader finds on them, and structures there and back."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pxr", reason="extra [usd] is not installed")

from pxr import Gf, Usd, UsdGeom, UsdPhysics, UsdShade

from bricksim_core.engines.usd import names, read_stage, write_stage
from bricksim_core.engines.usd.looks import linear_color, srgb_color
from bricksim_core.errors import EngineError, FormatError
from bricksim_core.formats import parse_structure, read_structure, write_structure
from bricksim_core.parts import BrickShape
from bricksim_core.spatial import transform
from bricksim_core.topology import BrickTopologyGraph, Structure

DATA = Path(__file__).parent / "data"
FILES = [
    *(DATA / "bricksim").glob("*.json"),
    *(f for f in (DATA / "stablelego").glob("*.json") if f.stem != "lego_library"),
    # Two bricks of test_collision are in one place, which no reader takes.
    *(f for f in (DATA / "brickgpt").glob("*.txt") if f.stem != "test_collision"),
]
TEXT = "2x4 (4,4,0)\n4x2 (4,6,1)\n1x1 (4,6,2)\n2x2 (12,12,0)\n"


@pytest.fixture
def structure():
    return parse_structure(TEXT, name="stairs")


@pytest.fixture
def stage(structure, tmp_path):
    write_stage(structure, tmp_path / "stairs.usda")
    return Usd.Stage.Open(str(tmp_path / "stairs.usda"))


def _same(a: Structure, b: Structure, tolerance: float = 1e-7) -> None:
    assert a.graph.part_ids == b.graph.part_ids
    assert [a.graph.part(i) for i in a.graph.part_ids] == [
        b.graph.part(i) for i in b.graph.part_ids
    ]
    assert a.graph.connections == b.graph.connections
    assert a.fixed == b.fixed
    poses = b.part_poses()
    for part_id, pose in a.part_poses().items():
        np.testing.assert_allclose(poses[part_id], pose, atol=tolerance)


@pytest.mark.parametrize("suffix", [".usda", ".usdc", ".usd"])
def test_there_and_back(structure, tmp_path, suffix):
    write_stage(structure, tmp_path / f"stairs{suffix}")
    back = read_stage(tmp_path / f"stairs{suffix}")
    _same(structure, back)
    assert back.name == "stairs"
    assert back.skipped == []
    assert [p.name for p in tmp_path.iterdir()] == [f"stairs{suffix}"]


@pytest.mark.parametrize("file", sorted(FILES), ids=lambda file: file.stem)
def test_known_structures_there_and_back(file, tmp_path):
    structure = read_structure(file)
    write_structure(structure, tmp_path / "copy.usdc")
    back = read_structure(tmp_path / "copy.usdc", strict=True)
    _same(structure, back, tolerance=1e-12)


def test_stages_are_structure_files(structure, tmp_path):
    """What reads any structure file reads a stage, and strictly if it is told to."""
    write_structure(structure, tmp_path / "stairs.usda")
    _same(structure, read_structure(tmp_path / "stairs.usda", strict=True))
    text = (tmp_path / "stairs.usda").read_text()
    moved = re.sub(r"xformOp:translate = \((\S+), ", r"xformOp:translate = (9\1, ", text, count=1)
    assert moved != text
    (tmp_path / "moved.usda").write_text(moved)
    assert len(read_structure(tmp_path / "moved.usda").skipped) > 0
    with pytest.raises(FormatError, match=r"moved\.usda: part \d+ stands .* mm from where"):
        read_structure(tmp_path / "moved.usda", strict=True)


def test_tiles_masses_colours_and_tilted_poses_there_and_back(tmp_path):
    graph = BrickTopologyGraph()
    weight = graph.add_part(BrickShape(2, 2, mass=0.2), (1, 128, 254), part_id=-3)
    graph.add_part(BrickShape(2, 1, 1, has_studs=False), (255, 0, 17), part_id=40)
    pose = transform([0.1, -0.2, 0.3], [0.2, -0.4, 0.1, 0.7])
    poses = {c: pose @ transform([0.1 * c, 0, 0]) for c in graph.component_ids}
    structure = Structure(graph, poses, frozenset({weight}))
    write_stage(structure, tmp_path / "odd.usda")
    _same(structure, read_stage(tmp_path / "odd.usda"))


def test_the_validators_of_openusd_find_nothing_wrong(stage):
    validation = pytest.importorskip("pxr.UsdValidation")
    validators = validation.ValidationRegistry().GetOrLoadAllValidators()
    assert len(validators) > 10
    assert validation.ValidationContext(validators).Validate(stage) == []
    stage.GetPrimAtPath(names.WELDS).GetChildren()[0].CreateRelationship(
        "physics:body0"
    ).SetTargets(["/nowhere"])
    assert validation.ValidationContext(validators).Validate(stage)


def test_paths_of_bricks_are_read_back():
    for part_id in (0, 12, -3):
        for kind in (0, 1):
            assert names.part_of(names.collider(part_id, kind)) == (part_id, kind)
    assert names.part_of(names.GROUND) is None
    assert names.part_of(f"{names.ROBOTS}/arm/Body") is None
    for bad in ("7up", "", "a/b", "a b"):
        with pytest.raises(EngineError, match="robot name is"):
            names.robot(bad)


def test_units_are_metres_kilograms_and_z_up(stage):
    assert UsdGeom.GetStageMetersPerUnit(stage) == 1.0
    assert UsdPhysics.GetStageKilogramsPerUnit(stage) == 1.0
    assert UsdGeom.GetStageUpAxis(stage) == "Z"
    scene = UsdPhysics.Scene.Get(stage, names.SCENE)
    assert scene.GetGravityMagnitudeAttr().Get() == pytest.approx(9.81)


def test_bricks_are_rigid_bodies_of_their_mass_and_inertia(stage, structure):
    for part in structure.graph.parts():
        prim = stage.GetPrimAtPath(names.brick(part.id))
        assert prim.HasAPI(UsdPhysics.RigidBodyAPI)
        mass = UsdPhysics.MassAPI(prim)
        assert mass.GetMassAttr().Get() == pytest.approx(part.shape.mass)
        assert mass.GetCenterOfMassAttr().Get() == Gf.Vec3f(*part.shape.com.tolist())
        np.testing.assert_allclose(
            mass.GetDiagonalInertiaAttr().Get(), np.diag(part.shape.inertia), rtol=1e-6
        )
        kinematic = UsdPhysics.RigidBodyAPI(prim).GetKinematicEnabledAttr().Get()
        assert kinematic == (part.id in structure.fixed)
        # PhysX joints measure in unscaled frames.
        matrix = np.array(UsdGeom.Xformable(prim).GetLocalTransformation())
        np.testing.assert_allclose(matrix[:3, :3] @ matrix[:3, :3].T, np.eye(3), atol=1e-12)


def test_colliders_are_the_body_less_its_clearance_and_a_slab_for_the_studs(stage, structure):
    cache = UsdGeom.BBoxCache(Usd.TimeCode.Default(), ["guide"])
    part = structure.graph.part(1)
    for kind, low, high in ((0, 0.0, 0.0096), (1, 0.0096, 0.0113)):
        prim = stage.GetPrimAtPath(names.collider(1, kind))
        assert prim.HasAPI(UsdPhysics.CollisionAPI)
        box = cache.ComputeRelativeBound(prim, prim.GetParent()).ComputeAlignedRange()
        x, y = part.shape.length * 0.008 - 0.0002, part.shape.width * 0.008 - 0.0002
        size = [box.GetSize()[axis] for axis in range(3)]
        np.testing.assert_allclose(size, [x, y, high - low], atol=1e-7)
        np.testing.assert_allclose(box.GetMin()[2], low, atol=1e-7)


def test_every_collider_has_a_bound_physics_material_with_friction(stage):
    colliders = [p for p in stage.Traverse() if p.HasAPI(UsdPhysics.CollisionAPI)]
    assert len(colliders) == 1 + 2 * 5
    for prim in colliders:
        material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
        friction = UsdPhysics.MaterialAPI(material.GetPrim())
        assert friction.GetStaticFrictionAttr().Get() == pytest.approx(0.5)


def test_weld_frames_of_both_bricks_coincide_in_the_world(stage):
    cache = UsdGeom.XformCache()
    welds = [UsdPhysics.FixedJoint(p) for p in stage.Traverse() if p.IsA(UsdPhysics.FixedJoint)]
    assert len(welds) >= 3
    for joint in welds:
        frames = []
        for rel, pos, rot in (
            (joint.GetBody0Rel(), joint.GetLocalPos0Attr(), joint.GetLocalRot0Attr()),
            (joint.GetBody1Rel(), joint.GetLocalPos1Attr(), joint.GetLocalRot1Attr()),
        ):
            local = Gf.Matrix4d(Gf.Rotation(rot.Get()), Gf.Vec3d(pos.Get()))
            body = stage.GetPrimAtPath(rel.GetTargets()[0])
            frames.append(np.array(local * cache.GetLocalToWorldTransform(body)))
        np.testing.assert_allclose(frames[0], frames[1], atol=1e-7)


def test_connected_bricks_do_not_collide(stage, structure):
    filtered = set()
    for prim in stage.Traverse():
        if prim.HasAPI(UsdPhysics.FilteredPairsAPI):
            for target in UsdPhysics.FilteredPairsAPI(prim).GetFilteredPairsRel().GetTargets():
                filtered.add(frozenset((str(prim.GetPath()), str(target))))
    for c in structure.graph.connections.values():
        assert frozenset((names.brick(c.stud_part), names.brick(c.hole_part))) in filtered


def test_attributes_are_those_of_brick_sim(stage, structure):
    part = structure.graph.part(2)
    prim = stage.GetPrimAtPath(names.brick(2))
    assert prim.GetAttribute("lego:part_kind").Get() == "brick"
    size = (part.shape.length, part.shape.width, part.shape.height)
    assert tuple(prim.GetAttribute("lego:brick_dimensions").Get()) == size
    assert tuple(prim.GetAttribute("lego:brick_color").Get()) == part.color
    connection = next(iter(structure.graph.connections.values()))
    prim = stage.GetPrimAtPath(names.connection(connection.id))
    assert prim.GetTypeName() == "LegoConnection"
    assert tuple(prim.GetAttribute("lego:conn_offset").Get()) == connection.offset
    assert prim.GetAttribute("lego:conn_yaw").Get() == connection.yaw
    assert prim.GetAttribute("lego:conn_stud_interface").Get() == 1
    targets = prim.GetRelationship("lego:conn_hole").GetTargets()
    assert [str(t) for t in targets] == [names.brick(connection.hole_part)]


def test_looks_have_studs_and_colours_in_linear_light(stage, structure):
    prim = stage.GetPrimAtPath(f"{names.brick(1)}/Looks")
    assert prim.IsInstance()
    mesh = UsdGeom.Mesh(prim.GetPrototype().GetChild("Surface"))
    points = np.array(mesh.GetPointsAttr().Get())
    assert points[:, 2].max() == pytest.approx(0.0113, abs=2e-4)
    assert abs(points[:, 0]).max() <= 0.5 * structure.graph.part(1).shape.size[0]
    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
    shader = material.ComputeSurfaceSource()[0]
    assert shader.GetIdAttr().Get() == "UsdPreviewSurface"
    color = structure.graph.part(1).color
    np.testing.assert_allclose(
        shader.GetInput("diffuseColor").Get(), linear_color(color), atol=1e-6
    )


def test_colours_follow_the_srgb_standard():
    # IEC 61966-2-1: mid grey 188 is half the light of white; 10 lies on the linear foot.
    assert linear_color((255, 188, 0)) == pytest.approx((1.0, 0.5029, 0.0), abs=1e-4)
    assert linear_color((10, 0, 0))[0] == pytest.approx(10 / 255 / 12.92)
    for value in range(256):
        assert srgb_color(linear_color((value, value, value))) == (value,) * 3


def test_a_stage_of_another_author_is_read(tmp_path):
    (tmp_path / "other.usda").write_text(
        """#usda 1.0
(
    metersPerUnit = 0.01
    upAxis = "Z"
)
def Xform "World"
{
    def Xform "A"
    {
        token lego:part_kind = "brick"
        int[] lego:brick_dimensions = [4, 2, 3]
        color3f lego:brick_color = (1, 0, 0.5029)
        double3 xformOp:translate = (10, 20, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Xform "B"
    {
        string lego:part_kind = "brick"
        int3 lego:brick_dimensions = (2, 2, 3)
        double3 xformOp:translate = (10, 20, 0.96)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def LegoConnection "C"
    {
        rel lego:conn_stud = </World/A>
        rel lego:conn_hole = </World/B>
        int lego:conn_stud_interface = 1
        int lego:conn_hole_interface = 0
        int2 lego:conn_offset = (1, 0)
        int lego:conn_yaw = 0
    }
}
"""
    )
    structure = read_stage(tmp_path / "other.usda")
    assert structure.skipped == []
    assert [p.shape for p in structure.graph.parts()] == [BrickShape(4, 2), BrickShape(2, 2)]
    assert structure.graph.part(0).color == (255, 0, 188)
    np.testing.assert_allclose(structure.part_poses()[1][:3, 3], [0.1, 0.2, 0.0096], atol=1e-9)


BRICK = (
    '#usda 1.0\n(\n upAxis = "Z"\n)\ndef Xform "B"\n{{\n token lego:part_kind = "brick"\n{}\n}}\n'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#usda 1.0\n", "upAxis is Y, expected Z"),
        ('#usda 1.0\n(\n upAxis = "Z"\n)\n', "no prim has lego:part_kind"),
        ("hello", "bad.usda: not a USD stage$"),
        ('#usda 1.0\ndef "B"\n{\n token x = = 3\n}\n', "not a USD stage: line 4: Expected }"),
        (BRICK.format(""), "/B.lego:brick_dimensions is None, expected 3"),
        (BRICK.format(" int3 lego:brick_dimensions = (2, 0, 3)"), "/B: width is 0"),
        (BRICK.format(" double3 lego:brick_dimensions = (2, 1.5, 3)"), "expected integers"),
        (
            BRICK.format(
                " int3 lego:brick_dimensions = (2, 1, 3)\n int3 lego:brick_color = (1, 2, 300)"
            ),
            "lego:brick_color is .1, 2, 300., expected 0 to 255",
        ),
    ],
)
def test_bad_stages_are_refused_with_file_prim_and_expectation(tmp_path, text, message):
    path = tmp_path / "bad.usda"
    path.write_text(text)
    with pytest.raises(FormatError, match=message) as error:
        read_stage(path)
    assert str(path) in str(error.value)


def test_files_that_cannot_be_are_refused(structure, tmp_path):
    with pytest.raises(FormatError, match="no such file"):
        read_stage(tmp_path / "missing.usda")
    with pytest.raises(FormatError, match=r"ends with '.obj'"):
        write_stage(structure, tmp_path / "stairs.obj")
    assert not list(tmp_path.iterdir())
