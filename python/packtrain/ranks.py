"""Which of how many processes this one is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

from .checks import MOST_OF_FEW, whole_number
from .errors import InvalidError
from .shares import processes_here

_said: set[str] = set()


class Launcher(NamedTuple):
    """The variables by which a launcher numbers its processes."""

    source: str
    rank: str
    world_size: tuple[str, ...]
    """The first of them that is set; PMIx has none of its own."""
    only_inside: str | None = None


# Slurm comes last: where mpirun starts its helpers by srun, its processes find the variables of the helper,
# of which there is one a node. It sets them in the batch script too, where they say nothing about the
# processes to come: they count inside a step of srun only.
_LAUNCHERS = (
    Launcher("RANK and WORLD_SIZE", "RANK", ("WORLD_SIZE",)),
    Launcher("Open MPI", "OMPI_COMM_WORLD_RANK", ("OMPI_COMM_WORLD_SIZE",)),
    Launcher("MPICH or Intel MPI", "PMI_RANK", ("PMI_SIZE",)),
    Launcher("the srun step", "SLURM_PROCID", ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"), "SLURM_STEP_ID"),
    Launcher("PMIx", "PMIX_RANK", ()),
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
            f"rank {found.rank} of {found.world_size}, from {found.source}, cannot be: ranks count from 0 "
            "and stay below world_size"
        )
    _say(found, environment)
    return found


def _from_arguments(rank: int | None, world_size: int | None) -> Ranks | None:
    if rank is None and world_size is None:
        return None
    if rank is None or world_size is None:
        raise InvalidError("rank= and world_size= come together: give both or neither")
    size = whole_number("world_size", world_size, 1, MOST_OF_FEW)
    return Ranks(whole_number("rank", rank, 0, MOST_OF_FEW), size, "the arguments")


def _from_torch() -> Ranks | None:
    # Whoever has initialised it has imported it: torch is not imported for the sake of asking.
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return Ranks(distributed.get_rank(), distributed.get_world_size(), "torch.distributed")


def _from_launcher(environment: Mapping[str, str]) -> Ranks | None:
    half_said: list[str] = []
    for launcher in _LAUNCHERS:
        if launcher.only_inside is not None and not environment.get(launcher.only_inside):
            continue
        size = next((name for name in launcher.world_size if name in environment), None)
        if launcher.rank in environment and size is not None:
            return Ranks(_number(environment, launcher.rank), _number(environment, size), launcher.source)
        if launcher.rank in environment:
            missing = launcher.world_size[0] if launcher.world_size else "a number of processes"
            half_said.append(f"{launcher.rank} is set without {missing}")
        elif size is not None and _number(environment, size) != 1:
            half_said.append(f"{size} is set without {launcher.rank}")
    if half_said:  # each process would take itself for the only one, and all would load the same
        raise InvalidError(
            f"the variable {half_said[0]}, so that it is not known which of how many processes this is; set "
            "both, or give rank= and world_size="
        )
    return None


def _number(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except ValueError:
        raise InvalidError(
            f"the variable {name} is '{environment[name]}', which is no number; give rank= and world_size="
        ) from None


def _say(found: Ranks, environment: Mapping[str, str]) -> None:
    """Once for each source. Loud where several processes may all take themselves for the only one, or where
    arguments and torch.distributed differ."""
    told = _from_torch()
    differs = told is not None and told[:2] != found[:2]
    said = f"{found.source}, not torch.distributed" if differs else found.source
    if said in _said:
        return
    _said.add(said)
    sign = _sign_of_others(environment) if found.source == "no launcher" else None
    if not differs and sign is None and "logging" not in sys.modules:
        return  # whoever has not imported it sees warnings alone
    import logging  # not needed until here, and not quick to import

    log = logging.getLogger("packtrain")
    log.info("rank %d of %d, from %s", *found)
    if told is not None and differs:
        log.warning(
            "rank= and world_size= say %d of %d, torch.distributed says %d of %d: the arguments are taken. "
            "That is right where several processes train on the same samples (tensor or pipeline parallel); "
            "else samples are loaded twice or never: leave them out",
            found.rank,
            found.world_size,
            told.rank,
            told.world_size,
        )
    if sign is not None:
        log.warning(
            "no launcher says which process this is, though %s: it loads everything, as the only rank; "
            "make the loader after init_process_group, or give rank= and world_size=",
            sign,
        )


def _sign_of_others(environment: Mapping[str, str]) -> str | None:
    """What tells, in words, that this process may be one of several."""
    if processes_here(environment) > 1:
        return "there are several on this node"
    if "MASTER_ADDR" in environment:
        return "MASTER_ADDR is set"
    # `import torch` imports torch.distributed: that alone does not tell of several processes.
    if _is_started_by_python() and "torch.distributed" in sys.modules:
        return "multiprocessing started it, and torch.distributed is not initialised yet"
    return None


def _is_started_by_python() -> bool:
    """Whether multiprocessing started this process. Where it did, it has been imported."""
    multiprocessing = sys.modules.get("multiprocessing")
    return multiprocessing is not None and multiprocessing.parent_process() is not None
