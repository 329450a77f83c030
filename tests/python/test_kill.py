"""A pack that is killed or stopped at any moment is finished by the next run, byte for byte.

The counts are those of the gate; `./dev soak` tries more of the same moments.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import packtrain as pt
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from soaking import kills
from soaking.check import SMALL, Check, Setting
from soaking.command import Command

ROOT = Path(__file__).resolve().parents[2]
KILLS = 50
KILLS_OF_A_FORMAT = 4
TERMINATIONS = 20

COMMAND = Path(os.environ.get("PACKTRAIN_COMMAND", ROOT / "build" / "dev" / "tools" / "packtrain"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not COMMAND.exists(), reason=f"{COMMAND} is not built"),
]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Setting, kills.Reference]:
    scratch = tmp_path_factory.mktemp("kills")
    setting = Setting(Command(COMMAND), scratch, scratch, SMALL, random.Random())
    return setting, kills.make_reference(setting)


def expect_nothing_wrong(check: Check) -> None:
    assert check.ok, "\n".join([check.said, *check.wrong])


def test_a_killed_pack_is_finished_by_the_next(reference: tuple[Setting, kills.Reference]) -> None:
    expect_nothing_wrong(kills.kill_one(*reference, KILLS))


@pytest.mark.parametrize("name", sorted(set(pt.doctor().formats) - {kills.USUAL, *kills.ARRAYS_ONLY}))
def test_a_killed_pack_of_every_format_is_finished_by_the_next(
    name: str, reference: tuple[Setting, kills.Reference]
) -> None:
    setting, _ = reference
    expect_nothing_wrong(kills.kill_one(setting, kills.make_reference(setting, name), KILLS_OF_A_FORMAT))


def test_one_killed_task_of_four_is_finished_by_its_restart(
    reference: tuple[Setting, kills.Reference],
) -> None:
    expect_nothing_wrong(kills.kill_one_of_four(*reference, KILLS))


def test_a_stopped_pack_says_that_it_can_go_on_and_can(reference: tuple[Setting, kills.Reference]) -> None:
    expect_nothing_wrong(kills.terminate_one(*reference, TERMINATIONS))
