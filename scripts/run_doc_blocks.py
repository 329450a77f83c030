"""Runs the bash and python blocks of README.md and docs/*.md as they stand.

The blocks of one file run in order in one scratch folder, so that a later block may use what an earlier one
made; each bash block is a shell of its own, each python block a program of its own. A block is left out only
where the line above it says so to the reader: `<!-- not run: reason -->`. Other languages (console, text,
toml …) are never run.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[A-Za-z0-9_+-]*)\s*$")
NOT_RUN = re.compile(r"^<!--\s*not run:\s*(?P<reason>\S.*?)\s*-->$")
LIMIT_SECONDS = 300


@dataclass
class Block:
    line: int  # of its opening fence, from 1
    language: str
    text: str
    not_run: str | None  # the reason, where it is marked


def blocks_of(markdown: str) -> Iterator[Block]:
    """Every fenced block, in order. A mark counts for the next block only, over blank lines."""
    reason: str | None = None
    fence, language, start, indent = "", "", 0, ""
    body: list[str] = []
    for number, line in enumerate(markdown.splitlines(), 1):
        if fence:
            if line.strip() == fence:
                yield Block(start, language, "\n".join(body) + "\n", reason)
                fence, body, reason = "", [], None
            else:
                body.append(line.removeprefix(indent))
            continue
        opening = FENCE.match(line)
        if opening:
            fence, language, start = opening["fence"], opening["language"], number
            indent = opening["indent"]
        elif line.strip():
            mark = NOT_RUN.match(line.strip())
            reason = mark["reason"] if mark else None
    if fence:
        raise ValueError(f"the block that begins in line {start} has no end")


def run_block(block: Block, folder: Path) -> subprocess.CompletedProcess[str]:
    command = (
        ["bash", "-euo", "pipefail", "-c", block.text]
        if block.language == "bash"
        else [sys.executable, "-c", block.text]
    )
    return subprocess.run(
        command,
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT_SECONDS,
        check=False,
    )


def run_file(path: Path) -> tuple[int, int, int]:
    """The blocks of one file: passed, failed, skipped. After a failure the rest of the file is not tried."""
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    passed = skipped = 0
    with tempfile.TemporaryDirectory(prefix="packtrain-docs-") as scratch:
        for block in blocks_of(path.read_text()):
            if block.language not in ("bash", "python"):
                continue
            where = f"{name}:{block.line} {block.language}"
            if block.not_run:
                print(f"{where}: not run: {block.not_run}")
                skipped += 1
                continue
            try:
                result = run_block(block, Path(scratch))
                code, output = result.returncode, result.stdout
            except subprocess.TimeoutExpired:
                code, output = -1, f"stopped after {LIMIT_SECONDS} s\n"
            if code:
                print(f"{where}: FAILED with exit code {code}\n{block.text}---\n{output}", flush=True)
                return passed, 1, skipped
            print(f"{where}: ok")
            passed += 1
    return passed, 0, skipped


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="default: README.md and docs/*.md")
    files = parser.parse_args().files or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    passed = failed = skipped = 0
    for file in files:
        try:
            counts = run_file(file.resolve())
        except (ValueError, OSError) as error:
            print(f"{file}: {error}")
            counts = (0, 1, 0)
        passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
