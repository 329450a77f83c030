"""Parquet files that cannot be read in place, written once more as Arrow files that can."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

__all__ = ["arrow_from_parquet"]


def _pyarrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise ImportError("arrow_from_parquet needs pyarrow: pip install pyarrow") from missing


def arrow_from_parquet(
    source: str | os.PathLike[str], out: str | os.PathLike[str], *, rows: int = 100
) -> None:
    """Writes the Parquet file `source` of any encoding as the uncompressed Arrow file `out`, through pyarrow.

    packtrain reads uncompressed plain pages of Parquet in place; compressed and dictionary pages, which are
    what most programs write, it does not. The Arrow file has the same columns and metadata, `rows` rows in
    a batch, and is there only once it is whole. Memory: one row group and one batch.
    """
    if rows < 1:
        raise ValueError(f"rows must be at least 1, not {rows}")
    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    out = Path(out)
    part = out.with_name(f"{out.name}.tmp-{os.getpid()}")
    try:
        with (
            parquet.ParquetFile(os.fspath(source)) as file,
            arrow.OSFile(str(part), "wb") as sink,
            arrow.ipc.new_file(sink, file.schema_arrow) as writer,
        ):
            for batch in file.iter_batches(batch_size=rows):
                writer.write_batch(batch)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
