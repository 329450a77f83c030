"""Mix: several datasets as one stream, by any number of ranks and over a resume."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import write_tree

IMAGE = pt.CenterCrop(24, 32)
LENGTH = 60


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photographs in four classes, with splits."""
    folder = tmp_path_factory.mktemp("first")
    pt.synth(folder / "tree", samples=30, classes=4, splits=True, seed=3)
    pt.pack(folder / "tree", folder / "first.pt", shards=3, sync=False)
    return folder / "first.pt"


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photographs in two other classes, without splits, in the field "jpeg"."""
    folder = tmp_path_factory.mktemp("second")
    pt.synth(folder / "photos", samples=11, classes=2, seed=4)
    files = {
        f"{'ab'[number % 2]}/{path.stem}.jpeg": path.read_bytes()
        for number, path in enumerate(sorted((folder / "photos").rglob("*.jpg")))
    }
    pt.pack(write_tree(folder / "tree", files), folder / "second.pt", sync=False)
    return folder / "second.pt"


@pytest.fixture
def mix(first: Path, second: Path) -> pt.Mix:
    return pt.Mix({pt.Dataset(first, split="train"): 0.7, second: 0.3}, epoch_length=LENGTH)


def seen_in(batch: dict[str, Any]) -> list[tuple[int, int, int]]:
    return list(zip(batch["source"].tolist(), batch["index"].tolist(), batch["label"].tolist()))


def steps_of(loader: pt.Loader) -> list[list[tuple[int, int, int]]]:
    return [seen_in(batch) for batch in loader]


def joined(ranks: list[list[list[tuple[int, int, int]]]]) -> list[list[tuple[int, int, int]]]:
    """What all ranks together get in each step."""
    return [list(itertools.chain(*step)) for step in itertools.zip_longest(*ranks, fillvalue=[])]


def test_a_batch_says_which_dataset_each_sample_is_of(mix: pt.Mix) -> None:
    loader = pt.Loader(mix, batch_size=20, image=IMAGE, seed=1)
    assert len(loader) == 3
    for batch in loader:
        assert list(batch) == ["image", "label", "index", "source"]
        assert batch["source"].dtype == np.int64
        for place, (source, index, label) in enumerate(seen_in(batch)):
            data = loader.datasets[source]
            assert label == data.labels[index]
            field = "jpg" if source == 0 else "jpeg"
            assert np.array_equal(batch["image"][place], IMAGE(data[index][field]))
    assert "first.pt" in repr(loader)
    assert "second.pt" in repr(loader)


def test_fractions_hold_in_every_window_and_each_dataset_has_its_own_epochs(mix: pt.Mix) -> None:
    loader = pt.Loader(mix, batch_size=10, image=IMAGE)
    sizes = [len(data) for data in loader.datasets]
    drawn: list[list[int]] = [[], []]
    for _ in range(4):
        for step in steps_of(loader):
            assert sum(source == 0 for source, _, _ in step) == 7
            for source, index, _ in step:
                drawn[source].append(index)
    for size, indices in zip(sizes, drawn):
        rounds = [tuple(indices[at : at + size]) for at in range(0, len(indices) - size + 1, size)]
        assert len(rounds) > 2
        assert all(sorted(once) == list(range(size)) for once in rounds)
        assert len(set(rounds)) == len(rounds)  # each shuffled anew


def test_every_world_size_gives_the_same_steps(mix: pt.Mix) -> None:
    def steps(world_size: int) -> list[list[tuple[int, int, int]]]:
        ranks = [
            pt.Loader(
                mix,
                global_batch_size=12,
                image=IMAGE,
                seed=9,
                rank=rank,
                world_size=world_size,
                threads=rank + 1,
            )
            for rank in range(world_size)
        ]
        return joined([steps_of(loader) for loader in ranks])

    expected = steps(1)
    assert len(expected) == LENGTH // 12
    for world_size in (2, 3, 4):
        assert steps(world_size) == expected


def test_a_state_goes_on_anywhere_on_another_number_of_ranks(mix: pt.Mix) -> None:
    whole = list(itertools.chain(*steps_of(pt.Loader(mix, batch_size=12, image=IMAGE, seed=5))))
    for stop in range(1, 5):
        running = pt.Loader(mix, batch_size=12, image=IMAGE, seed=5)
        taken = [seen_in(batch) for batch in itertools.islice(running, stop)]
        state = json.dumps(running.state_dict())
        assert len(state) < 1000
        ranks = []
        for rank in range(3):
            resumed = pt.Loader(mix, batch_size=2, image=IMAGE, last="keep", rank=rank, world_size=3)
            resumed.load_state_dict(json.loads(state))
            ranks.append(steps_of(resumed))
        assert list(itertools.chain(*taken, *joined(ranks))) == whole


def test_a_state_of_another_mix_is_refused(mix: pt.Mix, first: Path, second: Path) -> None:
    train = pt.Dataset(first, split="train")
    state = pt.Loader(mix, batch_size=4, image=IMAGE).state_dict()
    same = pt.Mix([(train, 70), (second, 30)], epoch_length=LENGTH)
    pt.Loader(same, batch_size=6, image=IMAGE).load_state_dict(state)
    for other, word in (
        (pt.Mix({train: 0.6, second: 0.4}, epoch_length=LENGTH), "mixture"),
        (pt.Mix({train: 0.7, second: 0.3}, epoch_length=LENGTH + 1), "mixture"),
        (pt.Mix({second: 0.7, train: 0.3}, epoch_length=LENGTH), "dataset"),
        (pt.Mix({pt.Dataset(first, split="val"): 0.7, second: 0.3}, epoch_length=LENGTH), "dataset"),
        (train, "dataset"),
    ):
        assert other != mix
        with pytest.raises(pt.InvalidError, match=f"another .*{word}"):
            pt.Loader(other, batch_size=4, image=IMAGE).load_state_dict(state)
    alone = pt.Loader(train, batch_size=4, image=IMAGE, order="streams").state_dict()
    with pytest.raises(pt.InvalidError, match="another dataset"):
        pt.Loader(mix, batch_size=4, image=IMAGE).load_state_dict(alone)


def test_fractions_are_relative_to_their_sum(mix: pt.Mix, first: Path, second: Path) -> None:
    train = pt.Dataset(first, split="train")
    scaled = pt.Mix({train: 7, second: 3}, epoch_length=LENGTH)
    assert scaled.fractions == mix.fractions
    assert steps_of(pt.Loader(scaled, batch_size=10, image=IMAGE)) == steps_of(
        pt.Loader(mix, batch_size=10, image=IMAGE)
    )


def test_a_mix_is_a_plain_value(first: Path, second: Path) -> None:
    mix = pt.Mix({first: np.float32(1), second: 3}, epoch_length=8)
    assert mix.fractions == (0.25, 0.75)
    assert mix == pt.Mix([(first, 25), (second, 75)], epoch_length=8)
    assert mix != pt.Mix([(first, 25), (second, 75)])
    with pytest.raises(AttributeError):
        mix.epoch_length = 9  # type: ignore[misc]


def test_one_dataset_may_be_gone_through_in_epochs_of_another_length(second: Path) -> None:
    loader = pt.Loader(pt.Mix({second: 1}, epoch_length=16), batch_size=8, image=IMAGE)
    indices = [index for _ in range(3) for step in steps_of(loader) for _, index, _ in step]
    assert len(indices) == 48
    assert all(sorted(indices[at : at + 11]) == list(range(11)) for at in range(0, 44, 11))


def test_an_epoch_is_as_long_as_all_datasets_unless_said(first: Path, second: Path) -> None:
    mix = pt.Mix({pt.Dataset(first): 1, second: 1})
    assert len(pt.Loader(mix, batch_size=1, image=IMAGE)) == 30 + 11


def test_split_is_for_those_without_one_of_their_own(first: Path, copy: Path) -> None:
    loader = pt.Loader(pt.Mix({pt.Dataset(first, split="val"): 1, copy: 1}), split="train", batch_size=1)
    assert [data.split for data in loader.datasets] == ["val", "train"]
    with pytest.raises(pt.InvalidError, match="say which to load with split="):
        pt.Loader(pt.Mix({first: 1}), batch_size=1)


def test_without_shuffling_each_dataset_comes_as_it_lies(mix: pt.Mix) -> None:
    loader = pt.Loader(mix, batch_size=10, image=IMAGE, shuffle=False)
    assert loader.order == "source"
    once, again = steps_of(loader), steps_of(loader)
    assert once == again
    indices = [index for step in once for source, index, _ in step if source == 1]
    assert indices == [number % 11 for number in range(18)]


def test_last_pads_and_keeps(mix: pt.Mix) -> None:
    padded = list(pt.Loader(mix, batch_size=16, image=IMAGE, last="pad"))
    assert [len(batch["index"]) for batch in padded] == [16] * 4
    assert sum(int(batch["padding"].sum()) for batch in padded) == 4
    kept = pt.Loader(mix, batch_size=16, image=IMAGE, last="keep")
    assert [len(batch["index"]) for batch in kept] == [16, 16, 16, 12]


def test_bad_samples_are_named_with_their_dataset(first: Path, copy: Path) -> None:
    victim = pt.Dataset(copy, split="train")[3]["jpg"]
    for shard in copy.glob("*.tar"):
        shard.write_bytes(shard.read_bytes().replace(victim, bytes(len(victim))))
    mix = pt.Mix({first: 0.5, copy: 0.5}, epoch_length=120)
    options: dict[str, Any] = {"split": "train", "batch_size": 20, "image": IMAGE, "max_errors": 100}
    replacing = pt.Loader(mix, on_error="replace", **options)
    batches = list(replacing)
    assert [len(batch["index"]) for batch in batches] == [20] * 6
    replaced = sum(int(batch["replaced"].sum()) for batch in batches)
    report = replacing.report()
    assert replaced == report.errors >= 1
    assert {(bad.source, bad.index) for bad in report.bad} == {(1, 3)}
    assert all(batch["source"][batch["replaced"]].tolist() in ([], [1], [1, 1]) for batch in batches)
    skipping = pt.Loader(mix, on_error="skip", **options)
    assert sum(len(batch["index"]) for batch in skipping) == 120 - replaced
    with pytest.raises(pt.CorruptError, match=r"sample 3 .*copy\.pt"):
        list(pt.Loader(mix, **options))


def test_indices_are_a_function_of_each_dataset(mix: pt.Mix) -> None:
    loader = pt.Loader(mix, batch_size=10, image=IMAGE, indices=lambda data: data.labels == 0)
    labels = [label for step in steps_of(loader) for _, _, label in step]
    assert labels == [0] * LENGTH
    with pytest.raises(pt.InvalidError, match="function"):
        pt.Loader(mix, batch_size=10, image=IMAGE, indices=[1, 2])


def test_weights_are_a_function_of_each_dataset(mix: pt.Mix) -> None:
    def only_first_class(data: pt.Dataset) -> Any:
        return [1, 0, 0, 0] if len(data.classes) == 4 else None

    loader = pt.Loader(mix, batch_size=10, image=IMAGE, weights=only_first_class)
    seen = [sample for step in steps_of(loader) for sample in step]
    assert {label for source, _, label in seen if source == 0} == {0}
    assert sorted({index for source, index, _ in seen if source == 1}) == list(range(11))


def test_fields_must_be_in_every_dataset(mix: pt.Mix, first: Path, copy: Path) -> None:
    with pytest.raises(pt.InvalidError, match=r"second\.pt: .*different fields.*fields="):
        pt.Loader(mix, batch_size=4)
    with pytest.raises(pt.InvalidError, match=r"second\.pt: .*has no 'jpg'"):
        pt.Loader(mix, batch_size=4, fields=["jpg"])
    loader = pt.Loader(pt.Mix({first: 1, copy: 1}), split="train", batch_size=4)
    batch = next(iter(loader))
    for place, (source, index, _) in enumerate(seen_in(batch)):
        assert batch["jpg"].tolist()[place] == loader.datasets[source][index]["jpg"]


def test_what_is_no_mix_is_refused(mix: pt.Mix, first: Path, second: Path) -> None:
    for parts in ({}, {first: 0}, {first: 1, second: -1}, {first: float("nan")}, {first: "a"}):
        with pytest.raises(pt.InvalidError):
            pt.Mix(parts)
    with pytest.raises(pt.InvalidError, match="epoch_length"):
        pt.Mix({first: 1}, epoch_length=0)
    with pytest.raises(pt.InvalidError, match="weights= of a mix is a function"):
        pt.Loader(mix, batch_size=4, image=IMAGE, weights=[1, 1, 1, 1])
    with pytest.raises(pt.InvalidError, match="streams"):
        pt.Loader(mix, batch_size=4, image=IMAGE, order="streams")
    with pytest.raises(pt.InvalidError, match=r"second\.pt: .*no samples to mix; leave it out"):
        pt.Loader(
            pt.Mix({pt.Dataset(first, split="train"): 1, second: 1}),
            batch_size=4,
            image=IMAGE,
            indices=lambda data: data.labels == 3,
        )
