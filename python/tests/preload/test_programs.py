"""Programs in C, C++, Fortran and Python, as people write them: the same files and the same output with the library.

It saw all bytes of their large calls. Each writes to its first word and reads that back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from c_abi import preload_rig as rig

FORTRAN = """
program write_and_read
  implicit none
  integer, parameter :: n = {n}, records = {records}
  real(8), allocatable :: x(:), y(:)
  character(len=1000) :: name
  integer :: u, i, k
  call get_command_argument(1, name)
  allocate(x(n), y(n))
  open(newunit=u, file=trim(name), status='replace', {how})
  do i = 1, records
    do k = 1, n
      x(k) = dble(i) + 0.5d0 * k
    end do
    write(u{at}) x
    wait(u)
  end do
  close(u)
  open(newunit=u, file=trim(name), status='old', {how})
  do i = 1, records
    y = 0
    read(u{at}) y
    wait(u)
    do k = 1, n
      if (y(k) /= dble(i) + 0.5d0 * k) stop 1
    end do
  end do
  close(u)
  print *, sum(y)
end program
"""


def fortran(how: str, n: int, records: int, at: str = "") -> tuple[str, str]:
    return ".f90", FORTRAN.format(how=how, n=n, records=records, at=at)


C_STDIO = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char** words) {
    static char line[1 << 20], found[1 << 20];
    FILE* file = fopen(words[1], "wb+");
    for (int i = 0; i < 24; ++i) {
        memset(line, i + 1, sizeof line);
        if (fwrite(line, 1, sizeof line, file) != sizeof line) return 1;
        fprintf(file, "%d\n", i);
    }
    rewind(file);
    for (int i = 0, k; i < 24; ++i) {
        memset(line, i + 1, sizeof line);
        if (fread(found, sizeof line, 1, file) != 1 || memcmp(line, found, sizeof line)) return 2;
        if (fscanf(file, "%d", &k) != 1 || k != i || fgetc(file) != '\n') return 3;
    }
    if (fgetc(file) != EOF || !feof(file) || fclose(file)) return 4;
    puts("done");
    return count != 2;
}
"""
C_POSIX = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char** words) {
    static char piece[65536], found[65536];
    int fd = open(words[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 400; ++i) {
        memset(piece, i % 251, sizeof piece);
        if (write(fd, piece, sizeof piece) != sizeof piece) return 1;
    }
    if (fsync(fd) || lseek(fd, 0, SEEK_SET)) return 2;
    for (int i = 0; i < 400; ++i) {
        memset(piece, i % 251, sizeof piece);
        if (read(fd, found, sizeof found) != sizeof found || memcmp(piece, found, sizeof found)) return 3;
    }
    puts("done");
    return close(fd) || count != 2;
}
"""
CXX = r"""
#include <fstream>
#include <iostream>
#include <vector>
int main(int, char** words) {
    std::vector<double> x(1 << 20), y(1 << 20);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.25 * static_cast<double>(i);
    const auto data = reinterpret_cast<char*>(x.data());
    {
        std::ofstream out(words[1], std::ios::binary);
        for (int i = 0; i < 3; ++i) out.write(data, static_cast<long>(x.size() * 8)) << "text " << i << '\n';
    }
    std::ifstream in(words[1], std::ios::binary);
    std::string text;
    for (int i = 0; i < 3; ++i) {
        in.read(reinterpret_cast<char*>(y.data()), static_cast<long>(y.size() * 8));
        std::getline(in, text);
        if (x != y || text != "text " + std::to_string(i)) return 1;
    }
    std::cout << text << std::endl;
}
"""
NUMPY = """
import sys
import numpy
x = numpy.arange(3e6).reshape(1000, 3000)
numpy.save(open(sys.argv[1], "wb"), x)
y = numpy.load(open(sys.argv[1], "rb"))
x.tofile(sys.argv[1] + ".raw")
z = numpy.fromfile(sys.argv[1] + ".raw")
assert (x == y).all() and (x.ravel() == z).all() and (numpy.memmap(sys.argv[1] + ".raw", "f8") == z).all()
print(z.sum())
"""
H5PY = """
import sys
import h5py, numpy
x = numpy.arange(3e6)
with h5py.File(sys.argv[1], "w") as f:
    f.create_dataset("x", data=x)
    f.create_dataset("chunks", data=x.reshape(3000, 1000), chunks=(500, 1000))
with h5py.File(sys.argv[1]) as f:
    assert (f["x"][:] == x).all() and (f["chunks"][:].ravel() == x).all()
print(x.sum())
"""
NETCDF = """
import sys
import netCDF4, numpy
x = numpy.arange(3e6)
with netCDF4.Dataset(sys.argv[1], "w", format="NETCDF3_64BIT_OFFSET") as f:
    f.createDimension("n", x.size)
    f.createVariable("x", "f8", ("n",))[:] = x
with netCDF4.Dataset(sys.argv[1]) as f:
    assert (f["x"][:] == x).all()
print(x.sum())
"""
PROGRAMS = {
    "fortran-stream": fortran("form='unformatted', access='stream'", 1 << 20, 3),
    "fortran-sequential-8MiB": fortran("form='unformatted', access='sequential'", 1 << 20, 3),
    "fortran-sequential-4KiB": fortran("form='unformatted', access='sequential'", 512, 6000),
    "fortran-direct": fortran("form='unformatted', access='direct', recl=1048576", 131072, 24, ", rec=i"),
    "fortran-asynchronous": fortran(
        "form='unformatted', access='stream', asynchronous='yes'", 1 << 20, 3, ", asynchronous='yes'"
    ),
    "fortran-formatted": fortran("form='formatted'", 1000, 500, ", '(5g25.16)'"),
    "flang-stream": fortran("form='unformatted', access='stream'", 1 << 20, 3),
    "flang-sequential-8MiB": fortran("form='unformatted', access='sequential'", 1 << 20, 3),
    "flang-direct": fortran("form='unformatted', access='direct', recl=1048576", 131072, 24, ", rec=i"),
    "flang-formatted": fortran("form='formatted'", 1000, 500, ", '(5g25.16)'"),
    "c-stdio": (".c", C_STDIO),
    "c-posix": (".c", C_POSIX),
    "c++-iostreams": (".cpp", CXX),
    "numpy": (".py", NUMPY),
    "h5py": (".py", H5PY),
    "netCDF4": (".py", NETCDF),
}
NEEDS = {"h5py": "h5py", "netCDF4": "netCDF4"}
ONE_CALL = ("numpy",)  # and then close: nothing is left to begin early


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_it_did(name: str, tmp_path: Path) -> None:
    suffix, text = PROGRAMS[name]
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    by = rig.FLANG if name.startswith("flang") else ()
    words = [sys.executable, "-c", text] if suffix == ".py" else [str(rig.compiled(suffix, text, *by))]
    file = tmp_path / "file"
    without = rig.plain(*words, file)
    assert without.code == 0, without.err
    bytes_without = file.read_bytes()
    early = 0
    for _ in range(3):  # the threads that ask need a core beside the program: one run of three had one
        row = with_the_library(words, file, (without.out, without.err), bytes_without)
        seen = 0.95 if name != "fortran-formatted" else 0.9
        for way in ("written", "read"):
            assert row[way]["bytes"] >= seen * len(bytes_without), (way, row)
        early = max(early, row["written"]["early_writeback_bytes"])
        if row["written"]["why"] == rig.IN_MEMORY or name in ONE_CALL or early >= 0.5 * len(bytes_without):
            return
    pytest.fail(f"{early} of {len(bytes_without)} bytes were asked for early: {row}")


def with_the_library(words: list[str], file: Path, said: tuple[str, str], content: bytes) -> dict[str, Any]:
    """What the report tells of the file. The program says and writes what it did without."""
    report = file.with_name("report.json")
    done = rig.plain(*words, file, env=rig.preloaded(PENSTOCK_RUN_REPORT=str(report)))
    assert (done.code, done.out, done.err) == (0, *said)
    assert file.read_bytes() == content
    (row,) = [row for row in json.loads(report.read_text())["files"] if row["name"] == str(file)]
    return row
