"""The command's contract: help, one JSON object, exit codes, words on stderr."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import packtrain as pt
import pytest
from helpers import Command, read_tree, small_tree, write_tree

VERBS = ["pack", "index", "info", "ls", "cat", "extract", "show", "verify", "doctor", "synth"]


def test_the_command_and_the_package_are_one_version(command: Command) -> None:
    assert pt.__version__ in command("--version").out


def test_the_package_is_the_command_too() -> None:
    """Also from a build that was not installed, with nothing of it on PATH."""
    ran = subprocess.run(
        [sys.executable, "-m", "packtrain", "--version"],
        env={**os.environ, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert pt.__version__ in ran.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example(command: Command, verb: str) -> None:
    ran = command(verb, "--help")
    assert (ran.code, ran.error) == (0, "")
    assert f"packtrain {verb}" in ran.out
    assert "--json" in ran.out
    assert "xample" in ran.out


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_option_is_wrong_usage(command: Command, verb: str) -> None:
    ran = command(verb, "--no-such-option")
    assert (ran.code, ran.out) == (2, "")
    assert "--no-such-option" in ran.error


def test_an_unknown_verb_is_wrong_usage(command: Command) -> None:
    assert command("launch").code == 2


def test_every_verb_gives_exactly_one_json_object(
    command: Command, photos: Path, packed: Path, tmp_path: Path
) -> None:
    key = pt.Dataset(packed).keys[0]
    shard = tmp_path / "a.tar"
    shard.write_bytes(sorted(packed.glob("*.tar"))[0].read_bytes())
    calls: list[list[str | Path]] = [
        ["pack", photos, tmp_path / "out"],
        ["index", shard],
        ["info", packed],
        ["ls", packed],
        ["cat", packed, key, "jpg"],
        ["extract", packed, tmp_path / "back"],
        ["show", packed, "-o", tmp_path / "page.html"],
        ["verify", packed],
        ["doctor"],
        ["synth", tmp_path / "photos", "--samples", "3"],
    ]
    assert [call[0] for call in calls] == VERBS
    for call in calls:
        ran = command(*call, "--json", "--quiet")
        assert ran.code == 0, (call, ran.error)
        assert isinstance(ran.json(), dict), call
        assert ran.error == "", call


def test_doctor_names_the_libraries_of_images_and_the_kernels(command: Command) -> None:
    def doctor(kernels: str) -> dict[str, Any]:
        ran = command("doctor", "--json", env={**os.environ, "PACKTRAIN_KERNELS": kernels})
        assert ran.code == 0, ran.error
        assert ("mmx" in ran.error) == (kernels == "mmx")
        report: dict[str, Any] = ran.json()
        return report

    report = doctor("")
    assert {image["name"]: image["works"] for image in report["images"]} == pt.doctor().images
    assert report["kernels"] == {"used": pt.doctor().kernels[0], "here": pt.doctor().kernels}
    assert doctor("scalar")["kernels"]["used"] == "scalar"
    assert doctor("mmx")["kernels"]["used"] == pt.doctor().kernels[0]


def test_doctor_names_the_package_of_every_library(command: Command) -> None:
    report = command("doctor", "--json").json()
    packages = {
        entry["name"]: entry["package"] for kind in ("codecs", "images", "audio") for entry in report[kind]
    }
    for codec in report["codecs"]:
        if codec["library"] == "packtrain itself":
            assert packages.pop(codec["name"]) == ""
    assert packages.pop("pnm") == packages.pop("wav") == ""
    assert all(name.endswith("-dev") for name in packages.values())
    assert packages["png"] == "libpng-dev"
    assert packages["flac"] == "libflac-dev"


def test_the_demo_path(command: Command, photos: Path, tmp_path: Path) -> None:
    assert command("pack", photos, tmp_path / "out").code == 0
    assert command("verify", tmp_path / "out").code == 0
    assert command("extract", tmp_path / "out", tmp_path / "back").code == 0
    assert read_tree(tmp_path / "back") == read_tree(photos)


def test_ls_and_cat_agree_with_the_package(command: Command, packed: Path) -> None:
    data = pt.Dataset(packed)
    assert command("ls", packed).out.splitlines() == list(data.keys)
    raw = os.popen(f"{command.path} cat {packed} {data.keys[5]} cls").read()
    assert raw == str(data[5]["cls"])


def expect_error(command: Command, exit_code: int, code: str, *arguments: str | Path) -> str:
    """The exit code, the last line for people, and the same as JSON."""
    ran = command(*arguments, "--json")
    assert ran.code == exit_code, ran.error
    error = ran.json()["error"]
    assert error["code"] == code
    assert error["message"]
    plain = command(*arguments)
    assert plain.code == exit_code
    assert error["message"] in plain.last_line
    return plain.last_line


def test_bad_data_is_exit_code_1(command: Command, copy: Path) -> None:
    shard = sorted(copy.glob("*.tar"))[0]
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    ran = command("verify", copy, "--json")
    assert ran.code == 1
    findings = ran.json()
    assert shard.name in json.dumps(findings)
    assert command("verify", copy).code == 1


def test_wrong_usage_is_exit_code_2(command: Command, photos: Path, packed: Path, tmp_path: Path) -> None:
    expect_error(command, 2, "not_found", "info", tmp_path / "missing")
    expect_error(command, 2, "not_found", "cat", packed, "no such key", "jpg")
    expect_error(
        command, 2, "invalid", "pack", photos, tmp_path / "out", "--shards", "2", "--shard-size", "1M"
    )
    expect_error(command, 2, "unsupported", "pack", photos, tmp_path / "out", "--format", "betamax")
    expect_error(command, 2, "invalid", "pack", photos, packed)
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="a small filesystem can be mounted by root only")
def test_no_room_is_exit_code_3(
    command: Command, photos: Path, small_filesystem: Path, tmp_path: Path
) -> None:
    line = expect_error(command, 3, "no_room", "pack", photos, small_filesystem / "out")
    assert "room" in line or "free" in line
    assert command("extract", str(photos), small_filesystem / "x").code == 2
    many = {f"c/{n}.txt": b"x" for n in range(300)}
    pt.pack(write_tree(tmp_path / "many", many), tmp_path / "many.pt", sync=False)
    expect_error(command, 3, "no_room", "extract", tmp_path / "many.pt", small_filesystem / "back")


def test_a_signal_is_exit_code_4_and_the_next_run_goes_on(command: Command, tmp_path: Path) -> None:
    files = {f"{n % 7}/{n:05}.bin": os.urandom(40_000) for n in range(1500)}
    write_tree(tmp_path / "tree", files)
    arguments = ["pack", tmp_path / "tree", tmp_path / "out", "--shards", "30", "--jobs", "1"]
    for _ in range(20):  # it may be publishing before the signal comes
        running = command.start(*arguments)
        deadline = time.monotonic() + 60
        while (
            not list(tmp_path.glob("out*/*.tar*")) and time.monotonic() < deadline and running.poll() is None
        ):
            time.sleep(0.001)
        running.send_signal(signal.SIGTERM)
        _, error = running.communicate(timeout=60)
        if running.returncode != 0:
            break
        shutil.rmtree(tmp_path / "out")
    assert running.returncode == 4, error
    assert "again" in error.rstrip().rsplit("\n", 1)[-1]
    assert not (tmp_path / "out").exists()
    assert command(*arguments).code == 0
    assert pt.verify(tmp_path / "out").ok
    assert len(pt.Dataset(tmp_path / "out")) == 1500


def test_a_failing_system_is_exit_code_5(command: Command, photos: Path) -> None:
    expect_error(command, 5, "io", "pack", photos, "/sys/packtrain-out")


def test_quiet_is_quiet_and_progress_goes_to_stderr(command: Command, tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", small_tree())
    ran = command("pack", tmp_path / "tree", tmp_path / "out", "--quiet")
    assert (ran.code, ran.error) == (0, "")
    dry = command("pack", tmp_path / "tree", tmp_path / "dry", "--dry-run")
    assert dry.code == 0
    assert not (tmp_path / "dry").exists()
    assert "12" in dry.out


def test_links_that_an_index_leaves_out_are_named(command: Command, tmp_path: Path) -> None:
    files = {"a.jpg": b"a", "b.jpg": b"b"}
    write_tree(tmp_path / "tree", files)
    (tmp_path / "tree" / "hard.jpg").hardlink_to(tmp_path / "tree" / "b.jpg")
    (tmp_path / "tree" / "soft.jpg").symlink_to("a.jpg")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for path in sorted((tmp_path / "tree").iterdir()):
            archive.add(path, arcname=path.name)
    ran = command("index", tmp_path / "a.tar", "--json")
    assert ran.code == 0
    assert ran.json()["samples"] == 2
    assert ran.json()["links_left_out"] == 2
    assert ran.json()["links_named"] == ["hard.jpg", "soft.jpg"]
    assert "2 links" in ran.error
    assert "hard.jpg, soft.jpg" in ran.error
    assert pt.index(tmp_path / "a.tar").links_left_out == 2


def test_folders_that_an_index_does_not_take_as_classes_are_told_of(command: Command, tmp_path: Path) -> None:
    write_tree(
        tmp_path / "tree",
        {f"{split}/{name}/{i}.jpg": b"x" for split in ("train", "val") for name in "ab" for i in range(2)},
    )
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "tree", arcname=".")
    ran = command("index", tmp_path / "a.tar", "--json")
    assert ran.code == 0
    assert ran.json()["unlabelled_folders"] == 4
    assert "no labels" in ran.error
    assert f"packtrain pack {tmp_path / 'a.tar'} OUT" in ran.error
    packed = command("pack", tmp_path / "a.tar", tmp_path / "out", "--json")
    assert packed.json()["classes"] == 2
    again = command("index", tmp_path / "out" / "train-000000.tar", "--out", tmp_path / "b", "--json")
    assert (again.json()["unlabelled_folders"], "no labels" in again.error) == (0, False)
    assert pt.index(tmp_path / "a.tar", out=tmp_path / "c").unlabelled_folders == 4


def test_files_without_an_extension_are_named(command: Command, tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {"utt1": b"1", "utt2": b"2", "3.wav": b"3"})
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for path in sorted((tmp_path / "tree").iterdir()):
            archive.add(path, arcname=path.name)
    ran = command("index", tmp_path / "a.tar", "--json")
    assert ran.code == 0
    assert ran.json()["samples"] == 1
    assert ran.json()["without_extension_left_out"] == 2
    assert ran.json()["without_extension_named"] == ["utt1", "utt2"]
    assert "utt1, utt2" in ran.error
    assert "packtrain pack" in ran.error
    assert pt.index(tmp_path / "a.tar").without_extension_left_out == 2


def test_a_page_leaves_other_files_alone(command: Command, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "p.html.tmp-0").write_text("mine")
    assert command("show", copy, "-o", tmp_path / "p.html").code == 0
    assert (tmp_path / "p.html.tmp-0").read_text() == "mine"
    pt.show(copy, tmp_path / "p.html", samples=4)
    assert (tmp_path / "p.html.tmp-0").read_text() == "mine"
    refused = command("show", copy, "-o", tmp_path / "missing" / "p.html")
    assert refused.code != 0
    assert ".tmp-" not in refused.last_line


def test_verify_says_what_helps(command: Command, copy: Path) -> None:
    (copy / "notes.txt").write_text("a stray file")
    stray = command("verify", copy)
    assert stray.code == 1
    assert "remove what does not belong" in stray.last_line
    assert "restore" not in stray.last_line
    (copy / "notes.txt").unlink()
    (copy / "index.npz").unlink()
    blind = command("verify", copy)
    assert blind.code == 1
    assert "could not be checked" in blind.last_line
    assert "0 of" not in blind.last_line


def test_links_to_nothing_are_named(command: Command, tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", small_tree())
    for number in range(7):
        (tmp_path / "tree" / "ant" / f"gone{number}.jpg").symlink_to("/nowhere")
    ran = command("pack", tmp_path / "tree", tmp_path / "out")
    assert ran.code == 0
    for word in ("7 symbolic links", "ant/gone0.jpg", "ant/gone4.jpg", "2 more"):
        assert word in ran.error


def test_a_class_that_is_not_there_is_an_error_that_names_those_there_are(
    command: Command, packed: Path, tmp_path: Path
) -> None:
    classes = pt.Dataset(packed).classes
    for missing in ("9", "-1", "no such class"):
        for call in (["ls", packed], ["extract", packed, tmp_path / "back"]):
            line = expect_error(command, 2, "not_found", *call, "--class", missing)
            assert all(name in line for name in classes)
    assert command("ls", packed, "--class", "3").out != ""
    assert "train, val" in expect_error(command, 2, "not_found", "ls", packed, "--split", "dev")
    write_tree(tmp_path / "flat", {"a.txt": b"a", "a.cls": b"4"})
    pt.pack(tmp_path / "flat", tmp_path / "flat.pt", sync=False)
    assert "it has 4" in expect_error(command, 2, "not_found", "ls", tmp_path / "flat.pt", "--class", "5")
    assert command("ls", tmp_path / "flat.pt", "--class", "4").out == "a\n"


def test_a_class_of_any_bytes_is_one_line_and_found_by_its_bytes(command: Command, tmp_path: Path) -> None:
    for name in (b"n\xe9", b"two\nlines", b"a\ttab"):
        write_tree(tmp_path / "tree" / os.fsdecode(name), {"x.txt": b"x"})
    pt.pack(tmp_path / "tree", tmp_path / "out", sync=False)
    rows = command("ls", "-l", tmp_path / "out").out.splitlines()
    assert sorted(row.split("\t")[2] for row in rows) == ["a\\ttab", "n\\xE9", "two\\nlines"]
    assert all(len(row.split("\t")) == 6 for row in rows)
    for name in (b"n\xe9", b"n\\xE9", b"two\nlines", b"two\\nlines"):
        assert command("ls", tmp_path / "out", "--class", os.fsdecode(name)).out.count("\n") == 1


def test_a_key_with_a_line_break_is_one_line(command: Command, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for name in ("two\nlines.txt", "a\ttab.txt"):
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"x"))
    assert command("index", tmp_path / "a.tar").code == 0
    assert sorted(command("ls", tmp_path / "a.tar").out.splitlines()) == ["a\ttab", "two\\nlines"]
    rows = command("ls", "-l", tmp_path / "a.tar").out.splitlines()
    assert sorted(row.split("\t")[1] for row in rows) == ["a\\ttab", "two\\nlines"]


def test_help_that_cannot_be_written_is_an_error(command: Command) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [command.path, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ran.returncode == 3
    assert ran.stderr.startswith("packtrain: cannot write to stdout")


def test_verify_says_each_fact_once(command: Command, packed: Path, tmp_path: Path) -> None:
    whole = sorted(packed.glob("*.tar"))[0].read_bytes()
    damaged = bytearray(whole)
    damaged[0] ^= 1
    (tmp_path / "x.tar").write_bytes(damaged)
    ran = command("verify", tmp_path / "x.tar")
    assert ran.code == 1
    assert f"{tmp_path}/x.tar @ 0: header checksum" in ran.out + ran.error
    assert f"{tmp_path}/x.tar @ 0: {tmp_path}" not in ran.out + ran.error


def test_where_classes_are_called_by_numbers_a_number_is_a_name(command: Command, tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {f"{name}/in{name}.txt": b"x" for name in ("1", "9", "10")})
    pt.pack(tmp_path / "tree", tmp_path / "out", sync=False)
    assert command("ls", tmp_path / "out", "--class", "9").out == "9/in9\n"
    assert "1, 10, 9" in expect_error(command, 2, "not_found", "ls", tmp_path / "out", "--class", "2")


def test_split_names_that_lead_elsewhere_are_refused(tmp_path: Path) -> None:
    write_tree(tmp_path / "flat", {"a.txt": b"a"})
    with pytest.raises(pt.InvalidError, match="name of a split"):
        pt.pack({"../x": tmp_path / "flat"}, tmp_path / "o" / "out", sync=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flat"]


def test_a_limit_of_none_lists_none(command: Command, packed: Path) -> None:
    assert command("ls", packed, "--limit", "0").out == ""
    assert command("ls", packed, "--limit", "2").out.count("\n") == 2


def test_show_writes_to_stdout_for_a_dash(
    command: Command, packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = command("show", packed, "-o", "-", "--quiet")
    assert (ran.code, ran.error) == (0, "")
    assert ran.out.startswith("<!DOCTYPE html>")
    assert ran.out.rstrip().endswith("</html>")
    assert list(tmp_path.iterdir()) == []
    assert command("show", packed, "-o", "-", "--json").code == 2


@pytest.mark.parametrize("option", ["--path-column", "--label-column", "--split-column", "--root"])
def test_options_of_lists_are_refused_without_a_list(
    command: Command, photos: Path, tmp_path: Path, option: str
) -> None:
    line = expect_error(command, 2, "invalid", "pack", photos, tmp_path / "out", option, "x")
    assert option in line
    assert not list(tmp_path.glob("out*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="a small filesystem can be mounted by root only")
def test_a_dry_run_tells_of_missing_inodes(command: Command, small_filesystem: Path, tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", {f"{n % 2}/{n}.txt": b"x" for n in range(200)})
    call = ["pack", tmp_path / "tree", small_filesystem / "out", "--shards", "100"]
    ran = command(*call, "--dry-run", "--json")
    assert ran.code == 0
    assert ran.json()["shortfall_bytes"] == 0
    assert ran.json()["shortfall_inodes"] > 0
    assert "inodes are lacking" in command(*call, "--dry-run").error
    assert command(*call).code == 3


def test_messages_are_in_our_words(command: Command, photos: Path, packed: Path, tmp_path: Path) -> None:
    for call, words in (
        (["ls", packed, "--limit"], "--limit needs a value"),
        (["ls", packed, "--limit", "1", "--limit", "2"], "--limit: is given twice"),
        (["ls", packed, "--json=maybe"], "--json takes no value"),
        (["pack"], "SOURCE and OUT are missing"),
        (["pack", "e=q"], "OUT, the folder to make, is missing: packtrain pack e=q OUT"),
    ):
        ran = command(*call)
        assert ran.code == 2
        assert words in ran.error
        assert "required" not in ran.error
    page = tmp_path / "missing" / "x.html"
    assert command("show", packed, "-o", page).last_line.count(str(page)) == 1
    troubles = {'{"a":': "line 1, column 6: unexpected end of input", "[1 2]": "line 1, column"}
    for content, words in troubles.items():
        (tmp_path / "list.json").write_text(content)
        line = command("pack", tmp_path / "list.json", tmp_path / "out").last_line
        assert words in line
        assert "exception" not in line
        assert "syntax error" not in line


def test_a_path_with_an_equals_sign_is_a_path_if_it_is_there(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tree(tmp_path / "e=q", small_tree())
    assert command("pack", "e=q", "out").code == 0
    assert pt.Dataset("out").splits == {"train": 12}
    assert command("pack", "val=e=q", "val").code == 0
    assert pt.Dataset("val").splits == {"val": 12}
    line = command("pack", "e=nowhere", "no").last_line
    assert "nowhere" in line


# What goes wrong most often: the exit code, and the words that say what to do next.
FAILURES: list[tuple[str, int, str]] = [
    ("info missing", 2, "check the name"),
    ("verify missing", 2, "check the name"),
    ("ls missing", 2, "check the name"),
    ("show missing -o page.html", 2, "check the name"),
    ("index missing", 2, "check the name"),
    ("pack missing out", 2, "check the name"),
    ("pack tree/a/1.txt/x out", 2, "is a file; check the name"),
    ("info tree", 2, "packtrain pack"),
    ("info plain.bin", 2, "packtrain pack SOURCE OUT"),
    ("index tree", 2, "packtrain pack tree OUT"),
    ("ls d.pt --class x", 2, "it has a, b"),
    ("ls d.pt --split x", 2, "it has train"),
    ("ls d.pt --limit x", 2, "packtrain ls --help"),
    ("ls d.pt --limit -1", 2, "is below 0"),
    ("pack ä=tree out", 2, "cannot be the name of a split"),
    ("pack tre* out", 2, "name each folder"),
    ("cat d.pt nokey txt", 2, "packtrain ls lists the keys"),
    ("cat d.pt a/1 jpg", 2, "it has cls, txt"),
    ("extract d.pt tree", 2, "--overwrite"),
    ("extract d.pt plain.bin", 2, "choose another"),
    ("extract d.pt d.pt/x", 2, "choose a folder outside"),
    ("extract d.pt back --fields x", 2, "packtrain info lists them"),
    ("extract d.pt plain.bin/back", 2, "is a file; check the name"),
    ("pack empty out", 2, "is it the right one?"),
    ("pack empty.tar out", 2, "is it the right one?"),
    ("pack plain.bin out", 2, "give a folder, a list"),
    ("pack empty.csv out", 1, "write a row for each sample"),
    ("pack heading.csv out", 2, "put a line such as path,label in front"),
    ("pack columns.csv out", 2, "--path-column"),
    ("pack gone.csv out", 1, "--skip-bad 1"),
    ("pack quote.csv out", 1, "close it"),
    ("pack bad.json out", 1, "mend the list"),
    ("pack bad.jsonl out", 1, "mend the list"),
    ("pack hostile.pkl out", 1, "convert other values first"),
    ("pack cut.tar out", 1, "packtrain index --recover"),
    ("pack cut.tar.gz out", 1, "fetch or make the archive again"),
    ("pack tree d.pt", 2, "choose another name, or remove it first"),
    ("pack tree out --classes empty.csv.txt", 2, "write one name a line"),
    ("pack tree out --shard-size 5q", 2, "write for example 512M"),
    ("pack tree out --format betamax", 2, "choose from webdataset"),
    ("pack tree out --sidecars tfrecord", 2, "choose from wids, dali, energon"),
    ("pack tree out --task 3/2", 2, "i from 0 to n-1"),
    ("pack tree unfinished", 2, "move it away or choose another name"),
    (f"pack tree {'x' * 300}", 2, "choose a shorter one"),
    ("show d.pt -o missing/page.html", 2, "check the name"),
    ("show d.pt -o plain.bin", 2, "--force"),
    ("synth tree", 2, "choose another or remove it"),
    ("cat longer.pt a/1 txt", 1, "restore it from another copy or pack again"),
    ("cat flipped.pt a/1 txt", 1, "restore it from another copy or pack again"),
    ("extract flipped.pt back", 1, "--skip-bad"),
    ("info no-index.pt", 1, "is missing; run packtrain verify"),
    ("ls no-names.pt", 1, "is missing; run packtrain verify"),
    ("info cut-manifest.pt", 1, "restore manifest.json from another copy"),
    ("lss", 2, "did you mean ls?"),
]


@pytest.fixture(scope="module")
def troubles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that the table of failures names."""
    folder = tmp_path_factory.mktemp("troubles")
    write_tree(folder / "tree", {"a/1.txt": b"1" * 50, "b/2.txt": b"2" * 50})
    pt.pack(folder / "tree", folder / "d.pt", sync=False)
    shard = (folder / "d.pt" / "train-000000.tar").read_bytes()
    (folder / "empty").mkdir()
    write_tree(
        folder,
        {
            "plain.bin": b"x",
            "empty.csv": b"path,label\n",
            "empty.csv.txt": b"\n",
            "heading.csv": b"1.jpg,2\n",
            "columns.csv": b"foo,bar\nx,y\n",
            "gone.csv": b"path,label\ngone.jpg,1\n",
            "quote.csv": b'path,label\na,"b\n',
            "bad.json": b'{"a":',
            "bad.jsonl": b'{"path":\n',
            "hostile.pkl": b"\x80\x04cos\nsystem\n",
            "cut.tar": shard[:700],
            "empty.tar": bytes(10240),
            "cut.tar.gz": gzip.compress(os.urandom(5000))[:500],
            "unfinished.part/mine": b"",
        },
    )
    for name in ("longer", "flipped", "no-index", "no-names", "cut-manifest"):
        shutil.copytree(folder / "d.pt", folder / f"{name}.pt")
    (folder / "longer.pt" / "train-000000.tar").write_bytes(shard + b"x")
    (folder / "flipped.pt" / "train-000000.tar").write_bytes(shard.replace(b"1" * 50, b"1" * 49 + b"3"))
    (folder / "no-index.pt" / "index.npz").unlink()
    (folder / "no-names.pt" / "names.npz").unlink()
    (folder / "cut-manifest.pt" / "manifest.json").write_bytes(b"{}")
    return folder


@pytest.mark.parametrize(("call", "code", "advice"), FAILURES, ids=[call[:40] for call, _, _ in FAILURES])
def test_an_error_says_what_to_do_next(
    command: Command, troubles: Path, call: str, code: int, advice: str
) -> None:
    before = read_tree(troubles)
    ran = command(*call.split(), cwd=troubles)
    assert (ran.code, ran.out) == (code, "")
    assert ran.last_line.startswith("packtrain")
    assert advice in ran.last_line
    assert ran.error.count("\n") <= 2, "one sentence, not a flood"
    assert {name: data for name, data in read_tree(troubles).items() if name in before} == before


def test_show_draws_what_the_data_are(command: Command, packed: Path, tmp_path: Path) -> None:
    """Bars stand for real numbers: a row for each class, a histogram of all samples, a bar for each shard."""
    assert command("show", packed, "-o", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    data = pt.Dataset(packed)
    rows = re.findall(
        r'<span class="name" title="([^"]*)">.*?width:([0-9.]+)%.*?<span class="count">(\d+)</span>', page
    )
    counts = {name: int(count) for name, _, count in rows}
    assert counts == pt.info(packed).classes
    largest = max(counts.values())
    assert all(abs(float(width) - 100 * counts[name] / largest) < 0.1 for name, width, _ in rows)

    def bars(heading: str) -> list[tuple[float, str]]:
        section = page.split(f"<h2>{heading}</h2>", 1)[1].split("<h2>", 1)[0]
        found = re.findall(r'<rect class="bar"[^>]*height="([0-9.]+)"><title>([^<]*)</title>', section)
        return [(float(height), title) for height, title in found]

    sizes = bars("Bytes per sample")
    assert len(sizes) > 1
    assert max(height for height, _ in sizes) > 50
    assert sum(int(title.rsplit(": ", 1)[1]) for _, title in sizes) == len(data)
    assert len(bars("Shards")) == 2 * pt.info(packed).shards  # their samples, and their bytes
    assert all(height > 0 for height, _ in bars("Shards"))
    assert page.split("<h2>Image sizes</h2>", 1)[1].split("</section>", 1)[0].count("<svg") == 1
