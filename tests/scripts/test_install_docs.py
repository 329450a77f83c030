"""What docs/install.md tells people to install is what the build needs, by packages.txt."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_FOR_USERS = {"ccache"}  # makes the builds of developers quicker


def packages(section: str) -> list[str]:
    """The packages of a section, alternatives each by itself."""
    text = (ROOT / "packages.txt").read_text()
    body = re.search(rf"(?ms)^\[{re.escape(section)}\]\n(.*?)(?=^\[|\Z)", text)
    assert body, section
    lines = [line.partition("#")[0].strip() for line in body[1].splitlines()]
    return [name.strip() for line in lines if line for name in line.split("|")]


@pytest.mark.parametrize("section", ["build", "build optional"])
def test_install_names_every_package_of_the_build(section: str) -> None:
    named = set(re.findall(r"[a-z0-9][a-z0-9+.-]+", (ROOT / "docs" / "install.md").read_text()))
    assert set(packages(section)) - named - NOT_FOR_USERS == set()


def test_doctor_names_packages_that_there_are() -> None:
    known = {*packages("build"), *packages("build optional")}
    told = set()
    for file in (
        "src/codec/codec.cc",
        "src/decode/pixel_decoders.cc",
        "tools/doctor.cc",
        "tools/CMakeLists.txt",
    ):
        told |= set(re.findall(r"\b(?:lib|zlib)[a-z0-9-]+-dev\b", (ROOT / file).read_text()))
    assert len(told) > 5
    assert told - known == set()
