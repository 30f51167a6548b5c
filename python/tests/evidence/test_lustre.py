"""Files of a simulation on a file system that says it is Lustre: they are whole, and no call asks for stripes. The name
is made up, by a library that answers fstatfs; no Lustre is here. It does not tell what a real one does."""

from __future__ import annotations

import os
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


def test_files_are_whole_and_no_stripes_are_set(tmp_path: Path) -> None:
    library, asked, files = tmp_path / "lustre.so", tmp_path / "asked", tmp_path / "files"
    (tmp_path / "lustre.c").write_text(LIBRARY)
    command = ["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "lustre.c"), "-ldl"]
    subprocess.run(command, check=True)
    asked.touch()
    files.mkdir()
    environment = {**os.environ, "LD_PRELOAD": str(library), "ASKED": str(asked)}
    command = [sys.executable, "-c", MODEL, str(files)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert asked.read_text() == "lustre\n", "the library was asked for the name, and for nothing else"
