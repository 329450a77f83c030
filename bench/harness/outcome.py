"""What a figure says: comparisons with their targets, readings with their bounds, and why one was missed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.measure import Series

BUSY = 0.85  # of a core: more than that and it is the processor that limits
FOREIGN = 0.25  # cores taken by others: more than that and the figure is not to be trusted


@dataclass
class Comparison:
    """Ours against a peer: how many times as fast."""

    what: str
    ours: Series
    peer: Series
    target: float | None = None
    cores: int = 1  # that ours may use
    limit: str = ""  # what limits it, where that is known better than by the clock

    @property
    def ratio(self) -> float:
        return self.peer.median / self.ours.median

    @property
    def met(self) -> bool:
        return self.target is None or self.ratio >= self.target

    def reason(self) -> str:
        """Why the target was missed, as far as the clock can tell."""
        reasons = [self.limit] if self.limit else []
        if max(self.ours.foreign, self.peer.foreign) > FOREIGN:
            reasons.append(
                f"other processes took {max(self.ours.foreign, self.peer.foreign):.1f} cores meanwhile"
            )
        if self.ours.cores >= BUSY * self.cores:
            reasons.append(f"the processor limits: {self.ours.cores:.2f} of {self.cores} cores are busy")
        elif self.ours.cpu_seconds:
            waiting = 1 - self.ours.cores / self.cores
            reasons.append(f"{waiting:.0%} of the time is spent waiting, for storage or for a core")
        else:
            reasons.append("the processor limits: all bytes come from memory")
        return "; ".join(reasons)

    def as_json(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "ours": series_json(self.ours),
            "peer": series_json(self.peer),
            "ratio": self.ratio,
            "target": self.target,
            "met": self.met,
            "reason": "" if self.met else self.reason(),
        }


@dataclass
class Reading:
    """A number with the most (or the least and the most) that it may be."""

    what: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    reason: str = ""  # why, where it is out of bounds

    @property
    def met(self) -> bool:
        low, high = self.at_least, self.at_most
        return (low is None or self.value >= low) and (high is None or self.value <= high)

    @property
    def bounds(self) -> str:
        if self.at_least is not None and self.at_most is not None:
            return f"{self.at_least:g} to {self.at_most:g}"
        if self.at_most is not None:
            return f"at most {self.at_most:g}"
        return f"at least {self.at_least:g}" if self.at_least is not None else ""

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "met": self.met}


@dataclass
class Outcome:
    comparisons: list[Comparison] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def missed(self) -> list[str]:
        found = [
            f"{c.what}: {c.ratio:.2f} × instead of {c.target:g} ×: {c.reason()}"
            for c in self.comparisons
            if not c.met
        ]
        return found + [
            f"{r.what}: {r.value:.4g} {r.unit} instead of {r.bounds}{': ' + r.reason if r.reason else ''}"
            for r in self.readings
            if not r.met
        ]


def series_json(series: Series) -> dict[str, Any]:
    return {
        "name": series.name,
        "command": series.command,
        "seconds": series.seconds,
        "median": series.median,
        "min": min(series.seconds),
        "max": max(series.seconds),
        "cpu_seconds": series.cpu_seconds,
        "foreign_cores": series.foreign_cores,
        "peak_bytes": series.peak_bytes,
    }
