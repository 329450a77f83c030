"""Cores and memory of a node, shared by the processes of a run on it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import packtrain as pt
import pytest
from packtrain import _core
from packtrain.shares import cores_here, processes_here

STEP = {"SLURM_STEP_ID": "0", "SLURM_STEP_TASKS_PER_NODE": "4(x2),3", "SLURM_NODEID": "1"}


def granted(cores: int, cores_from: str, machine_cores: int = 64) -> Any:
    return SimpleNamespace(cores=cores, cores_from=cores_from, machine_cores=machine_cores)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, 1),
        ({"LOCAL_WORLD_SIZE": "4"}, 4),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "3"}, 3),
        ({"MPI_LOCALNRANKS": "2"}, 2),
        (STEP, 4),
        ({**STEP, "SLURM_NODEID": "2"}, 3),
        ({**STEP, "SLURM_NODEID": "9"}, 1),
        ({**STEP, "SLURM_STEP_ID": ""}, 1),  # a batch script
        ({"SLURM_STEP_ID": "0", "SLURM_STEP_TASKS_PER_NODE": "1", "LOCAL_WORLD_SIZE": "8"}, 8),
        ({"LOCAL_WORLD_SIZE": "many"}, 1),
    ],
)
def test_launchers_say_how_many_processes_a_node_has(environment: dict[str, str], expected: int) -> None:
    assert processes_here(environment) == expected


@pytest.mark.parametrize(
    ("grant", "environment", "expected"),
    [
        (granted(64, "the machine"), {}, 64),
        (granted(16, "affinity"), {}, 16),
        # torchrun binds nobody: all have the same cores.
        (granted(64, "the machine"), {"LOCAL_WORLD_SIZE": "4"}, 16),
        (granted(64, "the machine"), {"LOCAL_WORLD_SIZE": "100"}, 1),
        (granted(32, "affinity"), {"LOCAL_WORLD_SIZE": "4"}, 8),
        # srun and mpirun give each process cores of its own.
        (granted(16, "affinity"), STEP, 16),
        (granted(17, "affinity", 65), STEP, 17),
        # A part of a node, for the job; then of that part, for each process.
        (granted(16, "affinity"), {"LOCAL_WORLD_SIZE": "4", "SLURM_CPUS_ON_NODE": "16"}, 4),
        (granted(4, "affinity"), {**STEP, "SLURM_CPUS_ON_NODE": "16"}, 4),
        # A quota is that of the job.
        (granted(16, "cgroup cpu.max of /job"), {"LOCAL_WORLD_SIZE": "4"}, 4),
    ],
)
def test_cores_are_divided_unless_they_are_a_processes_own(
    grant: Any, environment: dict[str, str], expected: int
) -> None:
    assert cores_here(environment, grant) == expected


def test_a_loader_takes_its_share(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(_core.granted().machine_cores))
    options: dict[str, Any] = {"split": "train", "batch_size": 4, "image": pt.Resize(16)}
    assert pt.Loader(packed, **options).report().threads == 1
    assert pt.Loader(packed, **options, threads=3).report().threads == 3
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(10**6))
    with pytest.raises(pt.NoRoomError, match="may be taken"):
        pt.Loader(packed, **options)
