"""What `import packtrain` brings along."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_importing_is_quick_because_numpy_comes_with_the_first_batch() -> None:
    """NumPy takes longer to import than a first batch to decode; a loader does both at once."""
    program = "import sys, packtrain; sys.exit('numpy' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_what_batches_are_made_without_comes_when_it_is_asked_for() -> None:
    program = """if True:
        import sys, packtrain
        names = set(packtrain.__all__)
        assert names <= set(dir(packtrain)), names - set(dir(packtrain))
        later = [f"packtrain.{name}" for name in ("about", "parquet", "report")]
        assert not set(later) & set(sys.modules)
        for name in names:
            assert getattr(packtrain, name) is getattr(packtrain, name)
        assert set(later) <= set(sys.modules)
        try:
            packtrain.nothing
        except AttributeError as error:
            assert str(error) == "module 'packtrain' has no attribute 'nothing'"
        else:
            sys.exit("there is nothing of that name")
    """
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("looks", [True, False])
def test_importing_numpy_leaves_the_search_for_garbage_as_it_was(looks: bool) -> None:
    program = f"""if True:
        import gc, sys
        from packtrain._numpy import import_numpy
        {"gc.enable()" if looks else "gc.disable()"}
        import_numpy()
        sys.exit("numpy" not in sys.modules or gc.isenabled() != {looks})
    """
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_part_for_torch_is_there_without_importing_it_first() -> None:
    program = """if True:
        import importlib.util, packtrain
        try:
            packtrain.torch.Loader
        except ImportError as error:
            assert importlib.util.find_spec("torch") is None and "torch" in str(error)
        else:
            assert importlib.util.find_spec("torch") is not None
    """
    subprocess.run([sys.executable, "-c", program], check=True)
