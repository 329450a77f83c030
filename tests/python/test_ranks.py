"""Which process this is: asked of the arguments, of torch.distributed, of launchers, in this order."""

from __future__ import annotations

import logging
import multiprocessing
import sys
from types import SimpleNamespace

import packtrain as pt
import pytest
from packtrain import ranks
from packtrain.ranks import Ranks, find_ranks

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "8"}
SRUN = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "16", "SLURM_NTASKS": "16"}
SBATCH = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "16", "SLURM_STEP_NUM_TASKS": "16"}
SRUN_OLD = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "5", "SLURM_NTASKS": "16"}
MPICH = {"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALNRANKS": "2"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}


@pytest.fixture(autouse=True)
def nothing_said_nor_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "_said", set())
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)


def torch_distributed(initialised: bool) -> SimpleNamespace:
    return SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: initialised,
        get_rank=lambda: 2,
        get_world_size=lambda: 4,
    )


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (0, 1)),
        (TORCHRUN, (3, 8)),
        (SRUN, (5, 16)),
        (SBATCH, (0, 1)),
        (OPEN_MPI, (1, 2)),
        ({**TORCHRUN, **SRUN, **OPEN_MPI}, (3, 8)),
        (SRUN_OLD, (5, 16)),
        ({**SRUN, "SLURM_NTASKS": "99"}, (5, 16)),  # a step of some of the job's tasks
        (MPICH, (1, 4)),
        ({**SRUN, **OPEN_MPI}, (1, 2)),  # mpirun starts its helpers by srun
        ({**SRUN, **MPICH}, (1, 4)),
        ({**SBATCH, **OPEN_MPI}, (1, 2)),
        ({**SBATCH, **MPICH}, (1, 4)),
        ({**SRUN, "PMIX_RANK": "5"}, (5, 16)),
        ({**SRUN, "WORLD_SIZE": "16"}, (5, 16)),
        ({**MPICH, "RANK": "3"}, (1, 4)),
        ({"WORLD_SIZE": "1"}, (0, 1)),
    ],
)
def test_launchers_are_asked_in_order(environment: dict[str, str], expected: tuple[int, int]) -> None:
    assert find_ranks(environment=environment)[:2] == expected


def test_arguments_win_over_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.distributed", torch_distributed(True))  # type: ignore[arg-type]
    assert find_ranks(1, 3, TORCHRUN) == Ranks(1, 3, "the arguments")


def test_arguments_that_differ_from_torch_are_told_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    find_ranks(1, 3, {})  # before there is a process group
    assert not caplog.records
    monkeypatch.setitem(sys.modules, "torch.distributed", torch_distributed(True))  # type: ignore[arg-type]
    find_ranks(2, 4, {})
    find_ranks(environment=TORCHRUN)
    assert not caplog.records
    for _ in range(3):
        assert find_ranks(1, 3, {})[:2] == (1, 3)
    assert len(caplog.records) == 1
    assert caplog.records[0].levelno == logging.WARNING
    assert "say 1 of 3, torch.distributed says 2 of 4" in caplog.text


def test_torch_wins_over_the_environment_once_it_is_initialised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.distributed", torch_distributed(True))  # type: ignore[arg-type]
    assert find_ranks(environment=TORCHRUN) == Ranks(2, 4, "torch.distributed")
    monkeypatch.setitem(sys.modules, "torch.distributed", torch_distributed(False))  # type: ignore[arg-type]
    assert find_ranks(environment=TORCHRUN)[:2] == (3, 8)


def test_the_source_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "packtrain")
    for _ in range(3):
        find_ranks(environment=TORCHRUN)
    assert caplog.messages == ["rank 3 of 8, from RANK and WORLD_SIZE"]


def test_a_process_that_may_be_one_of_many_is_warned(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def warnings_with(environment: dict[str, str]) -> int:
        caplog.clear()
        monkeypatch.setattr(ranks, "_said", set())
        find_ranks(environment=environment)
        return len([record for record in caplog.records if record.levelno == logging.WARNING])

    assert warnings_with({}) == 0
    assert warnings_with({"MASTER_ADDR": "node1"}) == 1
    assert warnings_with({"LOCAL_WORLD_SIZE": "4"}) == 1
    assert warnings_with({"MPI_LOCALNRANKS": "1"}) == 0
    monkeypatch.setitem(sys.modules, "torch.distributed", torch_distributed(False))  # type: ignore[arg-type]
    assert warnings_with({}) == 0  # a plain script that imported torch
    assert warnings_with({"MASTER_ADDR": "node1"}) == 1
    assert "init_process_group" in caplog.text
    assert warnings_with({"MASTER_ADDR": "node1", **TORCHRUN}) == 0
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: object())
    assert warnings_with({}) == 1


@pytest.mark.parametrize(
    ("arguments", "environment", "says"),
    [
        ((1, None), {}, "both or neither"),
        ((None, 4), {}, "both or neither"),
        ((4, 4), {}, "rank 4 of 4"),
        ((-1, 4), {}, "rank= is a whole number of at least 0, not -1"),
        ((None, None), {"RANK": "one", "WORLD_SIZE": "2"}, "RANK is 'one'"),
        ((None, None), {"RANK": "1"}, "RANK is set without WORLD_SIZE.*give rank= and world_size="),
        ((None, None), {"RANK": "1", "MASTER_ADDR": "a"}, "RANK is set without WORLD_SIZE"),
        ((None, None), {"WORLD_SIZE": "8"}, "WORLD_SIZE is set without RANK"),
        ((None, None), {"PMI_RANK": "1"}, "PMI_RANK is set without PMI_SIZE"),
        ((None, None), {"PMIX_RANK": "1"}, "PMIX_RANK is set without a number of processes"),
        ((None, None), {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1"}, "without SLURM_STEP_NUM_TASKS"),
        ((None, None), {"RANK": "2", "WORLD_SIZE": "2"}, "rank 2 of 2, from RANK and WORLD_SIZE, cannot be"),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: tuple[int | None, int | None], environment: dict[str, str], says: str
) -> None:
    with pytest.raises(pt.InvalidError, match=says):
        find_ranks(*arguments, environment)
