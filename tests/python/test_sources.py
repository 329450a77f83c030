"""Every kind of source: packed, read back by position, and extracted again to the same names and bytes."""

from __future__ import annotations

import csv
import io
import json
import pickle
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import packtrain as pt
import pytest
from helpers import Command, read_tree, small_tree, write_tree

LABELS = {name: "abc".index(name[0]) for name in small_tree() if name.endswith(".jpg")}


def pack(source: Any, tmp_path: Path, **options: Any) -> pt.Dataset:
    pt.pack(source, tmp_path / "out", sync=False, **options)
    assert pt.verify(tmp_path / "out").ok
    return pt.Dataset(tmp_path / "out")


def extracted(tmp_path: Path) -> dict[str, bytes]:
    pt.extract(tmp_path / "out", tmp_path / "back")
    return read_tree(tmp_path / "back")


def labels_by_name(data: pt.Dataset) -> dict[str, int]:
    return {data.source(i, "jpg"): data[i]["cls"] for i in range(len(data))}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "tree", small_tree())


def test_class_tree(tree: Path, tmp_path: Path) -> None:
    data = pack(tree, tmp_path)
    assert data.classes == ["ant", "bee", "cat"]
    assert labels_by_name(data) == LABELS
    assert extracted(tmp_path) == small_tree()


def test_classes_numbered_by_a_file(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("cat\nowl\nbee\nant\n")
    data = pack(tree, tmp_path, classes=tmp_path / "classes.txt")
    assert data.classes == ["cat", "owl", "bee", "ant"]
    assert labels_by_name(data) == {name: {"a": 3, "b": 2, "c": 0}[name[0]] for name in LABELS}


def test_split_tree(tmp_path: Path) -> None:
    files = {
        f"{split}/{name}": content for split in ("train", "val") for name, content in small_tree().items()
    }
    write_tree(tmp_path / "tree", files)
    data = pack(tmp_path / "tree", tmp_path)
    assert data.splits == {"train": 12, "val": 12}
    assert data.classes == ["ant", "bee", "cat"]
    assert all(data.source(i, "jpg").startswith("train/") for i in range(12))
    assert extracted(tmp_path) == files


def test_flat_folder(tmp_path: Path) -> None:
    files = {Path(name).name: content for name, content in small_tree().items()}
    write_tree(tmp_path / "tree", files)
    data = pack(tmp_path / "tree", tmp_path)
    assert data.classes == []
    assert set(data.labels.tolist()) == {pt.NO_LABEL}
    assert "cls" not in data.fields
    assert extracted(tmp_path) == files


def test_several_sources_are_several_splits(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_tree(tmp_path / name, small_tree())
    data = pack({"train": tmp_path / "a", "val": tmp_path / "b"}, tmp_path)
    assert data.splits == {"train": 12, "val": 12}
    assert extracted(tmp_path) == {f"{s}/{n}": c for s in ("train", "val") for n, c in small_tree().items()}


@pytest.mark.parametrize("protocol", range(6))
def test_pickled_list(tree: Path, tmp_path: Path, protocol: int) -> None:
    (tmp_path / "list.pkl").write_bytes(pickle.dumps(LABELS, protocol=protocol))
    data = pack(tmp_path / "list.pkl", tmp_path, root=tree)
    assert labels_by_name(data) == LABELS
    assert extracted(tmp_path) == {name: small_tree()[name] for name in LABELS}


@pytest.mark.parametrize(
    "shape", [list(LABELS.items()), [list(pair) for pair in LABELS.items()], list(LABELS)]
)
def test_pickled_shapes(tree: Path, tmp_path: Path, shape: Any) -> None:
    (tmp_path / "list.pkl").write_bytes(pickle.dumps(shape))
    data = pack(tmp_path / "list.pkl", tmp_path, root=tree)
    assert sorted(data.source(i, "jpg") for i in range(len(data))) == sorted(LABELS)


class Hostile:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("pickle-was-executed"),)


@pytest.mark.parametrize("protocol", range(6))
def test_a_hostile_pickle_is_refused_and_executes_nothing(
    tree: Path, tmp_path: Path, protocol: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.pkl").write_bytes(pickle.dumps({"ant/000.jpg": Hostile()}, protocol=protocol))
    with pytest.raises(pt.Error, match=r"list\.pkl"):
        pt.pack(tmp_path / "list.pkl", tmp_path / "out", root=tree)
    assert not (tmp_path / "pickle-was-executed").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("cut", range(0, 200, 7))
def test_a_corrupt_pickle_is_an_error(tree: Path, tmp_path: Path, cut: int) -> None:
    (tmp_path / "list.pkl").write_bytes(pickle.dumps(LABELS)[:cut])
    with pytest.raises(pt.Error, match=r"list\.pkl"):
        pt.pack(tmp_path / "list.pkl", tmp_path / "out", root=tree)


def test_a_column_of_splits_makes_splits(tree: Path, tmp_path: Path) -> None:
    rows = [f"{name},{label},{'val' if label == 2 else 'train'}" for name, label in LABELS.items()]
    listing = tmp_path / "list.csv"
    listing.write_text("path,label,split\n" + "\n".join(rows) + "\n")
    data = pack(listing, tmp_path, root=tree)
    held_out = sum(label == 2 for label in LABELS.values())
    assert data.splits == {"train": len(LABELS) - held_out, "val": held_out}
    assert set(pt.Dataset(tmp_path / "out", split="val").labels) == {2}
    report = pt.pack(listing, tmp_path / "off", root=tree, split_column="none", sync=False)
    assert report.splits == ["train"]
    named = pt.pack({"dev": listing}, tmp_path / "named", root=tree, sync=False)
    assert named.splits == ["dev"]
    assert any("not used" in warning for warning in named.warnings)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "json", "jsonl"])
def test_list_with_further_columns(tree: Path, tmp_path: Path, suffix: str) -> None:
    rows = [
        {"image": name, "kind": label, "who": f'x, "{number}"\n'}
        for number, (name, label) in enumerate(LABELS.items())
    ]
    listing = tmp_path / f"list.{suffix}"
    if suffix == "json":
        listing.write_text(json.dumps(rows))
    elif suffix == "jsonl":
        listing.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), dialect="excel-tab" if suffix == "tsv" else "excel")
        writer.writeheader()
        writer.writerows(rows)
        listing.write_bytes(text.getvalue().encode())
    data = pack(listing, tmp_path, root=tree, path_column="image", label_column="kind", order="source")
    assert labels_by_name(data) == LABELS
    assert [json.loads(sample["json"])["who"] for sample in data] == [row["who"] for row in rows]
    back = extracted(tmp_path)
    assert {name: back[name] for name in LABELS} == {name: small_tree()[name] for name in LABELS}


def test_list_of_names_as_labels(tree: Path, tmp_path: Path) -> None:
    rows = "".join(f"{name},{Path(name).parent}\n" for name in LABELS)
    (tmp_path / "list.csv").write_text("path,label\n" + rows)
    data = pack(tmp_path / "list.csv", tmp_path, root=tree)
    assert data.classes == ["ant", "bee", "cat"]
    assert labels_by_name(data) == LABELS


CAPTIONS = {
    "1000.jpg": ["Two dogs run .", "A dog, and another | dog", "Dogs"],
    "2000.jpg": ["A child .", "Ein Kind läuft"],
}


def caption_list(tmp_path: Path, form: str) -> Path:
    images = write_tree(tmp_path / "images", {name: name.encode() * 9 for name in CAPTIONS})
    rows = [(name, number, text) for name, texts in CAPTIONS.items() for number, text in enumerate(texts)]
    if form == "flickr csv":
        listing = images / "results.csv"
        lines = ["image_name| comment_number| comment", *(f"{n}| {i}| {text}" for n, i, text in rows)]
        listing.write_text("\n".join(lines) + "\n")
    elif form == "flickr token":
        listing = images / "results.token"
        listing.write_text("".join(f"{n}#{i}\t{text}\n" for n, i, text in rows))
    else:
        listing = images / "captions.json"
        listing.write_text(
            json.dumps(
                {
                    "images": [{"id": int(n[:4]), "file_name": n, "height": 4, "width": 3} for n in CAPTIONS],
                    "annotations": [
                        {"id": k, "image_id": int(n[:4]), "caption": text}
                        for k, (n, _, text) in enumerate(rows)
                    ],
                }
            )
        )
    return listing


@pytest.mark.parametrize("form", ["flickr csv", "flickr token", "coco"])
def test_captions_are_one_sample_per_image(tmp_path: Path, form: str) -> None:
    data = pack(caption_list(tmp_path, form), tmp_path, order="source")
    assert len(data) == 2
    for position, (name, texts) in enumerate(CAPTIONS.items()):
        sample = data[position]
        assert sample["jpg"] == name.encode() * 9
        assert sample["txt"].decode().split("\n") == texts
        assert json.loads(sample["json"])["captions"] == texts
    back = extracted(tmp_path)
    assert {name: back[name] for name in CAPTIONS} == {name: name.encode() * 9 for name in CAPTIONS}


@pytest.mark.parametrize("kind", ["zip", "zip stored", "tar", "tar.gz", "tar.zst"])
def test_archive_of_a_tree(tree: Path, tmp_path: Path, kind: str) -> None:
    if kind.startswith("zip"):
        archive = tmp_path / "tree.zip"
        method = zipfile.ZIP_STORED if kind == "zip stored" else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(archive, "w", method) as file:
            for name, content in small_tree().items():
                file.writestr(name, content)
    else:
        archive = tmp_path / f"tree.{kind}"
        plain = tmp_path / "plain.tar"
        subprocess.run(["tar", "-C", tree, "-cf", plain, "ant", "bee", "cat"], check=True)
        if kind == "tar":
            plain.rename(archive)
        elif kind == "tar.gz":
            with tarfile.open(archive, "w:gz") as file:
                file.add(tree, arcname=".")
        else:
            subprocess.run(["zstd", "-q", plain, "-o", archive], check=True)
    if kind == "tar.zst" and not pt.doctor().codecs["zstd"]:
        pytest.skip("zstd is not compiled in")
    data = pack(archive, tmp_path)
    assert data.classes == ["ant", "bee", "cat"]
    assert labels_by_name(data) == LABELS
    assert extracted(tmp_path) == small_tree()


def test_webdataset_shards_are_packed_again(packed: Path, tmp_path: Path) -> None:
    data = pack(str(packed / "train-*.tar"), tmp_path, shards=2, seed=9)
    before = pt.Dataset(packed, split="train")
    assert sorted(sample["jpg"] for sample in data) == sorted(sample["jpg"] for sample in before)
    assert [s["__key__"] for s in data] != [s["__key__"] for s in before]
    assert {s["jpg"]: s["cls"] for s in data} == {s["jpg"]: s["cls"] for s in before}


def test_a_dataset_is_converted_and_keeps_its_names(photos: Path, packed: Path, tmp_path: Path) -> None:
    data = pack(packed, tmp_path, format="zip")
    assert data.splits == {"train": 36, "val": 4}
    assert {shard.format for shard in data.shards} == {"zip"}
    assert extracted(tmp_path) == read_tree(photos)


ODD_NAMES = {
    "a class/with space.jpg": b"1",
    "a class/new\nline.jpg": b"2",
    "a class/not-utf8-\udcff\udcfe.jpg": b"3",
    "a class/" + "long" * 60 + ".jpg": b"4",
    "a class/dots.in.the.stem.jpg": b"5",
    "a class/UPPER.JPG": b"6",
    "a class/upper.jpg": b"7",
    "a class/same?.jpg": b"8",
    "a class/same*.jpg": b"9",
    "ünï/ä.JPeG": b"10",
    "ünï/no extension": b"11",
    "ünï/empty.jpg": b"",
    "deep/er/and/deeper/x.jpg": b"12",
    "two/x.seg.png": b"13",
    "two/x.jpg": b"14",
    "quote\"'\\/\t.jpg": b"15",
}


def test_odd_names_come_back_as_they_were(tmp_path: Path) -> None:
    write_tree(tmp_path / "tree", ODD_NAMES)
    data = pack(tmp_path / "tree", tmp_path)
    for key in data.keys:
        assert key.isascii()
        assert key.replace("/", "").replace("_", "").replace("-", "").isalnum()
        assert len(key) < 100
    assert extracted(tmp_path) == ODD_NAMES


def test_hidden_and_temporary_files_are_left_out_and_counted(tmp_path: Path) -> None:
    kept = {"a/1.jpg": b"1", "b/2.jpg": b"2"}
    left = {
        "a/.hidden.jpg": b"x",
        ".git/config": b"x",
        "a/3.jpg~": b"x",
        "b/.DS_Store": b"x",
        "b/4.tmp": b"x",
    }
    write_tree(tmp_path / "tree", {**kept, **left})
    report = pt.pack(tmp_path / "tree", tmp_path / "out", sync=False)
    assert report.samples == 2
    assert report.hidden_skipped >= 3
    assert report.temporary_skipped == 2
    assert extracted(tmp_path) == kept


def test_symlink_loops_are_survived(tree: Path, tmp_path: Path) -> None:
    (tree / "ant" / "up").symlink_to(tree)
    (tree / "bee" / "self").symlink_to("self")
    assert len(pack(tree, tmp_path)) >= 12


def test_bad_files_may_be_left_out(tree: Path, tmp_path: Path) -> None:
    names = [*LABELS, "ant/gone.jpg"]
    (tmp_path / "list.csv").write_text("path,label\n" + "".join(f"{name},1\n" for name in names))
    with pytest.raises(pt.CorruptError):
        pt.pack(tmp_path / "list.csv", tmp_path / "out", root=tree, sync=False)
    report = pt.pack(tmp_path / "list.csv", tmp_path / "out", root=tree, sync=False, skip_bad=1)
    assert (report.samples, [Path(bad.path).name for bad in report.bad]) == (12, ["gone.jpg"])


def test_any_field_is_kept_as_it_is(tmp_path: Path) -> None:
    files = {
        "k/a.wav": b"RIFF....",
        "k/a.txt": b"a text",
        "k/a.npy": b"\x93NUMPY",
        "k/a.json": b"{}",
        "k/a.seg.png": b"\x89PNG",
        "k/b.wav": b"",
    }
    write_tree(tmp_path / "tree", files)
    data = pack(tmp_path / "tree", tmp_path, order="source")
    assert len(data) == 2
    assert set(data[0]) == {"__key__", "cls", "wav", "txt", "npy", "json", "seg.png"}
    assert data[1]["wav"] == b""
    assert extracted(tmp_path) == files


@pytest.mark.parametrize("labels", [["0.0", "1.0", ""], ["0", "1.0", ""], ["0.", "1.00", ""]])
def test_whole_numbers_as_floats_are_numbers(tmp_path: Path, labels: list[str]) -> None:
    write_tree(tmp_path, {f"{n}.txt": b"x" for n in range(3)})
    rows = "".join(f"{n}.txt,{label}\n" for n, label in enumerate(labels))
    (tmp_path / "list.csv").write_text("path,label\n" + rows)
    data = pack(tmp_path / "list.csv", tmp_path, order="source")
    assert data.labels.tolist() == [0, 1, pt.NO_LABEL]
    assert data.classes == []
    assert data[1]["cls"] == 1


def test_fractions_are_names_only_where_classes_say_so(tmp_path: Path) -> None:
    write_tree(tmp_path, {f"{n}.txt": b"x" for n in range(2)})
    (tmp_path / "list.csv").write_text("path,label\n0.txt,0.0\n1.txt,0.5\n")
    with pytest.raises(pt.InvalidError, match=r"line 3: the label 0\.5 is no whole number"):
        pack(tmp_path / "list.csv", tmp_path)
    (tmp_path / "classes.txt").write_text("0.5\n0.0\n")
    data = pack(tmp_path / "list.csv", tmp_path, classes=tmp_path / "classes.txt", order="source")
    assert data.classes == ["0.5", "0.0"]
    assert data.labels.tolist() == [1, 0]


def test_a_folder_in_a_list_is_a_bad_row(tree: Path, tmp_path: Path) -> None:
    names = [*LABELS, "ant"]
    (tmp_path / "list.csv").write_text("path,label\n" + "".join(f"{name},1\n" for name in names))
    with pytest.raises(pt.CorruptError, match="no file is there") as caught:
        pt.pack(tmp_path / "list.csv", tmp_path / "out", root=tree, sync=False)
    assert [bad.path for bad in caught.value.report.bad] == ["ant"]
    report = pt.pack(tmp_path / "list.csv", tmp_path / "out", root=tree, sync=False, skip_bad=1)
    assert (report.samples, [bad.path for bad in report.bad]) == (12, ["ant"])


LABELLED = {f"{n}.{kind}": b"%d" % (n % 2) for n in range(6) for kind in ("txt", "cls")}


def assert_labelled(data: pt.Dataset) -> None:
    assert sorted(data.keys) == [str(n) for n in range(6)]
    assert {sample["__key__"]: sample["cls"] for sample in data} == {str(n): n % 2 for n in range(6)}
    assert {key: int(label) for key, label in zip(data.keys, data.labels)} == {
        str(n): n % 2 for n in range(6)
    }
    assert data.classes == []


def test_cls_files_label_a_flat_folder(tmp_path: Path) -> None:
    files = {**LABELLED, "x.txt": b"", "x.cls": b"no number", "y.txt": b""}
    write_tree(tmp_path / "tree", files)
    data = pack(tmp_path / "tree", tmp_path)
    assert {key: int(label) for key, label in zip(data.keys, data.labels)} == {
        **{str(n): n % 2 for n in range(6)},
        "x": pt.NO_LABEL,
        "y": pt.NO_LABEL,
    }
    assert extracted(tmp_path) == files


def test_folders_win_over_cls_files(tmp_path: Path) -> None:
    files = {"ant/1.txt": b"1", "ant/1.cls": b"7", "bee/2.txt": b"2", "bee/2.cls": b"7"}
    write_tree(tmp_path / "tree", files)
    data = pack(tmp_path / "tree", tmp_path, order="source")
    assert data.classes == ["ant", "bee"]
    assert data.labels.tolist() == [0, 1]
    assert [(sample["cls"], sample["source.cls"]) for sample in data] == [(0, b"7"), (1, b"7")]
    assert extracted(tmp_path) == files


def test_cls_files_label_splits_without_classes(tmp_path: Path) -> None:
    files = {"train/1.txt": b"1", "train/1.cls": b"7", "val/2.txt": b"2", "val/2.cls": b"8"}
    write_tree(tmp_path / "tree", files)
    data = pack(tmp_path / "tree", tmp_path, order="source")
    assert data.splits == {"train": 1, "val": 1}
    assert (data.labels.tolist(), data.classes) == ([7, 8], [])
    assert extracted(tmp_path) == files


@pytest.mark.parametrize("layout", ["shard", "dot", "folder", "torn apart"])
@pytest.mark.parametrize("kind", ["tar", "tar.gz", "tar.zst"])
def test_archives_of_labelled_samples_are_one_whatever_packs_them(
    tmp_path: Path, kind: str, layout: str
) -> None:
    if kind == "tar.zst" and not pt.doctor().codecs["zstd"]:
        pytest.skip("zstd is not compiled in")
    names = sorted(LABELLED)
    if layout == "torn apart":
        names.sort(key=lambda name: name.split(".")[1])
    inside = {"dot": "./", "folder": "folder/"}.get(layout, "")
    plain = tmp_path / "plain.tar"
    with tarfile.open(plain, "w") as archive:
        if inside:
            folder = tarfile.TarInfo(inside)
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
        for name in names:
            member = tarfile.TarInfo(inside + name)
            member.size = len(LABELLED[name])
            archive.addfile(member, io.BytesIO(LABELLED[name]))
    source = tmp_path / f"source.{kind}"
    if kind == "tar":
        plain.rename(source)
    else:
        tool = ["gzip", "-c"] if kind == "tar.gz" else ["zstd", "-qc"]
        source.write_bytes(subprocess.run([*tool, plain], check=True, capture_output=True).stdout)
    data = pack(source, tmp_path)
    if layout == "folder":
        assert {sample["__key__"].split("/")[-1]: sample["cls"] for sample in data} == {
            str(n): n % 2 for n in range(6)
        }
        assert set(data.labels.tolist()) == {0, 1}
    else:
        assert_labelled(data)


def test_a_compressed_shard_gives_what_the_shard_gives(packed: Path, tmp_path: Path) -> None:
    shard = sorted(packed.glob("train-*.tar"))[0]
    pt.pack(shard, tmp_path / "plain.pt", sync=False)
    source = tmp_path / "shard.tar.gz"
    source.write_bytes(subprocess.run(["gzip", "-c", shard], check=True, capture_output=True).stdout)
    pt.pack(source, tmp_path / "out.pt", sync=False)
    plain, compressed = (pt.Dataset(tmp_path / name) for name in ("plain.pt", "out.pt"))
    assert list(plain.keys) == list(compressed.keys)
    assert plain.labels.tolist() == compressed.labels.tolist()
    assert plain.classes == compressed.classes
    assert [dict(sample) for sample in plain] == [dict(sample) for sample in compressed]


# What would be lost without a word is told.


def test_files_of_a_split_beside_its_classes_are_told_of(tree: Path, tmp_path: Path) -> None:
    files = {f"train/{name}": content for name, content in small_tree().items()}
    files |= {f"val/{number}.jpg": b"\xff\xd8\xff" for number in range(3)}
    report = pt.pack(write_tree(tmp_path / "split", files), tmp_path / "out", sync=False)
    assert any('"val" has 3 files in no class folder' in warning for warning in report.warnings)


def test_label_files_without_a_number_are_told_of(tmp_path: Path) -> None:
    files = {"1.jpg": b"\xff\xd8\xff", "1.cls": b"cat", "2.jpg": b"\xff\xd8\xff", "2.cls": b"7"}
    report = pt.pack(write_tree(tmp_path / "flat", files), tmp_path / "out", sync=False)
    told = "1 sample has no label, as its cls is no whole number: 1.cls; classes with names are folders"
    assert any(told in warning for warning in report.warnings)
    assert sorted(pt.Dataset(tmp_path / "out").labels.tolist()) == [pt.NO_LABEL, 7]


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".zip"])
def test_labels_of_archives_that_are_no_number_are_told_of(tmp_path: Path, suffix: str) -> None:
    texts = [b" 3\n", b"cat", b"1.0", b"a name of more than twenty letters", b"\t5"]
    members: dict[str, bytes] = {}
    for number, text in enumerate(texts):
        members |= {f"{number}.jpg": b"\xff\xd8\xff", f"{number}.cls": text}
    folder = write_tree(tmp_path / "members", members)
    kind = {".tar": "tar", ".tar.gz": "gztar", ".zip": "zip"}[suffix]
    archive = shutil.make_archive(str(tmp_path / "a"), kind, folder)
    told = re.compile(r"3 samples have no label, as their cls is no whole number: (\./)?[123]\.cls, ")
    labels = [pt.NO_LABEL, pt.NO_LABEL, pt.NO_LABEL, 3, 5]
    report = pt.pack(archive, tmp_path / "out", sync=False)
    assert len([warning for warning in report.warnings if told.search(warning)]) == 1, report.warnings
    assert sorted(pt.Dataset(tmp_path / "out").labels.tolist()) == labels
    if suffix != ".tar.gz":
        with pytest.warns(UserWarning, match=told.pattern):
            assert sorted(pt.Dataset(archive, cache=False).labels.tolist()) == labels
        assert len([note for note in pt.index(archive).notes if told.search(note)]) == 1


@pytest.mark.parametrize("options", [{}, {"path_column": "tree/ant/000.jpg", "label_column": "0"}])
def test_a_list_without_a_heading_is_refused(tree: Path, tmp_path: Path, options: dict[str, str]) -> None:
    (tmp_path / "list.csv").write_text("tree/ant/000.jpg,0\ntree/bee/001.jpg,1\n")
    with pytest.raises(pt.InvalidError, match=r"names a file .*put a line such as path,label in front"):
        pt.pack(tmp_path / "list.csv", tmp_path / "out", **options)


@pytest.mark.parametrize(
    ("second", "packed", "advice"),
    [("a/1.JPG", 2, "makes two samples of them"), ("a/1.jpg", 1, "takes the last, as tar would")],
)
def test_what_index_refuses_of_a_tar_pack_does_as_it_says(
    second: str, packed: int, advice: str, tmp_path: Path
) -> None:
    archive = tmp_path / "plain.tar"
    with tarfile.open(archive, "w") as file:
        for name, content in (("a/1.jpg", b"first"), (second, b"second")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    with pytest.raises(pt.CorruptError, match=advice):
        pt.index([archive])
    data = pack(archive, tmp_path)
    assert sorted(sample["jpg"] for sample in data) == [b"first", b"second"][-packed:]


def test_a_folder_with_files_called_as_an_index_is_no_dataset(tmp_path: Path, command: Command) -> None:
    tree = {"a/1.jpg": b"x", "a/manifest.json": b"{}", "a/index.npz": b"y", "b/2.jpg": b"z"}
    write_tree(tmp_path / "q", tree)
    assert command("pack", tmp_path / "q", tmp_path / "q.pt").code == 0
    assert command("extract", tmp_path / "q.pt", tmp_path / "back").code == 0
    assert read_tree(tmp_path / "back") == tree
    write_tree(tmp_path / "top", {"manifest.json": b"{}", "index.npz": b"y", "c/1.jpg": b"x"})
    assert command("pack", tmp_path / "top", tmp_path / "top.pt").code == 0


def test_a_list_in_utf_16_is_called_so(tmp_path: Path, command: Command) -> None:
    write_tree(tmp_path, {"x.jpg": b"x", "list.csv": "path,label\nx.jpg,1\n".encode("utf-16")})
    done = command("pack", tmp_path / "list.csv", tmp_path / "out.pt")
    assert done.code != 0
    assert "UTF-16" in done.last_line
    assert "save it as UTF-8" in done.last_line
