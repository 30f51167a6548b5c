"""What the library leaves as it is: how a process ends, its locale, errno, places in streams, calls of one thread."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from c_abi import preload_rig as rig

WRITES = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>
static char piece[1 << 20];
static void write_much(const char* name) {
    int to = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 20; ++i) {
        if (write(to, piece, sizeof piece) != sizeof piece) exit(3);
    }
    close(to);
}
"""

ENDS = (
    WRITES
    + r"""
static const char* name;
static pthread_barrier_t both;
static pthread_t main_thread;
static int cancels;
static void* work(void* first) {
    if (first != NULL) write_much(name);  /* the library has threads when the main one ends */
    pthread_barrier_wait(&both);
    if (cancels) pthread_cancel(main_thread);
    write_much(name);
    puts("done");
    return NULL;
}
int main(int count, char** words) {
    pthread_t thread;
    name = words[1];
    main_thread = pthread_self();
    cancels = strchr(words[2], 'c') != NULL;
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, work, strchr(words[2], 'f'));
    pthread_detach(thread);
    pthread_barrier_wait(&both);
    while (cancels) pause();
    if (strchr(words[2], 't') != NULL) thrd_exit(0);
    pthread_exit(count == 0 ? words : NULL);
}
"""
)


@pytest.mark.parametrize("way", ["first", "later", "thrd", "first thrd", "first cancel"])
def test_a_process_ends_with_the_last_thread_of_its_program(tmp_path: Path, way: str) -> None:
    program = rig.compiled(".c", ENDS)
    short = {"later": "l", "first": "f", "thrd": "t", "first thrd": "ft", "first cancel": "fc"}[way]
    for _ in range(3):
        done = rig.under(program, tmp_path / "file", short, options=("--least", "1MiB"))
        assert (done.code, done.out) == (0, "done\n")
        assert (tmp_path / "file").stat().st_size == 20 << 20


NAMESPACE = (
    WRITES
    + r"""
int main(int count, char** words) {
    write_much(words[1]);
    if (unshare(CLONE_NEWUSER) != 0) return errno;
    write_much(words[1]);
    return count != 2;
}
"""
)


def test_a_process_may_leave_its_namespace(tmp_path: Path) -> None:
    program = rig.compiled(".c", NAMESPACE)
    stock = rig.plain(program, tmp_path / "file")
    if stock.code != 0:
        pytest.skip(f"unshare says {os.strerror(stock.code)} here")
    done = rig.under(program, tmp_path / "file", options=("--least", "1MiB"))
    assert done.code == 0
    if done.file("file")["written"]["why"] != rig.IN_MEMORY:
        assert done.report is not None and done.report["threads"] > 0  # they came back


ALONE = (
    WRITES
    + r"""
int main(int count, char** words) {
    for (int round = 0; round < 100; ++round) {
        write_much(words[1]);
        if (unshare(CLONE_THREAD) != 0) return errno;  // does nothing, where the process is of one thread
    }
    return count != 2;
}
"""
)


def test_threads_that_ended_are_gone_for_the_kernel_too(tmp_path: Path) -> None:
    done = rig.under(rig.compiled(".c", ALONE), tmp_path / "file", options=("--least", "1MiB"))
    assert done.code == 0


FORBIDS = (
    WRITES
    + r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
static struct sock_filter steps[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}, {BPF_JMP | BPF_JEQ | BPF_K, 3, 0, SYS_read},
    {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_write}, {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_exit},
    {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
static struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
static int strict(void) { return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); }
static int filtered(void) {  /* as libseccomp does it */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}
int main(int count, char** words) {
    write_much(words[1]);
    int to = open(words[1], O_RDWR);
    if ((*words[2] == 's' ? strict() : filtered()) != 0) return errno;  /* read, write and exit are left */
    for (int i = 0; i < 20; ++i) {
        if (write(to, piece, sizeof piece) != sizeof piece) syscall(SYS_exit, 3);
    }
    syscall(SYS_exit, read(to, piece, sizeof piece) == 0 && count == 3 ? 0 : 4);
}
"""
)


@pytest.mark.parametrize("options", [(), ("--durable",)])
@pytest.mark.parametrize("way", ["strict", "filtered"])
def test_a_program_that_gives_up_system_calls_lives(way: str, options: tuple[str, ...], tmp_path: Path) -> None:
    words = (rig.compiled(".c", FORBIDS), tmp_path / "file", way)
    stock = rig.plain(*words)
    if stock.code != 0:
        pytest.skip(f"seccomp says {os.strerror(stock.code)} here")
    done = rig.under(*words, options=("--least", "1MiB", *options))
    assert done.code == 0
    assert done.file("file")["written"]["bytes"] == 20 << 20  # up to there


STREAMS = r"""
#include <errno.h>
#include <stdio.h>
#include <string.h>
int main(void) {
    static char text[3000], got[4096];
    char* made;
    size_t size;
    memset(text, 'a', sizeof text);
    FILE* stream = fmemopen(text, sizeof text, "r");
    errno = 0;
    if (fread(got, 1, sizeof got, stream) != 3000 || errno != 0) return 1;
    if (fclose(stream) != 0 || errno != 0) return 2;
    stream = open_memstream(&made, &size);
    if (fwrite(got, 1, 3000, stream) != 3000 || errno != 0) return 3;
    if (fclose(stream) != 0 || errno != 0) return 4;
    return 0;
}
"""


@pytest.mark.parametrize("options", [(), ("--durable",)])
def test_errno_of_streams_of_memory(options: tuple[str, ...]) -> None:
    program = rig.compiled(".c", STREAMS)
    assert rig.plain(program).code == 0
    assert rig.under(program, options=options).code == 0


READS_TWO_LINES = r"""
#include <stdio.h>
int main(void) {
    char line[100];
    if (!fgets(line, sizeof line, stdin) || !fgets(line, sizeof line, stdin)) return 1;
    return fclose(stdin);
}
"""


def test_a_stream_that_only_reads_stays_where_it_is(tmp_path: Path) -> None:
    program = rig.compiled(".c", READS_TWO_LINES)
    (tmp_path / "lines").write_text("".join(f"{number}\n" for number in range(3000)))
    places = []
    for run in (
        lambda **more: rig.plain(program, **more),
        lambda **more: rig.under(program, options=("--durable",), **more),
    ):
        with (tmp_path / "lines").open("rb", buffering=0) as lines:
            assert run(stdin=lines).code == 0
            places.append(os.lseek(lines.fileno(), 0, os.SEEK_CUR))
    assert places[0] == places[1]


@pytest.mark.parametrize(("name", "value"), [("LC_CTYPE", None), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")])
def test_the_locale_is_as_it_was_given(name: str, value: str | None) -> None:
    plain = {key: one for key, one in os.environ.items() if key not in ("LC_ALL", "LC_CTYPE", "LANG")}
    given = plain | ({} if value is None else {name: value})
    show = ["sh", "-c", "printf '%s' \"${LC_CTYPE-none}\"; printf '\\303\\251' | wc -m"]
    assert rig.under(*show, env=given).out == rig.plain(*show, env=given).out


REUSED = (
    WRITES
    + r"""
int main(int count, char** words) {
    for (int i = 1; i < count; ++i) {
        write_much(words[i]);
        if (i + 1 < count) unlink(words[i]);
        struct timespec moment = {0, 20000000};  /* a tick of the clock of the file system */
        thrd_sleep(&moment, NULL);
    }
    return 0;
}
"""
)


def test_a_file_that_gets_the_number_of_a_removed_one_is_told_apart(tmp_path: Path) -> None:
    program = rig.compiled(".c", REUSED)
    names = [tmp_path / f"file{number}" for number in range(4)]
    done = rig.under(program, *names, options=("--least", "1MiB"))
    assert done.code == 0
    for name in names:
        assert done.file(name)["written"]["bytes"] == 20 << 20
