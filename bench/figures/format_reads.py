"""Random reads out of every container, against tar and against the container's own library."""

from __future__ import annotations

import json
import subprocess

from harness.bench import Bench, Figure
from harness.measure import Series, run_program
from harness.outcome import Comparison, Outcome
from harness.workloads import PHOTOS, RECORDINGS, warm

READS = {PHOTOS: 3000, RECORDINGS: 20_000}
AGAINST_TAR = 0.8
# Against the container's own library, with one thread and with two.
AGAINST_LIBRARY = {
    "hdf5-vlen": (5.0, 2.0),
    "hdf5": (1.0, 2.0),
    "arrow": (1.0, 2.0),
    "zip": (1.0, 2.0),
    "zarr": (1.0, 2.0),
    "npz": (1.0, 2.0),
    "lmdb": (0.9, 1.6),
}
# The same for a call that brings many samples, where the library has one. With one thread nothing is asked.
MANY_AGAINST_LIBRARY = {"lmdb": (None, 1.6)}
ARRAYS_ONLY = {"npy"}  # takes no files of other kinds
LIMITS = {
    "lmdb": "both copy out of a mapping; the copy of a short value takes less time than the call, and calls "
    "of two threads take turns for Python's lock"
}


def writable(bench: Bench) -> list[str]:
    told = subprocess.run([bench.packtrain, "doctor", "--json"], check=True, capture_output=True, text=True)
    names = [known["name"] for known in json.loads(told.stdout)["formats"] if known["write"]]
    return [name for name in names if name not in ARRAYS_ONLY]


def measure(bench: Bench) -> Outcome:
    outcome = Outcome()
    outcome.notes += [
        "one field of random samples, each as bytes of its own; all contenders in one process, in turns",
        "ours reads without comparing checksums, as the containers' own libraries do (zipfile compares)",
        "256 samples a call: Dataset.read of one field against py-lmdb's cursor.getmulti of the same keys",
        "of zarr-python's and NumPy's reads only a part is made, and their time multiplied",
    ]
    for workload, reads in READS.items():
        tree = bench.workloads.tree(workload)
        folder = tree.with_name(tree.name + "-formats")
        for name in writable(bench):
            out = folder / f"{name}.pt"
            if not out.exists():
                folder.mkdir(exist_ok=True)
                subprocess.run(
                    [bench.packtrain, "pack", tree, out, "--format", name, "--order", "source", "--quiet"],
                    check=True,
                    stdout=subprocess.DEVNULL,
                )
        warm(folder)
        field = "jpg" if workload == PHOTOS else "wav"
        command = [*bench.peer("format_reads"), folder, field, str(reads), str(bench.rounds)]
        printed, foreign = run_program(command, {"PYTHONPATH": str(bench.build / "python")})
        words = bench.in_words(" ".join(map(str, command)))
        for threads, ways in json.loads(printed).items():
            series = {
                name: Series(
                    f"{name}, {workload}, {threads} threads", words, seconds, foreign_cores=[foreign]
                )
                for name, seconds in ways.items()
            }
            for name in sorted(ways):
                kind, _, of = name.partition(" ")
                if kind != "ours" or of == "webdataset":
                    continue
                if of.endswith(" many"):
                    one_many, two_many = MANY_AGAINST_LIBRARY[of.removesuffix(" many")]
                    plural = "s" if threads != "1" else ""
                    label = f"{workload}, {of.removesuffix(' many')}, {threads} thread{plural}"
                    outcome.comparisons.append(
                        Comparison(
                            f"{label}, 256 samples a call, its own library",
                            series[name],
                            series[f"peer {of}"],
                            one_many if threads == "1" else two_many,
                        )
                    )
                    continue
                what = f"{workload}, {of}, {threads} thread{'s' if threads != '1' else ''}"
                target = AGAINST_TAR if threads == "1" else None
                outcome.comparisons.append(
                    Comparison(f"{what}, against tar", series[name], series["ours webdataset"], target)
                )
                if f"peer {of}" in series:
                    one, two = AGAINST_LIBRARY[of]
                    outcome.comparisons.append(
                        Comparison(
                            f"{what}, its own library",
                            series[name],
                            series[f"peer {of}"],
                            one if threads == "1" else two,
                            limit=LIMITS.get(of, ""),
                        )
                    )
    return outcome


FIGURE = Figure(
    "format-reads",
    "Is a random read from every container as fast as from tar, and faster than by its own library?",
    measure,
    rounds=15,
)
