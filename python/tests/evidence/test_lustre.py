"""Files of a simulation on a file system that says it is Lustre: they are whole, and no call sets stripes; doctor tells
those of a folder. A library makes them up, by answers to fstatfs and getxattr; no Lustre is here. It does not tell what
a real one does."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from c_abi.compilers import works

pytestmark = pytest.mark.skipif(not works("cc"), reason="there is no C compiler")
LIMIT_S = 60
# Stripes are set by an ioctl of the letter f whose numbers begin at 150 or so, or by an extended attribute.
LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static void tell(const char* what) {
    const int fd = open(getenv("ASKED"), O_WRONLY | O_APPEND);
    if (write(fd, what, strlen(what)) < 0) abort();
    close(fd);
}
int fstatfs(int fd, struct statfs* to) {
    static int told;
    int (*const real)(int, struct statfs*) = (int (*)(int, struct statfs*))dlsym(RTLD_NEXT, "fstatfs");
    const int code = real(fd, to);
    if (code == 0) to->f_type = 0x0BD00BD0;
    if (!told++) tell("lustre\\n");
    return code;
}
int ioctl(int fd, unsigned long request, ...) {
    int (*const real)(int, unsigned long, void*) = (int (*)(int, unsigned long, void*))dlsym(RTLD_NEXT, "ioctl");
    va_list more;
    va_start(more, request);
    void* const argument = va_arg(more, void*);
    va_end(more);
    if ((request >> 8 & 0xff) == 'f' && (request & 0xff) >= 128) tell("ioctl\\n");
    return real(fd, request, argument);
}
int fsetxattr(int fd, const char* name, const void* value, size_t bytes, int flags) {
    int (*const real)(int, const char*, const void*, size_t, int) =
        (int (*)(int, const char*, const void*, size_t, int))dlsym(RTLD_NEXT, "fsetxattr");
    tell("fsetxattr\\n");
    return real(fd, name, value, bytes, flags);
}
ssize_t getxattr(const char* path, const char* name, void* value, size_t bytes) {
    ssize_t (*const real)(const char*, const char*, void*, size_t) =
        (ssize_t (*)(const char*, const char*, void*, size_t))dlsym(RTLD_NEXT, "getxattr");
    const char* const layout = getenv("LAYOUT"); /* in hexadecimal digits */
    if (layout == NULL || strcmp(name, "lustre.lov") != 0) return real(path, name, value, bytes);
    const size_t there = strlen(layout) / 2;
    if (there > bytes) return errno = ERANGE, -1;
    for (size_t i = 0; i < there; ++i) {
        const char digits[] = {layout[2 * i], layout[2 * i + 1], 0};
        ((unsigned char*)value)[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return (ssize_t)there;
}
int setxattr(const char* path, const char* name, const void* value, size_t bytes, int flags) {
    int (*const real)(const char*, const char*, const void*, size_t, int) =
        (int (*)(const char*, const char*, const void*, size_t, int))dlsym(RTLD_NEXT, "setxattr");
    tell("setxattr\\n");
    return real(path, name, value, bytes, flags);
}
"""
MODEL = """
import sys
import numpy as np
import penstock
folder, field = sys.argv[1], np.arange(200_000, dtype="f4")
for form in ("cdf5", "netcdf4", "zarr", "raw"):
    with penstock.History(f"{folder}/{form}", format=form, device="host") as history:
        history.define("T", ("x",), like=field)
        for step in range(3):
            history.put("T", field + step)
            history.end_step(step)
    with penstock.open(f"{folder}/{form}", device="host", format="raw-history" if form == "raw" else None) as file:
        assert np.array_equal(file["T"].read().to_numpy(), [field, field + 1, field + 2]), form
penstock.Snapshot(f"{folder}/s.hdf5", {"x": field}, device="host").write()
with penstock.open(f"{folder}/s.hdf5", device="host") as file:
    assert np.array_equal(file["x"].read().to_numpy(), field)
penstock.Restart(f"{folder}/r", device="host").write({"x": field})
again, restart = np.zeros_like(field), penstock.Restart(f"{folder}/r", device="host")
assert restart.find()
restart.read({"x": again})
assert np.array_equal(again, field)
"""


def made_up(folder: Path) -> dict[str, str]:
    """Variables of the environment of a process that takes the folder's file system for Lustre."""
    library, asked = folder / "lustre.so", folder / "asked"
    (folder / "lustre.c").write_text(LIBRARY)
    command = ["cc", "-shared", "-fPIC", "-o", str(library), str(folder / "lustre.c"), "-ldl"]
    subprocess.run(command, check=True)
    asked.touch()
    return {**os.environ, "LD_PRELOAD": str(library), "ASKED": str(asked)}


def test_files_are_whole_and_no_stripes_are_set(tmp_path: Path) -> None:
    environment, files = made_up(tmp_path), tmp_path / "files"
    files.mkdir()
    command = [sys.executable, "-c", MODEL, str(files)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text()
    assert asked == "lustre\n", "the library was asked for the name, and for nothing else"


def stripes(folder: Path, environment: dict[str, str]) -> list[tuple[str, str]]:
    """What doctor says of them."""
    command = [sys.executable, "-m", "penstock", "doctor", str(folder), "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    items = json.loads(done.stdout)["items"]
    return [(item["state"], item["detail"]) for item in items if item["name"] == "stripes"]


def test_doctor_tells_the_stripes_of_a_folder(tmp_path: Path) -> None:
    environment = made_up(tmp_path)
    plain = struct.pack("<II16sIHH", 0x0BD10BD0, 1, b"", 4 << 20, 8, 0)
    first = struct.pack("<II16sIHH", 0x0BD10BD0, 0x100, b"", 1 << 20, 0, 0)  # small files: on the metadata server
    last = struct.pack("<II16sIHH16s", 0x0BD30BD0, 1, b"", 16 << 20, 0xFFFF, 0, b"pool")
    parts = struct.pack("<IIIHH16x", 0x0BD60BD0, 0, 0, 0, 2)
    parts += struct.pack("<IIQQII16x", 1, 0x10, 0, 1 << 20, 128, len(first))
    parts += struct.pack("<IIQQII16x", 2, 0, 1 << 20, 2**64 - 1, 160, len(last)) + first + last
    assert stripes(tmp_path, environment | {"LAYOUT": plain.hex()}) == [("yes", "stripes of 4 MiB over 8 OSTs")]
    whole = "stripes of 16 MiB over all OSTs at the end of a file, whose layout has 2 parts"
    assert stripes(tmp_path, environment | {"LAYOUT": parts.hex()}) == [("yes", whole)]
    for damaged in (plain[:-1], parts[:-1], b""):
        unknown = ("partly", "a layout that Penstock does not know")
        assert stripes(tmp_path, environment | {"LAYOUT": damaged.hex()}) == [unknown]
    ((state, detail),) = stripes(tmp_path, environment)  # this file system has no such attribute
    assert state == "partly" and detail.startswith(("not told: ", "no layout of its own"))
    assert stripes(tmp_path, dict(os.environ)) == []  # under its own name
