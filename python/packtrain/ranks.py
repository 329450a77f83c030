"""Which of how many processes this one is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from .errors import InvalidError

_said: set[str] = set()

# Launchers and the variables by which they number their processes. Slurm sets its own in the batch script
# too, where they say nothing about the processes to come: they count inside a step of srun only.
_LAUNCHERS = (
    ("RANK and WORLD_SIZE", "RANK", "WORLD_SIZE", None),
    ("the srun step", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", None),
)


class Ranks(NamedTuple):
    rank: int
    world_size: int
    source: str
    """Who said so, in words."""


def find_ranks(
    rank: int | None = None, world_size: int | None = None, environment: Mapping[str, str] = os.environ
) -> Ranks:
    """From the arguments, else torch.distributed if it is initialised, else the launcher's variables."""
    found = (
        _from_arguments(rank, world_size)
        or _from_torch()
        or _from_launcher(environment)
        or Ranks(0, 1, "no launcher")
    )
    if not 0 <= found.rank < found.world_size:
        raise InvalidError(
            f"rank {found.rank} of {found.world_size}, as {found.source} says, cannot be: ranks count from 0 "
            "and stay below world_size"
        )
    _say(found, environment)
    return found


def _from_arguments(rank: int | None, world_size: int | None) -> Ranks | None:
    if rank is None and world_size is None:
        return None
    if rank is None or world_size is None:
        raise InvalidError("rank= and world_size= come together: give both or neither")
    return Ranks(rank, world_size, "the arguments")


def _from_torch() -> Ranks | None:
    # Whoever has initialised it has imported it: torch is not imported for the sake of asking.
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return Ranks(distributed.get_rank(), distributed.get_world_size(), "torch.distributed")


def _from_launcher(environment: Mapping[str, str]) -> Ranks | None:
    for source, rank, world_size, required in _LAUNCHERS:
        if rank not in environment or world_size not in environment:
            continue
        if required is None or environment.get(required):
            return Ranks(_number(environment, rank), _number(environment, world_size), source)
    return None


def _number(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except ValueError:
        raise InvalidError(
            f"the variable {name} is '{environment[name]}', which is no number; give rank= and world_size="
        ) from None


def _say(found: Ranks, environment: Mapping[str, str]) -> None:
    """Once for each source. Loud where several processes may all take themselves for the only one."""
    if found.source in _said:
        return
    _said.add(found.source)
    import logging  # not needed until here, and not quick to import

    log = logging.getLogger("packtrain")
    log.info("rank %d of %d, from %s", *found)
    alone = found.source == "no launcher"
    # `import torch` imports torch.distributed: that alone does not tell of several processes.
    several = _is_started_by_python() or "MASTER_ADDR" in environment
    if alone and several and "torch.distributed" in sys.modules:
        log.warning(
            "torch.distributed is not initialised yet, and no launcher says which process this is: it loads "
            "everything, as the only rank; make the loader after init_process_group, or give rank= and "
            "world_size="
        )


def _is_started_by_python() -> bool:
    """Whether multiprocessing started this process. Where it did, it has been imported."""
    multiprocessing = sys.modules.get("multiprocessing")
    return multiprocessing is not None and multiprocessing.parent_process() is not None
