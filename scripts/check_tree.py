"""Checks of the tree that no other tool makes: links of the documentation, hosts, lengths of files."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 700  # lines; longer files are named, not refused
SOURCES = (".cc", ".h", ".c", ".py", ".sh", ".cmake")
# Where packages come from is the user's choice: no file may fix a registry.
HOSTS = re.compile(
    r"\b(?:pypi|pythonhosted|npmjs|crates|deb\.debian|archive\.ubuntu|security\.ubuntu|conda\.anaconda)"
    r"\.(?:org|com|io)\b"
)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


def tracked_files(root: Path) -> list[Path]:
    """The files of the tree that are not ignored; all but third_party, which is not ours to change."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [name for name in listed.stdout.split("\0") if name and not name.startswith("third_party/")]
    return [root / name for name in names if (root / name).is_file()]


def headings_of(markdown: str) -> set[str]:
    """The anchors that a heading makes: lower case, spaces as dashes, punctuation dropped."""
    anchors = set()
    for line in markdown.splitlines():
        if line.startswith("#"):
            title = re.sub(r"[^\w\s-]", "", line.lstrip("#").strip().lower())
            anchors.add(re.sub(r"\s", "-", title))
    return anchors


def broken_links(files: Iterable[Path]) -> list[str]:
    found = []
    for file in files:
        if file.suffix != ".md":
            continue
        text = re.sub(r"(?ms)^ *(`{3,}|~{3,}).*?^ *\1\s*$", "", file.read_text())
        for match in LINK.finditer(text):
            target, _, anchor = match["target"].partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            aim = (file.parent / target).resolve() if target else file
            if not aim.exists():
                found.append(f"{file}: the link {match['target']} leads nowhere")
            elif anchor and aim.suffix == ".md" and anchor not in headings_of(aim.read_text()):
                found.append(f"{file}: {aim.name} has no heading for the link {match['target']}")
    return found


def named_hosts(files: Iterable[Path]) -> list[str]:
    found = []
    for file in files:
        try:
            text = file.read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            host = HOSTS.search(line)
            if host:
                found.append(f"{file}:{number}: names the package registry {host.group()}")
    return found


def long_files(files: Iterable[Path]) -> list[str]:
    lengths = [(file, len(file.read_text().splitlines())) for file in files if file.suffix in SOURCES]
    return [f"{file}: {lines} lines, more than {LONGEST}" for file, lines in lengths if lines > LONGEST]


def main() -> int:
    files = tracked_files(ROOT)
    for warning in long_files(files):
        print(f"warning: {warning}")
    wrong = broken_links(files) + named_hosts(files)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
