"""What a loader holds stays within memory=."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest

MEMORY = 40_000_000


@pytest.fixture(scope="module")
def large_samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files from 1 kB to 3 MB, more of them than may be read ahead."""
    source = tmp_path_factory.mktemp("large") / "files"
    source.mkdir()
    noise = np.random.default_rng(1).bytes(3_000_000)
    for i in range(60):
        (source / f"{i:02}.bin").write_bytes(noise[: 1_000 + i * 50_000])
    pt.pack(source, source.parent / "files.pt", sync=False)
    return source.parent / "files.pt"


def keep_all(loader: pt.Loader) -> None:
    """Until there is no room for more. All of them are let go of at the end."""
    kept: list[Any] = []
    while len(kept) < 10_000:
        for batch in loader:
            kept.append(batch)
            assert loader.report().memory <= MEMORY


def check_memory(loader: pt.Loader) -> None:
    for _ in range(3):
        with pytest.raises(pt.NoRoomError, match="memory="):
            keep_all(loader)
        gc.collect()  # the traceback holds them too
        for _ in loader:
            assert loader.report().memory <= MEMORY


@pytest.mark.parametrize(
    "options",
    [{"fields": ["bin"]}, {"fields": {"bin": "raw:uint8"}}, {"fields": {"bin": pt.Array("uint8", pad=0)}}],
    ids=["bytes", "arrays", "padded"],
)
def test_batches_that_were_kept_and_let_go_leave_no_more_than_memory(
    large_samples: Path, options: dict[str, Any]
) -> None:
    check_memory(pt.Loader(large_samples, batch_size=1, prefetch=2, memory=MEMORY, **options))


def test_images_that_were_kept_and_let_go_leave_no_more_than_memory(packed: Path) -> None:
    check_memory(pt.Loader(packed, split="train", batch_size=4, image=pt.Resize(64), memory=MEMORY))


def test_more_memory_than_may_be_had_is_refused_at_once(packed: Path) -> None:
    options: dict[str, Any] = {"split": "train", "image": pt.Resize(64)}
    granted = pt.doctor().granted.memory
    with pytest.raises(
        pt.NoRoomError, match=rf"memory={granted * 2} is more than the .* may be taken here"
    ) as caught:
        pt.Loader(packed, batch_size=4, memory=granted * 2, **options)
    said = re.search(r"give at most memory=(\d+)", str(caught.value))
    assert said is not None
    assert int(said[1]) < granted
    # Other processes may take some of it meanwhile.
    assert len(pt.Loader(packed, batch_size=4, memory=int(said[1]) // 2, **options)) == 9


def test_advice_is_never_more_than_may_be_had(large_samples: Path) -> None:
    granted = pt.doctor().granted.memory
    with pytest.raises(pt.NoRoomError, match="ask for more memory for the job") as caught:
        pt.Loader(large_samples, global_batch_size=granted // 1_000_000, fields=["bin"], prefetch=16)
    assert "raise memory=" not in str(caught.value)


def test_what_is_not_used_is_given_back_at_the_end(packed: Path) -> None:
    def load() -> pt.Loader:
        return pt.Loader(packed, split="train", batch_size=4, image=pt.Resize(64), memory=MEMORY)

    loader = load()
    for batch in loader:  # noqa: B007
        break
    assert batch["image"].nbytes <= loader.report().memory < 2 * batch["image"].nbytes
    del batch
    assert loader.report().memory == 0
    with loader:
        batches = [*loader, *loader]
        assert loader.report().memory > 0
    del batches
    assert loader.report().memory == 0
    other = load()
    list(other)
    assert other.report().memory > 0  # of the next epoch
    other.close()
    assert other.report().memory == 0


@pytest.mark.parametrize("shuffle", [True, False])
def test_an_epoch_change_gives_nothing_back(packed: Path, shuffle: bool) -> None:
    loader = pt.Loader(
        packed, split="train", batch_size=4, image=pt.Resize(64), memory=MEMORY, shuffle=shuffle
    )
    for _ in range(3):
        assert sum(1 for _ in loader) == 9
        assert loader.report().memory > 0


STARVED = """
import resource, sys
import packtrain as pt

loader = pt.Loader(sys.argv[1], batch_size=4, fields=["bin"], threads=2, memory=60_000_000)
batches = iter(loader)
next(batches)
with open("/proc/self/statm") as file:
    limit = int(file.read().split()[0]) * resource.getpagesize() + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    for batch in batches:
        pass
    for batch in loader:
        pass
except (pt.NoRoomError, MemoryError):
    pass
"""


@pytest.mark.parametrize("more", [0, 300_000, 400_000, 1_500_000, 3_000_000])
def test_threads_without_memory_say_so(large_samples: Path, more: int) -> None:
    """An exception where there is none left, or an end, and never a process that is ended in the middle."""
    arguments = [sys.executable, "-c", STARVED, str(large_samples), str(more)]
    ran = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    # The C library ends a process itself where a thread cannot have its own variables.
    assert ran.returncode == 0 or "thread-local data" in ran.stderr, ran.stderr
