# SPDX-License-Identifier: Apache-2.0
"""Scene files: read as written, refused with file, entry, value and expectation."""

from pathlib import Path

import numpy as np
import pytest

from bricksim_ros.scene import SceneError, read_scene, resolve_uri


def _scene(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scene.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_entries_are_read(tmp_path: Path) -> None:
    scene = read_scene(
        _scene(
            tmp_path,
            """
structures:
  - file: tower.json
  - {file: /abs/base.txt, name: base, position: [0.1, 0.2, 0.3], rpy_deg: [0, 0, 90], fixed: true}
robots:
  - {name: arm, description: arm.urdf, joint_positions: {joint1: 0.5}}
""",
        )
    )
    tower, base = scene.structures
    assert (tower.file, tower.name, tower.fixed) == (tmp_path / "tower.json", "tower", None)
    assert np.array_equal(tower.world_T_structure, np.eye(4))
    assert (base.file, base.fixed) == (Path("/abs/base.txt"), True)
    # A quarter turn about z carries x to y.
    assert np.allclose(base.world_T_structure[:3, :3] @ [1, 0, 0], [0, 1, 0])
    assert np.allclose(base.world_T_structure[:3, 3], [0.1, 0.2, 0.3])
    assert scene.robots[0].joint_positions == {"joint1": 0.5}


@pytest.mark.parametrize(
    ("file", "name"),
    [("zwei türme.txt", "zwei_t_rme"), ("-x.json", "_x"), ("tower-2_b.txt", "tower-2_b")],
)
def test_entities_are_named_after_files_whatever_they_are_called(tmp_path, file, name) -> None:
    (entry,) = read_scene(_scene(tmp_path, f"structures: [{{file: '{file}'}}]")).structures
    assert (entry.file, entry.name) == (tmp_path / file, name)


@pytest.mark.parametrize(
    ("text", "where", "value"),
    [
        ("structures: 3", "structures", "3"),
        ("structures: [{file: a, position: [0, 0]}]", "structures[0].position", "[0, 0]"),
        ("structures: [{file: a, position: [0, 0, .nan]}]", "structures[0].position[2]", "nan"),
        ("structures: [{file: a, rpy_deg: [0, 0, x]}]", "structures[0].rpy_deg[2]", "'x'"),
        ("structures: [{name: a}]", "structures[0].file", "None"),
        ("structures: [{file: a, hight: 1}]", "structures[0].hight", "1"),
        ("structures: [{file: a, fixed: 1}]", "structures[0].fixed", "1"),
        ("structures: [{file: a, baseplate: 3}]", "structures[0].baseplate", "3"),
        ("structures: [{file: a}, {file: b/a}]", "name", "'a'"),
        ("robots: [{name: r, description: d, joint_positions: [1]}]", "joint_positions", "[1]"),
        ("robots: [{name: r, description: d, drives: {j: [1, 2]}}]", "drives.j", "[1, 2]"),
        ("extra: 1", "scene.extra", "1"),
        ("[1, 2]", "scene", "[1, 2]"),
    ],
)
def test_wrong_entries_are_named(tmp_path: Path, text: str, where: str, value: str) -> None:
    path = _scene(tmp_path, text)
    with pytest.raises(SceneError) as error:
        read_scene(path)
    assert str(path) in str(error.value)
    assert where in str(error.value)
    assert value in str(error.value)


@pytest.mark.parametrize("text", ["a: [", "\x00"])
def test_text_that_is_no_yaml(tmp_path: Path, text: str) -> None:
    with pytest.raises(SceneError):
        read_scene(_scene(tmp_path, text))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match="nowhere"):
        read_scene(tmp_path / "nowhere.yaml")


def test_addresses() -> None:
    assert resolve_uri("file:///a%20b/t%C3%BCr.json") == Path("/a b/tür.json")
    assert resolve_uri("/a%20b.json") == Path("/a%20b.json")
    with pytest.raises(SceneError, match="no such home folder"):
        resolve_uri("~nobody_of_this_name/tower.json")
    assert resolve_uri("file:///a/b.txt") == Path("/a/b.txt")
    assert resolve_uri("b.txt", Path("/a")) == Path("/a/b.txt")
    assert resolve_uri("package://bricksim_ros/package.xml").is_file()
    with pytest.raises(SceneError, match="not installed"):
        resolve_uri("package://no_such_package_here/x")
    with pytest.raises(SceneError, match="https"):
        resolve_uri("https://example.org/x")


def test_numbers_may_have_exponents(tmp_path):
    text = "structures: [{file: a.txt, position: [1e-3, -2E2, 3.5e+1], height: 1e-1}]"
    (entry,) = read_scene(_scene(tmp_path, text)).structures
    assert entry.world_T_structure[:3, 3].tolist() == [1e-3, -200.0, 35.0]
    assert entry.height == 0.1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("structures: [{file: a.txt}]\nstructures: []", "key 'structures' is given twice"),
        ("structures: [{file: a.txt, file: b.txt}]", "key 'file' is given twice"),
        ("\tstructures: []", "cannot start any token"),
        ("[" * 5000, "nested too deeply"),
        ("structures: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
    ],
)
def test_what_is_no_yaml_or_says_two_things_is_refused_in_one_line(tmp_path, text, told):
    with pytest.raises(SceneError, match=told) as caught:
        read_scene(_scene(tmp_path, text))
    assert "\n" not in str(caught.value)
