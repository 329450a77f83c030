"""What cannot be packed is counted by samples, named with its key, and said alike in words and in JSON."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import packtrain as pt
import pytest
from helpers import Command, Ran, read_tree, small_tree, write_tree


def manifest_of(dataset: Path) -> Any:
    return json.loads((dataset / "manifest.json").read_text())


def test_names_of_another_dataset_are_refused(command: Command, tmp_path: Path) -> None:
    for name, mark in (("a", b"A"), ("b", b"B")):
        write_tree(tmp_path / name, {f"{c}/{n}.txt": mark for c in "xyz" for n in range(20)})
        pt.pack(tmp_path / name, tmp_path / f"{name}.pt", seed=ord(name), sync=False)
    shutil.copy(tmp_path / "b.pt" / "names.npz", tmp_path / "a.pt" / "names.npz")
    ran = command("extract", tmp_path / "a.pt", tmp_path / "back")
    assert ran.code == 1
    assert "names.npz" in ran.last_line
    assert "packtrain verify" in ran.last_line
    assert not (tmp_path / "back").exists()
    with pytest.raises(pt.CorruptError, match=r"names\.npz"):
        pt.Dataset(tmp_path / "a.pt").keys[0]


def test_a_dataset_without_its_shards_is_told_sample_by_sample(command: Command, tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", small_tree())
    pt.pack(tmp_path / "tree", tmp_path / "a.pt", sync=False)
    for shard in (tmp_path / "a.pt").glob("*.tar"):
        shard.unlink()
    ran = command("pack", tmp_path / "a.pt", tmp_path / "b.pt", "--json")
    assert ran.code == 1
    assert "12 samples cannot be packed" in ran.json()["error"]["message"]
    assert ran.json()["bad_samples"] == 12
    assert {bad["key"] for bad in ran.json()["bad"]} == {name.rpartition(".")[0] for name in small_tree()}
    with pytest.raises(pt.CorruptError) as raised:
        pt.pack(tmp_path / "a.pt", tmp_path / "c.pt", sync=False)
    assert raised.value.report.bad_samples == 12
    assert raised.value.report.bad[0].key in {name.rpartition(".")[0] for name in small_tree()}


def test_what_a_list_names_and_is_not_there_is_counted_in_full(command: Command, tmp_path: Path) -> None:
    write_tree(tmp_path, {f"{n}.jpg": b"x" for n in range(3)})
    rows = [f"{n}.jpg,{n % 2}" for n in range(1503)]
    (tmp_path / "list.csv").write_text("\n".join(["path,label", *rows]) + "\n")
    arguments: list[str | Path] = ["pack", tmp_path / "list.csv", tmp_path / "out"]
    refused = command(*arguments, "--skip-bad", "1499", "--json")
    assert refused.code == 1
    assert refused.json()["bad_samples"] == 1500
    assert "--skip-bad 1500" in refused.json()["error"]["message"]
    ran = command(*arguments, "--skip-bad", "1500")
    assert ran.code == 0
    assert "left out 1,500 samples" in ran.error
    assert "lists 1,000 of their files" in ran.error
    assert "500 that are not named" in ran.error
    source = manifest_of(tmp_path / "out")["source"]
    assert source["left_out_samples"] == 1500
    assert len(source["left_out"]) == 1000
    shutil.rmtree(tmp_path / "out")
    report = command(*arguments, "--skip-bad", "1500", "--json").json()
    assert (report["samples"], report["bad_samples"], len(report["bad"])) == (3, 1500, 1000)


def test_words_and_json_say_what_was_skipped_and_saved(command: Command, tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", small_tree())
    write_tree(
        tmp_path / "tree",
        {".hidden": b"", "ant/.DS_Store": b"", "bee/x.jpg~": b"", "cat/y.tmp": b"", "z.part": b""},
    )
    (tmp_path / "tree" / "ant" / "gone.jpg").symlink_to("/nowhere")
    os.mkfifo(tmp_path / "tree" / "pipe")
    arguments: list[str | Path] = ["pack", tmp_path / "tree", tmp_path / "out", "--shards", "4"]
    arguments += ["--sidecars", "wids,dali,energon"]
    before = 1 + 3 + len(small_tree())  # the folder, its folders, and what is packed

    def expect(ran: Ran, after: int) -> None:
        assert ran.code == 0, ran.error
        report = ran.json()
        assert report["skipped"] == {"hidden": 2, "temporary": 3, "other": 2}
        assert (report["inodes_before"], report["inodes_after"]) == (before, after)
        assert report["bad"] == []
        assert report["bad_samples"] == 0

    expected = 1 + 4 + 3 + 1 + 8 + 4 + 1  # folder, shards, index, names, manifest, log, idx, .nv-meta, wids
    expect(command(*arguments, "--dry-run", "--json"), expected)
    dry = command(*arguments, "--dry-run")
    assert f"inodes: {before} -> {expected}" in dry.out
    expect(command(*arguments, "--json"), expected)
    assert 1 + sum(1 for _ in (tmp_path / "out").rglob("*")) == expected
    shutil.rmtree(tmp_path / "out")
    said = command(*arguments).out
    assert f"inodes: {before} before, {expected} after" in said
    assert "skipped: 2 hidden, 3 temporary, 2 other files" in said


def test_tasks_do_not_publish_what_is_no_longer_the_source(command: Command, tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {f"{c}/{n:03}.txt": b"old" for c in "ab" for n in range(20)})

    def task(number: int) -> Ran:
        call: list[str | Path] = ["pack", tmp_path / "tree", tmp_path / "out", "--shards", "2"]
        return command(*call, "--task", f"{number}/2")

    assert task(0).code == 0
    shard = (tmp_path / "out.part" / "train-000000.tar").read_bytes()
    packed_first = shard[: shard.index(b".cls")].decode()
    (tmp_path / "tree" / f"{packed_first}.txt").write_bytes(b"new")
    (tmp_path / "tree" / "a" / "added.txt").write_bytes(b"new")
    refused = task(1)
    assert refused.code == 1
    assert "has changed" in refused.error
    assert "a/added.txt is new" in refused.error
    assert f"remove {tmp_path / 'out.part'}" in refused.last_line
    assert not (tmp_path / "out").exists()
    shutil.rmtree(tmp_path / "out.part")
    assert task(0).code == 0
    assert task(1).code == 0
    found = task(0)
    assert found.code == 0
    assert "was there already" in found.out
    assert "packed 41" not in found.out
    (tmp_path / "tree" / "a" / "later.txt").write_bytes(b"new")
    changed = task(0)
    assert changed.code == 2
    assert "has changed" in changed.last_line


def test_the_same_command_once_more_finds_its_work_done(command: Command, tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {f"{c}/{n:03}.txt": b"old" for c in "ab" for n in range(20)})
    call: list[str | Path] = ["pack", tmp_path / "tree", tmp_path / "out", "--shards", "2"]
    assert command(*call).code == 0
    before = read_tree(tmp_path / "out")
    again = command(*call)
    assert again.code == 0, again.error
    assert "was there already, packed with these options: 40 samples in 2 shards" in again.out
    assert "nothing was left to do" in again.out
    told = command(*call, "--json")
    assert told.code == 0
    assert told.json()["found"] is True
    other = command(*call, "--seed", "1")
    assert other.code == 2
    assert "remove it first" in other.last_line
    (tmp_path / "tree" / "a" / "later.txt").write_bytes(b"new")
    changed = command(*call)
    assert changed.code == 2
    assert "has changed" in changed.last_line
    assert read_tree(tmp_path / "out") == before


def test_tasks_tell_their_own_part_and_the_whole(command: Command, tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {f"{c}/{n:03}.txt": b"x" * 999 for c in "ab" for n in range(20)})
    call: list[str | Path] = ["pack", tmp_path / "tree", tmp_path / "out", "--shards", "4"]
    first = command(*call, "--task", "0/2")
    assert "this task wrote 20 samples in 2 shards, " in first.out
    assert "2 of 4 shards belong to tasks that are not done" in first.out
    last = command(*call, "--task", "1/2")
    assert "this task wrote 20 samples in 2 shards, " in last.out
    assert "all tasks together packed 40 samples into 4 shards, " in last.out
    assert "earlier run" not in last.out


def test_what_stands_in_the_way_is_one_note_on_stderr(command: Command, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may list every folder")
    write_tree(tmp_path / "tree", {f"{c}/{n}.txt": b"x" for c in "abc" for n in range(3)})
    (tmp_path / "tree" / "b").chmod(0)
    (tmp_path / "tree" / "c" / "1.txt").chmod(0)
    try:
        ran = command("pack", tmp_path / "tree", tmp_path / "out")
    finally:
        (tmp_path / "tree" / "b").chmod(0o755)
    assert ran.code == 1
    assert "skip-bad" not in ran.out
    notes = [line for line in ran.error.splitlines() if line.startswith("note: ")]
    assert len(notes) == 1
    assert "tree/b: a folder, which counts as one sample: cannot list: Permission denied" in notes[0]
    assert "--skip-bad 1, or more should further samples" in notes[0]
    assert "--skip-bad 2" in ran.last_line
