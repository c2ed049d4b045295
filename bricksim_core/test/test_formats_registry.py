# SPDX-License-Identifier: Apache-2.0
"""Detection by content, files that are none, and files that appear whole or not at all."""

import io
import os
import sys
from pathlib import Path

import pytest

from bricksim_core.errors import FormatError
from bricksim_core.formats import (
    Format,
    detect_format,
    format_structure,
    parse_structure,
    read_structure,
    write_structure,
)
from bricksim_core.formats.source import MAX_BYTES
from bricksim_core.parts import BrickShape

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("brickgpt", Format.TEXT),
        ("bricksim", Format.TOPOLOGY),
        ("ldraw", Format.LDRAW),
    ],
)
def test_detection_of_files(folder, expected):
    for path in (DATA / folder).iterdir():
        assert detect_format(path.read_text()) == expected, path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('  {"schema": 1}', Format.TOPOLOGY),
        ('{"parts": []}', Format.TOPOLOGY),
        ('\ufeff{"1": {}}', Format.STABLELEGO),
        ("{}", Format.STABLELEGO),
        ("\n\n 2x4 (0,0,0)", Format.TEXT),
        ("\ufeff2 x 4 (0,0,0)", Format.TEXT),
        ("-1x4 (0,0,0)", Format.TEXT),
        ("2.5X4", Format.TEXT),
        ("0 title", Format.LDRAW),
        ("0", Format.LDRAW),
        ("\r\n1 4 0 0 0", Format.LDRAW),
    ],
)
def test_detection(text, expected):
    assert detect_format(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (" \n\t\r\n", "is empty"),
        ("\ufeff", "is empty"),
        ("hello", "cannot tell the format: it starts with 'hello'"),
        ("x" * 10**6, "cannot tell the format: it starts with 'xxx"),
        ("12345", "cannot tell the format"),
        ("[1, 2]", r"top level is \[1, 2\], expected an object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"schema": "bri', "line 1 column 12: not JSON: Unterminated string"),
        ('{"schema": 1,\n"parts": [', r"line 2 column 11: not JSON: .*the file ends there"),
        ('{"schema": 1, "schema": 1}', "key 'schema' appears twice"),
        ('{"1": {"x": 1, "x": 2}}', "key 'x' appears twice"),
        ('{"1": {"x": NaN}}', "line 1 column 13: NaN is not JSON"),
        ('{"1": {"NaN \\" NaN": 2,\n "x": -Infinity}}', "line 2 column 7: -Infinity is not JSON"),
        ('{"1": {"x": ' + "9" * 5000 + "}}", "Exceeds the limit"),
    ],
)
def test_texts_that_are_no_structure(text, message):
    with pytest.raises(FormatError, match=message) as error:
        parse_structure(text, name="some file")
    assert str(error.value).startswith("some file: ")
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("text", "format", "message"),
    [
        ("2x4 (0,0,0)", "topology", "is text by its content, expected topology"),
        ("2x4 (0,0,0)", "stablelego", "is text by its content"),
        ("0 title", "text", "line 1 is '0 title'"),
        ("2x4 (0,0,0)", "ldraw", "line 1 starts with '2x4'"),
        ("2x4 (0,0,0)", "obj", "format is 'obj', expected one of topology, text, stablelego"),
        ('{"1": {}}', "topology", "schema is missing"),
    ],
)
def test_given_format(text, format, message):
    with pytest.raises(FormatError, match=message):
        parse_structure(text, format=format)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"2x4 (0,0,0)\n2x4 (0,0,\xff)", "line 2: byte 0xff at offset 21 is not UTF-8"),
        ("2x4 (0,0,0)".encode("utf-16"), "byte 0xff at offset 0 is not UTF-8"),
        (b"\0\0\0\0", "cannot tell the format"),
        (bytes(range(256)) * 10, "byte 0x80"),
        (b"0\0\xff", "byte 0xff"),
        (b"", "is empty"),
    ],
)
def test_bytes_that_are_no_text(tmp_path, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=message) as error:
        read_structure(path)
    assert str(path) in str(error.value)


def test_paths_that_are_no_file(tmp_path):
    for path, message in (
        (tmp_path, "is a directory"),
        (tmp_path / "missing.json", "no such file"),
        ("a\0b", "cannot be read"),
        (tmp_path / "x" / "y", "no such file"),
    ):
        with pytest.raises(FormatError, match=message):
            read_structure(path)


def test_large_files_are_not_read(tmp_path):
    path = tmp_path / "large.json"
    with open(path, "wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(FormatError, match="larger than 64 MiB"):
        read_structure(path)


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"2x4 (0,0,0)\n")))
    structure = read_structure("-", baseplate=None)
    assert structure.name == "structure" and len(structure.graph) == 1


def test_standard_output(capsys):
    write_structure(parse_structure("2x4 (0,0,0)\n"), "-", format="text")
    assert capsys.readouterr().out == "2x4 (0,0,0)\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.json", Format.TOPOLOGY),
        ("a.TXT", Format.TEXT),
        ("a.ldr", Format.LDRAW),
        ("a.mpd", Format.LDRAW),
    ],
)
def test_format_by_name(tmp_path, name, expected):
    write_structure(parse_structure("2x4 (0,0,0)"), tmp_path / name)
    assert detect_format((tmp_path / name).read_text()) == expected
    assert os.listdir(tmp_path) == [name]


def test_formats_that_are_not_written(tmp_path):
    structure = parse_structure("2x4 (0,0,0)")
    with pytest.raises(FormatError, match="the name does not tell the format"):
        write_structure(structure, tmp_path / "a.obj")
    with pytest.raises(FormatError, match="read only"):
        format_structure(structure, "stablelego")
    assert os.listdir(tmp_path) == []


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("2x2 (0,0,0)\n")
    structure = parse_structure("2x4 (0,0,0)")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(FormatError, match="No space left"):
        write_structure(structure, path)
    assert os.listdir(tmp_path) == ["a.txt"] and path.read_text() == "2x2 (0,0,0)\n"


def test_what_cannot_be_expressed_writes_nothing(tmp_path):
    structure = parse_structure("2x4 (0,0,0)", baseplate=None)
    structure.graph.add_part(BrickShape(1, 1, 1))
    structure.component_poses[1] = structure.component_poses[0]
    with pytest.raises(FormatError):
        write_structure(structure, tmp_path / "a.txt")
    assert os.listdir(tmp_path) == []


def test_writing_to_places_that_do_not_exist(tmp_path):
    structure = parse_structure("2x4 (0,0,0)")
    for path in (tmp_path / "x" / "a.txt", tmp_path / "dir.txt"):
        (tmp_path / "dir.txt").mkdir(exist_ok=True)
        with pytest.raises(FormatError, match="cannot be written"):
            write_structure(structure, path)
    assert os.listdir(tmp_path) == ["dir.txt"]


def test_new_files_have_usual_permissions(tmp_path):
    path, plain = tmp_path / "a.txt", tmp_path / "plain"
    write_structure(parse_structure("2x4 (0,0,0)"), path)
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode
