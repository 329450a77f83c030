"""Loaders that take turns: each one of bench/peers/loaders, in its own process and environment."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.bench import Bench
from harness.measure import Series
from harness.process_tree import PeakMemory
from harness.workloads import TrainingPhotos, remove, warm

BATCH = 64
CORES = 2  # that every loader is given, as its workers or threads
TRAIN, BYTES = "train", "bytes"
TIMEOUT = 180  # seconds; a peer that hangs is a peer that is left out
# Of the pixels of an epoch: photos normalised with ImageNet's numbers are within, whatever crops were drawn.
MEAN_AT_MOST, DEVIATIONS = 0.8, (0.6, 1.4)


@dataclass(frozen=True)
class Entry:
    """A loader as it takes part."""

    name: str
    loader: str  # a module of bench/peers/loaders
    group: str = ""  # of bench/peers/setup.sh; "" is packtrain's own environment
    workers: int = CORES
    options: tuple[str, ...] = ()  # NAME=VALUE
    prepared: bool = False  # it writes files of its own beforehand
    epochs: int = 1  # that are timed, after the first
    seconds: float = 0.0  # more epochs, until that much is timed


@dataclass
class LoadSeries(Series):
    """One loader's rounds: `seconds` and `cpu_seconds` are those of one image."""

    starts: list[float] = field(default_factory=list)  # from the start of the process to the first batch
    imports: list[float] = field(default_factory=list)  # the part of it before the data is opened
    first_epochs: list[float] = field(default_factory=list)  # from opening the data to its end

    @property
    def rate(self) -> float:
        return 1 / self.median

    @property
    def cpu(self) -> float:
        return statistics.median(self.cpu_seconds)

    @property
    def start(self) -> float:
        return statistics.median(self.starts)


class LoaderError(Exception):
    """With what a loader said before it failed."""


@dataclass(frozen=True)
class Loading:
    """Runs entries on one set of photos."""

    bench: Bench
    photos: TrainingPhotos
    mode: str
    tree: Path | None = None  # where they are read from, if not from where they were made
    dataset: Path | None = None

    def store(self, entry: Entry) -> Path:
        """What the loader wrote for itself, if it does."""
        return self.photos.tree.with_name(f"{self.photos.tree.name}-{entry.loader}")

    def command(self, entry: Entry, action: str, *options: str) -> list[str]:
        words = [
            *(self.bench.prefix if action == "run" else ()),
            self.bench.python_of(entry.group),
            self.bench.root / "bench" / "peers" / "load.py",
            entry.loader,
            action,
            self.mode,
            *("--tree", self.tree or self.photos.tree),
            *("--dataset", self.dataset or self.photos.dataset),
            *("--store", self.store(entry)),
            *("--batch", BATCH),
            *("--workers", entry.workers),
            *("--field", self.photos.field),
            *(word for option in entry.options for word in ("--with", option)),
            *options,
        ]
        return list(map(str, words))

    def call(self, entry: Entry, action: str, *options: str, watch: bool = False) -> dict[str, Any]:
        """What the loader printed; with `watch`, the memory of its processes too."""
        paths = (self.bench.root / "bench", self.bench.build / "python")
        process = subprocess.Popen(
            self.command(entry, action, *options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        )
        memory = PeakMemory(process.pid) if watch else None
        try:
            out, err = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err += f"\nno answer within {TIMEOUT} s"
        peak = memory.stop() if memory else 0
        if process.returncode:
            raise LoaderError(err.strip().rpartition("\n")[2] or f"exit {process.returncode}")
        return {**json.loads(out), "peak_bytes": peak}

    def look(self, entry: Entry) -> int:
        """Its peak of memory over an epoch that is checked; LoaderError if that is not the data."""
        if entry.prepared:
            store = self.store(entry)
            if not (store / "ready").exists():
                remove(store)
                self.call(entry, "prepare")
                (store / "ready").touch()
        seen = self.call(entry, "look", watch=True)
        wanted = {"count": self.photos.samples, "label_sum": self.photos.label_sum}
        if self.mode == BYTES:
            wanted["bytes"] = self.photos.bytes
        for what, value in wanted.items():
            if seen[what] != value:
                raise LoaderError(f"an epoch has a {what} of {seen[what]} instead of {value}")
        if self.mode == TRAIN:
            low, high = DEVIATIONS
            if abs(seen["mean"]) > MEAN_AT_MOST or not low <= seen["deviation"] <= high:
                raise LoaderError(f"pixels of mean {seen['mean']:.2f}, deviation {seen['deviation']:.2f}")
        return int(seen["peak_bytes"])

    def run(self, entry: Entry, series: LoadSeries) -> None:
        if self.dataset is None:  # a machine that is short of memory may have dropped what was read before
            for place in (self.photos.tree, self.photos.dataset, self.store(entry)):
                warm(place)
        options = ["--epochs", str(entry.epochs), "--seconds", str(entry.seconds)]
        seen = self.call(entry, "run", *options, "--started", str(time.monotonic()))
        series.starts.append(seen["start"])
        series.imports.append(seen["imports"])
        series.first_epochs.append(seen["first_epoch"])
        if entry.epochs:
            series.seconds.append(seen["seconds"] / seen["count"])
            series.cpu_seconds.append(seen["cpu_seconds"] / seen["count"])
            series.foreign_cores.append(seen["foreign_cores"])

    def who_can(self, entries: Iterable[Entry], notes: list[str]) -> dict[str, LoadSeries]:
        """Every entry that is installed and gives the data, with its memory; who is left out is noted."""
        taking_part: dict[str, LoadSeries] = {}
        for entry in entries:
            if entry.group and not self.bench.python_of(entry.group).exists():
                notes.append(
                    f"left out: {entry.name}: `bench/peers/setup.sh {entry.group}` was not run, or failed"
                )
                continue
            command = self.bench.in_words(" ".join(self.command(entry, "run")))
            try:
                peak = self.look(entry)
            except LoaderError as failure:
                if not entry.group:
                    raise
                notes.append(f"left out: {entry.name}: {failure}")
                continue
            taking_part[entry.name] = LoadSeries(entry.name, command, peak_bytes=[peak])
        return taking_part

    def take_turns(self, entries: Sequence[Entry], notes: list[str]) -> dict[str, LoadSeries]:
        """Each entry once a round. The round before the first is for looking at what they give."""
        series = self.who_can(entries, notes)
        able = [entry for entry in entries if entry.name in series]
        for number in range(self.bench.rounds):
            first = number % len(able)
            for entry in (*able[first:], *able[:first]):
                self.run(entry, series[entry.name])
        return series
