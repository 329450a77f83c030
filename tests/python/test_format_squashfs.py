"""SquashFS: unsquashfs and the kernel read what packtrain writes, packtrain what mksquashfs writes."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import packtrain as pt
import pytest
from helpers import Command, read_tree, write_tree

needs_reader = pytest.mark.skipif(not shutil.which("unsquashfs"), reason="unsquashfs is not installed")
needs_writer = pytest.mark.skipif(not shutil.which("mksquashfs"), reason="mksquashfs is not installed")


def made_files() -> dict[str, bytes]:
    """A class tree with files around the length of a block, some that compress and some that do not."""
    rng = random.Random(7)
    sizes = [0, 1, 4095, 4096, 4097, 131_071, 131_072, 131_073, 300_000]
    files = {}
    for number in range(90):
        name = f"{('ant', 'bee', 'größe')[number % 3]}/{rng.randrange(10**6):06}"
        size = sizes[number % len(sizes)]
        files[f"{name}.jpg"] = rng.randbytes(size) if number % 2 else bytes([number]) * size
        files[f"{name}.txt"] = f"text of {number}".encode() * 20
    return files


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return made_files()


@pytest.fixture(scope="module")
def tree(files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(tmp_path_factory.mktemp("squashfs") / "tree", files)


def shards_of(data: Path) -> list[Path]:
    return [data / shard.path for shard in pt.Dataset(data).shards]


def by_name(dataset: pt.Dataset) -> dict[str, bytes]:
    return {
        f"{sample['__key__']}.{field}": value
        for sample in dataset
        for field, value in sample.items()
        if not field.startswith("__") and field != "cls"
    }


def unpacked(image: Path, folder: Path) -> dict[str, bytes]:
    done = subprocess.run(
        ["unsquashfs", "-no-xattrs", "-d", folder, image], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return read_tree(folder)


@needs_reader
@pytest.mark.parametrize("compress", ["none", "zstd", "deflate"])
def test_unsquashfs_reads_every_byte(
    tree: Path, files: dict[str, bytes], compress: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    pt.pack(tree, out, format="squashfs", compress=compress, order="source", sync=False)
    (shard,) = shards_of(out)
    found = unpacked(shard, tmp_path / "unpacked")
    ours = pt.Dataset(out)
    expected = {}
    for sample in ours:
        for field, value in sample.items():
            if not field.startswith("__"):
                data = value if isinstance(value, bytes) else str(value).encode()
                expected[f"{sample['__key__']}.{field}"] = data
    assert found == expected
    assert sorted(found[name] for name in found if name.endswith(".jpg")) == sorted(
        files[name] for name in files if name.endswith(".jpg")
    )
    told = subprocess.run(["unsquashfs", "-s", shard], capture_output=True, text=True, check=True).stdout
    assert "Filesystem is not exportable" in told
    assert "Number of fragments 0" in told
    listed = subprocess.run(["unsquashfs", "-lln", shard], capture_output=True, text=True, check=True).stdout
    assert "-rw-r--r-- 0/0" in listed
    assert "1970-01-01" in listed


@needs_reader
def test_folders_of_many_files(tmp_path: Path) -> None:
    files = {f"many/{number:06}_{'n' * 40}.txt": str(number).encode() for number in range(2000)}
    pt.pack(write_tree(tmp_path / "tree", files), tmp_path / "out", format="squashfs", sync=False)
    found = [unpacked(shard, tmp_path / f"to{n}") for n, shard in enumerate(shards_of(tmp_path / "out"))]
    texts = [data for part in found for name, data in part.items() if name.endswith(".txt")]
    assert sorted(texts) == sorted(files.values())


def mounted(image: Path, folder: Path) -> bool:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "squashfs", "-o", "loop,ro", image, folder], capture_output=True, check=False
    )
    return done.returncode == 0


@pytest.mark.parametrize("compress", ["none", "zstd"])
def test_the_kernel_mounts_our_image(tree: Path, compress: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pt.pack(tree, out, format="squashfs", compress=compress, sync=False)
    (shard, *_) = shards_of(out)
    if not shutil.which("mount") or not mounted(shard, tmp_path / "there"):
        pytest.skip("this machine does not mount images")
    try:
        found = read_tree(tmp_path / "there")
    finally:
        subprocess.run(["umount", tmp_path / "there"], check=True)
    assert len(found) > 0
    ours = {f"{s['__key__']}.jpg": s["jpg"] for s in pt.Dataset(out)}
    assert all(found[name] == ours[name] for name in found if name.endswith(".jpg"))


# What mksquashfs writes


def make_image(tree: Path, image: Path, *options: str) -> Path:
    command = ["mksquashfs", tree, image, "-noappend", "-no-progress", "-quiet", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 and "compressor" in (done.stdout + done.stderr).lower():
        pytest.skip(f"this mksquashfs lacks {options}")
    assert done.returncode == 0, done.stderr
    return image


VARIANTS = [
    ("-comp", "gzip"),
    ("-comp", "zstd"),
    ("-comp", "lz4"),
    ("-comp", "lz4", "-Xhc"),
    ("-comp", "gzip", "-Xcompression-level", "1", "-b", "4096"),
    ("-comp", "zstd", "-b", "1M"),
    ("-noD",),
    ("-noD", "-no-fragments"),
    ("-noD", "-noF"),
    ("-noI", "-noD", "-noF", "-comp", "xz"),
    ("-no-fragments",),
    ("-always-use-fragments",),
    ("-no-duplicates",),
    ("-no-exports", "-nopad", "-no-xattrs"),
    ("-noI", "-noId", "-noX"),
]


@needs_writer
@pytest.mark.parametrize("options", VARIANTS, ids=" ".join)
def test_we_read_what_mksquashfs_wrote(
    tree: Path, files: dict[str, bytes], options: tuple[str, ...], tmp_path: Path, command: Command
) -> None:
    image = make_image(tree, tmp_path / "set.squashfs", *options)
    assert by_name(pt.Dataset(image)) == files
    done = command("index", image)
    assert done.code == 0, done.error
    dataset = pt.Dataset(f"{image}.packtrain")
    assert by_name(dataset) == files
    assert dataset.classes == ["ant", "bee", "größe"]


@needs_writer
def test_raw_images_are_rows_of_plain_extents(tree: Path, tmp_path: Path) -> None:
    image = make_image(tree, tmp_path / "set.squashfs", "-noD", "-no-fragments")
    dataset = pt.Dataset(image)
    data = image.read_bytes()
    assert all(sample["jpg"] in data for sample in dataset)


@needs_writer
def test_labels_wherever_they_are_stored(tmp_path: Path) -> None:
    files = {f"{number:04}.cls": str(number % 100).encode() for number in range(3000)}
    files |= {f"{number:04}.txt": b"words " * number for number in range(3000)}
    tree = write_tree(tmp_path / "tree", files)
    for number, options in enumerate([(), ("-no-fragments",), ("-noD", "-noF"), ("-comp", "lz4")]):
        dataset = pt.Dataset(make_image(tree, tmp_path / f"{number}.squashfs", *options))
        assert dataset.labels.tolist() == [number % 100 for number in range(3000)]


@needs_writer
def test_holes_links_and_large_folders(tmp_path: Path, command: Command) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    with (tree / "sparse.bin").open("wb") as file:
        file.write(b"begin")
        file.seek(3 << 20)
        file.write(b"end")
    (tree / "one.txt").write_bytes(b"linked")
    (tree / "two.txt").hardlink_to(tree / "one.txt")
    (tree / "soft.txt").symlink_to("one.txt")
    (tree / "README").write_bytes(b"no extension")
    many = {f"many/{number}{'x' * 60}.txt": str(number).encode() for number in range(2_000)}
    write_tree(tree, many)
    image = make_image(tree, tmp_path / "set.squashfs")
    done = command("index", image)
    assert done.code == 0, done.error
    assert "1 link left out" in done.error
    assert "README" in done.error
    found = by_name(pt.Dataset(f"{image}.packtrain"))
    assert found.pop("sparse.bin") == (tree / "sparse.bin").read_bytes()
    assert found == many | {"one.txt": b"linked", "two.txt": b"linked"}


@needs_writer
@pytest.mark.parametrize("codec", ["xz", "lzo", "lzma"])
def test_other_codecs_are_refused_in_a_sentence(tree: Path, codec: str, tmp_path: Path) -> None:
    image = make_image(tree, tmp_path / "set.squashfs", "-comp", codec)
    with pytest.raises(pt.UnsupportedError, match=f"compressed by {codec}"):
        pt.Dataset(image)


@needs_writer
@pytest.mark.parametrize("options", [(), ("-noD", "-no-fragments"), ("-comp", "zstd")], ids=" ".join)
def test_damage_is_an_error_and_never_a_crash(tree: Path, options: tuple[str, ...], tmp_path: Path) -> None:
    data = make_image(tree, tmp_path / "set.squashfs", *options).read_bytes()
    rng = random.Random(2)
    for number in range(30):
        broken = bytearray(data)
        if number % 2:
            del broken[rng.randrange(len(broken)) :]
        else:
            # Metadata are at the end.
            at = len(broken) - 1 - rng.randrange(min(len(broken), 20_000))
            broken[at] ^= 1 << rng.randrange(8)
        image = tmp_path / "broken.squashfs"
        image.write_bytes(broken)
        try:
            for sample in pt.Dataset(image):
                assert sample
        except pt.Error:
            pass


@needs_writer
def test_an_image_is_packed_again(tree: Path, files: dict[str, bytes], tmp_path: Path) -> None:
    image = make_image(tree, tmp_path / "set.squashfs", "-comp", "zstd")
    pt.pack(image, tmp_path / "out", format="webdataset", sync=False)
    assert sorted(s["jpg"] for s in pt.Dataset(tmp_path / "out")) == sorted(
        data for name, data in files.items() if name.endswith(".jpg")
    )
