"""order="streams": its window, and states that go on elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import packtrain as pt
import pytest


@pytest.fixture
def train(packed: Path) -> pt.Dataset:
    return pt.Dataset(packed, split="train")


def streams(data: pt.Dataset, **options: Any) -> pt.Loader:
    return pt.Loader(data, **{"batch_size": 2, "fields": [], "order": "streams", "last": "keep", **options})


def indices(loader: pt.Loader) -> list[int]:
    return [index for batch in loader for index in batch["index"].tolist()]


def test_a_run_goes_on_on_any_number_of_ranks(train: pt.Dataset) -> None:
    """With the chains that it has by itself: 64, or more where its ranks need them."""
    worlds = (1, 2, 3, 4, 5, 7)
    for before in worlds:
        first = [streams(train, rank=rank, world_size=before) for rank in range(before)]
        iterators = [iter(loader) for loader in first]
        seen = [i for iterator in iterators for i in next(iterator)["index"].tolist()]
        states = [loader.state_dict() for loader in first]
        assert all(state == states[0] for state in states)
        for after in worlds:
            rest = list(seen)
            for rank in range(after):
                loader = streams(train, rank=rank, world_size=after, batch_size=3)
                loader.load_state_dict(states[0])
                rest += indices(loader)
            assert sorted(rest) == list(range(36)), (before, after)


def test_window_and_pieces_are_those_of_the_state(train: pt.Dataset) -> None:
    run = streams(train, window=2**20)
    assert run.state_dict()["window_bytes"] == 2**20
    state = {**run.state_dict(), "window_bytes": 123_456, "piece_bytes": 9_000}
    for options in ({}, {"window": 2**20}):
        other = streams(train, **options)
        other.load_state_dict(state)
        now = other.state_dict()
        assert (now["window_bytes"], now["piece_bytes"]) == (123_456, 9_000)
        expected = streams(train, window=123_456)
        expected.load_state_dict({**expected.state_dict(), "piece_bytes": 9_000})
        assert indices(other) == indices(expected)


@pytest.mark.parametrize("window", [0, -1, 1.5, "4G", True, 2**64])
def test_a_window_that_cannot_be_is_a_sentence(train: pt.Dataset, window: Any) -> None:
    with pytest.raises(pt.InvalidError, match="window="):
        streams(train, window=window)
