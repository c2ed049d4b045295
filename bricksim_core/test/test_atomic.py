# SPDX-License-Identifier: Apache-2.0
"""Files appear whole or not at all."""

from __future__ import annotations

import os

import pytest

from bricksim_core.atomic import replacing


def test_content_appears_at_the_end_with_ordinary_permissions(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    umask = os.umask(0o027)
    try:
        with replacing(target) as temporary:
            temporary.write_text("new")
            assert temporary.parent == tmp_path and temporary.suffix == ".txt"
            assert target.read_text() == "old"
    finally:
        os.umask(umask)
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [target]


def test_failure_leaves_everything_as_it_was(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), replacing(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(OSError), replacing(tmp_path / "no" / "a.txt"):
        pass


def test_devices_and_links_are_written_through(tmp_path):
    link, target = tmp_path / "link.txt", tmp_path / "a.txt"
    link.symlink_to(target)
    with replacing(link) as temporary:
        temporary.write_text("linked")
    assert link.is_symlink() and target.read_text() == "linked"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with replacing(pipe) as temporary:
            temporary.write_text("piped")
        assert os.read(reader, 100) == b"piped"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
