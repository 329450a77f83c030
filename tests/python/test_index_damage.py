"""Labels and names have no checks but those of their columns: nobody hands on what does not have its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import packtrain as pt
import pytest
from helpers import Command


def damaged(packed: Path, folder: Path, file: str, column: str) -> Path:
    """A copy of a dataset with one bit of a column's first number, or text, turned over."""
    copy = folder / "copy"
    shutil.copytree(packed, copy)
    content = bytearray((copy / file).read_bytes())
    with np.load(copy / file) as columns:
        first = columns[column][:64].tobytes()
    assert content.count(first) == 1
    content[content.index(first)] ^= 1
    (copy / file).write_bytes(content)
    return copy


def test_a_wrong_label_is_never_handed_on(packed: Path, tmp_path: Path, command: Command) -> None:
    copy = damaged(packed, tmp_path, "index.npz", "label")
    data = pt.Dataset(copy)
    assert data.field(0, "jpg")
    with pytest.raises(pt.CorruptError, match=r"index\.npz: column 'label' is damaged.*packtrain verify"):
        data[0]
    with pytest.raises(pt.CorruptError, match="column 'label'"):
        _ = data.labels
    with pytest.raises(pt.CorruptError, match="column 'label'"):
        next(iter(pt.Loader(data, batch_size=4, fields=["jpg"])))
    for arguments in (
        ["pack", copy, tmp_path / "again"],
        ["extract", copy, tmp_path / "back"],
        ["info", copy],
        ["ls", "-l", copy],
        ["ls", "--class", "ant", copy],
        ["show", copy, "-o", tmp_path / "page.html"],
    ):
        done = command(*arguments)
        assert done.code == 1, arguments
        assert "column 'label' is damaged" in done.last_line
    assert not (tmp_path / "again").exists()
    assert not (tmp_path / "back").exists()


def test_a_wrong_name_is_never_handed_on(packed: Path, tmp_path: Path, command: Command) -> None:
    copy = damaged(packed, tmp_path, "names.npz", "path.bytes")
    with pytest.raises(pt.CorruptError, match=r"names\.npz: column 'path\.bytes' is damaged"):
        pt.Dataset(copy)[0]
    for arguments in (["pack", copy, tmp_path / "again"], ["extract", copy, tmp_path / "back"]):
        done = command(*arguments)
        assert done.code == 1
        assert "column 'path.bytes' is damaged" in done.last_line
    assert not (tmp_path / "back").exists()


def test_a_shard_that_is_not_there_is_no_crash(packed: Path, tmp_path: Path, command: Command) -> None:
    copy = damaged(packed, tmp_path, "index.npz", "label")
    content = bytearray((copy / "index.npz").read_bytes())
    with np.load(packed / "index.npz") as columns:
        shards = columns["shard"].tobytes()
    assert content.count(shards) == 1
    at = content.index(shards)
    content[at : at + len(shards)] = b"\xff" * len(shards)
    (copy / "index.npz").write_bytes(content)
    for arguments in (["ls", "-l", copy], ["ls", "--json", "--limit", "2", copy], ["verify", copy]):
        done = command(*arguments)
        assert done.code == 1, (arguments, done)
