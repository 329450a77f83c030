"""The command's contract: help, one JSON object, exit codes, words on stderr."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import packtrain as pt
import pytest
from helpers import Command, read_tree, small_tree, write_tree

VERBS = ["pack", "index", "info", "ls", "cat", "extract", "show", "verify", "doctor", "synth"]


def test_the_command_and_the_package_are_one_version(command: Command) -> None:
    assert pt.__version__ in command("--version").out


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
    running = command.start(*arguments)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("out*/*.tar*")) and time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.002)
    running.send_signal(signal.SIGTERM)
    _, error = running.communicate(timeout=60)
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
