"""scripts/add_licences.py WHEEL: puts the licence of every library inside a wheel beside packtrain's own.

Libraries that auditwheel copied in are looked up by the Debian package they came from; what is compiled in
(headers of third_party, nanobind, libstdc++) is always there. A library without a licence text is an error.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.metadata
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STATIC_RUNTIME = "libstdc++.so.6"
COPIED_BY_AUDITWHEEL = re.compile(r"-[0-9a-f]{8}(?=\.so)")


def package_licence(library: str) -> str:
    """The text that came with the package of a library, by the library's file name."""
    said = subprocess.run(["dpkg", "-S", f"*/{library}"], capture_output=True, text=True, check=False)
    for line in said.stdout.splitlines():
        text = Path("/usr/share/doc") / line.split(":")[0] / "copyright"
        if text.is_file():
            return text.read_text()
    raise SystemExit(
        f"no licence was found for {library}, which the wheel carries: build where it comes from a package"
    )


def licences(libraries: list[str]) -> dict[str, str]:
    found = {f"{path.stem}.txt": path.read_text() for path in (ROOT / "third_party/licences").glob("*.txt")}
    for file in importlib.metadata.files("nanobind") or []:
        if "licenses" in file.parts:
            found[f"nanobind-{file.name}.txt"] = Path(str(file.locate())).read_text()
    for library in [STATIC_RUNTIME, *libraries]:
        name = COPIED_BY_AUDITWHEEL.sub("", library)
        found[f"{name}.txt"] = package_licence(name)
    return found


def record_line(name: str, content: bytes) -> list[str]:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return [name, f"sha256={digest}", str(len(content))]


def add(wheel: Path) -> int:
    part = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as new:
        record = next(name for name in old.namelist() if name.endswith(".dist-info/RECORD"))
        folder = record.removesuffix("RECORD") + "licenses/libraries/"
        libraries = [
            Path(name).name for name in old.namelist() if "packtrain.libs/" in name and ".so" in name
        ]
        texts = {folder + name: text.encode() for name, text in sorted(licences(libraries).items())}
        for member in old.infolist():
            if member.filename != record:
                new.writestr(member, old.read(member))
        for name, content in texts.items():
            new.writestr(name, content)
        rows = list(csv.reader(io.StringIO(old.read(record).decode())))
        rows[-1:-1] = [record_line(name, content) for name, content in texts.items()]
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        new.writestr(record, out.getvalue())
    part.replace(wheel)
    return len(texts)


if __name__ == "__main__":
    print(f"{add(Path(sys.argv[1]))} licences of libraries are inside")
