#!/usr/bin/env python3
"""Breaks the code on purpose, one guarantee at a time, and expects a test to fail: what no test holds is told.

tools/mutations/*.toml lists the guarantees. An entry has these keys, all but `build` needed:

    [[mutation]]
    name = "a-publish-without-fsync"         # what is lost, in a few words with hyphens
    file = "python/penstock/_files/publish.py"     # from the root of the tree
    find = '''os.fsync(handle)'''            # occurs exactly once in the file
    put = '''pass'''
    test = "python -m pytest python/tests/durable/test_publish.py -k durable"
    build = ["context_test"]                 # targets of Ninja, where the file or the test is C++

The test is a command for the shell, run from the root of a copy; `python` is the interpreter of this script, $BUILD the
build folder of the copy (`ctest --test-dir $BUILD -R '^context_test$'`). It passes on the copy as it is and fails under
the mutation. The tree itself is never changed: its tracked and new files are copied to build/mutate/. A mutation that
does not compile, a `find` that the file does not have once and a test that fails without its mutation are failures of
the entry. A test that is skipped here proves nothing: its entry is counted as skipped.

    tools/mutate.py --python-only            tools/mutate.py --only fsync            tools/mutate.py --list
"""

import argparse
import collections
import contextlib
import filecmp
import fnmatch
import math
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

ROOT = Path(__file__).resolve().parent.parent
NEEDED = {"name", "file", "find", "put", "test"}
# A test may take this long: under a mutation it may hang, which is a failure of the test too.
TEST_SECONDS = 120
NO_TIME = "no time was left"
_LIB = "penstock/lib"
LIBRARY = f"{_LIB}/libpenstock.so.0"
# Libraries that other programs load, by the target that builds each: where they lie in the packages.
BESIDE = tuple(f"penstock/{name}" for name in ("include", "share", "lib/cmake", "lib/pkgconfig"))
PLUGINS = {"penstock_preload": f"{_LIB}/libpenstock_preload.so", "penstock_vfd": f"{_LIB}/hdf5/libpenstock_vfd.so"}


class WrongError(Exception):
    """An entry that says nothing: its text is not found, its test fails anyway, its mutation does not compile."""


@dataclass(frozen=True)
class Mutation:
    """One entry of a list."""

    name: str
    file: str
    find: str
    put: str
    test: str
    build: tuple[str, ...] = ()


@dataclass(frozen=True)
class Options:
    """What all runs share."""

    core: Path | None
    seconds: float
    began: float


def read_lists(folder: Path) -> list[Mutation]:
    found: list[Mutation] = []
    for path in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(path.read_text()).get("mutation", []):
            keys = set(entry)
            if keys - {"build"} != NEEDED:
                raise SystemExit(f"{path}: an entry has {sorted(keys)}; it needs {sorted(NEEDED)}, and build for C++")
            found.append(Mutation(**{**entry, "build": tuple(entry.get("build", ()))}))
    names = [mutation.name for mutation in found]
    for name in names:
        if names.count(name) > 1:
            raise SystemExit(f"{folder}: {name} is the name of two entries")
    return found


def mutated(mutation: Mutation, text: str) -> str:
    """The text of the file under the mutation; raises WrongError where that is no other text that can be parsed."""
    times = text.count(mutation.find)
    if times != 1:
        raise WrongError(f"{mutation.file} has the text {times} times, not once: {mutation.find!r}")
    changed = text.replace(mutation.find, mutation.put)
    if changed == text:
        raise WrongError("find and put are the same")
    if mutation.file.endswith(".py"):
        try:
            compile(changed, mutation.file, "exec")
        except SyntaxError as error:
            raise WrongError(f"{mutation.file} under the mutation is no Python: {error}") from None
    return changed


class Copy:
    """A copy of the tree, brought up to date; what Ninja has built in it stays for the next time."""

    def __init__(self, tree: Path, folder: Path, options: Options) -> None:
        self.folder, self.options = folder, options
        self.python = folder / "python" / "penstock"
        folder.mkdir(parents=True, exist_ok=True)
        command = ["git", "-C", str(tree), "ls-files", "-coz", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True)
        files = {name for name in listed.stdout.split("\0") if name and (tree / name).is_file()}
        record = folder / ".copied"
        for name in set(record.read_text().splitlines() if record.exists() else ()) - files:
            (folder / name).unlink(missing_ok=True)
        record.write_text("\n".join(sorted(files)))
        for name in files:
            here, there = tree / name, folder / name
            if not there.exists() or not filecmp.cmp(here, there, shallow=False):
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(here, there)
        self._use_core(options.core)

    @staticmethod
    def _link(name: Path, target: Path) -> None:
        if name.parent.is_dir():
            name.unlink(missing_ok=True)
            name.symlink_to(target)

    def _use_core(self, *cores: Path | None) -> None:
        """Links each core and what was built with it, too. A later core goes before an earlier one."""
        packages, given = self.python.parent, [core.parent.parent for core in cores if core is not None]
        if not given or not self.python.is_dir():
            return
        for old in compiled(packages):
            old.unlink()
        (self.python / "lib/hdf5").mkdir(exist_ok=True, parents=True)
        for origin in given:
            for built in compiled(origin):
                self._link(packages / built.relative_to(origin), built)

    def environment(self) -> dict[str, str]:
        beside = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
        ccache = {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache"}
        return {
            "CCACHE_BASEDIR": str(ROOT),
            "CCACHE_NOHASHDIR": "1",
            **(ccache if shutil.which("ccache") else {}),
            **os.environ,
            "PATH": beside,
            "PYTHONPATH": str(self.folder / "python"),
            "BUILD": "build/dev",
        }

    def build(self, targets: tuple[str, ...]) -> None:
        """Raises WrongError with the compiler's words."""
        self._use_core(self.options.core)
        if not targets:
            return
        if not (self.folder / "build/dev/build.ninja").exists():
            on = " ".join(f"-DPENSTOCK_{name}" for name in ("CUDA=OFF", "PYTHON=ON", "TESTS=ON"))
            kind = f"-DCMAKE_BUILD_TYPE=RelWithDebInfo -DPython_EXECUTABLE={sys.executable}"
            self._must(f"cmake -S . -B build/dev -G Ninja {on} {kind}")
        self._must(f"cmake --build build/dev --target {' '.join(targets)}")
        packages = self.folder / "build/dev/python"
        if "_core" in targets:
            self._use_core(self.options.core, *sorted(packages.glob("penstock/_core*.so"))[:1])
        for target in PLUGINS.keys() & set(targets):
            self._link(self.python.parent / PLUGINS[target], packages / PLUGINS[target])

    def _must(self, command: str) -> None:
        code, said = self.run(command, limit=3600)
        if code != 0:
            raise WrongError(f"{command}: exit code {code}\n{said[-3000:]}")

    def run(self, command: str, limit: float = TEST_SECONDS) -> tuple[int | None, str]:
        """The exit code, None where the time was not enough, and what was printed. Nothing of it runs on."""
        process = subprocess.Popen(
            ["/bin/bash", "-c", command],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
            errors="replace",
        )
        try:
            said, _ = process.communicate(timeout=limit)
            return process.returncode, said
        except subprocess.TimeoutExpired:
            return None, f"took longer than {limit:.0f} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @contextlib.contextmanager
    def under(self, mutation: Mutation) -> Iterator[None]:
        """The copy with one mutation, then without."""
        path = self.folder / mutation.file
        if not path.is_file():
            raise WrongError(f"{mutation.file} is not there")
        old, stamp = path.read_text(), path.stat().st_mtime
        new = mutated(mutation, old)
        try:
            path.write_text(new)
            if path.suffix == ".py":  # Python takes a compiled module for current by second and size of its source.
                os.utime(path, (stamp, stamp + 2 + random.randrange(1 << 24)))
            yield
        finally:
            path.write_text(old)
            if path.suffix == ".py":
                os.utime(path, (stamp, stamp))


def is_skipped(said: str) -> bool:
    """Whether a command that succeeded has run no test: all it found were skipped."""
    if re.search(r"^=* ?(\d+ \w+, )*\d+ \w+ in [0-9.]+s", said, re.MULTILINE):
        return not re.search(r"\b\d+ passed", said)
    if re.search(r"Test *#\d+: ", said):
        return "   Passed " not in said
    return "[  SKIPPED ]" in said and "[       OK ]" not in said


def is_red(test: str, code: int | None) -> bool:
    """Whether tests failed. An exit code of pytest other than 1 says that none was run."""
    if "pytest" in test and code not in (None, 0, 1) and 2 <= code <= 5:
        raise WrongError(f"{test}: pytest ran no test under the mutation (exit code {code})")
    return code != 0


class Judge:
    """Runs each test without any mutation, once, right before its first mutation, and then with one each: what time is
    left is not spent on tests whose mutations have no turn."""

    def __init__(self, copies: "queue.Queue[Copy]", options: Options) -> None:
        self._copies, self._options = copies, options
        self._passes: dict[str, Future[str]] = {}  # by test; its first asker runs it, others wait
        self._asking = threading.Lock()
        self._telling = threading.Lock()  # What threads count and print does not mix.
        self.verdicts = {"killed": 0, "failed": 0, "skipped": 0}
        self.reasons: collections.Counter[str] = collections.Counter()  # of what was skipped

    def _in_time(self) -> bool:
        return time.monotonic() - self._options.began < self._options.seconds

    @contextlib.contextmanager
    def _copy(self) -> Iterator[Copy]:
        copy = self._copies.get()
        try:
            yield copy
        finally:
            self._copies.put(copy)

    def control(self, mutation: Mutation) -> str:
        """"" where its test passes, else why its mutations say nothing ("skipped: " where that is no fault)."""
        with self._asking:
            first = mutation.test not in self._passes
            found = self._passes.setdefault(mutation.test, Future())
        if first:
            try:
                found.set_result(self._control(mutation.test, mutation.build))
            except BaseException as error:
                found.set_exception(error)
        return found.result()

    def _control(self, test: str, build: tuple[str, ...]) -> str:
        if not self._in_time():
            return f"skipped: {NO_TIME}"
        with self._copy() as copy:
            try:
                copy.build(build)
            except WrongError as error:
                return str(error)
            code, said = copy.run(test)
        if code != 0:
            return f"the test fails without the mutation (exit code {code}): {test}\n{said[-3000:]}"
        return f"skipped: tests are skipped here: {test}" if is_skipped(said) else ""

    def judge(self, mutation: Mutation) -> None:
        began = time.monotonic()
        verdict, why = self._verdict(mutation, self.control(mutation))
        lines = [f"{verdict:<8} {mutation.name:<56} {time.monotonic() - began:5.1f} s", *why.splitlines()]
        with self._telling:
            self.verdicts["failed" if verdict not in self.verdicts else verdict] += 1
            if verdict == "skipped":
                skipped = f"mutation: {why}" if why == NO_TIME else f"mutation whose {why.partition(': ')[0]}"
                self.reasons[skipped] += 1
            if why != NO_TIME:  # Their number is told at the end.
                print("\n    ".join(lines), flush=True)

    def _verdict(self, mutation: Mutation, control: str) -> tuple[str, str]:
        """killed, SURVIVED, skipped or WRONG, and why."""
        if control:
            return ("skipped" if control.startswith("skipped: ") else "WRONG"), control.removeprefix("skipped: ")
        if not self._in_time():
            return "skipped", NO_TIME
        with self._copy() as copy:
            try:
                with copy.under(mutation):
                    copy.build(mutation.build)
                    code, _ = copy.run(mutation.test)
                red = is_red(mutation.test, code)
            except WrongError as error:
                return "WRONG", str(error)
        change = f"{mutation.file}: {mutation.find!r} -> {mutation.put!r}"
        return ("killed", "") if red else ("SURVIVED", f"{change}\nand this passes: {mutation.test}")


def matching(mutations: list[Mutation], options: argparse.Namespace) -> list[Mutation]:
    if options.python_only:
        mutations = [mutation for mutation in mutations if not mutation.build]
    if options.only:
        mutations = [mutation for mutation in mutations if fnmatch.fnmatch(mutation.name, f"*{options.only}*")]
    if options.seconds != math.inf:
        random.shuffle(mutations)  # Where the time is not enough, others have their turn next time.
    return mutations


def wrong_texts(mutations: list[Mutation], tree: Path) -> int:
    """Tells the entries that the tree has no place for, without running anything."""
    wrong = 0
    for mutation in mutations:
        try:
            mutated(mutation, (tree / mutation.file).read_text())
        except (WrongError, OSError) as error:
            wrong += 1
            print(f"WRONG    {mutation.name}\n    {error}")
    return wrong


def compiled(packages: Path) -> list[Path]:
    """The compiled files of the packages in a folder, and what an installation has beside them."""
    folders = ("penstock", "penstock/flow", "penstock/hmatrix", "penstock/nbody", "penstock_bench")
    places = (*(f"{folder}/_*.so" for folder in folders), LIBRARY, *PLUGINS.values(), *BESIDE)
    return sorted(path for place in places for path in packages.glob(place))


def built_core(tree: Path) -> Path | None:
    """penstock._core of the tree, else of the interpreter's packages, else of the tree's environment."""
    named = os.environ.get("PENSTOCK_CORE")
    if named:
        return Path(named).resolve()
    installed = [path for entry in sys.path for path in sorted(Path(entry).glob("penstock/_core*.so"))]
    in_tree = sorted((tree / "python/penstock").glob("_core*.so"))
    environment = sorted((tree / ".venv").glob("lib/python*/site-packages/penstock/_core*.so"))
    found = [path for path in (*in_tree, *installed, *environment) if path.exists()]
    return found[0].resolve() if found else None


def run_all(mutations: list[Mutation], options: argparse.Namespace) -> int:
    shared = Options(options.core, options.seconds, time.monotonic())
    totals = {"killed": 0, "failed": 0, "skipped": 0}
    reasons: collections.Counter[str] = collections.Counter()
    in_python = [mutation for mutation in mutations if not mutation.build]
    for kind, jobs in ((in_python, options.jobs), ([m for m in mutations if m.build], 1)):
        if not kind:
            continue
        copies: queue.Queue[Copy] = queue.Queue()
        for number in range(jobs):
            copies.put(Copy(options.tree, options.scratch / str(number), shared))
        judge = Judge(copies, shared)
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(judge.judge, kind))
        reasons += judge.reasons
        totals = {name: totals[name] + judge.verdicts[name] for name in totals}
    for reason, count in reasons.most_common():
        print(f"{count:5d} skipped: {reason}")
    skipped = f", {totals['skipped']} skipped" if totals["skipped"] else ""
    print(f"{totals['killed']} passed, {totals['failed']} failed{skipped}")
    if reasons[f"mutation: {NO_TIME}"] and not totals["killed"]:
        print("no mutation was tried: give more time with --seconds")
        return 1
    return 1 if totals["failed"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PATTERN", help="only mutations whose name has this (* and ? as in a shell)")
    parser.add_argument("--python-only", action="store_true", help="only those that need no compiler")
    parser.add_argument("--list", action="store_true", help="print names and texts that are not found; run none")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no test later; makes the order random")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="Python mutations at once (default: one a core)"
    )
    parser.add_argument("--core", type=Path, help="the built penstock._core (default: $PENSTOCK_CORE, else found)")
    parser.add_argument("--tree", type=Path, default=ROOT, help="what is copied and mutated (default: this one)")
    parser.add_argument("--scratch", type=Path, help="where the copies lie (default: build/mutate of the tree)")
    options = parser.parse_args()
    options.tree = options.tree.resolve()
    options.scratch = (options.scratch or options.tree / "build" / "mutate").resolve()
    options.core = options.core.resolve() if options.core else built_core(options.tree)
    mutations = matching(read_lists(options.tree / "tools" / "mutations"), options)
    if not mutations:
        parser.error("no mutation has such a name")
    if options.list:
        for mutation in mutations:
            print(f"{mutation.name:<56} {mutation.file}{' (C++)' if mutation.build else ''}")
        return 1 if wrong_texts(mutations, options.tree) else 0
    return run_all(mutations, options)


if __name__ == "__main__":
    raise SystemExit(main())
