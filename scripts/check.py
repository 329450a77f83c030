"""What `./dev check` runs: format, lint, types, includes. `--fix` (`./dev format`) rewrites files instead.

Runs inside .venv and needs build/dev for compile commands and the stub of the Python module. Tools of the
system that are absent are named and left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "dev"
CPP_FOLDERS = ("src", "include", "tools", "python/bind", "fuzz", "bench", "tests")
# The gate analyses the core; `--all` the command as well. Tests and bindings are left out: macros of
# GoogleTest, and templates of nanobind.
TIDY_FOLDERS = ("src",)
TIDY_ALL_FOLDERS = ("src", "tools")
TIDY_TOGETHER = 10


@dataclass
class Verdict:
    ok: bool
    output: str = ""
    left_out: str = ""  # why, where the tool is absent


def run(*command: str | Path, **environment: str) -> Verdict:
    result = subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **environment},
        check=False,
    )
    return Verdict(result.returncode == 0, result.stdout)


def cpp_files(folders: tuple[str, ...]) -> list[Path]:
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    return sorted(path for path in files if path.suffix in (".cc", ".h", ".c"))


def shell_scripts() -> list[Path]:
    return [ROOT / "dev", ROOT / ".ci/run", *sorted((ROOT / "scripts").glob("*.sh"))]


def clang_format(fix: bool) -> Verdict:
    return run("clang-format", *(["-i"] if fix else ["--dry-run", "-Werror"]), *cpp_files(CPP_FOLDERS))


def ruff_lint(fix: bool) -> Verdict:
    return run("ruff", "check", "--no-cache", *(["--fix"] if fix else []), ".")


def ruff_format(fix: bool) -> Verdict:
    return run("ruff", "format", "--no-cache", *([] if fix else ["--diff"]), ".")


@dataclass
class TidyUnit:
    """Files that clang-tidy analyses as one: what they all include is then parsed and searched once."""

    flags: list[str]
    files: list[str]

    def key(self, headers: bytes, version: str) -> str:
        """Equal keys mean that clang-tidy would say the same again."""
        contents = [Path(file).read_bytes() for file in self.files]
        config = (ROOT / ".clang-tidy").read_bytes()
        words = " ".join([version, *self.flags, *self.files]).encode()
        return hashlib.sha256(b"\0".join((headers, config, words, *contents))).hexdigest()


def flags_of(command: dict[str, str]) -> list[str]:
    """What the file is compiled with, but for its own name, the outputs and the compiler."""
    words = shlex.split(command["command"])
    words = words[next(i for i, word in enumerate(words) if word.startswith("-")) :]
    with_name = ("-o", "-c", "-MF", "-MT")
    return [
        word
        for before, word in zip(["", *words], words)
        if before not in with_name and word not in (*with_name, "-MD")
    ]


def tidy_units(commands: list[dict[str, str]]) -> list[TidyUnit]:
    """The files of one folder of src/ in tens, as far as they share their flags; all others one by one."""
    units: list[TidyUnit] = []
    open_units: dict[tuple[str, ...], TidyUnit] = {}
    for command in sorted(commands, key=lambda command: command["file"]):
        file, flags = command["file"], flags_of(command)
        if not file.startswith(f"{ROOT / 'src'}/"):
            units.append(TidyUnit(flags, [file]))
            continue
        group = (str(Path(file).parent), *flags)
        unit = open_units.get(group)
        if unit is None or len(unit.files) == TIDY_TOGETHER:
            unit = open_units[group] = TidyUnit(flags, [])
            units.append(unit)
        unit.files.append(file)
    return units


def clang_tidy(_: bool) -> Verdict:
    """One clang-tidy per core. What passed before, with the same headers, is not analysed again."""
    tool = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if tool is None:
        return Verdict(True, left_out="clang-tidy is not installed")
    version = run(tool, "--version").output
    headers = b"".join(path.read_bytes() for path in cpp_files(CPP_FOLDERS) if path.suffix == ".h")
    passed = BUILD / "tidy"
    passed.mkdir(exist_ok=True)
    folders = TIDY_ALL_FOLDERS if "--all" in sys.argv else TIDY_FOLDERS
    wanted = tuple(str(ROOT / folder) + "/" for folder in folders)
    commands = [
        command
        for command in json.loads((BUILD / "compile_commands.json").read_text())
        if command["file"].startswith(wanted) and not command["file"].endswith("_test.cc")
    ]
    pending = {unit.key(headers, version): unit for unit in tidy_units(commands)}
    pending = {key: unit for key, unit in pending.items() if not (passed / key).exists()}

    def analyse(key: str) -> Verdict:
        unit = pending[key]
        flags = ("--", *unit.flags, "-Wno-unknown-warning-option")
        if len(unit.files) == 1:
            return run(tool, "--quiet", unit.files[0], *flags)
        source = passed / f"{key}.cc"
        source.write_text("".join(f'#include "{file}"  // NOLINT\n' for file in unit.files))
        try:
            return run(tool, "--quiet", source, *flags)
        finally:
            source.unlink()

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        verdicts = dict(zip(pending, pool.map(analyse, pending)))
    for key, verdict in verdicts.items():
        if verdict.ok:
            (passed / key).touch()
    bad = [verdict.output for verdict in verdicts.values() if not verdict.ok]
    return Verdict(not bad, "\n".join(bad))


def mypy(_: bool) -> Verdict:
    """Over the package in the build tree, where the stub of the module lies beside the sources."""
    return run(sys.executable, "-m", "mypy", "-p", "packtrain", MYPYPATH=str(BUILD / "python"))


def mypy_scripts(_: bool) -> Verdict:
    return run(sys.executable, "-m", "mypy", *sorted((ROOT / "scripts").glob("*.py")))


def includes(_: bool) -> Verdict:
    return run(sys.executable, "scripts/check_includes.py")


def tree(_: bool) -> Verdict:
    return run(sys.executable, "scripts/check_tree.py")


def shellcheck(_: bool) -> Verdict:
    if shutil.which("shellcheck") is None:
        return Verdict(True, left_out="shellcheck is not installed")
    return run("shellcheck", "-x", *shell_scripts())


FORMATTERS = (clang_format, ruff_lint, ruff_format)
CHECKS = (*FORMATTERS, includes, tree, shellcheck, mypy, mypy_scripts, clang_tidy)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="rewrite files in the project's format")
    parser.add_argument("--all", action="store_true", help="clang-tidy over every source file")
    parser.add_argument("--only", nargs="+", choices=[check.__name__ for check in CHECKS], metavar="CHECK")
    arguments = parser.parse_args()
    passed = failed = skipped = 0
    for check in FORMATTERS if arguments.fix else CHECKS:
        if arguments.only and check.__name__ not in arguments.only:
            continue
        begun = time.monotonic()
        verdict = check(arguments.fix)
        if verdict.left_out:
            skipped += 1
            print(f"{check.__name__:14} left out: {verdict.left_out}", flush=True)
            continue
        passed, failed = passed + int(verdict.ok), failed + int(not verdict.ok)
        word = "ok" if verdict.ok else "FAILED"
        print(f"{check.__name__:14} {word} ({time.monotonic() - begun:.1f} s)")
        if not verdict.ok or "warning:" in verdict.output:
            print(verdict.output, flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
