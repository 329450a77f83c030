"""What `./dev check` runs: format, lint, types, includes. `--fix` (`./dev format`) rewrites files instead.

Runs inside .venv and needs build/dev for compile commands and the stub of the Python module. Tools of the
system that are absent are named and left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
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
# The gate analyses the folders that most of the rest stands on; `--all` analyses everything but tests and
# bindings (macros of GoogleTest, templates of nanobind), which takes some ten minutes on two cores.
TIDY_FOLDERS = ("src/base", "src/codec", "src/index", "src/format")
TIDY_ALL_FOLDERS = ("src", "tools")


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


def tidy_key(headers: bytes, command: dict[str, str], version: str) -> str:
    """Equal keys mean that clang-tidy would say the same again."""
    content = Path(command["file"]).read_bytes()
    config = (ROOT / ".clang-tidy").read_bytes()
    line = command.get("command", "").encode()
    return hashlib.sha256(b"\0".join((headers, content, config, line, version.encode()))).hexdigest()


def clang_tidy(_: bool) -> Verdict:
    """One clang-tidy per core. A file that passed before, with the same headers, is not analysed again."""
    tool = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if tool is None:
        return Verdict(True, left_out="clang-tidy is not installed")
    version = run(tool, "--version").output
    headers = b"".join(path.read_bytes() for path in cpp_files(CPP_FOLDERS) if path.suffix == ".h")
    passed = BUILD / "tidy"
    passed.mkdir(exist_ok=True)
    folders = TIDY_ALL_FOLDERS if "--all" in sys.argv else TIDY_FOLDERS
    wanted = tuple(str(ROOT / folder) + "/" for folder in folders)
    pending: dict[str, str] = {}
    for command in json.loads((BUILD / "compile_commands.json").read_text()):
        file = command["file"]
        if file.startswith(wanted) and not file.endswith("_test.cc"):
            key = tidy_key(headers, command, version)
            if not (passed / key).exists():
                pending[file] = key

    def analyse(file: str) -> Verdict:
        return run(tool, "-p", BUILD, "--quiet", "--extra-arg=-Wno-unknown-warning-option", file)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        verdicts = dict(zip(pending, pool.map(analyse, pending)))
    for file, verdict in verdicts.items():
        if verdict.ok:
            (passed / pending[file]).touch()
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
