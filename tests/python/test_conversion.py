"""Images that are converted while they are packed, with Pillow as the judge."""

from __future__ import annotations

import io
import json
import random
import shutil
import signal
import tarfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import packtrain as pt
import pytest
from helpers import Command, read_tree, without_log, write_tree
from packtrain._core import ImageSpec, transform_image
from PIL import Image, ImageOps

FORMATS = sorted(set(pt.doctor().formats) - {"npy"})  # which takes arrays only


def drawing(width: int, height: int, seed: int = 0) -> Image.Image:
    noise = np.random.default_rng(seed).integers(0, 24, (height, width, 3))
    y, x = np.mgrid[0:height, 0:width]
    waves = np.stack([x * 3 % 224, (y * 2 + seed) % 224, (x + y) % 224], -1)
    return Image.fromarray((waves + noise).astype(np.uint8))


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def opened(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


def pixels(content: bytes) -> np.ndarray:
    image = opened(content)
    return np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))


def shrunk(content: bytes, side: int) -> np.ndarray:
    """As it is promised: the longer side `side` pixels long, bilinear with antialiasing."""
    image = opened(content)
    image = image if image.mode in ("L", "RGB") else image.convert("RGB")
    longer = max(image.size)
    if longer <= side:
        return np.asarray(image)
    size = (
        max(1, (2 * image.width * side + longer) // (2 * longer)),
        max(1, (2 * image.height * side + longer) // (2 * longer)),
    )
    return np.asarray(image.resize(size, Image.Resampling.BILINEAR))


def levels_apart(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    assert ours.shape == theirs.shape
    return np.abs(ours.astype(int) - theirs.astype(int))


@pytest.fixture(scope="module")
def mixed() -> dict[str, bytes]:
    """Every kind of image that is decoded, in two classes, by its path."""
    turned = Image.Exif()
    turned[0x0112] = 6
    return {
        "ant/baseline.jpg": encoded(drawing(301, 200, 1), "JPEG", quality=95),
        "ant/progressive.jpg": encoded(drawing(300, 211, 2), "JPEG", quality=92, progressive=True),
        "ant/grey.jpg": encoded(drawing(80, 90, 3).convert("L"), "JPEG", quality=95),
        "ant/small.jpg": encoded(drawing(64, 40, 4), "JPEG", quality=30),
        "ant/turned.jpg": encoded(drawing(120, 250, 5), "JPEG", quality=95, exif=turned, subsampling="4:4:4"),
        "bee/colour.png": encoded(drawing(130, 90, 6), "PNG"),
        "bee/grey.png": encoded(drawing(50, 170, 7).convert("L"), "PNG"),
        "bee/lossless.webp": encoded(drawing(140, 60, 8), "WEBP", lossless=True),
        "bee/portable.ppm": encoded(drawing(70, 30, 9), "PPM"),
    }


@pytest.fixture(scope="module")
def mixed_tree(mixed: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(tmp_path_factory.mktemp("mixed"), mixed)


@pytest.fixture(scope="module")
def jpeg_tree(mixed: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(
        tmp_path_factory.mktemp("jpegs"), {name: data for name, data in mixed.items() if "jpg" in name}
    )


def images_of(dataset: Path, field: str) -> dict[str, bytes]:
    return {sample["__key__"]: sample[field] for sample in pt.Dataset(dataset)}


def key_of(name: str) -> str:
    return name.rsplit(".", 1)[0].replace(".", "_")


def test_raw_images_are_pillows_pixels(mixed: dict[str, bytes], mixed_tree: Path, tmp_path: Path) -> None:
    report = pt.pack(mixed_tree, tmp_path / "raw", image="raw", sync=False)
    assert report.fields == ["cls", "ppm"]
    assert (report.conversion.images, report.conversion.tried) == (9, 9)
    assert (report.conversion.mean_difference, report.conversion.largest_difference) == (0, 0)
    raw = images_of(tmp_path / "raw", "ppm")
    labels = {sample["__key__"]: sample["cls"] for sample in pt.Dataset(tmp_path / "raw")}
    samples = pt.Dataset(tmp_path / "raw")
    assert samples.classes == ["ant", "bee"]
    assert len(raw) == len(mixed)
    for name, content in mixed.items():
        made = opened(raw[key_of(name)])
        assert made.format == "PPM"
        assert np.array_equal(np.asarray(made), pixels(content)), name
        assert int(labels[key_of(name)]) == ("bee" in name)
    assert pt.verify(tmp_path / "raw").ok


def test_raw_images_are_shrunk_as_pillow_shrinks(
    mixed: dict[str, bytes], mixed_tree: Path, tmp_path: Path
) -> None:
    pt.pack(mixed_tree, tmp_path / "raw", image="raw", max_side=100, sync=False)
    raw = images_of(tmp_path / "raw", "ppm")
    for name, content in mixed.items():
        assert levels_apart(pixels(raw[key_of(name)]), shrunk(content, 100)).max() <= 1, name


def test_jpeg_of_a_quality_is_what_pillow_would_write(
    mixed: dict[str, bytes], mixed_tree: Path, tmp_path: Path
) -> None:
    report = pt.pack(mixed_tree, tmp_path / "jpeg", image="jpeg:90", max_side=128, sync=False)
    assert report.fields == ["cls", "jpg"]
    made = images_of(tmp_path / "jpeg", "jpg")
    for name, content in mixed.items():
        ours = opened(made[key_of(name)])
        assert ours.format == "JPEG"
        if made[key_of(name)] == content:
            assert name == "ant/small.jpg"
            continue
        assert "progressive" not in ours.info
        source = Image.fromarray(shrunk(content, 128))
        sampling = "4:4:4" if name == "ant/turned.jpg" else "4:2:0"
        theirs = opened(encoded(source, "JPEG", quality=90, subsampling=sampling))
        assert ours.quantization == theirs.quantization
        if ours.mode == "RGB":  # one component alone has nothing to be sampled against
            assert ours.layer == theirs.layer, name
        assert levels_apart(np.asarray(ours), np.asarray(theirs)).mean() < 0.5, name
    apart = [
        levels_apart(pixels(made[key_of(name)]), shrunk(content, 128)).ravel()
        for name, content in mixed.items()
    ]
    assert report.conversion.mean_difference == pytest.approx(np.concatenate(apart).mean(), rel=0.02)


def test_orientation_can_still_be_chosen(mixed: dict[str, bytes], jpeg_tree: Path, tmp_path: Path) -> None:
    pt.pack(jpeg_tree, tmp_path / "jpeg", image="jpeg:90", max_side=100, sync=False)
    made = opened(images_of(tmp_path / "jpeg", "jpg")["ant/turned"])
    assert made.getexif()[0x0112] == 6
    assert made.size == (48, 100)
    assert ImageOps.exif_transpose(made).size == (100, 48)


def test_baseline_changes_no_pixel(mixed: dict[str, bytes], mixed_tree: Path, tmp_path: Path) -> None:
    report = pt.pack(mixed_tree, tmp_path / "baseline", baseline=True, sync=False)
    assert report.conversion.largest_difference == 0
    packed = tmp_path / "baseline"
    for sample in pt.Dataset(packed):
        field = next(name for name in ("jpg", "png", "webp", "ppm") if name in sample)
        content = mixed[f"{sample['__key__']}.{field}"]
        assert "progressive" not in opened(sample[field]).info
        assert np.array_equal(pixels(sample[field]), pixels(content))
        assert (sample[field] == content) == ("progressive" not in sample["__key__"])


def test_smaller_jpegs_keep_their_bytes(mixed: dict[str, bytes], jpeg_tree: Path, tmp_path: Path) -> None:
    pt.pack(jpeg_tree, tmp_path / "out", max_side=250, sync=False)
    made = images_of(tmp_path / "out", "jpg")
    for key, content in made.items():
        same = content == mixed[f"{key}.jpg"]
        assert same == (max(opened(mixed[f"{key}.jpg"]).size) <= 250)
        assert max(opened(content).size) <= 250


def test_images_of_other_kinds_need_a_word(mixed_tree: Path, tmp_path: Path) -> None:
    with pytest.raises(pt.InvalidError, match='image="jpeg:QUALITY" or image="raw"'):
        pt.pack(mixed_tree, tmp_path / "out", max_side=100)
    assert not list(tmp_path.iterdir())


def test_a_loader_gives_the_same_batch_from_raw_images(tmp_path: Path) -> None:
    source = write_tree(
        tmp_path / "source",
        {f"c{i % 2}/{i:02}.png": encoded(drawing(60 + i, 50, i), "PNG") for i in range(12)},
    )
    pt.pack(source, tmp_path / "png", sync=False)
    pt.pack(source, tmp_path / "raw", image="raw", sync=False)
    batches = [
        [
            (batch["image"].copy(), batch["label"].copy())
            for batch in pt.Loader(
                tmp_path / name, batch_size=4, seed=3, image=pt.RandomResizedCrop(32, flip=0.5, dtype="uint8")
            )
        ]
        for name in ("png", "raw")
    ]
    assert len(batches[0]) == len(batches[1]) == 3
    for (ours, our_labels), (theirs, their_labels) in zip(*batches):
        assert np.array_equal(ours, theirs)
        assert np.array_equal(our_labels, their_labels)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_takes_converted_images(
    format: str, mixed: dict[str, bytes], mixed_tree: Path, tmp_path: Path, command: Command
) -> None:
    pt.pack(mixed_tree, tmp_path / "out", format=format, image="raw", sync=False)
    checked = command("verify", tmp_path / "out")
    assert checked.code == 0, checked.error
    for key, content in images_of(tmp_path / "out", "ppm").items():
        source = next(data for name, data in mixed.items() if key_of(name) == key)
        assert np.array_equal(pixels(content), pixels(source)), key
    pt.extract(tmp_path / "out", tmp_path / "again")
    assert sorted(read_tree(tmp_path / "again")) == sorted(f"{key_of(name)}.ppm" for name in mixed)


def test_splits_names_and_labels_stay(photos: Path, packed: Path, tmp_path: Path) -> None:
    pt.pack(photos, tmp_path / "small", image="jpeg:50", shards=4, sync=False)
    before, after = pt.Dataset(packed), pt.Dataset(tmp_path / "small")
    assert list(before.keys) == list(after.keys)
    assert before.splits == after.splits
    assert np.array_equal(before.labels, after.labels)
    pt.extract(tmp_path / "small", tmp_path / "again")
    assert sorted(read_tree(tmp_path / "again")) == sorted(read_tree(photos))


def test_masks_beside_the_image_stay(tmp_path: Path) -> None:
    mask, deep = encoded(drawing(40, 30), "PNG"), encoded(drawing(30, 40), "PNG")
    source = write_tree(
        tmp_path / "source",
        {"a.jpg": encoded(drawing(40, 30), "JPEG"), "a.png": mask, "a.seg.png": deep},
    )
    report = pt.pack(source, tmp_path / "out", image="raw", sync=False)
    assert any("further images" in warning for warning in report.warnings)
    (sample,) = pt.Dataset(tmp_path / "out")
    assert sample["png"] == mask
    assert sample["seg.png"] == deep
    assert sample["ppm"].startswith(b"P6")


def test_the_hash_of_the_source_is_kept_for_numpy(mixed_tree: Path, tmp_path: Path) -> None:
    pt.pack(mixed_tree, tmp_path / "out", baseline=True, sync=False)
    hashes = np.load(tmp_path / "out" / "names.npz")["source.hash"].reshape(-1, 16)
    keys = list(pt.Dataset(tmp_path / "out").keys)
    assert len(hashes) == len(keys)
    assert [key for key, found in zip(keys, hashes) if found.any()] == ["ant/progressive"]
    source = json.loads((tmp_path / "out" / "manifest.json").read_text())["source"]
    assert (source["image"], source["max_side"], source["baseline"]) == ("keep", 0, True)
    pt.pack(mixed_tree, tmp_path / "plain", sync=False)
    assert "source.hash" not in np.load(tmp_path / "plain" / "names.npz")


def test_a_container_is_converted_like_its_files(
    mixed: dict[str, bytes], mixed_tree: Path, tmp_path: Path
) -> None:
    pt.pack(mixed_tree, tmp_path / "plain", sync=False)
    pt.pack(tmp_path / "plain", tmp_path / "twice", image="raw", sync=False)
    pt.pack(mixed_tree, tmp_path / "once", image="raw", sync=False)
    assert images_of(tmp_path / "twice", "ppm") == images_of(tmp_path / "once", "ppm")


def test_sidecars_name_what_lies_in_converted_shards(mixed_tree: Path, tmp_path: Path) -> None:
    pt.pack(mixed_tree, tmp_path / "out", image="raw", sidecars=["wids", "dali", "energon"], sync=False)
    (shard,) = (tmp_path / "out").glob("*.tar")
    with tarfile.open(shard) as tar:
        members = {member.name: (member.offset_data, member.size) for member in tar}
    lines = shard.with_suffix(".idx").read_text().splitlines()
    assert lines[0] == "v1.2 9"
    named = {}
    for line in lines[1:]:
        words = line.split()
        for at in range(0, len(words), 4):
            named[words[at + 3]] = (int(words[at + 1]), int(words[at + 2]))
    assert named == members
    offsets = np.frombuffer((tmp_path / "out" / f"{shard.name}.idx").read_bytes(), "<u8")
    assert len(offsets) == 10
    wids = json.loads(next((tmp_path / "out").glob("*.wids.json")).read_text())
    assert wids["shardlist"][0]["nsamples"] == 9
    assert wids["shardlist"][0]["filesize"] == shard.stat().st_size


def test_webdataset_reads_raw_images(mixed: dict[str, bytes], mixed_tree: Path, tmp_path: Path) -> None:
    wds = pytest.importorskip("webdataset")
    pt.pack(mixed_tree, tmp_path / "out", image="raw", sync=False)
    shards = [str(path) for path in (tmp_path / "out").glob("*.tar")]
    got = {
        sample["__key__"]: sample["ppm"]
        for sample in wds.WebDataset(shards, shardshuffle=False).decode("pil")
    }
    for name, content in mixed.items():
        image = got[key_of(name)]
        theirs = np.asarray(image.convert("RGB"))
        assert np.array_equal(theirs, np.asarray(opened(content).convert("RGB"))), name


def test_a_bad_image_ends_the_command_with_1_or_is_left_out(tmp_path: Path, command: Command) -> None:
    good = encoded(drawing(50, 40), "JPEG")
    source = write_tree(tmp_path / "source", {"a.jpg": good, "b.jpg": b"no image", "c.jpg": good[:-200]})
    ran = command("pack", source, tmp_path / "out", "--image", "raw")
    assert ran.code == 1
    assert "b.jpg" in ran.error
    assert "c.jpg" in ran.error
    assert not (tmp_path / "out").exists()
    ran = command("pack", source, tmp_path / "out", "--image", "raw", "--skip-bad", "2")
    assert ran.code == 0, ran.error
    assert list(pt.Dataset(tmp_path / "out").keys) == ["a"]


def test_the_command_says_the_cost_first(mixed_tree: Path, tmp_path: Path, command: Command) -> None:
    dry = command("pack", mixed_tree, tmp_path / "out", "--image", "jpeg:80", "--dry-run")
    assert dry.code == 0, dry.error
    assert "images: 9 to convert; of 9 tried" in dry.out
    assert "grey levels on average" in dry.out
    assert not list(tmp_path.iterdir())
    ran = command("pack", mixed_tree, tmp_path / "out", "--image", "jpeg:80")
    assert ran.code == 0, ran.error
    assert ran.out.startswith("images: 9 to convert; of 9 tried")
    told = command("pack", mixed_tree, tmp_path / "json", "--image", "raw", "--json")
    cost = told.json()["conversion"]
    assert (cost["images"], cost["tried"], cost["largest_difference"]) == (9, 9, 0)
    assert cost["bytes_after"] > cost["bytes_before"]
    lossless = command("pack", mixed_tree, tmp_path / "b", "--baseline")
    assert "no pixel differs" in lossless.out


@pytest.mark.parametrize("format", ["webdataset", "zip", "hdf5", "squashfs"])
def test_images_of_compressed_archives_are_converted_like_loose_ones(
    jpeg_tree: Path, tmp_path: Path, format: str
) -> None:
    for name, mode in (("jpegs.tar", "w"), ("jpegs.tar.gz", "w:gz")):
        with tarfile.open(tmp_path / name, mode) as tar:
            tar.add(jpeg_tree, "jpegs")
        report = pt.pack(
            tmp_path / name, tmp_path / f"{name}.pt", image="jpeg:60", max_side=64, format=format, sync=False
        )
        assert report.conversion.tried > 0
        assert pt.verify(tmp_path / f"{name}.pt").ok
    plain, streamed = (pt.Dataset(tmp_path / f"{name}.pt") for name in ("jpegs.tar", "jpegs.tar.gz"))
    assert list(plain.keys) == list(streamed.keys)
    assert [plain[i]["jpg"] for i in range(len(plain))] == [streamed[i]["jpg"] for i in range(len(plain))]
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.slow
@pytest.mark.parametrize("format", ["webdataset", "arrow"])
def test_killed_while_converting_it_is_finished_by_the_next(
    tmp_path: Path, command: Command, format: str
) -> None:
    draw = random.Random(3)
    images = {f"c{n % 3}/{n:03}.jpg": encoded(drawing(300, 200, n), "jpeg") for n in range(150)}
    source = write_tree(tmp_path / "tree", images)
    options = ["--image", "jpeg:70", "--format", format, "--shards", "4", "--quiet", "--no-sync"]
    start = time.monotonic()
    assert command("pack", source, *options, tmp_path / "whole.pt").code == 0
    whole = time.monotonic() - start
    expected = without_log(tmp_path / "whole.pt")
    interrupted = 0
    for _ in range(8):
        running = command.start("pack", source, *options, tmp_path / "out.pt")
        time.sleep(draw.uniform(0, whole))
        running.send_signal(signal.SIGKILL)
        running.communicate()
        interrupted += (tmp_path / "out.pt.part").exists()
        done = command("pack", source, *options, tmp_path / "out.pt")
        assert done.code == 0 or "exists already" in done.last_line, done.error
        assert without_log(tmp_path / "out.pt") == expected
        assert not (tmp_path / "out.pt.part").exists()
        shutil.rmtree(tmp_path / "out.pt")
    assert interrupted > 0, "no kill came while it was packing"


def test_what_pixels_of_8_bits_cannot_hold_is_told(command: Command, tmp_path: Path) -> None:
    files = {
        "plain.png": encoded(drawing(8, 8), "PNG"),
        "deep.png": encoded(Image.fromarray(np.full((8, 8), 0x1234, np.uint16)), "PNG"),
        "alpha.png": encoded(drawing(8, 8).convert("RGBA"), "PNG"),
        "alpha.webp": encoded(Image.new("RGBA", (8, 8), (1, 2, 3, 4)), "WEBP", lossless=True),
    }
    write_tree(
        tmp_path / "tree", {f"a/{n}-{name}": content for n, (name, content) in enumerate(files.items())}
    )
    ran = command("pack", tmp_path / "tree", tmp_path / "out", "--image", "raw")
    assert ran.code == 0, ran.error
    said = ran.out + ran.error
    assert "1 have 16 bits a value" in said
    assert "2 have an alpha channel" in said
    cost = pt.pack(tmp_path / "tree", tmp_path / "again", image="raw", sync=False).conversion
    assert (cost.deeper, cost.transparent) == (1, 2)


def test_files_with_comments_and_few_levels_are_pillows(tmp_path: Path) -> None:
    files = {
        "few.ppm": b"P6\n# a comment\n4 2 15\n" + bytes(range(16)) + bytes(8),
        "grey.pgm": b"P5 5 3 255\n" + bytes(range(15)),
        "odd.pgm": b"P5\n#x\n#y\n 6\t1\n7\n" + bytes([0, 1, 3, 5, 6, 7]),
    }
    for name, content in files.items():
        width, height = opened(content).size
        spec = ImageSpec(width=width, height=height, crop="resize", dtype="uint8", layout="HWC")
        ours = transform_image(content, spec)
        assert np.array_equal(ours, np.asarray(opened(content).convert("RGB"))), name
