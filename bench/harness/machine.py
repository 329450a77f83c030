"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path


def first_line(*command: str | Path) -> str:
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    except OSError:
        return "absent"
    return (done.stdout or done.stderr).strip().partition("\n")[0]


def field_of(file: str, name: str) -> str:
    for line in Path(file).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"


def version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def machine_facts(root: Path, data: Path, packtrain: Path) -> dict[str, str]:
    memory_kb = int(field_of("/proc/meminfo", "MemTotal").split()[0])
    return {
        "processor": field_of("/proc/cpuinfo", "model name"),
        "cores granted": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}",
        "memory": f"{memory_kb / 1e6:.0f} GB",
        "kernel": platform.release(),
        "filesystem of the data": first_line("findmnt", "-n", "-o", "FSTYPE", "-T", data),
        "load before the run": f"{os.getloadavg()[0]:.2f}",
        "packtrain": first_line(packtrain, "--version"),
        "commit": first_line("git", "-C", root, "describe", "--always", "--dirty"),
        "tar": first_line("tar", "--version"),
        "Python": platform.python_version(),
        "webdataset": version_of("webdataset"),
        "numpy": version_of("numpy"),
    }
