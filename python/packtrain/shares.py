"""What of a node is for this process, where several of one run are on it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ._core import Grant, granted

# How launchers say it: torchrun, Open MPI, MPICH and Intel MPI. Slurm's own way is below.
_COUNTS = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")


def processes_here(environment: Mapping[str, str] = os.environ) -> int:
    """Processes of this run on this node, as the launcher says; 1 if none does."""
    for name in _COUNTS:
        count = _number(environment.get(name))
        if count:
            return count
    # As with ranks: outside of a step of srun these variables are about processes to come.
    return _tasks_of_step(environment) if environment.get("SLURM_STEP_ID") else 1


def _tasks_of_step(environment: Mapping[str, str]) -> int:
    """Slurm gives the tasks of every node in short: "4(x2),3" are two nodes of four and one of three."""
    each: list[int] = []
    for tasks, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", environment.get("SLURM_STEP_TASKS_PER_NODE", "")):
        each += [int(tasks)] * int(times or 1)
    node = _number(environment.get("SLURM_NODEID")) or 0
    return max(each[node], 1) if node < len(each) else 1


def cores_here(environment: Mapping[str, str] = os.environ, grant: Grant | None = None) -> int:
    """The cores that this process should keep busy: those granted to it, or its share of them.

    Launchers that bind each process to cores of its own leave it no more than its part of the node. Where it
    has more, all processes of the node were given the same ones. A quota is always shared: it is the job's.
    """
    grant = granted() if grant is None else grant
    processes = processes_here(environment)
    # Of a node that is shared with other jobs, Slurm says how much is this one's.
    node = _number(environment.get("SLURM_CPUS_ON_NODE")) or grant.machine_cores
    if grant.cores_from == "affinity" and grant.cores * processes <= node + processes - 1:
        return grant.cores
    return max(grant.cores // processes, 1)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
