"""Loader: batches, epochs, state, ranks, bad samples, and what is left behind."""

from __future__ import annotations

import gc
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import damage, write_tree

IMAGE = pt.CenterCrop(24, 32)


def indices_of(loader: pt.Loader, epoch: int | None = None) -> list[int]:
    """What one epoch brings, in order."""
    if epoch is not None:
        loader.epoch = epoch
    return [index for batch in loader for index in batch["index"].tolist()]


def threads() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208


def threads_at_rest() -> int:
    """How many there are when those that earlier tests ended are gone."""
    count, later = -1, threads()
    while count != later:
        time.sleep(0.02)
        count, later = later, threads()
    return later


def threads_end(before: int) -> bool:
    """Whether no more are left than before. The kernel lists a thread for a moment after it was joined."""
    deadline = time.monotonic() + 10
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.001)
    return threads() <= before


@pytest.fixture
def train(packed: Path) -> pt.Dataset:
    return pt.Dataset(packed, split="train")


# Batches


def test_a_batch_has_images_labels_and_indices(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=10, image=IMAGE, seed=3)
    assert len(loader) == 3
    batches = list(loader)
    assert len(batches) == 3
    for batch in batches:
        assert list(batch) == ["image", "label", "index"]
        assert batch["image"].shape == (10, 3, 24, 24)
        assert batch["image"].dtype == np.float32
        assert batch["label"].dtype == batch["index"].dtype == np.int64
        for place, index in enumerate(batch["index"]):
            assert batch["label"][place] == train.labels[index]
            assert np.array_equal(batch["image"][place], IMAGE(train[int(index)]["jpg"]))


@pytest.mark.parametrize(
    ("options", "shape", "dtype"),
    [
        ({"dtype": "uint8"}, (4, 3, 24, 16), np.uint8),
        ({"dtype": "float16", "layout": "HWC"}, (4, 24, 16, 3), np.float16),
        ({"dtype": "bfloat16"}, (4, 3, 24, 16), np.uint16),
        ({"mean": pt.IMAGENET_MEAN, "std": pt.IMAGENET_STD}, (4, 3, 24, 16), np.float32),
    ],
)
def test_images_come_as_asked(
    train: pt.Dataset, options: dict[str, Any], shape: tuple[int, ...], dtype: type
) -> None:
    for spec in (pt.RandomResizedCrop((24, 16), **options), pt.Resize((24, 16), **options)):
        batch = next(iter(pt.Loader(train, batch_size=4, image=spec)))
        assert batch["image"].shape == shape
        assert batch["image"].dtype == dtype


def test_without_an_image_all_fields_come_as_bytes(train: pt.Dataset) -> None:
    for batch in pt.Loader(train, batch_size=6):
        assert list(batch) == ["label", "index", "jpg"]
        assert len(batch["jpg"]) == 6
        expected = [sample["jpg"] for sample in train.read(batch["index"])]
        assert [bytes(value) for value in batch["jpg"]] == expected
        assert batch["jpg"].tolist() == expected
        with pytest.raises(IndexError):
            batch["jpg"][6]


def test_arrays_are_views_that_keep_the_batch_alive(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=6, image=IMAGE, fields=["jpg"])
    kept = list(loader)
    pointers = [batch["image"].ctypes.data for batch in kept]
    assert len(set(pointers)) == len(kept)
    for batch in kept:
        assert not batch["image"].flags.owndata
        assert np.from_dlpack(batch["image"]).ctypes.data == batch["image"].ctypes.data
        assert batch["jpg"][2].ctypes.data == batch["jpg"][2].ctypes.data
    images = [batch["image"] for batch in kept]
    fields = [(batch["jpg"], batch["index"].tolist()) for batch in kept]
    expected = [image.copy() for image in images]
    del kept, batch, loader
    gc.collect()
    for _ in pt.Loader(train, batch_size=6, image=IMAGE):  # whatever is free is written over
        pass
    assert all(np.array_equal(a, b) for a, b in zip(images, expected))
    for field, positions in fields:
        assert field.tolist() == [sample["jpg"] for sample in train.read(positions)]


# Epochs


def test_every_sample_once_an_epoch_and_each_epoch_anew(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=6, seed=5)
    first, second = indices_of(loader), indices_of(loader)
    assert sorted(first) == sorted(second) == list(range(36))
    assert first != second
    again = pt.Loader(train, batch_size=6, seed=5, threads=3, prefetch=1)
    assert [indices_of(again), indices_of(again)] == [first, second]
    assert indices_of(pt.Loader(train, batch_size=6, seed=6)) != first


def test_iter_begins_the_next_epoch_after_a_break_too(train: pt.Dataset) -> None:
    epochs = pt.Loader(train, batch_size=6)
    expected = [indices_of(epochs) for _ in range(3)]
    loader = pt.Loader(train, batch_size=6)
    assert loader.epoch == 0
    for _ in loader:
        assert loader.epoch == 0
        break
    assert indices_of(loader) == expected[1]
    assert loader.epoch == 2
    assert indices_of(loader) == expected[2]
    loader.epoch = 1
    assert loader.epoch == 1
    assert indices_of(loader) == expected[1]
    assert loader.epoch == 2


def test_an_unused_iterator_uses_up_no_epoch(train: pt.Dataset) -> None:
    reference = pt.Loader(train, batch_size=6)
    expected = [indices_of(reference) for _ in range(4)]
    loader = pt.Loader(train, batch_size=6)
    iter(loader)
    unused = iter(loader)
    assert (loader.epoch, loader.state_dict()["consumed"]) == (0, 0)
    for batch, number in zip(loader, range(0, 36, 6)):
        assert batch["index"].tolist() == expected[0][number : number + 6]
        iter(loader)  # does not disturb the one that is in use
    assert [i for batch in unused for i in batch["index"].tolist()] == expected[1]
    late = iter(loader)
    loader.epoch = 3  # said before its first batch: Lightning does it in this order
    assert [i for batch in late for i in batch["index"].tolist()] == expected[3]


def test_without_shuffling_it_always_begins_at_the_first_sample(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=6, shuffle=False, image=pt.RandomResizedCrop(8))
    assert loader.order == "source"
    for batch in loader:
        first = batch
        break
    assert first["index"].tolist() == list(range(6))
    again = next(iter(loader))
    assert np.array_equal(again["image"], first["image"])  # an evaluation gives one result, however often
    assert indices_of(loader) == list(range(36))
    loader.epoch = 1
    assert not np.array_equal(next(iter(loader))["image"], first["image"])


def test_without_shuffling_the_same_epoch_is_read_ahead(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=6, shuffle=False)

    def bytes_read() -> int:
        """Once no more come."""
        bytes_before = -1
        while loader.report().bytes != bytes_before:
            bytes_before = loader.report().bytes
            time.sleep(0.1)
        return bytes_before

    first = [batch["index"].tolist() for batch in loader]
    after_one = bytes_read()
    assert [batch["index"].tolist() for batch in loader] == first
    after_two = bytes_read()
    assert [batch["index"].tolist() for batch in loader] == first
    # Reading is always as far ahead of what was delivered: nothing is read twice for one epoch.
    assert bytes_read() - after_two == after_two - after_one
    stored = sum(len(sample["jpg"]) for sample in train)
    assert after_two - after_one == pytest.approx(stored, rel=0.05)
    loader.epoch = 2  # which is another one
    assert [batch["index"].tolist() for batch in loader] == first


def test_an_older_iterator_is_over(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=6)
    old = iter(loader)
    next(old)
    new = iter(loader)
    next(new)
    with pytest.raises(pt.InvalidError, match="iterated anew"):
        next(old)
    del old
    assert len(list(new)) == 5  # its end does not disturb the newer one
    with pytest.raises(StopIteration):
        next(new)


@pytest.mark.parametrize(("last", "steps", "samples"), [("drop", 3, 30), ("pad", 4, 40), ("keep", 4, 36)])
def test_the_last_batch(train: pt.Dataset, last: Any, steps: int, samples: int) -> None:
    loader = pt.Loader(train, batch_size=10, last=last)
    batches = list(loader)
    assert len(batches) == len(loader) == steps
    assert sum(len(batch["index"]) for batch in batches) == samples
    assert all(("padding" in batch) == (last == "pad") for batch in batches)
    if last == "pad":
        padding = np.concatenate([batch["padding"] for batch in batches])
        assert padding.dtype == np.bool_
        assert padding.sum() == 4
        indices = np.concatenate([batch["index"] for batch in batches])
        assert sorted(indices[~padding]) == list(range(36))


def test_a_batch_larger_than_the_set_is_warned_of(train: pt.Dataset) -> None:
    with pytest.warns(UserWarning, match="no batch at all"):
        loader = pt.Loader(train, batch_size=37)
    assert list(loader) == []
    with pytest.warns(UserWarning, match="chooses no sample"):
        assert list(pt.Loader(train, batch_size=4, indices=[])) == []
    assert [len(batch["index"]) for batch in pt.Loader(train, batch_size=37, last="keep")] == [36]


# Ranks and state


def test_ranks_share_the_batches_that_one_would_have(train: pt.Dataset) -> None:
    alone = [sorted(batch["index"]) for batch in pt.Loader(train, global_batch_size=12, rank=0, world_size=1)]
    for world_size in (2, 3, 4):
        ranks = [
            pt.Loader(train, global_batch_size=12, rank=rank, world_size=world_size)
            for rank in range(world_size)
        ]
        assert {len(loader) for loader in ranks} == {3}
        together = [sorted(np.concatenate([batch["index"] for batch in step])) for step in zip(*ranks)]
        assert together == alone


def test_a_state_goes_on_with_exactly_the_unseen_on_other_ranks(train: pt.Dataset) -> None:
    whole = pt.Loader(train, batch_size=4, seed=9)
    indices_of(whole)
    expected = indices_of(whole)
    loader = pt.Loader(train, batch_size=4, seed=9, image=IMAGE)
    indices_of(loader)
    seen: list[int] = []
    for step, batch in enumerate(loader):
        seen += batch["index"].tolist()
        if step == 2:
            break
    state = json.loads(json.dumps(loader.state_dict()))
    assert len(json.dumps(state)) < 1000
    assert (state["epoch"], state["consumed"]) == (1, 12)
    assert all(type(value) in (int, str) for value in state.values())
    for world_size, batch_size in ((1, 4), (2, 2), (3, 4), (1, 24)):
        rest: list[int] = []
        for rank in range(world_size):
            other = pt.Loader(train, batch_size=batch_size, rank=rank, world_size=world_size, seed=1)
            other.load_state_dict(state)
            assert other.epoch == 1
            assert {**other.state_dict(), "global_batch": 4} == state
            rest += indices_of(other)
            assert other.epoch == 2
        assert sorted(seen + rest) == list(range(36))
        assert world_size > 1 or seen + rest == expected


def test_a_state_between_epochs_begins_the_next(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=10)
    indices_of(loader)
    state = loader.state_dict()
    assert (state["epoch"], state["consumed"]) == (1, 0)
    expected = indices_of(loader)
    other = pt.Loader(train, batch_size=10)
    other.load_state_dict(state)
    other.epoch = 1  # as a training loop over epochs would set it
    assert indices_of(other) == expected
    loader.load_state_dict(state)  # back
    assert indices_of(loader) == expected


def test_a_state_holds_for_the_same_samples_by_the_name_of_their_split_or_without(tmp_path: Path) -> None:
    for split in ("train", "train val"):
        for name in split.split():
            write_tree(tmp_path / split / name, {f"{i}.txt": b"%d" % i for i in range(12)})
        sources = {name: tmp_path / split / name for name in split.split()}
        pt.pack(sources, tmp_path / f"{split}.pt", sync=False)

    def make(path: str, split: str | None) -> pt.Loader:
        return pt.Loader(pt.Dataset(tmp_path / path, split=split), batch_size=4, seed=2)

    first, second = make("train.pt", None), make("train.pt", "train")
    for loader, other in ((first, second), (second, first)):
        batches = iter(loader)
        next(batches)
        other.load_state_dict(loader.state_dict())
        np.testing.assert_array_equal(next(iter(other))["index"], next(batches)["index"])
    for split, other_split in ((None, "train"), ("train", None), ("train", "val")):
        state = make("train val.pt", split).state_dict()
        with pytest.raises(pt.InvalidError):
            make("train val.pt", other_split).load_state_dict(state)


@pytest.mark.parametrize("taken", [0, 2, 5])
def test_without_shuffling_a_resumed_run_keeps_to_the_epoch_that_was_set(
    train: pt.Dataset, taken: int
) -> None:
    def crops(loader: pt.Loader) -> list[Any]:
        return [batch["image"] for batch in loader]

    def make(batch_size: int = 6) -> pt.Loader:
        return pt.Loader(train, batch_size=batch_size, shuffle=False, seed=4, image=pt.RandomResizedCrop(8))

    whole = make()
    whole.epoch = 3
    first = crops(whole)
    assert not all(map(np.array_equal, first, crops(make())))
    stopped = make()
    stopped.epoch = 3
    for _ in zip(range(taken), stopped):
        pass
    state = json.loads(json.dumps(stopped.state_dict()))
    resumed = make()
    resumed.load_state_dict(state)
    rest = crops(resumed)
    assert all(map(np.array_equal, rest, first[taken % len(first) :]))
    for again in (crops(resumed), crops(resumed)):
        assert len(again) == len(first)
        assert all(map(np.array_equal, again, first))
    if taken == 5:  # what is left is less than a batch: the same epoch begins anew
        larger = make(batch_size=12)
        larger.load_state_dict(state)
        np.testing.assert_array_equal(next(iter(larger))["image"][:6], first[0])


@pytest.mark.parametrize("last", ["drop", "pad", "keep"])
def test_a_state_at_the_last_batch_begins_the_next_epoch(train: pt.Dataset, last: Any) -> None:
    loader = pt.Loader(train, batch_size=10, last=last)
    for _ in zip(range(len(loader)), loader):  # as frameworks do: they never ask for one more
        assert loader.epoch == 0
        state = loader.state_dict()
    assert (state["epoch"], state["consumed"]) == (1, 0)
    loader.load_state_dict(state)
    assert indices_of(loader) == indices_of(pt.Loader(train, batch_size=10, last=last), epoch=1)


def test_a_state_too_near_the_end_for_a_larger_batch_begins_the_next_epoch(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=8)
    for _ in zip(range(3), loader):
        state = loader.state_dict()
    larger = pt.Loader(train, batch_size=20)
    larger.load_state_dict(state)
    assert indices_of(larger) == indices_of(pt.Loader(train, batch_size=20), epoch=1)
    kept = pt.Loader(train, batch_size=20, last="keep")
    kept.load_state_dict(state)
    assert len(indices_of(kept)) == 36 - 24


def test_setting_the_epoch_keeps_a_place_within_it(train: pt.Dataset) -> None:
    loader = pt.Loader(train, batch_size=6)
    next(iter(loader))
    state = loader.state_dict()
    loader.load_state_dict(state)
    loader.epoch = 0
    assert len(list(loader)) == 5
    loader.load_state_dict(state)
    loader.epoch = 3
    assert len(list(loader)) == 6


def test_a_state_of_something_else_is_refused(packed: Path, photos: Path, tmp_path: Path) -> None:
    def loader(path: Path = packed, split: str = "train", **options: Any) -> pt.Loader:
        return pt.Loader(path, split=split, batch_size=4, **options)

    state = loader().state_dict()
    pt.pack(photos, tmp_path / "other.pt", shards=2, sync=False)
    target = loader(tmp_path / "other.pt")
    with pytest.raises(pt.InvalidError, match="another dataset"):
        target.load_state_dict(state)
    assert len(list(target)) == 9  # it stays what it was
    with pytest.raises(pt.InvalidError, match="another split"):
        loader(split="val").load_state_dict(state)
    with pytest.raises(pt.InvalidError, match="another order"):
        loader(order="streams").load_state_dict(state)
    with pytest.raises(pt.InvalidError, match="another order"):
        loader(shuffle=False).load_state_dict(state)
    with pytest.raises(pt.InvalidError, match="another selection"):
        loader(indices=range(8)).load_state_dict(state)
    for wrong in ({}, {"version": 1}, {**state, "more": 1}, {**state, "consumed": "x"}):
        with pytest.raises(pt.CorruptError):
            loader().load_state_dict(wrong)


def test_a_state_never_takes_the_shuffle_away(train: pt.Dataset) -> None:
    unshuffled = pt.Loader(train, batch_size=4, shuffle=False).state_dict()
    loader = pt.Loader(train, batch_size=4)
    with pytest.raises(pt.InvalidError, match="another order: 'source'"):
        loader.load_state_dict(unshuffled)
    assert loader.order == "global"


def test_the_order_of_a_state_wins_over_auto(train: pt.Dataset) -> None:
    streams = pt.Loader(train, batch_size=4, order="streams", seed=2)
    next(iter(streams))
    loader = pt.Loader(train, batch_size=4)
    assert loader.order == "global"
    loader.load_state_dict(streams.state_dict())
    assert loader.order == "streams"
    rest = pt.Loader(train, batch_size=4, order="streams", seed=2)
    assert indices_of(loader) == indices_of(rest)[4:]


# Bad samples


def test_a_bad_sample_is_raised_by_name(copy: Path) -> None:
    damage(copy, [7])
    loader = pt.Loader(copy, split="train", batch_size=6, image=IMAGE)
    with pytest.raises(pt.CorruptError, match=r"sample 7 \("):
        list(loader)


def test_bad_samples_are_skipped_within_a_budget(copy: Path) -> None:
    damage(copy, [7, 20])
    loader = pt.Loader(copy, split="train", batch_size=6, image=IMAGE, on_error="skip")
    for _ in range(2):
        batches = list(loader)
        assert len(batches) == 6
        assert sorted(i for b in batches for i in b["index"]) == sorted(set(range(36)) - {7, 20})
        assert all(len(b["image"]) == len(b["label"]) == len(b["index"]) for b in batches)
    report = loader.report()
    assert report.errors == 4
    assert {bad.index for bad in report.bad} == {7, 20}
    assert report.bad[0].key in str(report)
    strict = pt.Loader(copy, split="train", batch_size=6, image=IMAGE, on_error="skip", max_errors=1)
    with pytest.raises(pt.CorruptError, match="max_errors"):
        list(strict)


def test_bad_samples_are_replaced_and_flagged(copy: Path) -> None:
    damage(copy, [7, 20])
    runs = []
    for workers in (1, 3):
        loader = pt.Loader(
            copy, split="train", batch_size=6, image=IMAGE, on_error="replace", threads=workers, seed=4
        )
        batches = list(loader)
        assert all(len(batch["index"]) == 6 for batch in batches)
        replaced = np.concatenate([batch["replaced"] for batch in batches])
        assert replaced.dtype == np.bool_
        assert replaced.sum() == 2
        runs.append(np.concatenate([batch["index"] for batch in batches]).tolist())
        assert {7, 20}.isdisjoint(runs[-1])
        report = loader.report()
        assert (report.samples, report.errors, report.replaced) == (36, 2, 2)
        assert sorted(bad.index for bad in report.bad) == [7, 20]
        assert "2 samples (5.6 %) could not be loaded; 2 of their places have another; the first is" in str(
            report
        )
    assert runs[0] == runs[1]


def test_what_is_drawn_in_its_place_depends_on_seed_epoch_and_position_alone(copy: Path) -> None:
    """Not on ranks, and not on what was loaded before."""
    damage(copy, [7, 20])
    options: dict[str, Any] = {"global_batch_size": 6, "image": IMAGE, "on_error": "replace", "seed": 4}
    whole = pt.Loader(copy, split="train", **options)
    epochs = [[batch["index"].tolist() for batch in whole] for _ in range(2)]
    shared = [pt.Loader(copy, split="train", **options, rank=rank, world_size=3) for rank in range(3)]
    for epoch in epochs:
        parts = [[batch["index"].tolist() for batch in loader] for loader in shared]
        assert [[index for part in step for index in part] for step in zip(*parts)] == epoch
    resumed = pt.Loader(copy, split="train", **options)
    resumed.load_state_dict({**resumed.state_dict(), "epoch": 1, "consumed": 18})
    assert [batch["index"].tolist() for batch in resumed] == epochs[1][3:]
    places = [
        [index for step in epoch for index in step].count(index) for epoch in epochs for index in range(36)
    ]
    assert places.count(0) == 4  # the bad ones of two epochs; the others that come twice are good ones
    assert places.count(2) == 4


# What is left behind


@pytest.fixture
def running(train: pt.Dataset) -> pt.Loader:
    return pt.Loader(train, batch_size=4, image=IMAGE)


def test_a_break_ends_the_threads(running: pt.Loader) -> None:
    before = threads_at_rest()
    for _ in running:
        assert threads() > before
        break
    assert threads_end(before)
    assert len(list(running)) == 9


def test_close_and_with_end_the_threads(train: pt.Dataset) -> None:
    before = threads_at_rest()
    with pt.Loader(train, batch_size=4, image=IMAGE) as loader:
        iterator = iter(loader)
        batch = next(iterator)
        assert threads() > before
    assert threads_end(before)
    assert batch["image"].sum() > 0
    with pytest.raises(pt.InvalidError, match="closed"):
        next(iterator)
    with pytest.raises(pt.InvalidError, match="closed"):
        iter(loader)
    loader.close()
    assert loader.report().batches == 1


def test_a_forgotten_loader_ends_its_threads(train: pt.Dataset) -> None:
    before = threads_at_rest()
    loader = pt.Loader(train, batch_size=4, image=IMAGE)
    indices_of(loader)
    assert threads() > before  # the next epoch is being read ahead
    del loader
    gc.collect()
    assert threads_end(before)


def test_a_loader_that_holds_its_own_iterator_is_given_up_too(train: pt.Dataset) -> None:
    before = threads_at_rest()
    loader: Any = pt.Loader(train, batch_size=4, image=IMAGE)
    loader._iterator = iter(loader)
    next(loader._iterator)
    assert threads() > before
    del loader
    gc.collect()
    assert threads_end(before)


def test_iterators_come_from_loaders_alone() -> None:
    iterator = pt._core.Epoch.__new__(pt._core.Epoch)
    with pytest.raises(TypeError, match=r"made by iter\(loader\)"):
        next(iterator)


def test_a_program_may_end_at_any_moment(packed: Path) -> None:
    program = f"""
import packtrain as pt
loader = pt.Loader({str(packed)!r}, split="train", batch_size=4, image=pt.CenterCrop(24, 32))
iterator = iter(loader)
batch = next(iterator)
"""
    for end in ("", "raise SystemExit(0)"):
        done = subprocess.run(
            [sys.executable, "-c", program + end], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_it_does_not_pickle_and_does_not_fork(running: pt.Loader) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(running)
    next(iter(running))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            list(running)
            os.write(writing, b"loaded")
        except pt.InvalidError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"after fork()" in os.read(reading, 1000)
    os.close(reading)
    os.close(writing)
    assert len(list(running)) == 9


def test_two_loaders_side_by_side(train: pt.Dataset) -> None:
    one, two = (pt.Loader(train, batch_size=4, image=IMAGE, seed=seed) for seed in (1, 1))
    for a, b in zip(one, two):
        assert np.array_equal(a["image"], b["image"])
        assert a["index"].tolist() == b["index"].tolist()


# The report


def test_the_report_has_figures_a_verdict_and_a_text(running: pt.Loader) -> None:
    assert running.report().batches == 0
    indices_of(running)
    report = running.report()
    assert (report.batches, report.samples, report.errors, report.bad) == (9, 36, 0, [])
    assert report.bytes > 0
    assert report.seconds >= report.seconds_waited > 0
    assert report.limit in ("storage", "decode", "training", "unknown")
    assert report.python_seconds == 0
    assert "36 samples in 9 batches" in str(report)
    with pytest.raises(AttributeError):
        report.samples = 3  # type: ignore[misc]


def test_the_report_says_what_was_left_out_and_what_was_passed_over(copy: Path, photos: Path) -> None:
    damage(copy, [7])
    skipping = pt.Loader(copy, split="train", batch_size=6, image=IMAGE, on_error="skip")
    list(skipping)
    report = skipping.report()
    assert (report.samples, report.errors, report.replaced, report.warnings) == (35, 1, 0, 0)
    assert "1 sample (2.8 %) could not be loaded; the first is" in str(report)
    photo = next(photos.rglob("*.jpg")).read_bytes()
    odd = photo[:20] + b"stray" + photo[20:]  # between the first two segments
    source = write_tree(copy.parent / "odd", {"a/1.jpg": odd, "a/2.jpg": photo, "b/1.jpg": odd})
    pt.pack(source, copy.parent / "odd.pt")
    loader = pt.Loader(copy.parent / "odd.pt", batch_size=3, image=IMAGE)
    for epoch in (1, 2):
        list(loader)
        assert loader.report().warnings == 2 * epoch
    assert "4 oddities in images were passed over, as no pixel depends on them" in str(loader.report())
    assert loader.report().errors == 0


def test_the_report_of_too_little_says_so(running: pt.Loader) -> None:
    next(iter(running))
    assert running.report().limit == "unknown"
    assert str(running.report()).splitlines()[2] == "limit: unknown. Too little was loaded to tell."


def test_what_it_prints(running: pt.Loader, packed: Path) -> None:
    assert repr(running) == (
        f"packtrain.Loader({str(packed)!r}, split='train', batch_size=4, rank=0, world_size=1, "
        "order='global', batches=9)"
    )


def test_the_state_is_the_same_on_ranks_of_which_one_alone_has_a_last_batch(train: pt.Dataset) -> None:
    loaders = [
        pt.Loader(train, batch_size=5, last="keep", rank=rank, world_size=3, indices=range(31), fields=[])
        for rank in range(3)
    ]
    assert [len(loader) for loader in loaders] == [3, 2, 2]
    runs = [iter(loader) for loader in loaders]
    for consumed in (15, 30):
        for run in runs:
            next(run)
        assert [(state["epoch"], state["consumed"]) for state in map(pt.Loader.state_dict, loaders)] == [
            (0, consumed)
        ] * 3
    state = loaders[1].state_dict()  # whose own batches of the epoch are all done
    rest = []
    for rank in range(2):
        loader = pt.Loader(
            train, batch_size=5, last="keep", rank=rank, world_size=2, indices=range(31), fields=[]
        )
        loader.load_state_dict(state)
        rest += [index for batch in loader for index in batch["index"].tolist()]
    assert len(rest) == 1
    next(runs[0])
    for run in runs:
        assert next(run, None) is None
    assert {(state["epoch"], state["consumed"]) for state in map(pt.Loader.state_dict, loaders)} == {(1, 0)}
