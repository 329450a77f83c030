"""Pack piles of small files into verified, indexed datasets, and read them back at random."""

from ._core import version

__all__ = ["__version__", "version"]

__version__: str = version()
