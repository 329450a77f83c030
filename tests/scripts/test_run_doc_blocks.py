"""The runner of documentation blocks runs what a reader would, and fails where the reader would."""

from __future__ import annotations

from pathlib import Path

import pytest
import run_doc_blocks


def written(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text)
    return path


def test_blocks_of_a_file_share_a_folder(tmp_path: Path) -> None:
    page = written(
        tmp_path, "```bash\necho 7 > n\n```\n\n```python\nassert open('n').read() == '7\\n'\n```\n"
    )
    assert run_doc_blocks.run_file(page) == (2, 0, 0)


@pytest.mark.parametrize("block", ["```bash\nfalse\ntrue\n```\n", "```python\nassert False\n```\n"])
def test_a_failing_block_fails(tmp_path: Path, block: str) -> None:
    assert run_doc_blocks.run_file(written(tmp_path, block)) == (0, 1, 0)


def test_a_mark_counts_for_the_next_block_only(tmp_path: Path) -> None:
    page = written(
        tmp_path, "<!-- not run: needs a cluster -->\n```bash\nfalse\n```\n\n```bash\nfalse\n```\n"
    )
    assert run_doc_blocks.run_file(page) == (0, 1, 1)


def test_a_mark_without_a_reason_is_no_mark(tmp_path: Path) -> None:
    assert run_doc_blocks.run_file(written(tmp_path, "<!-- not run: -->\n```bash\nfalse\n```\n")) == (0, 1, 0)


def test_a_block_inside_a_list_is_run(tmp_path: Path) -> None:
    page = "1. First\n\n   ```python\n   if True:\n       raise SystemExit(3)\n   ```\n"
    assert run_doc_blocks.run_file(written(tmp_path, page)) == (0, 1, 0)
    page = page.replace("3", "0")
    assert run_doc_blocks.run_file(written(tmp_path, page)) == (1, 0, 0)


def test_other_languages_are_not_run(tmp_path: Path) -> None:
    assert run_doc_blocks.run_file(written(tmp_path, "```text\nfalse\n```\n")) == (0, 0, 0)


def test_a_block_without_an_end_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 1"):
        run_doc_blocks.run_file(written(tmp_path, "```bash\ntrue\n"))
