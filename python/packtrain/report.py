"""Where the time of a loader's run went."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ._core import BadLoad
from ._core import LoadReport as EngineReport


@dataclass(frozen=True)
class LoadReport:
    """Where the time of a run went. Prints as text."""

    samples: int
    """Delivered, as are the batches."""
    batches: int
    bytes: int
    """Read from storage."""
    seconds: float
    """From the first batch asked for to the last one given."""
    seconds_waited: float
    """That the training loop waited for a batch."""
    read_wait: float
    """Thread seconds without bytes to decode."""
    decode: float
    """Thread seconds of decoding."""
    blocked: float
    """Thread seconds with all batches ahead made."""
    threads: int
    prefetch: int
    memory: int
    """Bytes held for batches and for reading ahead."""
    warnings: int
    """Harmless oddities of images; one image may have several."""
    errors: int
    """Samples that could not be loaded."""
    replaced: int
    """Of these, those whose places others took (on_error="replace")."""
    bad: list[BadLoad]
    """The first hundred of the errors: index, key, what."""
    python_seconds: float
    """Spent in transform= and in fields decoded by Python, while the training loop waited."""
    engine_limit: str
    engine_text: str

    @property
    def limit(self) -> str:
        """The verdict in one word: storage, decode, transform, training or unknown."""
        if self.batches and self.python_seconds > max(self.seconds / 2, self.seconds_waited):
            return "transform"
        return self.engine_limit

    def __str__(self) -> str:
        lines = self.engine_text.splitlines()
        if self.python_seconds > 0:
            each = self.python_seconds / max(self.samples, 1)
            lines.append(
                f"Python functions on samples took {self.python_seconds:.1f} s, {each * 1e3:.2f} ms each, "
                "in the training loop's own thread"
            )
        if self.limit == "transform":
            lines = [line for line in lines if not line.startswith("limit:")]
            lines.append(
                "limit: transform. Most of the time goes into Python functions on samples: use image= in "
                "their place, or packtrain.torch.Dataset under a DataLoader with workers."
            )
        return "\n".join(lines)


def report_of(engine: EngineReport, python_seconds: float) -> LoadReport:
    own = {"python_seconds", "engine_limit", "engine_text"}
    figures = {
        field.name: getattr(engine, field.name) for field in fields(LoadReport) if field.name not in own
    }
    return LoadReport(
        **figures, python_seconds=python_seconds, engine_limit=engine.limit, engine_text=str(engine)
    )
