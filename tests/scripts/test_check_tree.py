"""The tree checker finds dead links, fixed registries and long files."""

from __future__ import annotations

from pathlib import Path

import check_tree
import pytest


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("[a](other.md)", 0),
        ("[a](other.md#the-second-part)", 0),
        ("[a](#here)\n# Here\n", 0),
        ("[a](https://example.com/absent)", 0),
        ("```text\n[a](absent.md)\n```\n", 0),
        ("[a](absent.md)", 1),
        ("[a](other.md#absent)", 1),
    ],
)
def test_links(tmp_path: Path, text: str, broken: int) -> None:
    (tmp_path / "other.md").write_text("# One\n## The second part\n")
    page = tmp_path / "page.md"
    page.write_text(text)
    assert len(check_tree.broken_links([page])) == broken


def test_a_registry_is_named_with_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("fine\nsee https://" + "pypi" + ".org/simple\n")
    assert [line.split(": ")[0] for line in check_tree.named_hosts([page])] == [f"{page}:2"]


def test_a_long_file_is_named(tmp_path: Path) -> None:
    source = tmp_path / "long.py"
    source.write_text("#\n" * check_tree.LONGEST)
    assert check_tree.long_files([source]) == []
    source.write_text("#\n" * (check_tree.LONGEST + 1))
    assert len(check_tree.long_files([source])) == 1
