"""What packtrain writes is read by everyone else's tools, and what they write by packtrain."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import read_tree, write_tree


@pytest.fixture(scope="module", params=["plain", "dotted"])
def sidecars(photos: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Also with names of splits that have dots, of which readers may take a part for an extension."""
    out = tmp_path_factory.mktemp("interop") / "out"
    dotted = {"v1.0": photos / "train", "a.b.tar": photos / "val"}
    source = dotted if request.param == "dotted" else photos
    pt.pack(source, out, shards=4, sync=False, sidecars=["wids", "dali", "energon"])
    return out


@pytest.fixture(scope="module")
def zipped(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("interop") / "zip"
    pt.pack(photos, out, format="zip", shards=4, sync=False)
    return out


def shards_of(data: Path) -> list[Path]:
    return [data / shard.path for shard in pt.Dataset(data).shards]


def by_key(data: Any) -> dict[str, tuple[bytes, int]]:
    return {sample["__key__"]: (sample["jpg"], int(sample["cls"])) for sample in data}


# What packtrain writes


def test_webdataset_reads_our_shards(packed: Path) -> None:
    wds = pytest.importorskip("webdataset")
    got = list(wds.WebDataset([str(shard) for shard in shards_of(packed)], shardshuffle=False))
    ours = list(pt.Dataset(packed))
    assert [sample["__key__"] for sample in got] == [sample["__key__"] for sample in ours]
    assert by_key(got) == by_key(ours)


def test_tarfile_and_gnu_tar_read_our_shards(packed: Path, tmp_path: Path) -> None:
    expected = {}
    for sample in pt.Dataset(packed):
        expected[sample["__key__"] + ".jpg"] = sample["jpg"]
        expected[sample["__key__"] + ".cls"] = str(sample["cls"]).encode()
    by_tarfile = {}
    for shard in shards_of(packed):
        with tarfile.open(shard) as file:
            for member in file:
                assert member.isreg()
                assert (member.mtime, member.uid, member.gid, member.mode) == (0, 0, 0, 0o444)
                assert (member.pax_headers, len(member.name) <= 100) == ({}, True)
                content = file.extractfile(member)
                assert content is not None
                by_tarfile[member.name] = content.read()
        done = subprocess.run(
            ["tar", "-C", tmp_path, "-xf", shard], capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
    assert by_tarfile == expected
    assert read_tree(tmp_path) == expected


def test_hugging_face_datasets_reads_our_shards(packed: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    files = {"train": [str(shard) for shard in shards_of(packed)]}
    stream = datasets.load_dataset("webdataset", data_files=files, split="train", streaming=True)
    stream = stream.cast_column("jpg", datasets.Image(decode=False))
    got = {row["__key__"]: (row["jpg"]["bytes"], int(row["cls"])) for row in stream}
    assert got == by_key(pt.Dataset(packed))


def test_zipfile_and_info_zip_read_our_zips(zipped: Path, tmp_path: Path) -> None:
    expected = {}
    for sample in pt.Dataset(zipped):
        expected[sample["__key__"] + ".jpg"] = sample["jpg"]
        expected[sample["__key__"] + ".cls"] = str(sample["cls"]).encode()
    by_zipfile = {}
    for shard in shards_of(zipped):
        with zipfile.ZipFile(shard) as file:
            assert file.testzip() is None
            by_zipfile.update({name: file.read(name) for name in file.namelist()})
        subprocess.run(["unzip", "-q", shard, "-d", tmp_path], check=True)
    assert by_zipfile == expected
    assert read_tree(tmp_path) == expected


def test_compressed_zips_too(tmp_path: Path) -> None:
    files = {f"k/{n}.txt": b"many many words " * 500 for n in range(20)}
    write_tree(tmp_path / "tree", files)
    pt.pack(tmp_path / "tree", tmp_path / "out", format="zip", compress="deflate", sync=False)
    (shard,) = shards_of(tmp_path / "out")
    assert shard.stat().st_size < 20_000
    with zipfile.ZipFile(shard) as file:
        assert file.testzip() is None
        assert {info.compress_type for info in file.infolist() if info.filename.endswith(".txt")} == {8}
    assert [sample["txt"] for sample in pt.Dataset(tmp_path / "out")] == [b"many many words " * 500] * 20


def test_numpy_loads_the_index(packed: Path) -> None:
    data = pt.Dataset(packed)
    with np.load(packed / "index.npz") as index:
        assert index["label"].tolist() == data.labels.tolist()
        field = data.fields.index("jpg")
        starts = index["offset"] + index[f"f{field}.offset"]
        lengths = index[f"f{field}.length"]
        shards = [shard.read_bytes() for shard in shards_of(packed)]
        for position, sample in enumerate(data):
            shard = shards[index["shard"][position]]
            start = int(starts[position])
            assert shard[start : start + int(lengths[position])] == sample["jpg"]
    with np.load(packed / "names.npz") as names:
        ends = names["key.end"].tolist()
        text = names["key.bytes"].tobytes()
        keys = [text[begin:end].decode() for begin, end in zip([0, *ends], ends)]
        assert keys == list(data.keys)


def test_wids_index(sidecars: Path) -> None:
    for split, count in pt.Dataset(sidecars).splits.items():
        index = json.loads((sidecars / f"{split}.wids.json").read_text())
        assert (index["__kind__"], index["wids_version"]) == ("wids-shard-index-v1", 1)
        assert sum(shard["nsamples"] for shard in index["shardlist"]) == count
        for shard in index["shardlist"]:
            path = sidecars / shard["url"]
            assert shard["filesize"] == path.stat().st_size
            with tarfile.open(path) as file:
                assert len({name.split(".")[0] for name in file.getnames()}) == shard["nsamples"]


def test_dali_index_is_what_its_own_tool_derives_from_gnu_tar(sidecars: Path) -> None:
    """DALI takes a member's place from `tar --list --block-number`: data end where the next header begins."""
    for shard in shards_of(sidecars):
        listing = subprocess.run(["tar", "-tRf", shard], capture_output=True, text=True, check=True).stdout
        entries = [line.removeprefix("block ").split(": ", 1) for line in listing.splitlines()]
        with tarfile.open(shard) as file:
            sizes = {member.name: member.size for member in file}
        members = []
        for (_, name), (following, _) in itertools.pairwise(entries):
            offset = int(following) * 512 - sizes[name]
            members.append((name, offset - offset % 512, sizes[name]))
        samples = [list(group) for _, group in itertools.groupby(members, key=lambda m: m[0].split(".")[0])]
        lines = [f"v1.2 {len(samples)}"]
        for sample in samples:
            lines.append(
                " ".join(f"{name.split('.', 1)[1]} {offset} {size} {name}" for name, offset, size in sample)
            )
        assert shard.with_suffix(".idx").read_text() == "\n".join(lines) + "\n"


def test_energon_index(sidecars: Path) -> None:
    for shard in shards_of(sidecars):
        raw = Path(f"{shard}.idx").read_bytes()
        got = struct.unpack(f"<{len(raw) // 8}Q", raw)
        starts = []
        with tarfile.open(shard) as file:
            members = list(file)
        for key, group in itertools.groupby(members, key=lambda member: member.name.split(".")[0]):
            assert key
            starts.append(next(group).offset)
        last = members[-1]
        assert list(got) == [*starts, last.offset_data + (last.size + 511) // 512 * 512]
    counts = json.loads((sidecars / ".nv-meta/.info.json").read_text())["shard_counts"]
    assert counts == {shard.path: shard.samples for shard in pt.Dataset(sidecars).shards}
    split = (sidecars / ".nv-meta/split.yaml").read_text()
    assert all(shard.path in split for shard in pt.Dataset(sidecars).shards)


def test_wids_reads_our_shards_in_any_order(sidecars: Path) -> None:
    wids = pytest.importorskip("wids", reason="wids, or the PyTorch it needs, is not installed")
    for split, count in pt.Dataset(sidecars).splits.items():
        ours = pt.Dataset(sidecars, split)
        theirs = wids.ShardListDataset(
            str(sidecars / f"{split}.wids.json"),
            localname=lambda url: url,  # read where they are, not copied into a cache
            transformations=[lambda sample: sample],
        )
        assert len(theirs) == count
        for position in random.Random(count).sample(range(count), count):
            sample = theirs[position]
            got = (sample["__key__"], sample[".jpg"].read(), int(sample[".cls"].read()))
            expected = ours[position]
            assert got == (expected["__key__"], expected["jpg"], expected["cls"])
        theirs.close()


@pytest.fixture(scope="module")
def energon() -> Any:
    return pytest.importorskip("megatron.energon", reason="NVIDIA Energon is not installed")


def energon_prepare(folder: Path, *options: str) -> None:
    command = [sys.executable, "-m", "megatron.energon.cli.main", "prepare", "--non-interactive"]
    done = subprocess.run([*command, "--num-workers=1", *options, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_energon_reads_our_shards(sidecars: Path, energon: Any) -> None:
    encoder = energon.DefaultTaskEncoder()
    encoder.decoder = None  # bytes as they are in the shard
    encoder.cookers = [energon.Cooker(energon.stateless(lambda sample: sample))]
    options = {
        "worker_config": energon.WorkerConfig(rank=0, world_size=1, num_workers=0),
        "batch_size": None,
        "task_encoder": encoder,
    }
    for split in pt.Dataset(sidecars).splits:
        ours = list(pt.Dataset(sidecars, split))
        in_order = energon.get_loader(energon.get_val_dataset(sidecars, split_part=split, **options))
        got = list(in_order)
        assert [sample["__key__"] for sample in got] == [sample["__key__"] for sample in ours]
        assert by_key(got) == by_key(ours)

        restored = [in_order.restore_sample(sample["__restore_key__"]) for sample in reversed(got)]
        assert [(sample["__key__"], sample["jpg"]) for sample in restored] == [
            (sample["__key__"], sample["jpg"]) for sample in reversed(ours)
        ]

        shuffled = energon.get_train_dataset(
            sidecars,
            split_part=split,
            shuffle_buffer_size=16,
            max_samples_per_sequence=4,
            repeat=False,
            **options,
        )
        got = list(energon.get_loader(shuffled))
        assert len(got) == len(ours)
        assert by_key(got) == by_key(ours)


def test_energon_sidecars_are_what_its_own_tool_writes(sidecars: Path, energon: Any, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    braces = pytest.importorskip("braceexpand")
    shards = shards_of(sidecars)
    for shard in shards:
        shutil.copy(shard, tmp_path)
    splits = [f"--split-parts={name}:{name}-.*" for name in pt.Dataset(sidecars).splits]
    energon_prepare(tmp_path, *splits, "--sample-type=CrudeWebdataset")

    def meta(folder: Path, name: str) -> Any:
        return yaml.safe_load((folder / ".nv-meta" / name).read_text())

    def shards_by_split(folder: Path) -> dict[str, list[str]]:
        parts = meta(folder, "split.yaml")["split_parts"]
        return {name: [shard for part in parts[name] for shard in braces.braceexpand(part)] for name in parts}

    for shard in shards:
        assert Path(f"{shard}.idx").read_bytes() == (tmp_path / f"{shard.name}.idx").read_bytes()
    assert meta(sidecars, ".info.json")["shard_counts"] == meta(tmp_path, ".info.json")["shard_counts"]
    assert meta(sidecars, "dataset.yaml") == meta(tmp_path, "dataset.yaml")
    assert shards_by_split(sidecars) == shards_by_split(tmp_path)


def test_energon_may_add_its_database(sidecars: Path, energon: Any, tmp_path: Path) -> None:
    """Reading samples by name, which joined datasets do, needs index.sqlite: Energon's tool makes it."""
    data = Path(shutil.copytree(sidecars, tmp_path / "data"))
    energon_prepare(data, "--tar-index-only")
    assert (data / ".nv-meta/index.sqlite").is_file()
    assert pt.verify(data).ok
    stores = pytest.importorskip("megatron.energon.cache.file_store")
    files = stores.WebdatasetFileStore(energon.epathlib.EPath(data))
    for sample in pt.Dataset(sidecars):
        assert files[sample["__key__"] + ".jpg"][0] == sample["jpg"]


# What others write

NAMES = {
    "a/1.jpg": b"\xff\xd8one",
    "a/1.cls": b"3",
    "a/2.jpg": b"\xff\xd8two" * 300,
    "a/2.cls": b"4",
    "long" * 24 + "/" + "name" * 20 + ".jpg": b"\xff\xd8long",
    "long" * 24 + "/" + "name" * 20 + ".cls": b"5",
    "b/grün.jpg": b"\xff\xd8umlaut",
    "b/grün.cls": b"6",
}


def samples_of(container: Path) -> dict[str, bytes]:
    """Members by name, as a Dataset over the bare container has them."""
    data = pt.Dataset(container, cache=False)
    return {
        f"{data.keys[i]}.{name}": data.field(i, name)
        for i in range(len(data))
        for name in data.fields
        if name in data[i]
    }


pytestmark = pytest.mark.filterwarnings("ignore:.*index.*:UserWarning")


@pytest.mark.parametrize("flavour", ["ustar", "pax", "gnu", "v7", "oldgnu"])
def test_gnu_tar(tmp_path: Path, flavour: str) -> None:
    longest = 99 if flavour == "v7" else 1000
    files = {name: content for name, content in NAMES.items() if len(name.encode()) < longest}
    write_tree(tmp_path / "tree", files)
    done = subprocess.run(
        [
            "tar",
            f"--format={flavour}",
            "-C",
            tmp_path / "tree",
            "-cf",
            tmp_path / "x.tar",
            "--sort=name",
            *sorted({name.split("/")[0] for name in files}),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert samples_of(tmp_path / "x.tar") == files


@pytest.mark.parametrize("flavour", [tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_python_tarfile(tmp_path: Path, flavour: int) -> None:
    write_tree(tmp_path / "tree", NAMES)
    with tarfile.open(tmp_path / "x.tar", "w", format=flavour) as file:
        for name in NAMES:
            file.add(tmp_path / "tree" / name, arcname=name)
    assert samples_of(tmp_path / "x.tar") == NAMES


def test_webdataset_writers(tmp_path: Path) -> None:
    wds = pytest.importorskip("webdataset")
    samples = [{"__key__": f"k{i:03}", "jpg": b"\xff\xd8" + bytes([i]) * 99, "cls": i % 5} for i in range(30)]
    with wds.ShardWriter(str(tmp_path / "s-%06d.tar"), maxcount=10, verbose=0) as writer:
        for sample in samples:
            writer.write(sample)
    with wds.TarWriter(str(tmp_path / "one.tar")) as writer:
        for sample in samples:
            writer.write(sample)
    for pattern in ("s-{000000..000002}.tar", "s-*.tar", "one.tar"):
        assert list(pt.Dataset(tmp_path / pattern)) == samples


@pytest.mark.parametrize("options", [["-0"], []])
def test_info_zip(tmp_path: Path, options: list[str]) -> None:
    files = {**NAMES, "c/words.txt": b"again and again " * 1000}
    write_tree(tmp_path / "tree", files)
    subprocess.run(["zip", "-q", "-r", *options, tmp_path / "x.zip", "."], cwd=tmp_path / "tree", check=True)
    assert samples_of(tmp_path / "x.zip") == files
    assert (tmp_path / "x.zip").stat().st_size > 16_000 or not options


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_python_zipfile(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", method) as file:
        for name, content in NAMES.items():
            file.writestr(name, content)
    assert samples_of(tmp_path / "x.zip") == NAMES
    report = pt.index(tmp_path / "x.zip")
    assert pt.verify(report.folder).ok
    assert samples_of(tmp_path / "x.zip") == NAMES


def test_a_second_look_at_a_changed_container_is_an_error(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as file:
        write_tree(tmp_path / "tree", NAMES)
        file.add(tmp_path / "tree" / "a", arcname="a")
    pt.index(tmp_path / "x.tar")
    with tarfile.open(tmp_path / "x.tar", "a") as file:
        file.add(tmp_path / "tree" / "b", arcname="b")
    data = pt.Dataset(tmp_path / "x.tar.packtrain")
    with pytest.raises(pt.CorruptError, match=r"x\.tar"):
        data[0]
