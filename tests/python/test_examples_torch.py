"""The programs of examples/ that need PyTorch do what they are for, where it is there."""

from __future__ import annotations

import random
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="no torch here; the stage `torch` of ./dev test has it")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def output_of(name: str) -> str:
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_race_has_two_sides() -> None:
    assert re.search(
        r"DataLoader, loose files: +[\d,]+ images a second\n.* times as fast", output_of("loading_race.py")
    )


@pytest.mark.slow
def test_training_goes_on_from_its_checkpoint() -> None:
    assert re.search(r"epoch 0: loss .*epoch 1: loss ", output_of("train_with_torch.py"), re.DOTALL)


@pytest.mark.slow
def test_the_dataset_works_under_torchs_own_loader() -> None:
    assert "not installed" not in output_of("torch_dataset.py")


def test_the_race_crops_alike_on_both_sides() -> None:
    """Areas and shapes of the boxes that it draws are spread as those of packtrain's own crop."""
    from packtrain import RandomResizedCrop
    from packtrain._core import crop_box

    random_box = runpy.run_path(str(EXAMPLES / "loading_race.py"))["random_box"]
    random.seed(1)
    spec = RandomResizedCrop(224).spec
    for width, height in ((500, 375), (900, 60), (60, 900)):
        theirs = np.array([random_box(width, height) for _ in range(4000)])
        assert (theirs[:, :2] >= 0).all()
        assert (theirs[:, 2:] <= (width, height)).all()
        sides = theirs[:, 2:] - theirs[:, :2]
        ours = np.array([crop_box(spec, width, height, key=key)[2:4] for key in range(4000)])
        for part in (0.1, 0.5, 0.9):
            for of in (lambda s: s[:, 0] * s[:, 1], lambda s: s[:, 0] / s[:, 1]):
                assert np.quantile(of(sides), part) == pytest.approx(np.quantile(of(ours), part), rel=0.06)
