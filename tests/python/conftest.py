"""What the tests of the package and the command share. All data are made here; nothing is downloaded."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import packtrain as pt
import pytest
from helpers import Command


@pytest.fixture(scope="session")
def command() -> Command:
    found = os.environ.get("PACKTRAIN_COMMAND") or shutil.which("packtrain")
    assert found, "set PACKTRAIN_COMMAND to the command to test"
    return Command(found)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Indexes of bare containers are kept here, not in the cache of whoever runs the tests."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A split tree of 40 small photographs in 4 classes. Read only."""
    folder = tmp_path_factory.mktemp("source") / "photos"
    pt.synth(folder, samples=40, classes=4, splits=True, seed=1)
    return folder


@pytest.fixture(scope="session")
def packed(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The photographs as a dataset of several shards. Read only."""
    out = tmp_path_factory.mktemp("packed") / "photos.pt"
    pt.pack(photos, out, shards=4, sync=False)
    return out


@pytest.fixture
def copy(packed: Path, tmp_path: Path) -> Path:
    """A dataset that a test may damage."""
    return Path(shutil.copytree(packed, tmp_path / "copy.pt"))


@pytest.fixture
def small_filesystem(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of its own with room for 2 MB; for root alone."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,nr_inodes=100", "none", str(folder)],
        capture_output=True,
        text=True,
    )
    if mount.returncode != 0:
        pytest.skip(f"cannot mount: {mount.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
