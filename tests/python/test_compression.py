"""Compression is chosen for each field and said; compressed archives become any container."""

from __future__ import annotations

import io
import json
import random
import shutil
import signal
import subprocess
import tarfile
import time
import zipfile
from pathlib import Path

import numpy as np
import packtrain as pt
import pytest
from helpers import Command, read_tree, without_log, write_tree

CODECS = pt.doctor().codecs
WORDS = ["the", "photograph", "of", "a", "red", "bicycle", "beside", "water", "under", "trees"]

pytestmark = pytest.mark.skipif(
    not (CODECS["deflate"] and CODECS["zstd"]), reason="built without libdeflate or zstd"
)


def array_bytes(seed: int) -> bytes:
    file = io.BytesIO()
    np.save(file, (np.arange(2048, dtype=np.float32) // 64 + seed).reshape(32, 64))
    return file.getvalue()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photographs that would compress, were they not photographs; text; arrays."""
    draw = random.Random(5)
    files = {}
    for n in range(40):
        stem = f"class{n % 2}/{n:03}"
        files[f"{stem}.jpg"] = b"\xff\xd8\xff\xe0" + b"j" * 3000
        files[f"{stem}.txt"] = " ".join(draw.choices(WORDS, k=4000)).encode()
        files[f"{stem}.npy"] = array_bytes(n)
    return write_tree(tmp_path_factory.mktemp("compression") / "tree", files)


def of_field(found: list[pt.FieldCompression], field: str) -> pt.FieldCompression:
    (one,) = (finding for finding in found if finding.field == field)
    return one


def sound_and_the_same(packed: Path, tree: Path, tmp_path: Path, command: Command) -> None:
    """verify, the loader and extract agree that this is the tree."""
    checked = command("verify", packed)
    assert checked.code == 0, checked.error
    data = pt.Dataset(packed)
    loader = pt.Loader(packed, batch_size=4, fields=["txt"], shuffle=False)
    texts = [bytes(text) for batch in loader for text in batch["txt"]]
    assert texts == [data[i]["txt"] for i in range(len(data))]
    pt.extract(packed, tmp_path / "back")
    assert read_tree(tmp_path / "back") == read_tree(tree)


def test_zip_says_where_deflate_pays_and_stores(tree: Path, tmp_path: Path, command: Command) -> None:
    done = command("pack", tree, tmp_path / "out.pt", "--format", "zip", "--no-sync")
    assert done.code == 0, done.error
    assert "jpg: compressed already, stored as it is\n" in done.out
    (line,) = (line for line in done.out.splitlines() if line.startswith("txt: "))
    assert line.startswith("txt: deflate would make it 0.")
    assert line.endswith("B/s a core; not done, ask with --compress deflate")
    with zipfile.ZipFile(tmp_path / "out.pt" / "train-000000.zip") as file:
        assert {info.compress_type for info in file.infolist()} == {zipfile.ZIP_STORED}
    sound_and_the_same(tmp_path / "out.pt", tree, tmp_path, command)


def test_a_codec_that_is_asked_for_leaves_photographs(tree: Path, tmp_path: Path, command: Command) -> None:
    report = pt.pack(tree, tmp_path / "out.pt", format="zip", compress="deflate", sync=False)
    assert of_field(report.compression, "txt").compressed
    assert not of_field(report.compression, "jpg").compressed
    with zipfile.ZipFile(tmp_path / "out.pt" / "train-000000.zip") as file:
        assert file.testzip() is None
        methods = {(info.filename.rsplit(".", 1)[1], info.compress_type) for info in file.infolist()}
    assert methods == {
        ("jpg", zipfile.ZIP_STORED),
        ("cls", zipfile.ZIP_STORED),
        ("txt", zipfile.ZIP_DEFLATED),
        ("npy", zipfile.ZIP_DEFLATED),
    }
    manifest = json.loads((tmp_path / "out.pt" / "manifest.json").read_text())
    assert manifest["source"]["compress"] == "deflate"
    assert manifest["source"]["compressed"]["codec"] == "deflate"
    assert {"npy", "txt"} <= set(manifest["source"]["compressed"]["fields"])
    sound_and_the_same(tmp_path / "out.pt", tree, tmp_path, command)


def test_squashfs_compresses_text_by_itself(tree: Path, tmp_path: Path, command: Command) -> None:
    report = pt.pack(tree, tmp_path / "out.pt", format="squashfs", sync=False)
    text = of_field(report.compression, "txt")
    assert (text.compressed, text.codec) == (True, "zstd")
    assert 0 < text.ratio < 0.5
    assert text.break_even_bytes_per_second == pytest.approx(text.decode_bytes_per_second * (1 - text.ratio))
    sound_and_the_same(tmp_path / "out.pt", tree, tmp_path, command)
    if shutil.which("unsquashfs") is None:
        pytest.skip("unsquashfs is not installed")
    image = tmp_path / "out.pt" / "train-000000.squashfs"
    done = subprocess.run(
        ["unsquashfs", "-d", str(tmp_path / "image"), str(image)], capture_output=True, text=True
    )
    if done.returncode != 0 and "compressor" in (done.stdout + done.stderr).lower():
        pytest.skip("this unsquashfs knows no zstd")
    assert done.returncode == 0, done.stderr
    found = read_tree(tmp_path / "image")
    assert {name: data for name, data in found.items() if not name.endswith(".cls")} == read_tree(tree)


@pytest.mark.skipif(not CODECS["blosc"], reason="built without Blosc")
def test_zarr_compresses_arrays_by_itself(tree: Path, tmp_path: Path, command: Command) -> None:
    report = pt.pack(tree, tmp_path / "out.pt", format="zarr", order="source", sync=False)
    assert of_field(report.compression, "npy").compressed
    assert not of_field(report.compression, "txt").compressed
    sound_and_the_same(tmp_path / "out.pt", tree, tmp_path, command)
    zarr = pytest.importorskip("zarr", minversion="3", reason="zarr-python 3 is not installed")
    with zarr.storage.ZipStore(tmp_path / "out.pt" / "train-000000.zarr.zip", mode="r") as store:
        arrays = zarr.open_group(store, mode="r")["npy"][:]
    expected = [np.load(path) for path in sorted(tree.rglob("*.npy"))]
    assert np.array_equal(arrays, np.stack(expected))


@pytest.mark.parametrize("name", ["zip", "squashfs", "zarr"])
def test_bytes_depend_on_source_and_options_alone(tree: Path, tmp_path: Path, name: str) -> None:
    made = []
    for run, jobs in enumerate((1, 4, 4)):
        pt.pack(tree, tmp_path / f"{run}.pt", format=name, shards=3, jobs=jobs, sync=False)
        made.append(without_log(tmp_path / f"{run}.pt"))
    assert made[0] == made[1] == made[2]


def test_json_and_dry_run_carry_the_findings(tree: Path, tmp_path: Path, command: Command) -> None:
    out = tmp_path / "out.pt"
    found = command("pack", tree, out, "--format", "squashfs", "--dry-run", "--json").json()["compression"]
    assert [finding["field"] for finding in found] == ["cls", "jpg", "npy", "txt"]
    for finding in found:
        assert set(finding) == {
            "field", "codec", "compressed", "reason", "values", "bytes", "ratio",
            "decode_bytes_per_second", "break_even_bytes_per_second",
        }  # fmt: skip
    assert "txt: zstd makes it 0." in command("pack", tree, out, "--format", "squashfs", "--dry-run").out
    assert command("pack", tree, out, "--dry-run", "--json").json()["compression"] == []
    assert "compress" not in command("pack", tree, out, "--dry-run").out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", sorted(pt.doctor().formats))
def test_a_codec_that_the_format_has_not_is_wrong_usage(tmp_path: Path, name: str, command: Command) -> None:
    codec = {"zip": "zstd", "zarr": "deflate"}.get(name, "blosc")
    done = command("pack", tmp_path / "not-there", tmp_path / "out", "--format", name, "--compress", codec)
    assert done.code == 2
    assert f"{name} is written with --compress none" in done.last_line


def archive_of(tree: Path, archive: Path) -> Path:
    with tarfile.open(archive, "w:gz") as file:
        file.add(tree, arcname=".")
    return archive


TARGETS = [
    ("arrow", "auto"), ("hdf5", "auto"), ("hdf5-vlen", "auto"), ("lmdb", "auto"), ("npz", "auto"),
    ("parquet", "auto"), ("squashfs", "zstd"), ("zarr", "auto"), ("zip", "deflate"), ("zip", "auto"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "compress"), TARGETS)
def test_a_compressed_archive_becomes_any_container(
    tree: Path, tmp_path: Path, name: str, compress: str, command: Command
) -> None:
    source = archive_of(tree, tmp_path / "tree.tar.gz")
    for made_of, out in ((tree, "tree.pt"), (source, "archive.pt")):
        pt.pack(made_of, tmp_path / out, format=name, compress=compress, sync=False)
    plain, streamed = (pt.Dataset(tmp_path / out) for out in ("tree.pt", "archive.pt"))
    assert list(plain.keys) == list(streamed.keys)
    assert plain.labels.tolist() == streamed.labels.tolist()
    assert [dict(sample) for sample in plain] == [dict(sample) for sample in streamed]
    assert not [path for path in (tmp_path / "archive.pt").iterdir() if ".tmp-" in path.name]
    sound_and_the_same(tmp_path / "archive.pt", tree, tmp_path, command)


@pytest.mark.slow
def test_killed_while_decompressing_or_writing_it_is_finished_by_the_next(
    tmp_path: Path, command: Command
) -> None:
    draw = random.Random(2)
    files = {f"c{n % 3}/{n:04}.bin": draw.randbytes(draw.randrange(200_000)) for n in range(300)}
    source = archive_of(write_tree(tmp_path / "tree", files), tmp_path / "tree.tar.gz")
    arguments = [source, "--format", "lmdb", "--shards", "4", "--quiet", "--no-sync"]
    start = time.monotonic()
    assert command("pack", *arguments, tmp_path / "whole.pt").code == 0
    whole = time.monotonic() - start
    expected = without_log(tmp_path / "whole.pt")
    spools = 0
    for _ in range(12):
        running = command.start("pack", *arguments, tmp_path / "out.pt")
        time.sleep(draw.uniform(0, whole))
        running.send_signal(signal.SIGKILL)
        running.communicate()
        spools += len(list(tmp_path.glob("out.pt.part/streams.tmp-*")))
        done = command("pack", *arguments, tmp_path / "out.pt")
        assert done.code == 0 or "exists already" in done.last_line, done.error
        assert without_log(tmp_path / "out.pt") == expected
        assert not (tmp_path / "out.pt.part").exists()
        shutil.rmtree(tmp_path / "out.pt")
    assert spools > 0, "no kill came while the spool was there"


def test_a_damaged_archive_is_named_and_nothing_is_published(
    tree: Path, tmp_path: Path, command: Command
) -> None:
    source = archive_of(tree, tmp_path / "tree.tar.gz")
    data = bytearray(source.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 200] = bytes(byte ^ 0xFF for byte in data[middle : middle + 200])
    source.write_bytes(data)
    done = command("pack", source, tmp_path / "out.pt", "--format", "arrow")
    assert done.code == 1
    assert "tree.tar.gz" in done.last_line
    assert not (tmp_path / "out.pt").exists()
