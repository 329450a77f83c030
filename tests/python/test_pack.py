"""pack, index, verify, extract, show and synth as functions: what they give back, report and promise."""

from __future__ import annotations

import _thread
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import packtrain as pt
import pytest
from helpers import read_tree, small_tree, write_tree


def dataset_bytes(folder: Path) -> dict[str, bytes]:
    """All that the promise of equal bytes is about."""
    return {name: content for name, content in read_tree(folder).items() if name != "pack.log.json"}


def test_the_report_counts_what_was_packed(photos: Path, tmp_path: Path) -> None:
    report = pt.pack(photos, tmp_path / "out", shards=4, sync=False)
    files = read_tree(photos)
    assert report.published
    assert report.out == str(tmp_path / "out")
    assert (report.samples, report.classes) == (40, 4)
    assert sorted(report.fields) == ["cls", "jpg"]
    assert report.splits == ["train", "val"]
    assert report.bytes == sum(path.stat().st_size for path in (tmp_path / "out").glob("*.tar"))
    assert report.payload_bytes >= sum(map(len, files.values()))
    assert report.inodes_before >= len(files)
    assert report.inodes_after < report.inodes_before
    assert report.shards_written == report.shards
    assert report.bad == []
    assert repr(report).startswith(f"PackReport(out='{tmp_path}/out', published=True, samples=40, ")
    with pytest.raises(AttributeError):
        report.samples = 3  # type: ignore[misc]


def test_equal_sources_and_options_give_equal_bytes(photos: Path, packed: Path, tmp_path: Path) -> None:
    pt.pack(photos, tmp_path / "again", shards=4, jobs=3, sync=False)
    assert dataset_bytes(tmp_path / "again") == dataset_bytes(packed)
    pt.pack(photos, tmp_path / "other", shards=4, seed=1, sync=False)
    assert dataset_bytes(tmp_path / "other") != dataset_bytes(packed)


def test_tasks_that_pack_together_give_the_same_bytes(photos: Path, packed: Path, tmp_path: Path) -> None:
    reports = [
        pt.pack(photos, tmp_path / "out", shards=4, task=task, tasks=2, sync=False) for task in range(2)
    ]
    assert [report.published for report in reports] == [False, True]
    assert dataset_bytes(tmp_path / "out") == dataset_bytes(packed)


def test_splits_by_name(tmp_path: Path) -> None:
    write_tree(tmp_path / "a", small_tree())
    write_tree(tmp_path / "b", small_tree())
    report = pt.pack({"train": tmp_path / "a", "val": [tmp_path / "b"]}, tmp_path / "out", sync=False)
    assert report.splits == ["train", "val"]
    data = pt.Dataset(tmp_path / "out")
    assert data.splits == {"train": 12, "val": 12}
    assert data.classes == ["ant", "bee", "cat"]


def test_stratified_shards_hold_every_class_in_proportion(tmp_path: Path) -> None:
    write_tree(tmp_path / "a", small_tree())
    pt.pack(tmp_path / "a", tmp_path / "out", shards=4, order="stratified", sync=False)
    data = pt.Dataset(tmp_path / "out")
    at = 0
    for shard in data.shards:
        assert sorted(data.labels[at : at + shard.samples].tolist()) == [0, 1, 2]
        at += shard.samples


def test_shards_are_even(photos: Path, tmp_path: Path) -> None:
    report = pt.pack([photos / "train"], tmp_path / "out", shards=7, sync=False)
    assert report.shards == 7
    assert report.largest_shard_samples - report.smallest_shard_samples <= 1
    by_size = pt.pack([photos / "train"], tmp_path / "sized", shard_size="1M", sync=False)
    assert by_size.largest_shard_bytes < 1.5e6


def test_a_dry_run_writes_nothing(photos: Path, tmp_path: Path) -> None:
    report = pt.pack(photos, tmp_path / "out", dry_run=True)
    assert (report.samples, report.published) == (40, False)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_target_is_left_alone(photos: Path, copy: Path) -> None:
    before = read_tree(copy)
    with pytest.raises(pt.Error):
        pt.pack(photos, copy)
    assert read_tree(copy) == before


def test_extract_restores_names_and_bytes(photos: Path, packed: Path, tmp_path: Path) -> None:
    report = pt.extract(packed, tmp_path / "back")
    assert read_tree(tmp_path / "back") == read_tree(photos)
    assert (report.samples, report.files) == (40, 40)
    assert report.bytes == sum(map(len, read_tree(photos).values()))


def test_extract_takes_a_part(photos: Path, packed: Path, tmp_path: Path) -> None:
    pt.extract(packed, tmp_path / "val", split="val")
    assert read_tree(tmp_path / "val") == {
        name: content for name, content in read_tree(photos).items() if name.startswith("val/")
    }
    data = pt.Dataset(packed)
    pt.extract(packed, tmp_path / "one", keys=[data.keys[7]])
    assert list(read_tree(tmp_path / "one")) == [data.source(7, "jpg")]
    with pytest.raises(pt.NotFoundError):
        pt.extract(packed, tmp_path / "none", keys=["no such key"])


def test_verify_finds_nothing_in_a_sound_dataset(packed: Path) -> None:
    report = pt.verify(packed)
    assert report.ok
    assert (report.samples, report.findings, report.damaged_samples) == (40, [], 0)
    assert not report.structure_only


@pytest.mark.parametrize("name", ["train-000001.tar", "index.npz", "names.npz", "manifest.json"])
def test_verify_names_what_is_damaged(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 4
    (copy / name).write_bytes(content)
    try:
        report = pt.verify(copy)
    except pt.CorruptError as error:
        assert name in str(error)  # noqa: PT017
        return
    assert not report.ok
    assert name in {finding.file for finding in report.findings}


def test_index_makes_a_container_a_dataset_in_place(packed: Path, tmp_path: Path) -> None:
    shard = Path(shutil.copy(sorted(packed.glob("train-*.tar"))[0], tmp_path / "a.tar"))
    report = pt.index(shard, checksum=True)
    assert report.folder == str(tmp_path / "a.tar.packtrain")
    assert (report.containers, report.bytes) == (1, shard.stat().st_size)
    assert report.damage == []
    data = pt.Dataset(shard)
    assert len(data) == report.samples
    assert pt.verify(shard).ok
    assert list(pt.Dataset(report.folder)) == list(data)


def test_an_index_with_checksums_is_good_for_copies_of_the_container(packed: Path, tmp_path: Path) -> None:
    for name, checksum in (("with", True), ("without", False)):
        (tmp_path / name).mkdir()
        shard = shutil.copy(packed / "train-000000.tar", tmp_path / name / "a.tar")
        pt.index(shard, checksum=checksum)
        copy = Path(
            shutil.copytree(tmp_path / name, tmp_path / f"{name}-copy", copy_function=shutil.copyfile)
        )
        os.utime(copy / "a.tar", (1, 1))
        report = pt.verify(copy / "a.tar.packtrain")
        assert report.ok == checksum
        if checksum:
            assert len(list(pt.Loader(copy / "a.tar.packtrain", batch_size=1))) == len(pt.Dataset(shard))
        else:
            (finding,) = report.findings
            assert "copied without its date" in finding.what


def test_index_recovers_what_it_can(packed: Path, tmp_path: Path) -> None:
    shard = sorted(packed.glob("train-*.tar"))[0]
    whole = len(pt.Dataset(packed, "train").shards) and pt.Dataset(packed).shards[0].samples
    content = bytearray(shard.read_bytes())
    content[100] ^= 0xFF  # the first header
    (tmp_path / "bad.tar").write_bytes(content)
    with pytest.raises(pt.CorruptError, match=r"bad\.tar"):
        pt.index(tmp_path / "bad.tar")
    report = pt.index(tmp_path / "bad.tar", recover=True)
    assert [damage.offset for damage in report.damage] == [0]
    assert whole - 1 <= report.samples <= whole


def test_show_writes_a_page(packed: Path, tmp_path: Path) -> None:
    pt.show(packed, tmp_path / "page.html", samples=8, split="val")
    page = (tmp_path / "page.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html")
    assert "http://" not in page
    assert "https://" not in page.replace("https://www.w3.org", "")
    pt.show(str(packed), str(tmp_path / "page.html"))


def test_synth_is_reproducible(tmp_path: Path) -> None:
    for kind, suffix in (("photos", ".jpg"), ("audio", ".wav"), ("text", ".txt"), ("fields", ".npy")):
        report = pt.synth(tmp_path / kind, kind=kind, samples=6, classes=2, seed=5)
        assert report.files == 6
        pt.synth(tmp_path / f"{kind} again", kind=kind, samples=6, classes=2, seed=5, jobs=1)
        assert read_tree(tmp_path / kind) == read_tree(tmp_path / f"{kind} again")
        assert {Path(name).suffix for name in read_tree(tmp_path / kind)} == {suffix}


def test_progress_is_told_in_the_calling_thread(photos: Path, tmp_path: Path) -> None:
    seen: list[pt.Progress] = []
    threads = set()

    def progress(event: pt.Progress) -> None:
        seen.append(event)
        threads.add(threading.get_ident())

    pt.pack(photos, tmp_path / "out", sync=False, progress=progress)
    pt.verify(tmp_path / "out", progress=progress)
    pt.extract(tmp_path / "out", tmp_path / "back", progress=progress)
    pt.show(tmp_path / "out", tmp_path / "page.html", jobs=2, progress=progress)
    write_tree(tmp_path / "tiny", {f"{n % 2}/{n}.txt": b"x" for n in range(1100)})
    pt.pack(tmp_path / "tiny", tmp_path / "tiny.pt", sync=False)
    bare = (tmp_path / "tiny.pt" / "train-000000.tar").rename(tmp_path / "bare.tar")
    with pytest.warns(UserWarning, match="indexed 1,100 samples"):
        assert pt.info(bare, progress=progress).samples == 1100
    assert threads == {threading.get_ident()}
    assert all(event.items <= event.items_total for event in seen if event.items_total)
    assert {"write", "verify", "show", "index"} <= {event.phase for event in seen}
    assert repr(seen[0]).startswith("Progress(phase=")


def big_synth(out: Path, progress: Any = None) -> None:
    """Long enough to be stopped on the way."""
    pt.synth(out, samples=20_000, classes=2, progress=progress)


def test_a_callback_stops_the_work(tmp_path: Path) -> None:
    with pytest.raises(pt.StoppedError):
        big_synth(tmp_path / "out", progress=lambda event: False)


def test_what_a_callback_raises_comes_out(tmp_path: Path) -> None:
    def progress(event: pt.Progress) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        big_synth(tmp_path / "out", progress=progress)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A run that was started in the background ignores SIGINT; here it is heard whatever started it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_heard_during_a_long_call(tmp_path: Path, interruptible: None) -> None:
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        big_synth(tmp_path / "out")
    timer.join()
    assert time.monotonic() - begun < 10


def test_other_threads_run_meanwhile(tmp_path: Path) -> None:
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    pt.synth(tmp_path / "out", samples=600)  # long enough for a busy machine to let the other thread in
    done.set()
    thread.join()
    assert ticks > 5


def test_stopped_packing_goes_on_where_it_was(photos: Path, packed: Path, tmp_path: Path) -> None:
    with pytest.raises(pt.StoppedError):
        pt.pack(photos, tmp_path / "out", shards=4, sync=False, progress=lambda event: False)
    assert not (tmp_path / "out").exists()
    pt.pack(photos, tmp_path / "out", shards=4, sync=False)
    assert dataset_bytes(tmp_path / "out") == dataset_bytes(packed)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_doctor_says_what_there_is() -> None:
    report = pt.doctor()
    assert report.version == pt.__version__
    assert 1 <= report.granted.cores <= report.granted.machine_cores
    assert {"webdataset", "zip"} <= set(report.formats)
    assert set(report.codecs) >= {"deflate", "zstd"}
    assert set(report.images) == {"jpeg", "png", "webp", "pnm"}
    assert report.images["jpeg"]
    assert report.kernels[-1] == "scalar"
    assert report.place.bytes_total > 0


def test_interrupting_from_another_thread_is_heard(tmp_path: Path, interruptible: None) -> None:
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        big_synth(tmp_path / "out")
    timer.join()
