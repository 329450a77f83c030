"""The figures of bench/: `./dev bench [NAME…]` measures them and writes bench/runs/DATE-NAME.{json,md}.

Real peers run in the same rounds on the same data. Data is made once, below build/bench-data or `--data`. A
missed target is said, with what limits, and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import compileall
import os
import sys
import time
from pathlib import Path

from figures import (
    dataset_items,
    decode_rate,
    format_index,
    format_reads,
    format_writes,
    load_auto,
    load_bytes,
    load_late,
    load_next,
    load_slow,
    load_start,
    load_threads,
    load_train,
    open_index,
    pack_jobs,
    pack_million,
    pack_slow,
    pack_tar,
    pack_webdataset,
    random_reads,
    verify_cat,
)
from harness.bench import Bench, Figure
from harness.machine import machine_facts
from harness.report import Report
from harness.workloads import Workloads

ROOT = Path(__file__).resolve().parent.parent
PRIORITY = 10  # of measured loaders under --real-time; whoever else is real-time there is usually below
REAL_TIME = ("chrt", "-r", str(PRIORITY))

FIGURES: dict[str, Figure] = {
    module.FIGURE.name: module.FIGURE
    for module in (
        pack_tar,
        pack_jobs,
        pack_webdataset,
        pack_slow,
        random_reads,
        dataset_items,
        format_index,
        format_reads,
        format_writes,
        verify_cat,
        open_index,
        pack_million,
        decode_rate,
        load_train,
        load_bytes,
        load_start,
        load_late,
        load_next,
        load_threads,
        load_auto,
        load_slow,
    )
}


def measure(figure: Figure, bench: Bench, date: str) -> Report:
    facts = machine_facts(ROOT, bench.workloads.data, bench.packtrain)
    bench.workloads.described.clear()
    outcome = figure.measure(bench)
    command = f"./dev bench {figure.name}"
    if bench.rounds != figure.rounds:
        command += f" --rounds {bench.rounds}"
    if bench.workloads.scale != 1:
        command += f" --scale {bench.workloads.scale:g}"
    if bench.workloads.photos:
        command += " --photos PHOTOS"
    if bench.prefix:
        command += " --real-time"
    workloads = dict(bench.workloads.described)
    return Report(figure.name, figure.question, date, command, bench.rounds, workloads, facts, outcome)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"some of {', '.join(FIGURES)}; default: all"
    )
    parser.add_argument("--rounds", type=int, help="instead of each figure's own number")
    parser.add_argument("--scale", type=float, default=1.0, help="of the workloads, for a quick look")
    parser.add_argument("--photos", type=Path, help="a class tree of JPEGs to load instead of made ones")
    parser.add_argument(
        "--real-time",
        action="store_true",
        help="loaders run before all other processes, so that a shared machine disturbs them less",
    )
    parser.add_argument("--data", type=Path, default=ROOT / "build" / "bench-data", help="where data is kept")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "bench", help="the build to measure")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "runs", help="where reports go")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - FIGURES.keys())
    if unknown:
        parser.error(f"there is no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")

    build, data = arguments.build.resolve(), arguments.data.resolve()
    data.mkdir(parents=True, exist_ok=True)
    # As pip does with what it installs, the peers too: Python itself may have been told to write no bytecode.
    compileall.compile_dir(build / "python" / "packtrain", quiet=1)
    os.environ["PACKTRAIN_SLOWFS"] = str(build / "bench" / "slowfs")
    workloads = Workloads(build / "tools" / "packtrain", data, arguments.scale, arguments.photos)
    prefix = REAL_TIME if arguments.real_time else ()
    if arguments.real_time:
        # Before the loaders: who watches them, and the slow filesystem that they wait for.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY + 1))
    missed = 0
    for name in arguments.names or FIGURES:
        figure = FIGURES[name]
        bench = Bench(ROOT, build, Path(sys.executable), workloads, arguments.rounds or figure.rounds, prefix)
        begun = time.monotonic()
        report = measure(figure, bench, time.strftime("%Y-%m-%d"))
        page = report.write(arguments.out)
        print(report.as_markdown())
        print(f"{page} ({time.monotonic() - begun:.0f} s)\n", flush=True)
        missed += len(report.outcome.missed)
    print(f"{missed} targets missed" if missed else "all targets met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
