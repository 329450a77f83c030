"""A container without checks that is written over while it is loaded: never other samples' bytes."""

from __future__ import annotations

import io
import tarfile
import time
from pathlib import Path
from typing import Any

import packtrain as pt
import pytest

SAMPLES = 200


def content(number: int, version: str) -> bytes:
    return f"{number} of {version}".encode() * 20


def write_tar(path: Path, version: str) -> None:
    """Of the same size whatever it holds; an existing file is written over in place."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for number in range(SAMPLES):
            member = tarfile.TarInfo(f"{number:04}.bin")
            member.size = len(content(number, version))
            tar.addfile(member, io.BytesIO(content(number, version)))
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(buffer.getvalue())


@pytest.fixture(params=["container", "index"])
def indexed(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A tar by itself, and with an index beside it."""
    path = tmp_path / "a.tar"
    write_tar(path, "one")
    time.sleep(0.02)  # dates are as fine as the kernel's clock
    if request.param == "container":
        return path
    pt.index(path)
    return tmp_path / "a.tar.packtrain"


def load(indexed: Path, **options: Any) -> pt.Loader:
    return pt.Loader(
        indexed, **{"batch_size": 10, "prefetch": 1, "max_errors": SAMPLES, "threads": 2, **options}
    )


def check(batch: dict[str, Any]) -> int:
    for index, value in zip(batch["index"].tolist(), batch["bin"].tolist()):
        assert value == content(index, "one")
    return len(batch["index"])


@pytest.mark.parametrize(
    "options", [{}, {"shuffle": False}, {"order": "streams"}, {"fields": {"bin": "raw:uint8"}}]
)
@pytest.mark.filterwarnings("ignore:indexed")
def test_no_batch_has_bytes_of_another_container(
    indexed: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    loader = load(indexed, on_error="skip", **options)
    batches = iter(loader)
    first = next(batches)
    write_tar(tmp_path / "a.tar", "two")
    if not options.get("fields"):
        assert check(first) == 10
        assert sum(check(batch) for batch in batches) < SAMPLES - 10  # those that were made before, at most
    else:
        for batch in batches:
            for index, value in zip(batch["index"].tolist(), batch["bin"]):
                assert bytes(value) == content(index, "one")
    report = loader.report()
    assert report.errors > 0
    assert "a.tar: was changed" in report.bad[0].what
    assert "index again" in report.bad[0].what


@pytest.mark.filterwarnings("ignore:indexed")
def test_it_is_raised_by_name(indexed: Path, tmp_path: Path) -> None:
    loader = load(indexed)
    next(iter(loader))
    write_tar(tmp_path / "a.tar", "two")
    for _ in range(2):  # in this epoch and in the next one
        with pytest.raises(pt.CorruptError, match=r"a\.tar: was changed"):
            sum(check(batch) for batch in loader)
    with pytest.raises(pt.CorruptError, match="drawn in its place are bad too"):
        list(load(loader.dataset, on_error="replace"))


@pytest.mark.filterwarnings("ignore:indexed")
def test_a_dataset_tells_within_a_second(indexed: Path, tmp_path: Path) -> None:
    data = pt.Dataset(indexed)
    assert data[3]["bin"] == content(3, "one")
    write_tar(tmp_path / "a.tar", "two")
    time.sleep(1.1)
    with pytest.raises(pt.CorruptError, match=r"a\.tar: was changed"):
        data[3]


@pytest.mark.filterwarnings("ignore:indexed")
def test_another_container_in_its_place_changes_nothing(indexed: Path, tmp_path: Path) -> None:
    """The one that was opened is still there, for who has it open."""
    loader = load(indexed)
    batches = iter(loader)
    done = check(next(batches))
    write_tar(tmp_path / "new.tar", "two")
    (tmp_path / "new.tar").rename(tmp_path / "a.tar")
    assert done + sum(check(batch) for batch in batches) == SAMPLES
