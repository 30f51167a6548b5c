"""What type checkers see: the code of the pages and the examples pass mypy --strict and Pyright, results have their
types, and misspelt options and keys are found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import ROOT

import penstock
from penstock._told import Evidence, FormatCounts, PathShare, Residency

PAGES = (
    *("README.md", "docs/python.md", "docs/gpu.md", "docs/simulation.md"),
    *(f"docs/simulation/{name}.md" for name in ("stores", "ranks", "scale", "restarts", "snapshots")),
    *(f"docs/guide/{name}.md" for name in ("datasets", "from-h5py", "install-and-link", "training")),
)
LEFT_OUT = "docs_guide_from_h_py_md_0.py"  # its f is h5py's file and then ours, which share no type
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT_S = 120

# Lines that end in "# wrong" must be refused, all others pass.
USES = """
from typing import Any
import numpy as np
import penstock as ps
from typing_extensions import assert_type

with ps.open("run.h5", write=True, skip_checksums=True, page_bytes=4096) as file:
    assert_type(file["fields/T"][:1000], ps.Array)
    assert_type(file["fields"]["T"][:1000, 0], ps.Array)
    file["fields"].groups()
    file["T"].extents(0)
    one: ps.Dataset = file["T"]
    group: ps.Group = file["fields"]
    assert_type(one.start_read().result(), ps.Array)
    assert_type(one.read(out=np.ones(3)).size, int)
    assert_type(file.read_many(["a", "b"]).result(), dict[str, ps.Array])
    assert_type(file.load(), dict[str, ps.Array])
    assert_type(one.write(np.ones(3)), ps.Outcome)
    assert_type(file.write_many({}).result(), ps.Outcome)
    assert_type(file.evidence()["formats"]["range_bytes"], int)
    for found in file.values():
        assert_type(found.shape, tuple[int, ...])
assert_type(ps.load("m.safetensors", names=["a"]), dict[str, ps.Array])
assert_type(ps.load("m.bin", format="safetensors", timeout_s=3), dict[str, ps.Array])
assert_type(ps.load("x.npy", format="npy"), ps.Array)
assert_type(ps.load("x.raw", dtype="f4", shape=(-1, 3), decode="host"), ps.Array)
assert_type(ps.load("x"), Any)
outcome = ps.Context().open("x").read(bytearray(10))
assert_type(outcome.evidence["paths"][0]["past_page_cache"], bool | None)
assert_type(ps.save("x", {}, chunk_bytes=4096, durable=True, compression="gzip"), ps.Outcome)
ps.open("x", skip_checksum=True)  # wrong
ps.open("x")["a"].read(chunk_byte=4096)  # wrong
ps.load("x", chunk_byte=4096)  # wrong
ps.create("x", page_byte=4096)  # wrong
ps.create("x").create_dataset("a", (3,), "f4", chunk_shap=(1,))  # wrong
ps.save("x", {}, chunk_byte=1)  # wrong
outcome.evidence["path_s"]  # wrong
ps.load("x.npy", format="npy").keys()  # wrong
ps.Contxt  # wrong
"""


def mypy(files: list[Path], place: Path, top: Path) -> tuple[list[str], dict[str, str]]:
    how = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", f"--cache-dir={place / 'cache'}"]
    command = [sys.executable, "-m", "mypy", *how, "--no-error-summary", "--scripts-are-modules", *map(str, files)]
    return command, {} if top.name == "site-packages" else {"MYPYPATH": str(top)}


def basedpyright(files: list[Path], place: Path, top: Path) -> tuple[list[str], dict[str, str]]:
    """Pyright as a wheel, with the rules of Pyright itself."""
    settings = {"typeCheckingMode": "standard", "include": [str(file) for file in files], "extraPaths": [str(top)]}
    (place / "pyrightconfig.json").write_text(json.dumps(settings | {"reportMissingImports": False}))
    where = ["--pythonpath", sys.executable, "--project", str(place)]
    return [sys.executable, "-m", "basedpyright", *where], {}


@pytest.fixture(scope="module", params=[mypy, basedpyright], ids=lambda checker: checker.__name__)
def complaints(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[int]]:
    """Lines that a checker complains of, by name of the file: one run over all of it, most of which is reading
    NumPy's."""
    checker = request.param
    pytest.importorskip(checker.__name__)
    place = tmp_path_factory.mktemp("typing")
    (place / "uses.py").write_text(USES)
    for page in PAGES:
        for number, code in enumerate(BLOCK.findall((ROOT / page).read_text())):
            (place / f"{re.sub(r'[^a-z]', '_', page.lower())}_{number}.py").write_text(code)
    (place / LEFT_OUT).unlink()
    files = [*place.glob("*.py"), *(ROOT / "examples").rglob("*.py")]
    command, settings = checker(files, place, Path(penstock.__file__).parents[1])
    environment = os.environ | settings
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment, cwd=place)
    print(done.stdout, done.stderr)
    assert done.returncode == 1, "lines of uses.py are wrong"
    found: dict[str, set[int]] = {file.name: set() for file in files}
    assert len(found) == len(files), "two files of one name"
    for name, line in re.findall(r"^ *(\S+?):(\d+)(?::\d+ -|:) error", done.stdout, re.MULTILINE):
        found[Path(name).name].add(int(line))
    return found


def test_code_of_pages_and_examples_passes(complaints: dict[str, set[int]]) -> None:
    assert len(complaints) > 20
    assert {name: lines for name, lines in complaints.items() if lines and name != "uses.py"} == {}


def test_results_have_types_and_what_is_misspelt_is_found(complaints: dict[str, set[int]]) -> None:
    wrong = {number for number, line in enumerate(USES.splitlines(), 1) if line.endswith("# wrong")}
    assert len(wrong) == 9
    assert complaints["uses.py"] == wrong


def test_evidence_has_the_keys_that_its_type_says(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    with penstock.Context("host") as context, context.open(tmp_path / "data") as file:
        one: Any = file.read(bytearray(1 << 20), full_evidence=True).evidence
    penstock.save(tmp_path / "x.zarr", {"a": np.ones((10, 10))}, "host")
    with penstock.open(tmp_path / "x.zarr", device="host") as store:
        assert store["a"][:5].shape == (5, 10)
        several: Any = store.evidence()
    assert {*one, "formats"} == set(Evidence.__annotations__)
    assert {*several} <= set(Evidence.__annotations__)
    assert {*one["paths"][0]} == set(PathShare.__annotations__)
    assert {*one["residency_before"]} == set(Residency.__annotations__)
    assert {*several["formats"]} == set(FormatCounts.__annotations__)
