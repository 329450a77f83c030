"""pack --task slurm: the task of a step, the element of an array, and what is neither."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import packtrain as pt
import pytest
from helpers import Command, Ran, small_tree, without_log, write_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "tree", small_tree())


def run(command: Command, tree: Path, out: Path, **variables: int) -> Ran:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    environment = {**kept, **{f"SLURM_{name}": str(value) for name, value in variables.items()}}
    return command("pack", tree, out, "--shards", "6", "--task", "slurm", "--json", env=environment)


def run_together(command: Command, tree: Path, out: Path, tasks: list[dict[str, int]]) -> list[Ran]:
    with ThreadPoolExecutor(len(tasks)) as threads:
        ran = list(threads.map(lambda task: run(command, tree, out, **task), tasks))
    assert [task.code for task in ran] == [0] * len(tasks), [task.error for task in ran]
    return ran


def expect_together(command: Command, tree: Path, out: Path, tasks: list[dict[str, int]]) -> None:
    """Every task writes its share, whoever comes last publishes, and the bytes are those of one task."""
    ran = run_together(command, tree, out, tasks)
    assert [task.json()["shards_written"] for task in ran] == [6 // len(tasks)] * len(tasks)
    pt.pack(tree, out.with_name("alone"), shards=6, sync=False)
    assert without_log(out) == without_log(out.with_name("alone"))


def test_tasks_of_a_step(command: Command, tree: Path, tmp_path: Path) -> None:
    steps = [{"STEP_ID": 0, "PROCID": i, "STEP_NUM_TASKS": 3} for i in range(3)]
    expect_together(command, tree, tmp_path / "out", steps)


@pytest.mark.parametrize(("first", "step"), [(0, 1), (1, 1), (7, 5)])
def test_elements_of_an_array(command: Command, tree: Path, tmp_path: Path, first: int, step: int) -> None:
    numbers = [first + i * step for i in range(3)]
    array = {"ARRAY_TASK_MIN": numbers[0], "ARRAY_TASK_MAX": numbers[-1], "ARRAY_TASK_COUNT": 3}
    expect_together(command, tree, tmp_path / "out", [{**array, "ARRAY_TASK_ID": i} for i in numbers])


@pytest.mark.slow
def test_a_step_of_several_tasks_goes_before_the_array_and_one_of_one_task_after_it(
    command: Command, tree: Path, tmp_path: Path
) -> None:
    array = {"ARRAY_TASK_MIN": 0, "ARRAY_TASK_MAX": 1, "ARRAY_TASK_COUNT": 2, "ARRAY_TASK_ID": 0}
    for tasks, written in ((3, 2), (1, 3)):
        ran = run(command, tree, tmp_path / f"{tasks}", STEP_ID=0, PROCID=0, STEP_NUM_TASKS=tasks, **array)
        assert ran.code == 0, ran.error
        assert ran.json()["shards_written"] == written
        assert not ran.json()["published"]


def test_a_step_of_one_task_packs_alone(command: Command, tree: Path, tmp_path: Path) -> None:
    assert run(command, tree, tmp_path / "out", STEP_ID=0, PROCID=0, STEP_NUM_TASKS=1).code == 0
    assert (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("number", "first", "last", "count"),
    [(2, 1, 10, 3), (10, 1, 10, 3), (3, 0, 4, 3), (1, 0, 5, 2), (9, 0, 4, 5), (0, 1, 4, 4), (2, 0, 4, 1)],
)
def test_an_array_that_is_not_evenly_spaced_is_refused(
    command: Command, tree: Path, tmp_path: Path, number: int, first: int, last: int, count: int
) -> None:
    array = {"ARRAY_TASK_MIN": first, "ARRAY_TASK_MAX": last, "ARRAY_TASK_COUNT": count}
    ran = run(command, tree, tmp_path / "out", ARRAY_TASK_ID=number, **array)
    assert ran.code == 2
    assert "evenly spaced" in ran.json()["error"]["message"]
    assert "--task i/n" in ran.json()["error"]["message"]
    assert not list(tmp_path.glob("out*"))


def test_outside_of_slurm_it_is_refused(command: Command, tree: Path, tmp_path: Path) -> None:
    ran = run(command, tree, tmp_path / "out")
    assert ran.code == 2
    assert "srun" in ran.json()["error"]["message"]
    assert not list(tmp_path.glob("out*"))
