"""h5py's own tests, whose HDF5 moves its bytes through Penstock's driver: h5py_tests.py [config] [words for pytest]

Runs the tests that h5py's wheel brings with HDF5's default driver and with Penstock's, and compares test by test.
Prints how many passed in both, each test that ended otherwise with the reason why it is left out, and what the driver
says that it moved. A test that passes by the default driver alone, and for which no reason is listed here, is run once
more, because some depend on time. Ends with 1 where one then fails, or where the driver saw no file. Needs pytest.
`config` is of HDF5_DRIVER_CONFIG, such as memory=device.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

# Parts of names of tests, and why they say nothing of a driver.
LEFT_OUT = {
    "TestMPI": "parallel HDF5 has a driver of its own, and no wheel has it",
    "test_append_permissions": "a file without rights is opened all the same where root runs the test",
    "test_h5pl": "it starts HDF5 with another plugin path, on which no driver lies",
}


def main(config: str, words: list[str]) -> int:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with_driver = variables(folder / "told.jsonl", config)
        plain = results(folder / "default", {}, words)
        ours = results(folder / "driver", with_driver, words)
        again = missed(plain, ours)
        if again:
            chosen = " or ".join(sorted({name.partition("::")[2].partition("[")[0] for name in again}))
            ours |= results(folder / "again", with_driver, [*words, "-k", chosen])
        files, moved = evidence(folder / "told.jsonl")
    both = [name for name, result in plain.items() if result == ours.get(name) == "passed"]
    print(f"h5py {version()}: {len(both)} tests pass by both drivers; default: {count(plain)}; with it: {count(ours)}")
    for name, result in plain.items():
        ended = ours.get(name, "not run")
        if (result, ended) not in (("passed", "passed"), ("skipped", "skipped")):
            print(f"  {name}: {result}, with the driver {ended}: {reason_of(name) or 'no reason is listed'}")
    print(f"the driver had {files} files open, and moved {moved} bytes of data and metadata")
    broken = missed(plain, ours)
    if broken or not files:
        print(f"broken: {', '.join(broken) or 'no file came to the driver'}", file=sys.stderr)
    return 1 if broken or not files else 0


def missed(plain: dict[str, str], ours: dict[str, str]) -> list[str]:
    """What passes by the default driver alone, for no reason that is known."""
    return [n for n, result in plain.items() if result == "passed" != ours.get(n, "not run") and not reason_of(n)]


def results(folder: Path, environment: dict[str, str], words: list[str]) -> dict[str, str]:
    """How each test ended."""
    folder.mkdir()
    xml = folder / "results.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={xml}", "--pyargs", "h5py"]
    done = subprocess.run(
        [*command, *words], cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if not xml.exists() or done.returncode not in (0, 1):
        raise SystemExit(f"pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    ended: dict[str, str] = {}
    for case in ElementTree.parse(xml).getroot().iter("testcase"):
        name = f"{case.get('classname', '').removeprefix('tests.')}::{case.get('name')}"
        found = [one.tag for one in case if one.tag in ("failure", "error", "skipped")]
        ended[name] = found[0] if found else "passed"
    return ended


def variables(told: Path, config: str) -> dict[str, str]:
    """What `penstock vfd-path` tells a shell to set."""
    wanted = ",".join(filter(None, [config, f"evidence={told}"]))
    ask = [sys.executable, "-m", "penstock", "vfd-path", "--config", wanted]
    lines = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    names = "HDF5_PLUGIN_PATH", "HDF5_DRIVER", "HDF5_DRIVER_CONFIG"
    show = f"{lines}\n" + "\n".join(f'printf "%s\\n" "${name}"' for name in names)
    found = subprocess.run(["sh", "-c", show], capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(zip(names, found, strict=True))


def evidence(told: Path) -> tuple[int, int]:
    """Files that the driver closed, and bytes of all ways."""
    rows = [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []
    moved = 0
    for row in rows:
        for direction in (row["read"], row["write"]):
            ways = [direction[way] for way in ("plain", "staged", "windows", "rows")]
            moved += sum(way["bytes"] for way in [*ways, *direction["transfers"].values()])
    return len(rows), moved


def reason_of(name: str) -> str:
    return next((reason for part, reason in LEFT_OUT.items() if part in name), "")


def count(ended: dict[str, str]) -> str:
    return ", ".join(f"{number} {how}" for how, number in sorted(Counter(ended.values()).items()))


def version() -> str:
    import h5py

    return f"{h5py.__version__}, HDF5 {h5py.version.hdf5_version}"


if __name__ == "__main__":
    if importlib.util.find_spec("pytest") is None:
        raise SystemExit("needs pytest")
    sys.exit(main((sys.argv[1:] or [""])[0], sys.argv[2:]))
