"""Figures as files: JSON with every round, and a page for people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.measure import Series
from harness.outcome import Outcome


@dataclass
class Report:
    name: str
    question: str
    date: str
    command: str
    rounds: int
    workloads: dict[str, str]
    machine: dict[str, str]
    outcome: Outcome

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        base = folder / f"{self.date}-{self.name}"
        base.with_suffix(".json").write_text(json.dumps(self.as_json(), indent=1, ensure_ascii=False) + "\n")
        page = base.with_suffix(".md")
        page.write_text(self.as_markdown())
        return page

    def as_json(self) -> dict[str, Any]:
        facts = {key: value for key, value in vars(self).items() if key != "outcome"}
        return {
            **facts,
            "comparisons": [comparison.as_json() for comparison in self.outcome.comparisons],
            "readings": [reading.as_json() for reading in self.outcome.readings],
            "notes": self.outcome.notes,
            "missed": self.outcome.missed,
        }

    def as_markdown(self) -> str:
        lines = [f"# {self.name}, {self.date}", "", self.question, "", f"Repeat: `{self.command}`", ""]
        lines += [f"- {name}: {what}" for name, what in self.workloads.items()]
        lines += [f"- medians of {self.rounds} rounds in which the contenders take turns, files in memory"]
        lines += ["", *self._verdict()]
        if self.outcome.comparisons:
            lines += ["", *self._comparisons()]
        if self.outcome.readings:
            lines += ["", *self._readings()]
        if self.outcome.notes:
            lines += ["", *(f"- {note}" for note in self.outcome.notes)]
        lines += ["", "## Commands", ""]
        lines += [f"- {series.name}: `{series.command}`" for series in self._all_series() if series.command]
        lines += ["", "## Machine", ""]
        lines += [f"- {name}: {value}" for name, value in self.machine.items()]
        return "\n".join(lines) + "\n"

    def _verdict(self) -> list[str]:
        missed = self.outcome.missed
        if not missed:
            return ["All targets are met."]
        return ["Missed:", "", *(f"- {line}" for line in missed)]

    def _comparisons(self) -> list[str]:
        lines = [
            "| what | ours | peer | times as fast | target | noise | others' cores |",
            "|---|---|---|---|---|---|---|",
        ]
        for comparison in self.outcome.comparisons:
            target = f"{comparison.target:g} ×" if comparison.target is not None else ""
            noise = max(comparison.ours.spread, comparison.peer.spread)
            foreign = max(comparison.ours.foreign, comparison.peer.foreign)
            mark = "" if comparison.met else " **missed**"
            lines.append(
                f"| {comparison.what} | {timing(comparison.ours)} | {timing(comparison.peer)} | "
                f"{comparison.ratio:.2f} ×{mark} | {target} | {noise:.0%} | {foreign:.1f} |"
            )
        return lines

    def _readings(self) -> list[str]:
        lines = ["| what | value | bounds |", "|---|---|---|"]
        for reading in self.outcome.readings:
            mark = "" if reading.met else " **missed**"
            lines.append(f"| {reading.what} | {reading.value:.4g} {reading.unit}{mark} | {reading.bounds} |")
        return lines

    def _all_series(self) -> list[Series]:
        named: dict[str, Series] = {}
        for comparison in self.outcome.comparisons:
            for series in (comparison.ours, comparison.peer):
                named.setdefault(series.name, series)
        return list(named.values())


def timing(series: Series) -> str:
    """Name, median, and the fastest and slowest round."""
    unit, scale = ("s", 1.0) if series.median >= 0.1 else ("ms", 1e3)
    low, middle, high = (value * scale for value in (min(series.seconds), series.median, max(series.seconds)))
    return f"{series.name}: {middle:.3g} {unit} ({low:.3g} to {high:.3g})"
