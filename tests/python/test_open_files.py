"""More shards than the process may have open at first, and more than it ever may."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import packtrain as pt
import pytest
from helpers import Command, read_tree, write_tree

SHARDS = 150
FEW = 64


def limited(hard: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, hard))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {f"{n % 3}/{n:04}.txt": b"%d" % n * 50 for n in range(2 * SHARDS)}
    return write_tree(tmp_path_factory.mktemp("tree"), files)


def test_a_low_soft_limit_is_raised_when_more_files_are_needed(
    command: Command, tree: Path, tmp_path: Path
) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2 * SHARDS:
        pytest.skip("the hard limit of open files is low here")
    low = {"preexec_fn": limited(resource.getrlimit(resource.RLIMIT_NOFILE)[1])}
    out = tmp_path / "out"
    for call in (
        ["pack", tree, out, "--shards", str(SHARDS), "--jobs", "8"],
        ["verify", out, "--jobs", "8"],
        ["extract", out, tmp_path / "back", "--jobs", "8"],
        ["info", out],
        ["show", out, "-o", tmp_path / "page.html"],
    ):
        ran = command(*call, **low)
        assert ran.code == 0, (call, ran.error)
    assert read_tree(tmp_path / "back") == read_tree(tree)
    code = f"""if True:
        import packtrain as pt, resource
        data = pt.Dataset({str(out)!r})
        before = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        data[0]
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == before, "raised without need"
        assert len(data.read(range(len(data)))) == {2 * SHARDS}
    """
    subprocess.run([sys.executable, "-c", code], check=True, **low)  # type: ignore[call-overload]


def test_a_low_hard_limit_is_no_trouble_for_packing_and_a_clear_sentence_for_reading_all(
    command: Command, tree: Path, tmp_path: Path
) -> None:
    low = {"preexec_fn": limited(FEW)}
    out = tmp_path / "out"
    for call in (["pack", tree, out, "--shards", str(SHARDS), "--jobs", "8"], ["verify", out, "--jobs", "8"]):
        ran = command(*call, **low)
        assert ran.code == 0, (call, ran.error)
    assert len(pt.Dataset(out)) == 2 * SHARDS
    ran = command("extract", out, tmp_path / "back", **low)
    assert ran.code == 5
    assert "Too many open files" in ran.last_line
    assert "ulimit -Hn" in ran.last_line
    assert "fewer shards" in ran.last_line
    assert not (tmp_path / "back").exists()


def test_a_source_of_more_shards_than_may_be_open_is_packed_whole(
    command: Command, tree: Path, tmp_path: Path
) -> None:
    first, low = tmp_path / "first", {"preexec_fn": limited(FEW)}
    assert command("pack", tree, first, "--shards", str(SHARDS)).code == 0
    for form in ("webdataset", "hdf5"):
        second = tmp_path / form
        ran = command("pack", first, second, "--shards", "2", "--format", form, "--jobs", "8", **low)
        assert ran.code == 0, ran.error
        assert command("extract", second, tmp_path / f"{form}-back").code == 0
        assert read_tree(tmp_path / f"{form}-back") == read_tree(tree)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_a_loader_takes_no_lack_of_descriptors_for_bad_samples(
    command: Command, tree: Path, tmp_path: Path, on_error: str
) -> None:
    out = tmp_path / "out"
    assert command("pack", tree, out, "--shards", str(SHARDS)).code == 0
    code = f"""if True:
        import numpy  # which opens files of its own
        import packtrain as pt
        import packtrain.report
        loader = pt.Loader({str(out)!r}, batch_size=20, fields=["txt"], on_error={on_error!r})
        try:
            for batch in loader:
                assert len(batch["index"]) == 20
        except pt.StorageError as error:
            assert "Too many open files" in str(error) and "ulimit -Hn" in str(error), error
        else:
            raise SystemExit("no error")
        assert loader.report().errors == 0
    """
    subprocess.run([sys.executable, "-c", code], check=True, preexec_fn=limited(FEW))


def test_numpy_that_cannot_be_imported_as_all_files_are_open_is_missed_in_a_sentence() -> None:
    """Shards are open by then, and NumPy is files of its own."""
    code = """if True:
        import os
        import packtrain as pt
        from packtrain._numpy import import_numpy
        held = []
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
        try:
            import_numpy()
        except pt.StorageError as error:
            os.close(held.pop())
            print(error)
    """
    low: dict[str, Any] = {"preexec_fn": limited(FEW)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, **low)
    assert "NumPy cannot be imported" in ran.stdout
    assert "ulimit -n" in ran.stdout
