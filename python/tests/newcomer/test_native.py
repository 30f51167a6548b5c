"""A path and an application come by the steps of CONTRIBUTING.md, one step after the other: before each step something
fails, and what it says names what the step is for.

The path of the newcomer reads and writes by preadv and pwritev, and passes the conformance kit; the application sums
what it reads. CMake is configured for the copy of the tree. Of its build are made only the objects that a step changes:
the rest of the library is the one that is installed.
"""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from newcomer import Newcomer, copy_sources, run

import penstock

BUILD, STYLE = "build/newcomer", "python/penstock_bench/engine/style.py"
PACKAGE, LIBRARY = Path(str(penstock.__file__)).parent, "libpenstock.so.0"
LIBRARY_OBJECTS = "CMakeFiles/penstock_objects.dir/src"
TABLE = (f"{LIBRARY_OBJECTS}/base/types.cpp.o", f"{LIBRARY_OBJECTS}/path/factory.cpp.o")  # what reads the rows
TOY = f"{LIBRARY_OBJECTS}/path/toy.cpp.o"
KIT = (
    "src/path/CMakeFiles/path_test.dir/path_test.cpp.o",
    *(
        f"tests/support/CMakeFiles/penstock_test_support.dir/decorators/{name}.cpp.o"
        for name in ("count", "delay", "fault", "throttle", "trace")
    ),
)
GOOGLETEST = ("-lgtest", "-lgtest_main")
ASKED = (f"{LIBRARY_OBJECTS}/policy/shapes.cpp.o", f"{LIBRARY_OBJECTS}/context/survey/system.cpp.o")
PATH_SOURCE = """// The toy path: preadv and pwritev through the page cache, one operation at a time.
#include <sys/uio.h>

#include <cerrno>

#include "base/path_traits.hpp"
#include "path/check.hpp"
#include "path/make.hpp"
#include "path/ready.hpp"

namespace penstock::path {
namespace {

class ToyPath final : public Path {
  public:
    ToyPath() {
        capabilities_.kind = PathKind::toy;
        capabilities_.bypasses_cache = bypasses_cache(PathKind::toy);
    }
    const Capabilities& capabilities() const noexcept override { return capabilities_; }
    std::size_t submit(std::span<const Operation> operations) override {
        if (operations.empty() || !ready_.empty()) return 0;
        ready_.push(moved(operations.front()));
        return 1;
    }
    std::size_t reap(std::span<Completion> completions, Deadline) override { return ready_.pop(completions); }

  private:
    Completion moved(const Operation& operation) const {
        const Completion refused = check(operation, capabilities_);
        if (refused.status != ErrorCode::ok) return refused;
        const iovec piece{operation.memory, operation.bytes};
        const auto move = operation.direction == Direction::read ? ::preadv : ::pwritev;
        const ssize_t count =
            move(operation.file->buffered_fd, &piece, 1, static_cast<off_t>(operation.offset_bytes));
        return completion_of(operation.tag, count < 0 ? -errno : count);
    }

    Capabilities capabilities_;
    Ready ready_;
};

}  // namespace

std::unique_ptr<Path> make_toy(PathKind, const PathOptions&) { return std::make_unique<ToyPath>(); }

}  // namespace penstock::path
"""

# The plan that the policy makes for the path, and what the survey says of it.
ASKS = """#include <cstdio>

#include "context/survey/item.hpp"
#include "policy/shapes.hpp"

int main() {
    using namespace penstock;
    policy::MachineFacts machine;
    machine.cpus = 2;
    const Shape shape = policy::default_shape(PathKind::toy, {}, machine, 64 * kMiB);
    std::printf("%u workers, chunks of %llu KiB\\n", shape.workers, shape.chunk_bytes / 1024ull);
    for (const auto& item : context::system_items(os::limits(), "")) std::printf("item %s\\n", item.name.c_str());
}
"""
SHAPE = """    } else if (path == PathKind::toy) {
        shape = copying_shape(request, machine);
        shape.workers = 1;
        shape.chunk_bytes = 2 * kMiB;
"""
ITEM = """SurveyItem toy_item() { return {"toy", SurveyState::yes, "preadv and pwritev are calls of every Linux", ""}; }

"""

APP = """// A toy application: sums the bytes of a file, which a path of that name reads into the device's memory.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::toy {

struct Sum {
    std::uint64_t value = 0;
    std::string path;  // that moved the bytes
};

// Throws Error.
Sum sum_of(const std::string& file, const std::string& path);

}  // namespace penstock::toy
"""

APP_SOURCE = """// See toy.hpp.
#include "toy/toy.hpp"

#include <numeric>
#include <vector>

#include "penstock/context.hpp"

namespace penstock::toy {

Sum sum_of(const std::string& file, const std::string& path) {
    const Context context({.device = "host"});
    const File opened = context.open(file);
    const Buffer buffer = context.allocate(opened.size_bytes());
    TransferOptions options;
    options.path = path_from_string(path).value();
    const Outcome outcome = opened.read(buffer.view(), 0, options);
    outcome.or_throw();
    std::vector<unsigned char> bytes(buffer.bytes());
    context.copy_to_host(bytes.data(), buffer.data(), bytes.size());
    return {std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}), outcome.evidence.path_name()};
}

}  // namespace penstock::toy
"""

APP_TEST = """// The toy application sums what a file holds, and says by which path it came.
#include "toy/toy.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace penstock::toy {
namespace {

TEST(Toy, sums_a_file_by_the_path_that_was_asked_for) {
    const std::string file = testing::TempDir() + "toy-sum.bin";
    std::ofstream(file, std::ios::binary) << std::string(3 << 20, '\\x02');
    const Sum found = sum_of(file, "buffered");
    EXPECT_EQ(found.value, std::uint64_t{6} << 20);
    EXPECT_EQ(found.path, "buffered");
}

}  // namespace
}  // namespace penstock::toy
"""

APP_BUILD = """# A toy application on Penstock's public headers.
add_library(penstock_toy STATIC EXCLUDE_FROM_ALL toy.cpp)
target_include_directories(penstock_toy PUBLIC ${PROJECT_SOURCE_DIR}/apps)
target_link_libraries(penstock_toy PUBLIC penstock)

penstock_test(toy_test toy_test.cpp)
if(TARGET toy_test)
  target_link_libraries(toy_test PRIVATE penstock_toy)
endif()
"""

MODULE_BUILD = """
if(PENSTOCK_PYTHON)
  penstock_python_module(_toy penstock/toy python/module.cpp)
  target_link_libraries(_toy PRIVATE penstock_toy)
endif()
"""
MODULE = """// The module penstock.toy._toy: the toy application in Python. The calling thread reads without the GIL.
#include "python/shared/binding.hpp"
#include "python/shared/join.hpp"
#include "toy/toy.hpp"

NB_MODULE(_toy, module) {
    penstock::python::join_core("penstock.toy._toy");
    module.def("sum_of", [](const std::string& file, const std::string& path) {
        const penstock::python::GilReleased release;
        return penstock::toy::sum_of(file, path).value;
    });
}
"""
PACKAGE_OF_APP = '''"""A toy application: sums the bytes of a file."""

from penstock._extras import left_out

try:
    from penstock.toy._toy import sum_of
except ImportError as failure:
    raise left_out("penstock.toy._toy", failure) from None

__all__ = ["sum_of"]
'''
STUB = '''"""Types of the compiled module of the toy application. Private: use the names of the package penstock.toy."""

def sum_of(file: str, path: str, /) -> int: ...
'''


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    if shutil.which("g++") is None:
        pytest.skip("no compiler")
    pytest.importorskip("nanobind")
    if not (PACKAGE / "lib" / LIBRARY).exists():
        pytest.skip("no library is installed")
    place = copy_sources(tmp_path_factory.mktemp("tree"))
    options = [f"-DPENSTOCK_{name}" for name in ("CUDA=OFF", "PYTHON=ON", "TESTS=ON", "GROUPS=OFF", "PCH=OFF")]
    kind = ("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DCMAKE_OPTIMIZE_DEPENDENCIES=ON")
    python = f"-DPython_EXECUTABLE={sys.executable}"
    made = run(place, "cmake", "-S", ".", "-B", BUILD, "-G", "Ninja", *options, *kind, python)
    assert made.returncode == 0, made.stdout
    if "tests on" not in made.stdout:
        pytest.skip("no GoogleTest")
    yield place
    shutil.rmtree(place)


def built(tree: Path, *targets: str) -> subprocess.CompletedProcess[str]:
    return run(tree, "cmake", "--build", BUILD, "-j", "2", "--target", *targets)


def linked(tree: Path, program: str, *objects: str) -> subprocess.CompletedProcess[str]:
    """A program of objects of the build, and of what is installed."""
    library = PACKAGE / "lib" / LIBRARY
    made = [one if one.startswith("-l") else tree / BUILD / one for one in objects]
    return run(tree, "g++", *made, library, f"-Wl,-rpath,{library.parent}", "-pthread", "-o", tree / BUILD / program)


def need_red(ran: subprocess.CompletedProcess[str], said: str) -> None:
    assert ran.returncode != 0, ran.stdout
    assert re.search(said, ran.stdout), ran.stdout[-4000:]


def need_green(ran: subprocess.CompletedProcess[str]) -> None:
    assert ran.returncode == 0, ran.stdout[-4000:]


def add_value(newcomer: Newcomer) -> None:
    types = "include/penstock/types.hpp"
    value = "    toy,            // preadv and pwritev\n"
    newcomer.at(1).inserts(types, value, before="};\ninline constexpr std::size_t kPath")
    newcomer.at(1).counts_one_more(types, "kPathKinds")


def add_row(newcomer: Newcomer) -> None:
    rows = "src/base/path_traits.hpp"
    last = '    row(gds_stream,     "gds-stream",     none,       cufile, false,    cufile_path)'
    row = '    row(toy,            "toy",            through,    plain,  false,    toy)'
    newcomer.at(2).replaces(rows, last, f"{last}  \\\n{row}")


def add_source(newcomer: Newcomer) -> None:
    newcomer.at(3).writes("src/path/toy.cpp", PATH_SOURCE)
    newcomer.at(3).replaces("src/path/CMakeLists.txt", "null.cpp posix.cpp\n", "null.cpp posix.cpp toy.cpp\n")


def add_case(newcomer: Newcomer) -> None:
    line = '        cases.push_back(on_files("toy_" + place, PathKind::toy, folder));\n'
    before = '        cases.push_back(on_files("mmap_" + place'
    newcomer.at(4).inserts("src/path/path_test.cpp", line, before=before)


def add_shape(newcomer: Newcomer) -> None:
    before = "    } else if (traits_of(path).family == PathFamily::queue) {\n"
    newcomer.at(5).inserts("src/policy/shapes.cpp", SHAPE, before=before)


def add_item(newcomer: Newcomer) -> None:
    survey = "src/context/survey/system.cpp"
    newcomer.at(6).inserts(survey, ITEM, before="SurveyItem cachestat_item(")
    newcomer.at(6).inserts(survey, "toy_item(), ", before="io_uring_item(limits, root), ")


def add_to_pages(newcomer: Newcomer) -> None:
    newcomer.at(7).inserts("docs/guide/paths.md", "| `toy` | a toy |\n", before="| `gds`, `gds-compat`, ")
    grid = "python/penstock_bench/suites/grid/grid.toml"
    newcomer.at(7).inserts(grid, '"toy", ', before='"gds", "gds-compat", "gds-batch", "gds-stream"]')
    newcomer.at(7).inserts(STYLE, '    "toy": Mark(BLUE, "*"),\n', before='    "plain": Mark(')


def kit_of_paths(tree: Path) -> subprocess.CompletedProcess[str]:
    need_green(built(tree, *TABLE, *KIT, TOY))
    need_green(linked(tree, "path_test", *TABLE, *KIT, TOY, *GOOGLETEST))
    return run(tree, tree / BUILD / "path_test", "--gtest_filter=*toy*", TEST_TMPDIR=str(tree / BUILD))


def asked(tree: Path) -> str:
    """What the witness prints."""
    (tree / BUILD / "asks.cpp").write_text(ASKS)
    includes = ("-I", tree / "include", "-I", tree / "src")
    need_green(run(tree, "g++", "-std=c++20", "-O0", "-c", *includes, f"{BUILD}/asks.cpp", "-o", f"{BUILD}/asks.o"))
    need_green(built(tree, *TABLE, *ASKED))
    need_green(linked(tree, "asks", "asks.o", *TABLE, *ASKED, TOY))
    said = run(tree, tree / BUILD / "asks")
    need_green(said)
    return said.stdout


def test_a_path_comes_step_by_step(tree: Path) -> None:
    newcomer = Newcomer("Add a path: a way to move bytes", "toy", tree)
    add_value(newcomer)
    need_red(built(tree, *TABLE), r"path_traits[.]hpp:\d+:.*static assertion failed")
    add_row(newcomer)
    need_green(built(tree, *TABLE, *KIT))
    need_red(linked(tree, "path_test", *TABLE, *KIT, *GOOGLETEST), r"undefined reference to `penstock::path::make_toy")
    need_red(built(tree, TOY), "unknown target")
    add_source(newcomer)
    assert "0 tests from 0 test suites ran" in kit_of_paths(tree).stdout
    add_case(newcomer)
    passed = kit_of_paths(tree)
    need_green(passed)
    assert re.search(r"PASSED  \] 18 tests", passed.stdout), passed.stdout
    before = asked(tree)
    add_shape(newcomer)
    add_item(newcomer)
    after = asked(tree)
    for said in ("1 workers, chunks of 2048 KiB", "item toy"):
        assert (said in before, said in after) == (False, True), after
    add_to_pages(newcomer)
    style = runpy.run_path(str(tree / STYLE))
    assert style["PATHS"]["toy"] == style["Mark"](style["BLUE"], "*")
    assert newcomer.has_taken_all()


def of_law(tree: Path) -> list[str]:
    """What the law of the tree says of what was added, the path too."""
    said = run(tree, sys.executable, "tools/tidy.py").stdout
    assert "tidy: " in said, said
    return [line for line in said.splitlines() if "toy" in line]


def test_an_application_comes_step_by_step(tree: Path) -> None:
    newcomer = Newcomer("Add an application", "toy", tree)
    at = newcomer.at(1)
    for name, text in (("CMakeLists.txt", APP_BUILD), ("toy.hpp", APP), ("toy.cpp", APP_SOURCE)):
        at.writes(f"apps/toy/{name}", text)
    need_red(built(tree, "penstock_toy"), "unknown target 'penstock_toy'")
    newcomer.at(2).inserts("CMakeLists.txt", "  add_subdirectory(apps/toy)\n", before="  add_subdirectory(apps/vfd)\n")
    need_red(built(tree, "penstock_toy"), "toy_test.cpp")
    newcomer.at(1).writes("apps/toy/toy_test.cpp", APP_TEST)
    own_test = "apps/toy/CMakeFiles/toy_test.dir/toy_test.cpp.o"
    need_green(built(tree, "penstock_toy", own_test))
    need_green(linked(tree, "toy_test", own_test, "apps/toy/libpenstock_toy.a", *GOOGLETEST))
    need_green(run(tree, tree / BUILD / "toy_test", TEST_TMPDIR=str(tree / BUILD)))
    assert "toy_test" in run(tree, "ctest", "--test-dir", BUILD, "-N").stdout
    add_python(newcomer)
    need_green(built(tree, "apps/toy/CMakeFiles/_toy.dir/python/module.cpp.o"))
    assert newcomer.has_taken_all()
    assert of_law(tree) == []


def add_python(newcomer: Newcomer) -> None:
    at = newcomer.at(3)
    at.inserts("apps/toy/CMakeLists.txt", MODULE_BUILD, before="\npenstock_test(toy_test")
    at.writes("apps/toy/python/module.cpp", MODULE)
    at.writes("python/penstock/toy/__init__.py", PACKAGE_OF_APP)
    at.writes("python/penstock/toy/_toy.pyi", STUB)
    assert "penstock.toy belongs to no layer" in " ".join(of_law(newcomer.tree))
    at.inserts(
        "tools/law/layers.py", '"penstock.toy", "penstock.toy.*", ', before='"penstock.nbody", "penstock.nbody.*"],'
    )
    at.inserts("tools/mutate.py", '"penstock/toy", ', before='"penstock_bench")\n    places =')
