"""One exception class per kind of failure, each with its code, its words and its place."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"shards": -1}, pt.InvalidError, "shards= is a whole number from 0 to .*, not -1"),
        ({"skip_bad": -1}, pt.InvalidError, "skip_bad= is a whole number from 0 to .*, not -1"),
        ({"jobs": -1}, pt.InvalidError, "jobs= is a whole number from 0 to .*, not -1"),
        ({"jobs": 2**32}, pt.InvalidError, "jobs= is a whole number from 0 to 4294967295, not 4294967296"),
        ({"seed": 2**64}, pt.InvalidError, "seed= is a whole number from 0 to 18446744073709551615, not"),
        ({"shard_size": -5}, pt.InvalidError, "shard_size= is a whole number or a text from 0 to .*, not -5"),
        ({"shards": 1.5}, TypeError, r"shards= is a whole number, not 1\.5"),
        ({"progress": 5}, TypeError, r"progress= is a function of one packtrain\.Progress or None, not 5"),
        ({"dry_run": "no"}, TypeError, "dry_run= is True or False, not 'no'"),
        ({"format": 5}, TypeError, "format= is a text, not 5"),
        ({"root": 5}, TypeError, "root= is a path or None, not 5"),
        ({"sidecars": "wids"}, TypeError, "sidecars= is a list of texts, not 'wids'"),
        ({"bogus": 1}, TypeError, r"pack\(\) has no argument bogus=; there are: sources, out, root, format"),
        ({"shard": 3}, TypeError, r"pack\(\) has no argument shard=; did you mean shards=\?"),
        ({"task": "0/2"}, TypeError, "task= is a whole number, not '0/2'; the task 0/2 is task=0, tasks=2"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(
    photos: Path, tmp_path: Path, options: dict[str, Any], kind: type[Exception], says: str
) -> None:
    with pytest.raises(kind, match=says) as caught:
        pt.pack(photos, tmp_path / "out", **options)
    assert len(str(caught.value)) < 400
    assert not (tmp_path / "out").exists()


def test_every_function_of_files_refuses_alike(photos: Path, tmp_path: Path) -> None:
    for call, says in (
        (lambda: pt.pack(photos), r"pack\(\) needs out"),
        (lambda: pt.pack(photos, tmp_path / "out", "webdataset"), "takes sources and out by position"),
        (lambda: pt.pack(5, tmp_path / "out"), r"sources is a path, a list of paths or {split: path}, not 5"),
        (lambda: pt.pack({1: photos}, tmp_path / "out"), "sources is a path, a list of paths or"),
        (lambda: pt.index(5), "containers is a path, a list of paths"),
        (lambda: pt.verify(5), "dataset is a path, not 5"),
        (lambda: pt.extract("a", "b", keys="c"), "keys= is a list of texts, not 'c'"),
        (lambda: pt.show("a", "b", samples="many"), "samples= is a whole number, not 'many'"),
        (lambda: pt.synth("a", classes=None), "classes= is a whole number, not None"),
    ):
        with pytest.raises(TypeError, match=says) as caught:
            call()
        assert len(str(caught.value)) < 200


def test_what_a_progress_function_raises_is_its_own(photos: Path, tmp_path: Path) -> None:
    def raising(_: pt.Progress) -> None:
        raise TypeError("of its own")

    with pytest.raises(TypeError, match=r"^of its own$"):
        pt.pack(photos, tmp_path / "out", progress=raising, sync=False)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"image": "jpeg:900"}, 'image="jpeg:QUALITY" takes a quality from 1 to 100'),
        ({"shards": 2, "shard_size": "1M"}, "choose shards= or shard_size=, not both"),
        ({"ranks": 0}, "ranks= must be at least 1"),
        ({"format": "npz", "compress": "zstd"}, 'compress="none"'),
        ({"root": "/"}, "root= is what the paths in a list are relative to|no source is a list"),
    ],
)
def test_messages_name_the_arguments_of_python(
    photos: Path, tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(pt.Error, match=says) as caught:
        pt.pack(photos, tmp_path / "out", **options)
    assert "--" not in str(caught.value)
    assert caught.value.args == (caught.value.message,)


def test_functions_that_tell_are_documented_and_can_be_sent_to_processes() -> None:
    for name in ("extract", "index", "pack", "show", "synth", "verify"):
        function = getattr(pt, name)
        assert pickle.loads(pickle.dumps(function)) is function
        assert function.__doc__.startswith(f"{name}(")
