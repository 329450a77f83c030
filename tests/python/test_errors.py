"""One exception class per kind of failure, each with its code, its words and its place."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import packtrain as pt
import pytest

CLASSES = {
    "not_found": pt.NotFoundError,
    "invalid": pt.InvalidError,
    "corrupt": pt.CorruptError,
    "no_room": pt.NoRoomError,
    "io": pt.StorageError,
    "unsupported": pt.UnsupportedError,
    "stopped": pt.StoppedError,
}


@pytest.mark.parametrize("code", CLASSES)
def test_every_class_tells_code_message_and_place(code: str) -> None:
    error = CLASSES[code]("what is wrong", "a.tar @ 512")
    assert isinstance(error, pt.Error)
    assert (error.code, error.message, error.where) == (code, "what is wrong", "a.tar @ 512")
    assert str(error) == "a.tar @ 512: what is wrong"
    assert str(CLASSES[code]("alone")) == "alone"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (again.message, again.where) == (error.message, error.where)


def test_they_are_what_python_code_expects() -> None:
    assert issubclass(pt.NotFoundError, KeyError)
    assert issubclass(pt.InvalidError, ValueError)
    assert issubclass(pt.NoRoomError, OSError)
    assert issubclass(pt.StorageError, OSError)
    assert not issubclass(pt.CorruptError, OSError)


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(pt.NotFoundError, match="missing"):
        pt.Dataset(tmp_path / "missing")
    with pytest.raises(pt.NotFoundError):
        pt.verify(tmp_path / "missing")
    with pytest.raises(pt.NotFoundError):
        pt.pack(tmp_path / "missing", tmp_path / "out")


def test_wrong_usage(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(pt.InvalidError, match="shuffled, stratified, source"):
        pt.pack(photos, tmp_path / "out", order="random")
    with pytest.raises(pt.InvalidError):
        pt.pack(photos, tmp_path / "out", shard_size="many")
    with pytest.raises(pt.InvalidError):
        pt.pack([], tmp_path / "out")
    with pytest.raises(TypeError):
        pt.pack(photos, tmp_path / "out", shard=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        pt.pack(3, tmp_path / "out")  # type: ignore[arg-type]
    with pytest.raises(pt.InvalidError, match="photos, audio, text, fields"):
        pt.synth(tmp_path / "out", kind="video")
    assert not (tmp_path / "out").exists()


def test_what_this_build_cannot_do(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(pt.UnsupportedError):
        pt.pack(photos, tmp_path / "out", format="betamax")


def test_damage_names_the_file(copy: Path) -> None:
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace("train", "drain"))
    with pytest.raises(pt.CorruptError, match=r"manifest\.json"):
        pt.Dataset(copy)


@pytest.mark.skipif(os.geteuid() != 0, reason="a small filesystem can be mounted by root only")
def test_no_room(photos: Path, small_filesystem: Path) -> None:
    with pytest.raises(pt.NoRoomError):
        pt.pack(photos, small_filesystem / "out")
    assert not (small_filesystem / "out").exists()


def test_a_failed_pack_says_which_files_were_bad(tmp_path: Path) -> None:
    listing = tmp_path / "list.csv"
    (tmp_path / "there.txt").write_text("x")
    listing.write_text("path,label\nthere.txt,0\ngone.txt,1\n")
    with pytest.raises(pt.CorruptError) as caught:
        pt.pack(listing, tmp_path / "out", sync=False)
    assert [Path(bad.path).name for bad in caught.value.report.bad] == ["gone.txt"]
    assert not (tmp_path / "out").exists()
