"""Samples back to files: shared names, foreign folders, targets that cannot be."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import packtrain as pt
import pytest
from helpers import Command, read_tree, write_tree


def test_a_file_that_a_list_names_twice_is_extracted_once(command: Command, tmp_path: Path) -> None:
    files = {"a.txt": b"a", "b.txt": b"b"}
    write_tree(tmp_path / "source", files)
    (tmp_path / "source" / "list.csv").write_text("path,label\na.txt,0\na.txt,1\nb.txt,0\n")
    assert pt.pack(tmp_path / "source" / "list.csv", tmp_path / "out", sync=False).samples == 3
    ran = command("extract", tmp_path / "out", tmp_path / "back", "--json")
    assert ran.code == 0, ran.error
    assert {name: ran.json()[name] for name in ("samples", "files", "bytes", "shared")} == {
        "samples": 3,
        "files": 2,
        "bytes": 2,
        "shared": 1,
    }
    assert read_tree(tmp_path / "back") == files


def shards_with_one_key(tmp_path: Path) -> Path:
    """A dataset of two shards that each had another a.txt."""
    for number in (1, 2):
        write_tree(tmp_path / f"part{number}", {"a.txt": b"%d" % number, f"b{number}.txt": b"b"})
        with tarfile.open(tmp_path / f"{number}.tar", "w") as shard:
            for path in sorted((tmp_path / f"part{number}").iterdir()):
                shard.add(path, arcname=path.name)
    pt.pack(tmp_path / "[12].tar", tmp_path / "out", sync=False)
    return tmp_path / "out"


def test_different_files_of_one_name_are_told_apart(command: Command, tmp_path: Path) -> None:
    packed = shards_with_one_key(tmp_path)
    keys = sorted(key for key in pt.Dataset(packed).keys if key.startswith("a"))
    refused = command("extract", packed, tmp_path / "back")
    assert refused.code == 2
    for word in (*keys, "'a.txt'", "--by-key", "--keys"):
        assert word in refused.last_line
    assert not (tmp_path / "back").exists()

    assert command("extract", packed, tmp_path / "one", "--keys", keys[1]).code == 0
    assert list(read_tree(tmp_path / "one")) == ["a.txt"]
    assert command("extract", packed, tmp_path / "back", "--by-key").code == 0
    back = read_tree(tmp_path / "back")
    assert sorted(back[f"{key}.txt"] for key in keys) == [b"1", b"2"]
    assert len(back) == 4


def test_damaged_samples_can_be_left_out(copy: Path, tmp_path: Path) -> None:
    whole = pt.extract(copy, tmp_path / "whole")
    shard = min(copy.glob("*.tar"))
    with tarfile.open(shard) as archive:
        damaged = next(member for member in archive if member.name.endswith(".jpg"))
    with shard.open("r+b") as file:
        file.seek(damaged.offset_data + 5)
        file.write(b"other")
    with pytest.raises(pt.CorruptError, match="skip_bad=N"):
        pt.extract(copy, tmp_path / "back")
    report = pt.extract(copy, tmp_path / "back", skip_bad=1)
    assert report.samples == whole.samples - 1
    assert [bad.path for bad in report.bad] == [damaged.name.removesuffix(".jpg")]


def test_the_dataset_itself_is_no_target(command: Command, copy: Path, tmp_path: Path) -> None:
    before = read_tree(copy)
    (tmp_path / "link").symlink_to(copy)
    for target in (copy, copy / "back", copy / "deep" / "back", tmp_path / "link" / "back"):
        ran = command("extract", copy, target, "--overwrite")
        assert ran.code == 2, target
        assert "dataset itself" in ran.last_line
    assert read_tree(copy) == before
    assert command("extract", copy, tmp_path / "copy.pt-back").code == 0


def test_a_foreign_part_is_left_alone(command: Command, packed: Path, tmp_path: Path) -> None:
    part = tmp_path / "back.extract-part"
    for content in ({"mine.txt": b"mine"}, {"files/mine.txt": b"mine"}):
        write_tree(part, content)
        ran = command("extract", packed, tmp_path / "back")
        assert ran.code == 2
        assert "back.extract-part" in ran.last_line
        assert read_tree(part) == content
        assert not (tmp_path / "back").exists()
        subprocess.run(["rm", "-r", part], check=True)


def test_what_a_killed_extract_left_is_removed(command: Command, photos: Path, tmp_path: Path) -> None:
    pt.pack(photos, tmp_path / "out", sync=False)
    part = tmp_path / "back.extract-part"
    running = command.start("extract", tmp_path / "out", tmp_path / "back", "--jobs", "1")
    while not part.exists() and running.poll() is None:
        pass
    running.kill()
    running.communicate(timeout=60)
    if not (tmp_path / "back").exists():
        write_tree(part, {"packtrain-extract": b"", "files/old.jpg": b"old"})
        assert command("extract", tmp_path / "out", tmp_path / "back").code == 0
    assert not part.exists()
    assert read_tree(tmp_path / "back") == read_tree(photos)


@pytest.mark.skipif(os.geteuid() != 0, reason="a filesystem can be mounted by root only")
def test_a_read_only_target_is_a_failing_storage_also_if_it_is_small(
    command: Command, packed: Path, small_filesystem: Path
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_filesystem)], check=True)
    ran = command("extract", packed, small_filesystem / "back")
    assert ran.code == 5
    assert "read-only" in ran.last_line


@pytest.mark.parametrize("option", ["--keys", "--fields", "--split", "--class"])
def test_an_empty_choice_is_refused(command: Command, packed: Path, tmp_path: Path, option: str) -> None:
    ran = command("extract", packed, tmp_path / "back", option, "")
    assert ran.code == 2
    assert option in ran.last_line
    assert not (tmp_path / "back").exists()


def test_a_missing_shard_is_named_and_the_rest_can_be_had(
    command: Command, photos: Path, copy: Path, tmp_path: Path
) -> None:
    data = pt.Dataset(copy)
    lost = sorted(copy.glob("train-*.tar"))[-1]
    with tarfile.open(lost) as archive:
        in_it = {name.rpartition(".")[0] for name in archive.getnames() if name.endswith(".jpg")}
    lost.unlink()
    for call in (
        ["extract", copy, tmp_path / "back"],
        ["cat", copy, min(in_it), "jpg"],
        ["extract", copy, tmp_path / "back", "--skip-bad", str(len(in_it) - 1)],
    ):
        ran = command(*call)
        assert ran.code == 1, ran.error
        assert lost.name in ran.last_line
        assert "is missing; restore it" in ran.last_line
    assert not (tmp_path / "back").exists()
    assert "--skip-bad" in command("extract", copy, tmp_path / "back").last_line
    with pytest.raises(pt.CorruptError, match="is missing"):
        data.read([data.keys.index(key) for key in in_it])

    found = command("verify", copy)
    assert found.code == 1
    assert f"{lost.name} @ 0: the shard is missing" in found.out
    assert f"{len(in_it)} of {len(data)} samples damaged; restore" in found.last_line

    rest = command("extract", copy, tmp_path / "back", "--skip-bad", str(len(in_it)), "--json")
    assert rest.code == 0, rest.error
    assert {bad["key"] for bad in rest.json()["bad"]} == in_it
    whole = read_tree(photos)
    back = read_tree(tmp_path / "back")
    assert len(back) == len(whole) - len(in_it)
    assert all(whole[name] == content for name, content in back.items())


def test_an_index_whose_container_was_moved_says_what_to_do(command: Command, tmp_path: Path) -> None:
    write_tree(tmp_path / "in", {"a.txt": b"a"})
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "in" / "a.txt", arcname="a.txt")
    pt.index(tmp_path / "a.tar", out=tmp_path / "a.pt")
    (tmp_path / "a.tar").rename(tmp_path / "b.tar")
    ran = command("cat", tmp_path / "a.pt", "a", "txt")
    assert ran.code == 1
    assert "a.tar" in ran.last_line
    assert "packtrain index again" in ran.last_line


def test_long_names_come_back_and_those_that_no_file_can_have_are_refused_with_a_way_out(
    command: Command, tmp_path: Path
) -> None:
    long_path = "/".join(["b", "y" * 150, "z" * 196 + ".txt"])  # 300 and more bytes, in parts that fit
    write_tree(tmp_path / "tree", {long_path: b"long", "c/1.txt": b"short", "a" * 251 + "/x.txt": b"folder"})
    pt.pack(tmp_path / "tree", tmp_path / "tree.pt", sync=False)
    assert command("extract", tmp_path / "tree.pt", tmp_path / "back").code == 0
    assert read_tree(tmp_path / "back") == read_tree(tmp_path / "tree")

    impossible = "a/" + "x" * 300 + ".txt"  # a tar may hold it, a filesystem not
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(tmp_path / "tree" / "c" / "1.txt", arcname="c/1.txt")
        archive.add(tmp_path / "tree" / "c" / "1.txt", arcname=impossible)
    pt.pack(tmp_path / "a.tar", tmp_path / "a.pt", sync=False)
    assert len(pt.Dataset(tmp_path / "a.pt")) == 2
    refused = command("extract", tmp_path / "a.pt", tmp_path / "out")
    assert refused.code == 2
    for word in ("304 bytes", "255", "--by-key"):
        assert word in refused.last_line
    assert sorted(path.name for path in tmp_path.glob("out*")) == []
    assert command("extract", tmp_path / "a.pt", tmp_path / "out", "--by-key").code == 0
    assert sorted(read_tree(tmp_path / "out").values()) == [b"short", b"short"]
