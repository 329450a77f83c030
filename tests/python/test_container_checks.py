"""Checks that containers of others carry themselves: a flipped bit is found by whoever can know of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import Command, write_tree

ROWS, VICTIM = 12, 7
# Random bytes are stored as they are by every codec, where only a check can tell that one was changed.
ROW_BYTES = np.random.default_rng(9).integers(0, 256, (ROWS, 600)).astype(np.uint8)


@dataclass
class Case:
    make: Callable[[Path], Path]
    by_read: bool  # whether the reader of one sample meets the check
    names: str = f"{VICTIM:09}"  # what verify says of the place
    # The index is made of what pages decode to, so that it cannot be made of a damaged one.
    by_index: bool = False


def make_npz(folder: Path) -> Path:
    np.savez(folder / "x.npz", x=ROW_BYTES, labels=np.arange(ROWS))
    return folder / "x.npz"


def make_zarr(version: int, codec: Callable[[Any, Any], Any], rows: int, shards: int, zipped: bool) -> Any:
    def make(folder: Path) -> Path:
        zarr = pytest.importorskip("zarr")
        numcodecs = pytest.importorskip("numcodecs")
        path = folder / ("x.zarr.zip" if zipped else "x.zarr")
        store = zarr.storage.ZipStore(path, mode="w") if zipped else path
        group = zarr.create_group(store, zarr_format=version)
        group.create_array(
            "x",
            data=ROW_BYTES,
            chunks=(rows, ROW_BYTES.shape[1]),
            compressors=codec(zarr.codecs, numcodecs),
            **({"shards": (shards, ROW_BYTES.shape[1])} if shards else {}),
        )
        if zipped:
            store.close()
        return path

    return make


def make_parquet(**options: Any) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        values = [row.tobytes() + bytes(600) for row in ROW_BYTES]  # or pages would not be compressed
        table = pa.table({"x": pa.array(values, pa.binary()), "label": pa.array(range(ROWS), pa.int64())})
        parquet.write_table(table, folder / "x.parquet", row_group_size=6, write_statistics=False, **options)
        return folder / "x.parquet"

    return make


def make_squashfs(*options: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        if not shutil.which("mksquashfs"):
            pytest.skip("mksquashfs is not installed")
        # Half of it is a run, or the block would be stored raw.
        files = {f"{i:09}.x": row.tobytes() + bytes(5000) for i, row in enumerate(ROW_BYTES)}
        tree = write_tree(folder / "tree", files)
        image = folder / "x.squashfs"
        command = [
            "mksquashfs",
            str(tree),
            str(image),
            "-noappend",
            "-quiet",
            "-no-progress",
            "-comp",
            "gzip",
        ]
        subprocess.run([*command, *options], check=True, capture_output=True)
        return image

    return make


CASES = {
    "npz": Case(make_npz, by_read=False, names="from 000000000 to 000000011"),
    "zarr2-gzip": Case(make_zarr(2, lambda _, n: n.GZip(level=5), 1, 0, False), by_read=True),
    "zarr2-zlib": Case(make_zarr(2, lambda _, n: n.Zlib(level=5), 3, 0, False), by_read=True),
    "zarr3-gzip": Case(make_zarr(3, lambda z, _: z.GzipCodec(level=5), 3, 0, False), by_read=True),
    "zarr3-gzip-shards": Case(make_zarr(3, lambda z, _: z.GzipCodec(level=5), 1, 4, False), by_read=True),
    "zarr3-crc32c": Case(make_zarr(3, lambda z, _: z.Crc32cCodec(), 1, 0, False), by_read=True),
    "zarr3-crc32c-rows": Case(make_zarr(3, lambda z, _: z.Crc32cCodec(), 3, 0, False), by_read=True),
    "zarr3-crc32c-shards": Case(make_zarr(3, lambda z, _: z.Crc32cCodec(), 2, 4, False), by_read=True),
    "zarr3-blosc-crc32c-shards": Case(
        make_zarr(3, lambda z, _: (z.BloscCodec(cname="lz4"), z.Crc32cCodec()), 2, 4, False), by_read=True
    ),
    "zip-raw": Case(make_zarr(3, lambda *_: None, 1, 0, True), by_read=True),
    "zip-raw-rows": Case(make_zarr(2, lambda *_: None, 3, 0, True), False, "from 000000006 to 000000008"),
    "zip-raw-shards": Case(make_zarr(3, lambda *_: None, 1, 4, True), False, "from 000000004 to 000000007"),
    "zip-blosc": Case(make_zarr(3, lambda z, _: z.BloscCodec(cname="lz4"), 3, 0, True), by_read=True),
    "zip-blosc-shards": Case(
        make_zarr(3, lambda z, _: z.BloscCodec(cname="lz4"), 1, 4, True), False, "the member x/c/1/0"
    ),
    "zip-lz4": Case(make_zarr(2, lambda _, n: n.LZ4(), 3, 0, True), False, "the member x/2.0"),
    "parquet-gzip": Case(make_parquet(compression="gzip", use_dictionary=False), by_read=True, by_index=True),
    "parquet-gzip-dictionary": Case(make_parquet(compression="gzip"), by_read=True, by_index=True),
    **{
        f"parquet-{codec}-crc-{version}-{'dictionary' if dictionary else 'plain'}": Case(
            make_parquet(
                compression=codec,
                data_page_version=version,
                use_dictionary=dictionary,
                write_page_checksum=True,
            ),
            by_read=codec != "none",
            by_index=codec == "gzip",
            names=f"{VICTIM:09}" if codec != "none" else "from 000000006 to 000000011",
        )
        for codec in ("none", "snappy", "zstd", "gzip", "lz4")
        for version in ("1.0", "2.0")
        for dictionary in (False, True)
    },
    "squashfs-blocks": Case(make_squashfs("-no-fragments"), by_read=True),
    "squashfs-fragments": Case(make_squashfs("-always-use-fragments"), by_read=True),
}


def flip_in_stream(content: bytearray, needle: bytes) -> bool:
    """Flips a bit of the zlib or gzip stream that holds `needle`, such that DEFLATE still decodes as much."""
    for magic, head, tail, window in ((b"\x78", 2, 4, 15), (b"\x1f\x8b", 10, 8, 31)):
        at = content.find(magic)
        while at >= 0:
            stream = zlib.decompressobj(window)
            try:
                raw = stream.decompress(bytes(content[at:]))
            except zlib.error:
                raw = b""
            if stream.eof and needle in raw:
                end = len(content) - len(stream.unused_data)
                for place in range((at + end) // 2, end - tail):
                    content[place] ^= 4
                    try:
                        other = zlib.decompressobj(-15).decompress(bytes(content[at + head : end - tail]))
                    except zlib.error:
                        other = b""
                    if len(other) == len(raw):
                        return True
                    content[place] ^= 4
            at = content.find(magic, at + 1)
    return False


def damage(container: Path) -> None:
    """Flips a bit of the victim's bytes. Size and date stay: nobody but a check can tell."""
    needle = ROW_BYTES[VICTIM].tobytes()[300:340]
    for path in sorted(container.rglob("*")) if container.is_dir() else [container]:
        if not path.is_file():
            continue
        info = path.stat()
        content = bytearray(path.read_bytes())
        if (at := content.find(needle)) >= 0:
            content[at + 20] ^= 4
        elif not flip_in_stream(content, needle):
            continue
        path.write_bytes(content)
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
        return
    raise AssertionError("the sample is nowhere")


@pytest.mark.parametrize("name", CASES)
def test_a_flipped_bit_is_found(name: str, tmp_path: Path, command: Command) -> None:
    case = CASES[name]
    container = case.make(tmp_path)
    sound = command("verify", container)
    assert sound.code == 0, sound.error
    assert "structure only" not in sound.out
    assert command("index", container, "--out", tmp_path / "before").code == 0
    before = pt.Dataset(tmp_path / "before")
    assert [bytes(sample["x"])[:600] for sample in before] == [row.tobytes() for row in ROW_BYTES]
    assert command("index", container, "--checksum", "--out", tmp_path / "checksums").code == 0
    assert command("pack", container, tmp_path / "packed", "--no-sync").code == 0

    damage(container)
    for path in (container, tmp_path / "before"):
        found = command("verify", path)
        assert found.code == 1, (path, found.out, found.error)
        assert ("row group 1" if case.by_index and path == container else case.names) in found.out
        assert "the index has it" not in found.out
    for arguments in (
        ("index", container, "--checksum", "--out", tmp_path / "again"),
        ("pack", container, tmp_path / "from-container", "--no-sync"),
        ("pack", tmp_path / "before", tmp_path / "from-index", "--no-sync"),
        ("extract", container, tmp_path / "extracted"),
    ):
        refused = command(*arguments)
        assert refused.code == 1, (arguments, refused.out, refused.error)
    # Where the reader of a sample meets no check, it hands out what is there: docs/formats.md says so.
    if case.by_index:
        with pytest.raises(pt.CorruptError, match="row group 1"):
            pt.Dataset(container)
    for path in (tmp_path / "before", *(() if case.by_index else (container,))):
        dataset = pt.Dataset(path)
        if case.by_read:
            with pytest.raises(pt.CorruptError):
                dataset[VICTIM]
            with pytest.raises(pt.CorruptError):
                list(pt.Loader(dataset, batch_size=ROWS, fields=["x"], shuffle=False))
        else:
            assert bytes(dataset[VICTIM]["x"])[:600] != ROW_BYTES[VICTIM].tobytes()
