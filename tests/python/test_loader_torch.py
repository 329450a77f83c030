"""packtrain.torch: tensors on the batch's memory, pinned ones, DataLoader, Lightning, Accelerate."""

from __future__ import annotations

import gc
import multiprocessing
import os
import socket
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from field_files import npy, packed_values

torch = pytest.importorskip("torch", reason="no torch here; the stage `torch` of ./dev test has it")

import packtrain.torch as ptt  # noqa: E402

IMAGE = pt.CenterCrop(24, 32)


@pytest.fixture
def train(packed: Path) -> pt.Dataset:
    return pt.Dataset(packed, split="train")


def batch_of(train: pt.Dataset, **options: Any) -> dict[str, Any]:
    return next(iter(ptt.Loader(train, batch_size=4, shuffle=False, **options)))  # type: ignore[no-any-return]


@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
def test_tensors_are_those_of_the_arrays(train: pt.Dataset, dtype: Any, layout: Any) -> None:
    spec = pt.CenterCrop(24, 32, dtype=dtype, layout=layout)
    batch = batch_of(train, image=spec)
    image = batch["image"]
    assert image.shape == (4, 3, 24, 24)
    assert image.dtype == getattr(torch, dtype)
    memory = torch.channels_last if layout == "HWC" else torch.contiguous_format
    assert image.is_contiguous(memory_format=memory)
    assert batch["label"].dtype == batch["index"].dtype == torch.int64
    exact = pt.CenterCrop(24, 32)
    expected = torch.stack([torch.from_numpy(exact(train[i]["jpg"])) for i in range(4)])
    scale = 255 if dtype == "uint8" else 1
    assert (image.float() / scale - expected).abs().max() < 0.01


def test_a_mix_says_which_dataset_each_sample_is_of(packed: Path, train: pt.Dataset) -> None:
    mix = pt.Mix({train: 0.75, pt.Dataset(packed, split="val"): 0.25}, epoch_length=16)
    loader = ptt.Loader(mix, batch_size=8, image=IMAGE)
    for batch in loader:
        assert batch["source"].dtype == torch.int64
        assert batch["source"].sum() == 2
        for source, index, label in zip(batch["source"], batch["index"], batch["label"]):
            assert loader.datasets[source].labels[index] == label


def test_tensors_share_the_memory_of_the_batch(train: pt.Dataset) -> None:
    class Watched(ptt.Loader):
        def _arrays(self, columns: dict[str, Any]) -> dict[str, Any]:
            self.pointers = {name: column.ctypes.data for name, column in columns.items()}
            return super()._arrays(columns)

    for layout in ("CHW", "HWC"):
        loader = Watched(train, batch_size=4, image=pt.CenterCrop(24, 32, dtype="bfloat16", layout=layout))
        batch = next(iter(loader))
        assert {name: tensor.data_ptr() for name, tensor in batch.items()} == loader.pointers
        expected = batch["image"].clone()
        image = batch["image"]
        del batch, loader
        gc.collect()
        list(ptt.Loader(train, batch_size=4, image=IMAGE))
        assert torch.equal(image, expected)


def test_flags_fields_and_transforms_become_tensors(train: pt.Dataset) -> None:
    def transform(sample: dict[str, Any]) -> dict[str, Any]:
        assert isinstance(sample["image"], torch.Tensor)
        return {**sample, "mean": sample["image"].mean(), "size": len(sample["jpg"])}

    batch = batch_of(train, image=IMAGE, fields=["jpg"], last="pad", on_error="replace", transform=transform)
    assert batch["padding"].dtype == batch["replaced"].dtype == torch.bool
    assert torch.allclose(batch["mean"], batch["image"].mean((1, 2, 3)))
    assert batch["size"].dtype == torch.int64
    assert isinstance(batch["jpg"], pt.BatchField)


class DelayedReuse:
    """Stands for torch's pinned allocator: a block that a copy still reads is not given out again."""

    def __init__(self) -> None:
        self.in_flight: list[tuple[Any, Any]] = []  # the block, and what it held when it was handed over

    def empty_like(self, tensor: Any, *, pin_memory: bool) -> Any:
        assert pin_memory
        block = torch.empty(tensor.shape, dtype=tensor.dtype)
        self.in_flight.append((block, tensor.clone()))
        return block


def test_pinned_batches_belong_to_torch_and_not_to_the_pool(
    train: pt.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocator = DelayedReuse()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    loader = ptt.Loader(train, batch_size=4, image=IMAGE, prefetch=1)
    assert loader.pin_memory
    monkeypatch.setattr(ptt.torch, "empty_like", allocator.empty_like)
    for _ in range(3):
        for batch in loader:
            blocks = {block.data_ptr() for block, _ in allocator.in_flight}
            assert all(tensor.data_ptr() in blocks for tensor in batch.values())
    # Every array is gone, every "copy" is still under way: none of the blocks was written again.
    assert len(allocator.in_flight) == 3 * 9 * 3
    assert all(torch.equal(block, held) for block, held in allocator.in_flight)
    assert loader.report().batches == 27


def test_tensors_inside_lists_are_pinned_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [np.arange(number + 1) for number in range(4)]
    data = packed_values(tmp_path, "npy", [npy(value) for value in values])
    allocator = DelayedReuse()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    def nested(sample: dict[str, Any]) -> dict[str, Any]:
        return {"npy": sample["npy"], "more": {"pair": (sample["npy"] * 2, "text")}}

    fields = {"npy": "npy"}
    loader = ptt.Loader(data, batch_size=4, shuffle=False, fields=fields, transform=nested)
    monkeypatch.setattr(ptt.torch, "empty_like", allocator.empty_like)
    batch = next(iter(loader))
    blocks = {block.data_ptr() for block, _ in allocator.in_flight}
    assert isinstance(batch["npy"], list)
    for value, tensor, more in zip(values, batch["npy"], batch["more"]):
        assert tensor.tolist() == value.tolist()
        assert tensor.data_ptr() in blocks
        doubled, text = more["pair"]
        assert doubled.data_ptr() in blocks
        assert doubled.tolist() == (value * 2).tolist()
        assert text == "text"


def test_pinning_follows_cuda(train: pt.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert not ptt.Loader(train, batch_size=4).pin_memory
    with pytest.warns(UserWarning, match="no effect"):
        assert not ptt.Loader(train, batch_size=4, pin_memory=True).pin_memory
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert ptt.Loader(train, batch_size=4).pin_memory
    assert not ptt.Loader(train, batch_size=4, pin_memory=False).pin_memory
    for wrong in ("yes", None, 1):
        with pytest.raises(pt.InvalidError, match='pin_memory= is True, False or "auto"'):
            ptt.Loader(train, batch_size=4, pin_memory=wrong)  # type: ignore[arg-type]


def test_it_looks_like_a_data_loader(train: pt.Dataset) -> None:
    loader = ptt.Loader(train, batch_size=4, image=IMAGE)
    assert (len(loader), len(loader.dataset), loader.batch_size, loader.drop_last) == (9, 36, 4, True)
    assert (loader.num_workers, loader.batch_sampler) == (0, None)
    assert repr(loader).startswith("packtrain.torch.Loader(")
    loader.set_epoch(3)
    assert loader.epoch == 3
    for name in ("num_workers", "pin_memory", "batch_size"):
        with pytest.raises(AttributeError, match=f"{name} of a loader cannot be changed"):
            setattr(loader, name, 2)
    loader.sampler.set_epoch(4)
    assert loader.epoch == 4
    assert not loader.end_of_dataloader
    for _ in range(2):
        assert [loader.end_of_dataloader for _ in loader] == [False] * 8 + [True]
    with ptt.Loader(train, batch_size=4) as inside:
        assert isinstance(inside, ptt.Loader)


# Dataset under torch's own DataLoader


def size_and_label(sample: dict[str, Any]) -> tuple[int, int]:
    return len(sample["jpg"]), sample["cls"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_the_dataset_is_safe_in_workers(packed: Path, method: str) -> None:
    data = ptt.Dataset(packed, "train", fields=["jpg", "cls"], transform=size_and_label)
    assert len(data) == 36
    expected = [size_and_label(sample) for sample in pt.Dataset(packed, split="train")]
    assert [data[position] for position in range(36)] == expected
    loader = torch.utils.data.DataLoader(
        data,
        batch_size=5,
        num_workers=2,
        persistent_workers=True,
        multiprocessing_context=multiprocessing.get_context(method),
    )
    for _ in range(2):
        got = [pair for sizes, labels in loader for pair in zip(sizes.tolist(), labels.tolist())]
        assert got == expected


def test_the_dataset_knows_labels_and_classes(packed: Path, train: pt.Dataset) -> None:
    data = ptt.Dataset(packed, split="train")
    assert data.classes == train.classes
    assert np.array_equal(data.labels, train.labels)
    assert data[3] == train[3]
    with pytest.raises(pt.InvalidError, match="split="):
        ptt.Dataset(packed)


# Training


def train_on_ranks(world_size: int, *arguments: object) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(__file__).with_name("ddp_training.py")
    launcher = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world_size)}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program), *map(str, arguments)],
            env={**os.environ, **launcher, "RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world_size)
    ]
    for process in ranks:
        _, said = process.communicate(timeout=600)
        assert process.returncode == 0, said


@pytest.mark.slow
def test_two_ranks_learn_and_resume_to_the_same_weights(tmp_path: Path) -> None:
    pt.synth(tmp_path / "photos", samples=200, classes=4, splits=True)
    pt.pack(tmp_path / "photos", tmp_path / "data", shards=4, sync=False)
    arguments = (tmp_path / "data", tmp_path / "checkpoint")
    train_on_ranks(2, *arguments, tmp_path / "whole", 10, 0)
    whole = torch.load(tmp_path / "whole", weights_only=True)
    assert whole["accuracy"] >= 0.75  # four classes: chance is 0.25

    train_on_ranks(2, *arguments, tmp_path / "none", 10, 38)  # in the middle of the fourth epoch
    assert not (tmp_path / "none").exists()
    saved = torch.load(tmp_path / "checkpoint", weights_only=True)["loader"]
    assert (saved["epoch"], saved["consumed"]) == (3, 5 * 16)
    train_on_ranks(2, *arguments, tmp_path / "resumed", 10, 0)
    resumed = torch.load(tmp_path / "resumed", weights_only=True)
    assert all(torch.equal(a, b) for a, b in zip(whole["weights"], resumed["weights"]))


# Frameworks


@pytest.mark.slow
def test_lightning_trains_checks_and_resumes(packed: Path, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3 * 24 * 24, 4)
            self.trained: list[list[int]] = []
            self.validated: list[list[int]] = []

        def training_step(self, batch: dict[str, Any]) -> Any:
            self.trained.append(batch["index"].tolist())
            return torch.nn.functional.cross_entropy(self.layer(batch["image"].flatten(1)), batch["label"])

        def validation_step(self, batch: dict[str, Any]) -> None:
            self.validated.append(batch["index"].tolist())

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    def loaders() -> tuple[ptt.Loader, ptt.Loader]:
        return (
            ptt.Loader(packed, split="train", batch_size=6, image=IMAGE, seed=1),
            ptt.Loader(packed, split="val", batch_size=2, image=IMAGE, shuffle=False),
        )

    def fit(epochs: int, **options: Any) -> Model:
        trainer = lightning.Trainer(
            max_epochs=epochs,
            default_root_dir=tmp_path,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        model = Model()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Lightning's advice on workers
            trainer.fit(model, *loaders(), **options)
        return model

    reference = ptt.Loader(packed, split="train", batch_size=6, image=IMAGE, seed=1)
    expected = [batch["index"].tolist() for _ in range(3) for batch in reference]
    first = fit(2)
    assert first.trained == expected[:12]
    assert first.validated == [[0, 1], [2, 3]] * 3  # the sanity check, and after each epoch
    (checkpoint,) = (tmp_path / "checkpoints").glob("*.ckpt")
    resumed = fit(3, ckpt_path=checkpoint, weights_only=False)
    assert resumed.trained == expected[12:]


@pytest.mark.slow
def test_accelerate_hands_it_through(train: pt.Dataset) -> None:
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    loader = ptt.Loader(train, batch_size=6, image=IMAGE)
    model = torch.nn.Linear(3 * 24 * 24, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    accelerator = accelerate.Accelerator(cpu=True)
    model, optimizer, prepared = accelerator.prepare(model, optimizer, loader)
    seen: list[int] = []
    for batch in prepared:
        loss = torch.nn.functional.cross_entropy(model(batch["image"].flatten(1)), batch["label"])
        accelerator.backward(loss)
        optimizer.step()
        seen += batch["index"].tolist()
    assert sorted(seen) == list(range(36))
    assert len(prepared) == 6


@pytest.mark.slow
def test_the_lines_for_accelerate_accumulate_to_the_end_of_an_epoch(train: pt.Dataset) -> None:
    """Those of docs/loader.md, as they stand, against the same by hand: nine batches in groups of four."""
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    page = (Path(__file__).resolve().parents[2] / "docs" / "loader.md").read_text()
    lines = page.partition("### Accelerate")[2].partition("```python\n")[2].partition("```")[0]

    def made() -> tuple[Any, Any]:
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 24 * 24, 4))
        return model, torch.optim.SGD(model.parameters(), lr=0.1)

    model, optimizer = made()
    loader = ptt.Loader(train, batch_size=4, seed=2, image=IMAGE)
    names: dict[str, Any] = {"model": model, "optimizer": optimizer, "loader": loader, "torch": torch}
    exec(lines, names)
    assert all(torch.isfinite(weight).all() for weight in model.parameters())

    by_hand, optimizer = made()
    batches = list(ptt.Loader(train, batch_size=4, seed=2, image=IMAGE))
    for group in (batches[:4], batches[4:8], batches[8:]):
        for batch in group:
            loss = torch.nn.functional.cross_entropy(by_hand(batch["image"]), batch["label"])
            (loss / 4).backward()
        optimizer.step()
        optimizer.zero_grad()
    for ours, theirs in zip(model.parameters(), by_hand.parameters()):
        assert torch.equal(ours, theirs)
