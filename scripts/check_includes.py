"""Checks every #include against the line of dependence.

- A folder of src/ includes itself and what stands to its left on LINE, never what stands to its right. A
  public header of include/packtrain belongs to the folder that PUBLIC_HEADERS names.
- tools/ and python/bind include public headers, base/ and their own folder; EXCEPTIONS lists the rest.
- Each foreign library is included by exactly one file, so that it costs one compilation and can be left out
  whole. Tests may include it too, and benchmarks, which measure against it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LINE = ("base", "io", "codec", "index", "format", "decode", "order", "pack", "stage", "load", "advise")

PUBLIC_HEADERS = {
    "advise": "advise",
    "codec": "codec",
    "decode": "decode",
    "format": "format",
    "index": "index",
    "load": "load",
    "media": "base",
    "order": "order",
    "pack": "pack",
    "place": "io",
    "progress": "base",
    "stage": "stage",
    "status": "base",
    "storage": "io",
    "transform": "decode",
    "values": "decode",
}

# (file, header): why this one include may break the rule for tools/ and python/bind.
EXCEPTIONS: dict[tuple[str, str], str] = {}

# Tests, and the headers that may hold GoogleTest helpers for them: x_test.cc, test_x.h, x_test_support.h.
TESTS = re.compile(r"^tests/|_test\.cc$|(^|/)test_[^/]*\.h$|_test_support\.h$")

BENCHMARKS = re.compile(r"^bench/")

# Libraries that more than one file may include, and where.
SHARED_LIBRARIES = {
    "fmt": re.compile(r"\.cc$"),  # formatting: sources only, it is slow to compile
    "gtest": TESTS,
    "gmock": TESTS,
    "nanobind": re.compile(r"^python/bind/"),
}

# Headers of C, POSIX and Linux that are part of the system, not of a library.
SYSTEM_HEADERS = re.compile(
    r"(sys|linux|asm|netinet|arpa|net)/.*"
    r"|(aio|assert|ctype|cpuid|dirent|dlfcn|endian|errno|fcntl|fnmatch|ftw|getopt|glob|grp|immintrin|inttypes|limits"
    r"|locale|math|mntent|netdb|poll|pthread|pwd|sched|signal|stdbool|stddef|stdint|stdio|stdlib|string|strings|syslog"
    r"|termios|time|unistd|arm_neon|arm_acle|nmmintrin|wmmintrin|x86intrin)\.h"
)

INCLUDE = re.compile(r'^\s*#\s*include\s*(?P<open>["<])(?P<header>[^">]+)[">]', re.MULTILINE)
FOLDERS = ("include", "src", "tools", "python/bind", "fuzz", "bench", "tests")


@dataclass
class Include:
    file: str  # relative to the root, with /
    line: int
    header: str
    angled: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: #include {self.header}"


def includes_of(root: Path) -> Iterator[Include]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cc", ".c"):
                continue
            text = path.read_text()
            for match in INCLUDE.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                yield Include(path.relative_to(root).as_posix(), line, match["header"], match["open"] == "<")


def folder_of(header: str) -> str | None:
    """The folder of LINE that a quoted header belongs to; None if it is of no such folder."""
    first, _, rest = header.partition("/")
    if first == "packtrain":
        return PUBLIC_HEADERS.get(rest.removesuffix(".h"))
    return first if first in LINE else None


def is_test(file: str) -> bool:
    return TESTS.search(file) is not None


def check_line(include: Include) -> str | None:
    """What is wrong with a quoted include, or None."""
    parts = include.file.split("/")
    header = include.header
    target = folder_of(header)
    if header.startswith("packtrain/") and target is None:
        return "PUBLIC_HEADERS in scripts/check_includes.py does not say which folder this header belongs to"
    if parts[0] == "include":
        own = PUBLIC_HEADERS.get(parts[-1].removesuffix(".h"))
        if own is None:
            return "PUBLIC_HEADERS in scripts/check_includes.py does not know this header"
        if not header.startswith("packtrain/"):
            return "a public header may include public headers only"
    elif parts[0] == "src":
        own = parts[1]
        if is_test(include.file) and header.startswith("tests/"):
            return None
        if target is None:
            return "is in no folder of src/" if "/" in header else f"write {own}/ in front"
    elif include.file.startswith(("tools/", "python/bind/")):
        own_folder = parts[0] if parts[0] == "tools" else "bind"
        if header.startswith(("packtrain/", "base/", f"{own_folder}/")) or "/" not in header:
            return None
        if (include.file, header) in EXCEPTIONS or is_test(include.file):
            return None
        return "tools/ and python/bind include public headers and base/ only"
    else:
        return None
    if LINE.index(target or own) > LINE.index(own):
        return f"{own}/ stands left of {target}/ on the line of dependence and must not know it"
    return None


def library_of(include: Include) -> str | None:
    """The foreign library of an angled include; None for the standard library and the system."""
    if not include.angled or SYSTEM_HEADERS.fullmatch(include.header):
        return None
    first, slash, _ = include.header.partition("/")
    if not slash and "." not in first:
        return None  # <vector>
    return first.removesuffix(".hpp").removesuffix(".h")


def find_violations(root: Path) -> list[str]:
    violations: list[str] = []
    users: dict[str, list[Include]] = {}
    includes = list(includes_of(root))
    helpers = {
        i.file.removeprefix("src/") for i in includes if library_of(i) == "gtest" and i.file.endswith(".h")
    }
    for include in includes:
        if not include.angled:
            wrong = check_line(include)
            if include.header in helpers and not is_test(include.file):
                wrong = "only tests may include a header with helpers for tests"
            if wrong:
                violations.append(f"{include}: {wrong}")
            continue
        library = library_of(include)
        if library is None:
            continue
        if library in SHARED_LIBRARIES:
            if not SHARED_LIBRARIES[library].search(include.file):
                violations.append(f"{include}: {library} may not be included here (SHARED_LIBRARIES)")
        elif not is_test(include.file) and not BENCHMARKS.search(include.file):
            users.setdefault(library, []).append(include)
    for library, places in sorted(users.items()):
        if len({place.file for place in places}) > 1:
            where = ", ".join(str(place) for place in places)
            violations.append(f"{library} is included by more than one file: {where}")
    return violations


def main() -> int:
    violations = find_violations(Path(__file__).resolve().parent.parent)
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
