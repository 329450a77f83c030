"""Files as others leave them lying about: whole archives, caches and shards, taken as they are."""

from __future__ import annotations

import bz2
import io
import lzma
import shutil
import subprocess
import tarfile
import wave
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import Command, read_tree, small_tree, write_tree

ENTRIES = 70_000  # more than the 16 bits of a plain zip count


def wav_of(number: int) -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(np.arange(100 + number, dtype="<i2").tobytes())
    return stream.getvalue()


# WebDataset


@pytest.fixture(scope="module")
def written_by_webdataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Shards by WebDataset's own writer: every kind of field that it encodes without further packages."""
    webdataset = pytest.importorskip("webdataset")
    pytest.importorskip("PIL")
    folder = tmp_path_factory.mktemp("webdataset")
    chance = np.random.default_rng(3)
    samples = []
    for number in range(25):
        sample: dict[str, Any] = {
            "__key__": f"part/{number:05}",
            "jpg": chance.random((16, 20, 3)).astype(np.float32),
            "seg.png": chance.integers(0, 255, (16, 20), dtype=np.uint8),
            "cls": number % 7,
            "txt": f"grüße {number}",
            "json": {"number": number, "list": [1, 2]},
            "npy": chance.normal(size=(3, 4)).astype(np.float32),
            "npz": {"a": np.arange(number + 1), "b": np.eye(2)},
            "pyd": {"name": "x", "values": np.arange(4)},
            "wav": wav_of(number),
            "id": number * 10,
        }
        if number % 5 == 0:
            del sample["txt"]
        samples.append(sample)
    with webdataset.ShardWriter(str(folder / "s-%06d.tar"), maxcount=10, verbose=0) as writer:
        for sample in samples:
            writer.write(sample)
    return folder, samples


def test_every_field_of_webdatasets_writer_is_there_byte_for_byte(
    written_by_webdataset: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    folder, samples = written_by_webdataset
    expected = {}
    for shard in sorted(folder.glob("*.tar")):
        with tarfile.open(shard) as file:
            for member in file:
                content = file.extractfile(member)
                assert content is not None
                expected[member.name] = content.read()
    pt.index(str(folder / "s-{000000..000002}.tar"), out=tmp_path / "index")
    data = pt.Dataset(tmp_path / "index")
    assert list(data.keys) == [sample["__key__"] for sample in samples]
    assert data.labels.tolist() == [sample["cls"] for sample in samples]
    got = {
        f"{key}.{field}": data.field(position, field)
        for position, key in enumerate(data.keys)
        for field in data.fields
        if f"{key}.{field}" in expected
    }
    assert got == expected
    pt.pack(tmp_path / "index", tmp_path / "again", format="zip", order="source", sync=False)
    pt.extract(tmp_path / "again", tmp_path / "back")
    assert read_tree(tmp_path / "back") == expected


def test_the_loader_decodes_what_webdatasets_writer_encoded(
    written_by_webdataset: tuple[Path, list[dict[str, Any]]],
) -> None:
    folder, samples = written_by_webdataset
    kinds = {"json": "json", "npy": "npy", "pyd": "pickle", "wav": pt.Audio(pad=0), "id": "str"}
    loader = pt.Loader(
        folder / "s-*.tar",
        batch_size=5,
        shuffle=False,
        last="keep",
        image=pt.Resize((16, 20)),
        image_field="jpg",
        fields=kinds,
    )
    position = 0
    for batch in loader:
        for i in range(len(batch["label"])):
            sample = samples[position]
            assert batch["label"][i] == sample["cls"]
            assert batch["json"][i] == sample["json"]
            np.testing.assert_array_equal(batch["npy"][i], sample["npy"])
            assert batch["pyd"][i]["name"] == "x"
            np.testing.assert_array_equal(batch["pyd"][i]["values"], np.arange(4))
            assert batch["id"][i] == str(sample["id"])
            position += 1
        assert batch["image"].shape[1:] == (3, 16, 20)
    assert position == len(samples)


# Zip


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "many.zip"
    with zipfile.ZipFile(path, "w") as file:
        for number in range(ENTRIES):
            file.writestr(zipfile.ZipInfo(f"{number % 7}/{number:06}.txt"), str(number))
    return path


@pytest.mark.slow
def test_a_zip_of_more_entries_than_16_bits_count(many: Path, tmp_path: Path) -> None:
    assert b"PK\x06\x06" in many.read_bytes()[-200:]  # the end record of ZIP64
    pt.index(many, out=tmp_path / "index")
    data = pt.Dataset(tmp_path / "index")
    assert len(data) == ENTRIES
    for position in (0, 65_534, 65_535, 65_536, ENTRIES - 1):
        number = int(data.keys[position].rpartition("/")[2])
        assert data.field(position, "txt") == str(number).encode()
    assert pt.verify(tmp_path / "index").ok


@pytest.mark.slow
def test_ours_of_so_many_is_read_by_zipfile_and_unzip(many: Path, tmp_path: Path) -> None:
    pt.pack(many, tmp_path / "out", format="zip", shards=1, order="source", sync=False)
    (shard,) = pt.Dataset(tmp_path / "out").shards
    with zipfile.ZipFile(tmp_path / "out" / shard.path) as file:
        names = file.namelist()
        texts = [name for name in names if name.endswith(".txt")]
        assert len(texts) == ENTRIES
        assert len(names) > 65_535
        assert file.testzip() is None
        for name in texts[:: ENTRIES // 50]:
            assert file.read(name) == str(int(Path(name).stem)).encode()
    if shutil.which("unzip") is None:
        pytest.skip("Info-ZIP is not installed")
    done = subprocess.run(
        ["unzip", "-tqq", tmp_path / "out" / shard.path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-500:]


@pytest.mark.skipif(shutil.which("zip") is None, reason="Info-ZIP is not installed")
@pytest.mark.parametrize("with_folder", [False, True])
def test_a_zipped_class_tree_is_loaded_with_its_labels(
    with_folder: bool, photos: Path, tmp_path: Path
) -> None:
    """`zip -r`, as the guides of computing centres advise; the zip is the dataset, nothing is unpacked."""
    tree = Path(shutil.copytree(photos / "train", tmp_path / "photos"))
    where, what = (tmp_path, "photos") if with_folder else (tree, ".")
    subprocess.run(["zip", "-q", "-r", tmp_path / "photos.zip", what], cwd=where, check=True)
    classes = sorted(folder.name for folder in tree.iterdir())
    expected = {path.read_bytes(): path.parent.name for path in tree.rglob("*.jpg")}
    data = pt.Dataset(tmp_path / "photos.zip")
    assert data.classes == classes
    seen = {}
    for batch in pt.Loader(data, batch_size=4, fields=["jpg"], last="keep"):
        for image, label in zip(batch["jpg"], batch["label"].tolist()):
            seen[bytes(image)] = classes[label]
    assert seen == expected


# Hugging Face


def test_the_cache_of_hugging_face_datasets_is_read_where_it_lies(photos: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed")
    names = sorted(folder.name for folder in (photos / "train").iterdir())
    files = sorted((photos / "train").rglob("*.jpg"))

    def rows() -> Any:
        for file in files:
            yield {
                "image": {"bytes": file.read_bytes(), "path": file.name},
                "label": names.index(file.parent.name),
            }

    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=names)})
    made = datasets.Dataset.from_generator(rows, features=features, cache_dir=str(tmp_path / "cache"))
    cached = [Path(file["filename"]) for file in made.cache_files]
    assert cached
    before = [path.read_bytes() for path in cached]
    pt.index(cached, out=tmp_path / "index")
    data = pt.Dataset(tmp_path / "index")
    assert data.classes == names
    assert [data.field(position, "jpg") for position in range(len(data))] == [
        file.read_bytes() for file in files
    ]
    assert [names[label] for label in data.labels] == [file.parent.name for file in files]
    batch = next(iter(pt.Loader(data, batch_size=4, image=pt.Resize(8))))
    assert batch["image"].shape == (4, 3, 8, 8)
    assert [path.read_bytes() for path in cached] == before


# The course's layouts, with images of several kinds in one column


@pytest.mark.parametrize("name", ["arrow", "hdf5-vlen"])
def test_photographs_of_two_kinds_share_the_column_of_the_course(
    name: str, photos: Path, tmp_path: Path
) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    files = {}
    for number, path in enumerate(sorted((photos / "train").rglob("*.jpg"))):
        content, stem = path.read_bytes(), f"{path.parent.name}/{number:03}"
        if number % 3 == 0:
            stream = io.BytesIO()
            image.open(path).resize((20, 10)).save(stream, "PNG")
            files[f"{stem}.png"] = stream.getvalue()
        else:
            files[f"{stem}.jpg"] = content
    pt.pack(write_tree(tmp_path / "tree", files), tmp_path / "out", format=name, order="source", sync=False)
    (shard,) = pt.Dataset(tmp_path / "out").shards
    path = tmp_path / "out" / shard.path
    if name == "arrow":
        arrow = pytest.importorskip("pyarrow")
        with arrow.ipc.open_file(path) as reader:
            assert reader.schema.names == ["image_data", "label"]
            column = reader.read_all()["image_data"].to_pylist()
    else:
        h5py = pytest.importorskip("h5py")
        with h5py.File(path) as file:
            (group,) = file.values()
            assert sorted(group) == ["images", "targets"]
            column = [value.tobytes() for value in group["images"]]
    assert sorted(column) == sorted(files.values())
    pt.extract(tmp_path / "out", tmp_path / "back")
    assert read_tree(tmp_path / "back") == files
    loaded = 0
    for batch in pt.Loader(tmp_path / "out", batch_size=5, image=pt.Resize((8, 8)), last="keep"):
        loaded += len(batch["image"])
    assert loaded == len(files)
    bare = pt.Dataset(path)  # without the index of packtrain, which knows the names
    assert sorted(bytes(sample[bare.fields[0]]) for sample in bare) == sorted(files.values())


# The command


@pytest.mark.parametrize("verb", ["index", "pack"])
@pytest.mark.parametrize(
    ("name", "tool"), [("a.tar.xz", "xz"), ("a.tar.bz2", "bzip2"), ("a.tbz2", "bzip2"), ("a.tar", "xz")]
)
def test_what_is_not_read_is_refused_with_the_command_that_unpacks_it(
    verb: str, name: str, tool: str, tmp_path: Path, command: Command
) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as file:
        for key, content in small_tree().items():
            member = tarfile.TarInfo(key)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    packed = (lzma if tool == "xz" else bz2).compress(stream.getvalue())
    (tmp_path / name).write_bytes(packed)
    more = [tmp_path / "out"] if verb == "pack" else []
    ran = command(verb, tmp_path / name, *more)
    assert ran.code == 2
    assert not (tmp_path / "out").exists()
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    advice = ran.last_line[ran.last_line.index(f"{tool} -dc") :]
    subprocess.run(advice, shell=True, check=True)
    plain = Path(advice.rpartition("> ")[2])
    assert plain.read_bytes() == stream.getvalue()
    again = command(verb, plain, *more)
    assert again.code == 0, again.error


def test_several_containers_are_named_as_splits(tmp_path: Path, command: Command) -> None:
    for name, count in (("one", 3), ("two", 2), ("three", 4)):
        np.savez(tmp_path / f"{name}.npz", x=np.full((count, 2), count), y=np.arange(count))
    given = [f"{split}={tmp_path / name}.npz" for split, name in (("train", "one"), ("val", "two"))]
    ran = command("index", *given, f"train={tmp_path / 'three'}.npz", "--out", tmp_path / "index")
    assert ran.code == 0, ran.error
    data = pt.Dataset(tmp_path / "index")
    assert dict(data.splits) == {"train": 7, "val": 2}
    assert pt.Dataset(tmp_path / "index", split="train").labels.tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert pt.Dataset(tmp_path / "index", split="val").labels.tolist() == [0, 1]
    ran = command("index", given[0], tmp_path / "two.npz", "--out", tmp_path / "mixed")
    assert ran.code == 2
    assert "name" in ran.last_line


def test_pack_says_what_index_says_of_a_container(tmp_path: Path, command: Command) -> None:
    """Labels that are no class numbers, and values that would share one sample: each is told by both."""
    np.savez(tmp_path / "real.npz", x=np.eye(4), y=np.array([0.5, 1.5, 2.0, 0.0]))
    np.savez(tmp_path / "text.npz", x=np.eye(4), y=np.array(["ant", "bee", "ant", "bee"]))
    report = pt.pack(tmp_path / "real.npz", tmp_path / "out", sync=False)
    assert any("no labels" in warning for warning in report.warnings)
    given = [(tmp_path / f"{kind}.npz", "samples have no labels: `y`") for kind in ("real", "text")]
    try:
        import lmdb
    except ImportError:
        lmdb = None
    if lmdb is not None:
        with lmdb.open(str(tmp_path / "one.lmdb"), map_size=1 << 24) as env, env.begin(write=True) as entries:
            for number in range(20):
                entries.put(f"ILSVRC.{number}.jpg".encode(), b"\xff\xd8\xff")
        given.append((tmp_path / "one.lmdb", "fields of the one sample ILSVRC"))
    for number, (path, words) in enumerate(given):
        packed = command("pack", path, tmp_path / f"out{number}", "--quiet")
        assert packed.code == 0, packed.error
        assert words in packed.error
        indexed = command("index", path, "--quiet")
        assert indexed.code == 0, indexed.error
        assert words in indexed.error
