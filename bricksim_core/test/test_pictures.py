# SPDX-License-Identifier: Apache-2.0
"""Pictures show what they should, where it should be. Pixels are checked against projections."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import av
import numpy as np
import pytest
from PIL import Image as PillowImage

from bricksim_core.errors import PictureError
from bricksim_core.formats import parse_structure, read_structure
from bricksim_core.parts import BrickShape
from bricksim_core.parts.mesh import brick_surface
from bricksim_core.pictures import (
    ABSENT,
    VIDEO,
    Camera,
    Marker,
    MarkerKind,
    Renderer,
    Scene,
    Solid,
    SolidKind,
    add_colorbar,
    add_markers,
    add_text,
    corner_points,
    draw_motion,
    draw_sequence,
    draw_structure,
    fit_camera,
    geom_poses,
    model_solids,
    part_utilization,
    sheet,
    strip,
    structure_scene,
    utilization_colors,
    write_png,
    write_video,
)
from bricksim_core.pictures.palette import OVERLOAD_COLOR
from bricksim_core.pictures.shading import occlusion
from bricksim_core.spatial import transform

SIZE = (240, 180)
RED, BLUE, GREEN = (200, 20, 20), (20, 20, 200), (20, 160, 40)
ABOVE = Camera((0.0, 0.0, 0.0), 0.4, math.pi / 2, math.radians(89.9), math.radians(20.0))
"""Looks straight down; x points to the right and y up in the picture."""


def shot(scene, poses, camera=ABOVE, size=SIZE, **options):
    with Renderer(scene, size, 0.08, quality=VIDEO) as renderer:
        return renderer.frame(camera, np.asarray(poses), **options)


def pixel(image, camera, point):
    height, width = image.shape[:2]
    column, row, _ = camera.project(point, (width, height))
    return image[round(row), round(column)].astype(int)


def hue(color):
    """Index of the strongest channel, -1 for greys."""
    color = np.asarray(color, dtype=int)
    return int(color.argmax()) if color.max() - color.min() > 40 else -1


# -- camera ---------------------------------------------------------------------------------


def test_projection_of_known_points():
    camera = Camera((0.0, 0.0, 0.0), 1.0, azimuth=0.0, elevation=0.0, field_of_view=math.pi / 2)
    assert camera.position == pytest.approx([-1.0, 0.0, 0.0])
    # Looking along +x from 1 m: at that distance half the height shows 1 m.
    assert camera.project([0.0, 0.0, 0.0], (200, 100)) == pytest.approx([100.0, 50.0, 1.0])
    assert camera.project([0.0, 0.5, 0.5], (200, 100)) == pytest.approx([75.0, 25.0, 1.0])
    assert camera.pixel(100) == pytest.approx(0.02)


@pytest.mark.parametrize("azimuth", [None, 0.3, 2.0, 5.0])
@pytest.mark.parametrize("size", [(640, 480), (300, 700)])
def test_fitted_camera_sees_all_and_is_not_farther_than_needed(azimuth, size):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(60, 3)) * [0.05, 0.02, 0.1]
    margins = (0.05, 0.2, 0.1, 0.03)
    camera = fit_camera(points, size, azimuth=azimuth, margins=margins)
    column, row, depth = np.moveaxis(camera.project(points, size), -1, 0)
    assert (depth > 0.0).all()
    left, right = margins[0] * size[0], (1.0 - margins[1]) * size[0]
    top, bottom = margins[2] * size[1], (1.0 - margins[3]) * size[1]
    slack = [column.min() - left, right - column.max(), row.min() - top, bottom - row.max()]
    assert min(slack) > -1e-6
    assert max(slack[0], slack[1]) < 1e-6 or max(slack[2], slack[3]) < 1e-6
    assert slack[0] == pytest.approx(slack[1], abs=0.35 * size[0])


def test_broad_side_is_shown():
    long_in_x = np.array([[0, 0, 0], [0.2, 0.02, 0.02]])
    for points in (long_in_x, long_in_x[:, [1, 0, 2]]):
        low, high = fit_camera(points, SIZE).project(points, SIZE)[:, 0]
        assert abs(high - low) > 0.6 * SIZE[0]


def test_corner_points_hold_body_and_studs():
    corners = corner_points([BrickShape(2, 1)], transform([(1.0, 0.0, 0.0)]))[0]
    assert corners.min(axis=0) == pytest.approx([0.992, -0.004, 0.0])
    assert corners.max(axis=0) == pytest.approx([1.008, 0.004, 0.0096 + 0.0017])


# -- colours --------------------------------------------------------------------------------


def test_scale_darkens_steadily_up_to_the_limit():
    luminance = utilization_colors(np.linspace(0.0, 1.0, 50)) @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(luminance) < 0.5).all()
    assert luminance[0] > 200 > 60 > luminance[-1]


@pytest.mark.parametrize(
    "confusion",
    [
        np.eye(3),
        # Machado, Oliveira and Fernandes 2009, severity 1: protanopia, deuteranopia, tritanopia.
        np.array(
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ]
        ),
        np.array(
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.011820, 0.042940, 0.968881],
            ]
        ),
        np.array(
            [
                [1.255528, -0.076749, -0.178779],
                [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900],
            ]
        ),
    ],
    ids=["normal", "protanopia", "deuteranopia", "tritanopia"],
)
def test_overload_is_told_from_every_sound_value_by_everyone(confusion):
    sound = utilization_colors(np.linspace(0.0, 1.0, 101)).astype(float)
    over = utilization_colors([1.01, 1.1, 1.2]).astype(float)
    seen_sound = (sound / 255) ** 2.2 @ confusion.T
    seen_over = (over / 255) ** 2.2 @ confusion.T
    distance = np.linalg.norm(seen_sound[:, None] - seen_over[None], axis=-1)
    assert distance.min() > 0.15


def test_unknown_is_grey_and_large_values_are_cut_off():
    colors = utilization_colors([np.nan, 1.5, 40.0, np.inf, 1.0 + 1e-9])
    assert len(set(colors[0].tolist())) == 1
    assert (colors[1] == colors[2]).all() and (colors[2] == colors[3]).all()
    assert hue(colors[4]) == 2  # within the solvers' tolerance of 1: not overloaded


def test_part_takes_the_highest_utilization_of_its_connections_and_plates_none():
    structure = parse_structure("2x2 (0,0,0)\n2x2 (0,0,1)\n2x2 (0,0,2)\n")
    by_pair = {(c.stud_part, c.hole_part): i for i, c in structure.graph.connections.items()}
    utilization = {by_pair[0, 1]: 0.9, by_pair[1, 2]: 0.2, by_pair[2, 3]: math.nan}
    values = part_utilization(structure, utilization, [0, 1, 2, 3])
    assert np.isnan(values[[0, 3]]).all()
    assert values[1:3] == pytest.approx([0.9, 0.2])


# -- rendering ------------------------------------------------------------------------------


def test_bricks_have_their_colours_where_they_are():
    shapes = (BrickShape(4, 2), BrickShape(2, 2), BrickShape(1, 1))
    places = [(-0.03, 0.01, 0.0), (0.02, -0.01, 0.0), (0.03, 0.02, 0.0)]
    scene = Scene(shapes, (RED, GREEN, BLUE))
    image = shot(scene, transform(places))
    between = (0.004, 0.0, 0.0096)  # beside the studs: on the flat top of the first two bricks
    tops = [np.add(places[0], between), np.add(places[1], (0, 0, 0.0096))]
    tops.append(np.add(places[2], (0.0, 0.0, 0.0113)))
    assert [hue(pixel(image, ABOVE, top)) for top in tops] == [0, 1, 2]
    assert hue(pixel(image, ABOVE, (0.0, 0.03, 0.0))) == -1
    # As many pixels as the bricks' outlines have, each within the other's perspective.
    red = ((image[..., 0].astype(int) - image[..., 1]) > 60) & (image[..., 2] < 120)
    expected = 0.032 * 0.016 / ABOVE.pixel(SIZE[1]) ** 2
    assert red.sum() == pytest.approx(expected, rel=0.12)


def test_poses_turn_the_meshes_about_the_part_frame():
    quarter = (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))
    scene = Scene((BrickShape(8, 1),), (RED,))
    # Upright and turned by 90 degrees: it extends along y.
    image = shot(scene, transform([(0.0, 0.0, 0.0)], [quarter]))
    assert hue(pixel(image, ABOVE, (0.0, 0.028, 0.0096))) == 0
    assert hue(pixel(image, ABOVE, (0.028, 0.0, 0.0))) == -1
    # Lying on its side (turned about x): the body reaches from y = -9.6 mm to 0.
    about_x = (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))
    image = shot(scene, transform([(0.0, 0.0, 0.004)], [about_x]))
    assert hue(pixel(image, ABOVE, (0.02, -0.006, 0.008))) == 0
    assert hue(pixel(image, ABOVE, (0.02, 0.004, 0.0))) == -1


def test_studs_are_seen():
    camera = Camera((0.0, 0.0, 0.005), 0.25, 2.2, math.radians(30.0), math.radians(20.0))
    pose = transform([(0.0, 0.0, 0.0)])
    with_studs, tile = (
        shot(Scene((BrickShape(4, 2, 3, studs),), (RED,)), pose, camera).astype(int)
        for studs in (True, False)
    )
    changed = np.abs(with_studs - tile).max(axis=-1) > 12
    rows, columns = np.nonzero(changed)
    places = camera.project([(0.012, 0.004, 0.0113), (-0.012, -0.004, 0.0113)], SIZE)
    assert changed.sum() > 100
    assert columns.min() < places[:, 0].min() + 5 and columns.max() > places[:, 0].max() - 5
    # A stud rises above the tile's outline.
    top = camera.project((-0.012, 0.004, 0.0110), SIZE)
    assert rows.min() <= top[1] + 3


def test_ground_carries_a_shadow_and_seams_are_darker():
    camera = Camera((0.0, 0.0, 0.01), 0.4, 2.2, math.radians(25.0), math.radians(20.0))
    pose = transform([(0.0, 0.0, 0.0)])
    scene = Scene((BrickShape(2, 2, 12),), (RED,))
    image = shot(scene, pose, camera).astype(int)
    empty = shot(Scene((BrickShape(1, 1, 1),), (RED,)), np.array([ABSENT]), camera).astype(int)
    grey = np.ptp(image, axis=-1) < 25
    darker = grey & (image.sum(axis=-1) < 0.85 * empty.sum(axis=-1))
    assert 200 < darker.sum() < 0.3 * darker.size


def test_colours_can_change_between_frames():
    scene, pose = Scene((BrickShape(4, 2),), (RED,)), transform([(0.0, 0.0, 0.0)])
    with Renderer(scene, SIZE, 0.05, quality=VIDEO) as renderer:
        first = renderer.frame(ABOVE, pose)
        second = renderer.frame(ABOVE, pose, colors=[BLUE])
    assert hue(pixel(first, ABOVE, (0, 0, 0.0096))) == 0
    assert hue(pixel(second, ABOVE, (0, 0, 0.0096))) == 2


def test_frames_repeat_bit_by_bit_and_renderers_do_not_disturb_each_other():
    scene, pose = Scene((BrickShape(4, 2),), (RED,)), transform([(0.0, 0.0, 0.0)])
    other = Scene((BrickShape(2, 2),), (BLUE,))
    with Renderer(scene, SIZE, 0.05, quality=VIDEO) as one:
        before = one.frame(ABOVE, pose)
        with Renderer(other, (64, 48), 0.05, quality=VIDEO) as two:
            assert hue(pixel(two.frame(ABOVE, pose), ABOVE, (0, 0, 0.0096))) == 2
        assert (one.frame(ABOVE, pose) == before).all()


def test_solids_of_every_kind_are_drawn_where_they_are():
    mesh = brick_surface(BrickShape(2, 2, 3, False))
    kinds = [
        Solid(SolidKind.BOX, (0.006, 0.006, 0.006), RED),
        Solid(SolidKind.SPHERE, (0.006,), GREEN),
        Solid(SolidKind.CYLINDER, (0.006, 0.006), BLUE),
        Solid(SolidKind.CAPSULE, (0.005, 0.006), RED),
        Solid(SolidKind.ELLIPSOID, (0.006, 0.006, 0.008), GREEN),
        Solid(SolidKind.MESH, (), BLUE, mesh),
    ]
    places = [(0.02 * (i % 3) - 0.02, 0.03 * (i // 3) - 0.015, 0.0) for i in range(6)]
    image = shot(Scene((), (), tuple(kinds)), np.zeros((0, 4, 4)), world_T_solid=transform(places))
    found = [hue(pixel(image, ABOVE, np.add(p, (0.001, 0.001, 0.005)))) for p in places]
    assert found == [0, 1, 2, 0, 1, 2]


def test_geoms_of_a_mujoco_model_become_solids():
    import mujoco

    spec = mujoco.MjSpec()
    surface = brick_surface(BrickShape(6, 1, 3, False))
    spec.add_mesh(
        name="bar",
        uservert=(surface.vertices + np.array([0.01, 0.0, 0.0])).ravel(),
        userface=surface.faces.ravel(),
        inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,
    )
    world = spec.worldbody
    world.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 1])
    world.add_geom(
        type=mujoco.mjtGeom.mjGEOM_MESH, meshname="bar", rgba=[0, 0, 0.8, 1], pos=[0, 0.02, 0]
    )
    world.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=[0.01, 0.01, 0.01],
        rgba=[0.8, 0, 0, 1],
        pos=[0, -0.02, 0],
    )
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    solids, drawn = model_solids(model, range(model.ngeom))
    assert drawn == [1, 2]
    image = shot(Scene((), (), solids), np.zeros((0, 4, 4)), world_T_solid=geom_poses(data, drawn))
    assert hue(pixel(image, ABOVE, (0.03, 0.02, 0.0096))) == 2  # only the shifted bar reaches here
    assert hue(pixel(image, ABOVE, (-0.02, 0.02, 0.0))) == -1
    assert hue(pixel(image, ABOVE, (0.0, -0.02, 0.01))) == 0


def test_occlusion_spares_planes_and_darkens_corners():
    pixel_size, height, width = 0.0005, 120, 160
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    plane = 2.0 + 0.004 * rows + 0.002 * columns  # any plane: inverse depth linear in the picture
    assert occlusion(plane, pixel_size).max() == 0.0
    # A valley along the middle column, 45 degrees deep: inverse depth falls towards it.
    valley = np.float32(1.0) / (0.5 - np.abs(columns - 80) * np.float32(pixel_size))
    shade = occlusion(valley.astype(np.float32), pixel_size)
    assert shade[60, 80] > 0.1
    assert shade[60, 40] == pytest.approx(0.0, abs=1e-3)
    # A step: what is far behind an edge is not darkened by it.
    step = np.where(columns < 80, np.float32(4.0), np.float32(2.0)).astype(np.float32)
    assert occlusion(step, pixel_size).max() < 1e-3


# -- finished pictures ----------------------------------------------------------------------


def test_overloaded_connection_appears_in_its_colour_with_a_ring():
    structure = parse_structure("4x2 (0,0,0)\n4x2 (0,0,1)\n", baseplate=None)
    (connection,) = structure.graph.connections
    scene, _, poses = structure_scene(structure)
    camera = fit_camera(corner_points(scene.shapes, poses), (320, 240))

    def reddish(u):
        image = draw_structure(
            structure, utilization={connection: u}, size=(320, 240), camera=camera, quality=VIDEO
        )
        inner = image[:, :260].astype(int)  # without the colour bar
        return ((inner[..., 0] - inner[..., 2]) > 80) & ((inner[..., 0] - inner[..., 1]) > 60)

    assert reddish(0.5).sum() == 0
    assert reddish(1.2).sum() > 3000
    plain = draw_structure(structure, size=(320, 240), camera=camera, quality=VIDEO)
    centre = Marker((0.016, 0.008, 0.0096), MarkerKind.OVERLOADED)
    ringed = add_markers(plain, camera, [centre])
    column, row, _ = camera.project(centre.point, (320, 240))
    ys, xs = np.nonzero((ringed == OVERLOAD_COLOR).all(axis=-1))
    assert xs.mean() == pytest.approx(column, abs=1.5)
    assert ys.mean() == pytest.approx(row, abs=1.5)


def test_colour_bar_holds_the_scale():
    blank = np.full((240, 320, 3), 128, dtype=np.uint8)
    image = add_colorbar(blank)
    for value in (0.25, 0.8, 1.3):
        wanted = utilization_colors(value).astype(int)
        near = np.abs(image[:, 240:].astype(int) - wanted).max(axis=-1) <= 4
        assert near.any(), value
    assert (image[:, :200] == 128).all()


def test_text_is_drawn_and_too_long_text_stays_inside():
    blank = np.full((120, 160, 3), 255, dtype=np.uint8)
    assert (add_text(blank) == blank).all()
    titled = add_text(blank, title="a title that is far too long for this small picture " * 3)
    ys, xs = np.nonzero(titled.min(axis=-1) < 128)
    assert ys.max() < 40 and 100 < xs.max() < 158
    ys, _ = np.nonzero(add_text(blank, caption="below").min(axis=-1) < 200)
    assert ys.min() > 90


def test_real_structure_fills_the_picture():
    structure = read_structure(
        os.path.join(os.path.dirname(__file__), "data", "brickgpt", "texture_guitar.txt")
    )
    image = draw_structure(structure, size=(200, 150), quality=VIDEO)
    background = image[2, 2].astype(int)
    ys, _ = np.nonzero(np.abs(image.astype(int) - background).max(axis=-1) > 40)
    assert np.ptp(ys) > 0.8 * 150
    assert ys.min() >= 3 and ys.max() <= 147


def test_motion_is_seen_from_one_place_and_absent_parts_are_not():
    scene = Scene((BrickShape(2, 2), BrickShape(2, 2)), (RED, BLUE))
    poses = np.stack([transform([(0.0, 0.0, 0.03 * k), (0.03, 0.0, 0.0)]) for k in range(3)])
    poses[0, 1] = ABSENT
    camera = Camera((0.0, 0.0, 0.02), 0.4, 2.0, math.radians(20.0), math.radians(20.0))
    frames = list(draw_motion(scene, poses, size=SIZE, camera=camera, captions=["", "", "end"]))
    blue = [((f[..., 2].astype(int) - f[..., 0]) > 60).sum() for f in frames]
    assert blue[0] == 0 and min(blue[1:]) > 50
    heights = []
    for frame in frames:
        ys, _ = np.nonzero((frame[..., 0].astype(int) - frame[..., 2]) > 60)
        heights.append(ys.mean())
    expected = [camera.project((0, 0, 0.03 * k + 0.005), SIZE)[1] for k in range(3)]
    assert np.diff(heights) == pytest.approx(np.diff(expected), abs=1.5)
    fitted = list(draw_motion(scene, poses, size=SIZE))
    for frame in fitted:  # nothing touches the border
        border = np.concatenate([frame[:2].reshape(-1, 3), frame[:, :2].reshape(-1, 3)])
        assert np.ptp(border.astype(int), axis=-1).max() < 30


def test_what_rests_is_drawn_once_and_what_creeps_is_drawn_again(monkeypatch):
    scene = Scene((BrickShape(2, 2),), (RED,))
    rest = transform((0.0, 0.0, 0.0))[None]
    creep = [rest + 1e-6 * k * np.eye(4)[0][:, None] * np.eye(4)[3] for k in range(200)]
    drawn = []
    frame = Renderer.frame
    monkeypatch.setattr(Renderer, "frame", lambda *a, **k: drawn.append(0) or frame(*a, **k))
    resting = list(draw_motion(scene, np.stack([rest] * 20), size=SIZE))
    assert len(drawn) == 1 and len(resting) == 20
    colors = np.repeat([[[255.0, 0.0, 0.0]], [[0.0, 0.0, 255.0]]], 3, axis=0)
    one, *_, other = draw_motion(scene, np.stack([rest] * 6), size=SIZE, colors=list(colors))
    assert len(drawn) == 3 and (one != other).any()
    drawn.clear()
    camera = Camera((0.0, 0.0, 0.0), 0.4, 2.0, math.radians(20.0), math.radians(20.0))
    list(draw_motion(scene, np.stack(creep), size=SIZE, camera=camera))
    way = 199 * 1e-6 / camera.pixel(SIZE[1])  # in pixels, each frame far below what is visible
    assert way / 0.05 / 2.0 <= len(drawn) - 1 <= way / 0.05


def test_sequence_shows_new_parts_in_colour_and_earlier_ones_pale():
    structure = parse_structure("2x2 (0,0,0)\n2x2 (0,0,1)\n", baseplate=None)
    structure.graph.graph.nodes[1]["part"] = type(structure.graph.part(1))(
        1, structure.graph.part(1).shape, RED
    )
    page = draw_sequence(structure, [[1], [2]], ["1", "2"], size=(120, 100))
    assert page.shape == (100, 244, 3)
    first, second = page[:, :120].astype(int), page[:, 124:].astype(int)
    strong = [((p[..., 0] - p[..., 1]) > 120).sum() for p in (first, second)]
    pale = ((second[..., 0] - second[..., 1]) > 25).sum()
    assert strong[0] > 100 and strong[1] == 0 and pale > 100


def test_strips_and_sheets_put_pictures_side_by_side():
    images = [np.full((60, 80, 3), 40 * k, dtype=np.uint8) for k in range(1, 6)]
    row = strip(images, [""] * 5, gap=4)
    assert row.shape == (60, 5 * 80 + 4 * 4, 3)
    assert [int(row[30, 84 * k + 40, 0]) for k in range(5)] == [40, 80, 120, 160, 200]
    page = sheet(images, [""] * 5, columns=2)
    assert page.shape == (3 * 60 + 2 * 4, 164, 3)
    assert int(page[150, 40, 0]) == 200 and int(page[150, 120, 0]) == 255


# -- files ----------------------------------------------------------------------------------


def test_png_is_written_whole(tmp_path):
    image = np.arange(60 * 80 * 3, dtype=np.uint32).reshape(60, 80, 3).astype(np.uint8)
    path = write_png(image, tmp_path / "a.png")
    assert (np.asarray(PillowImage.open(path)) == image).all()
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
    with pytest.raises(PictureError, match=r"missing.*cannot be written"):
        write_png(image, tmp_path / "missing" / "b.png")


def test_video_plays_with_the_right_frames(tmp_path):
    levels = [30, 90, 150, 210]
    frames = [np.full((61, 81, 3), level, dtype=np.uint8) for level in levels]
    path = write_video(iter(frames), tmp_path / "v.mp4", fps=25.0)
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert (stream.width, stream.height, float(stream.average_rate)) == (80, 60, 25.0)
        means = [frame.to_ndarray(format="rgb24").mean() for frame in file.decode(video=0)]
    assert means == pytest.approx(levels, abs=6)


def test_failed_video_leaves_nothing(tmp_path):
    def broken():
        yield np.zeros((60, 80, 3), dtype=np.uint8)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_video(broken(), tmp_path / "v.mp4", fps=25.0)
    with pytest.raises(PictureError, match="at least one frame"):
        write_video([], tmp_path / "v.mp4", fps=25.0)
    with pytest.raises(PictureError, match="cannot be written"):
        write_video([np.zeros((60, 80, 3), np.uint8)], tmp_path / "no" / "v.mp4", fps=25.0)
    assert list(tmp_path.iterdir()) == []


def test_what_draws_a_video_that_cannot_be_written_is_closed(tmp_path):
    """While the error is still being handled: at the end of the program it would be too late."""
    closed = []

    def drawn():
        try:
            while True:
                yield np.zeros((60, 80, 3), np.uint8)
        finally:
            closed.append(True)

    frames = drawn()
    with pytest.raises(PictureError, match="cannot be written"):
        write_video(frames, tmp_path / "no" / "v.mp4", fps=25.0)
    assert closed


@pytest.mark.parametrize("size", [(0, 100), (100, 5000)])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(PictureError, match="picture size"):
        Renderer(Scene((), ()), size, 0.1)
    with pytest.raises(PictureError, match="extent"):
        Renderer(Scene((), ()), (10, 10), math.nan)


@pytest.mark.parametrize(
    "environment", [{"PYOPENGL_PLATFORM": "glx"}, {"MUJOCO_EGL_DEVICE_ID": "9"}]
)
def test_without_egl_the_error_says_so_in_one_line(environment):
    code = (
        "from bricksim_core.errors import PictureError\n"
        "from bricksim_core.pictures import Renderer, Scene\n"
        "try:\n    Renderer(Scene((), ()), (8, 8), 0.1)\n"
        "except PictureError as error:\n    print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("pictures need headless OpenGL (EGL)")
    assert "libegl1" in result.stdout and result.stdout.count("\n") == 1
