"""The include checker finds what it promises to find, and nothing in a tree that keeps the rules."""

from __future__ import annotations

from pathlib import Path

import check_includes
import pytest

CLEAN = {
    "include/packtrain/status.h": "#include <string>\n",
    "include/packtrain/storage.h": '#include "packtrain/status.h"\n',
    "src/base/hash.cc": '#include "base/hash.h"\n#include <xxhash.h>\n',
    "src/io/pool.cc": '#include "packtrain/storage.h"\n#include "base/hash.h"\n#include <sys/stat.h>\n',
    "src/pack/plan.cc": '#include "io/pool.h"\n#include <fmt/format.h>\n',
    "src/pack/plan_test.cc": '#include <gtest/gtest.h>\n#include "pack/plan.h"\n#include "tests/tree.h"\n',
    "src/pack/test_tree.h": "#include <gtest/gtest.h>\n",
    "src/pack/walk_test.cc": '#include "pack/test_tree.h"\n',
    "tools/pack.cc": '#include "command.h"\n#include "packtrain/status.h"\n#include "base/json.h"\n',
    "python/bind/module.cc": '#include <nanobind/nanobind.h>\n#include "packtrain/status.h"\n',
}


def violations(root: Path, **planted: str) -> list[str]:
    files = {**CLEAN, **{name.replace("__", "/"): text for name, text in planted.items()}}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return check_includes.find_violations(root)


def test_a_tree_that_keeps_the_rules_has_none(tmp_path: Path) -> None:
    assert violations(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "text", "word"),
    [
        ("src/io/bad.cc", '#include "pack/plan.h"\n', "line of dependence"),
        ("src/io/bad.cc", '#include "packtrain/pack.h"\n', "line of dependence"),
        ("src/io/bad_test.cc", '#include "index/npz.h"\n', "line of dependence"),
        ("src/io/bad.cc", '  #  include "pack/plan.h"\n', "line of dependence"),
        ("src/io/bad.cc", '#include "pool.h"\n', "write io/ in front"),
        ("src/io/bad.cc", '#include "tools/command.h"\n', "no folder of src"),
        ("include/packtrain/storage.h", '#include "packtrain/pack.h"\n', "line of dependence"),
        ("include/packtrain/storage.h", '#include "base/hash.h"\n', "public headers only"),
        ("include/packtrain/storage.h", '#include "packtrain/unheard.h"\n', "does not say"),
        ("src/pack/bad.cc", '#include "pack/test_tree.h"\n', "only tests"),
        ("tools/bad.cc", '#include "pack/plan.h"\n', "public headers and base/ only"),
        ("python/bind/bad.cc", '#include "io/pool.h"\n', "public headers and base/ only"),
        ("src/io/bad.cc", "#include <xxhash.h>\n", "more than one file"),
        ("src/io/bad.cc", "#include <nanobind/nanobind.h>\n", "may not be included here"),
        ("src/io/bad.h", "#include <fmt/format.h>\n", "may not be included here"),
        ("src/io/bad.cc", "#include <gtest/gtest.h>\n", "may not be included here"),
    ],
)
def test_a_planted_violation_is_named(tmp_path: Path, file: str, text: str, word: str) -> None:
    found = violations(tmp_path, **{file.replace("/", "__"): text})
    assert len(found) == 1
    assert file in found[0]
    assert word in found[0]
