/* What breaks libraries that hold written bytes back or read ahead into memory of their own: one function a hazard, run
 * by name on a file to which 12 MiB were written in order. A wrong byte, size, offset or errno ends the program with 1
 * and a line. Run without a preloaded library it says what the kernel does; with one it must say the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE (1 << 20)
#define WRITTEN (12LL * PIECE)
#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, strerror(errno)); \
            exit(1); \
        } \
    } while (0)

static char* name;
static char piece[PIECE];

static char byte_at(long long at) { return (char)(at / PIECE * 7 + at % 251); }

static void fill(long long at) {
    for (int i = 0; i < PIECE; ++i) piece[i] = byte_at(at + i);
}

static int written(int flags) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | flags, 0644);
    CHECK(fd >= 0);
    for (long long at = 0; at < WRITTEN; at += PIECE) {
        fill(at);
        CHECK(write(fd, piece, PIECE) == PIECE);
    }
    return fd;
}

static void check_file(long long bytes) {
    struct stat status;
    CHECK(stat(name, &status) == 0 && status.st_size == bytes);
    int fd = open(name, O_RDONLY);
    static char found[PIECE];
    for (long long at = 0; at < bytes; at += PIECE) {
        long want = bytes - at < PIECE ? bytes - at : PIECE;
        CHECK(read(fd, found, want) == want);
        fill(at);
        CHECK(memcmp(found, piece, want) == 0);
    }
    CHECK(close(fd) == 0);
}

static long long size_seen_by_another(void) {
    char command[4096], text[64] = "";
    snprintf(command, sizeof command, "stat -c %%s '%s'", name);
    FILE* out = popen(command, "r");
    CHECK(fgets(text, sizeof text, out) != NULL);
    pclose(out);
    return atoll(text);
}

static void mapping(void) {
    int fd = written(0);
    char* all = mmap(NULL, WRITTEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(all != MAP_FAILED);
    for (long long at = 0; at < WRITTEN; at += 4099) CHECK(all[at] == byte_at(at));
    all[WRITTEN - 1] ^= 1;
    CHECK(pread(fd, piece, 1, WRITTEN - 1) == 1 && piece[0] == (char)(byte_at(WRITTEN - 1) ^ 1));
    all[WRITTEN - 1] ^= 1;
    CHECK(close(fd) == 0);
    check_file(WRITTEN);
}

static void size_before_close(void) {
    int fd = written(0);
    CHECK(size_seen_by_another() == WRITTEN);
    CHECK(close(fd) == 0);
}

static void fork_shares_the_offset(void) {
    int fd = written(0);
    pid_t child = fork();
    if (child == 0) {
        fill(WRITTEN);
        _exit(write(fd, piece, PIECE) == PIECE && close(fd) == 0 ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(lseek(fd, 0, SEEK_CUR) == WRITTEN + PIECE);
    fill(WRITTEN + PIECE);
    CHECK(write(fd, piece, PIECE) == PIECE && close(fd) == 0);
    check_file(WRITTEN + 2 * PIECE);
}

static void dup_shares_the_offset(void) {
    int fd = written(0);
    int others[] = {dup(fd), fcntl(fd, F_DUPFD, 100), fcntl(fd, F_DUPFD_CLOEXEC, 200), dup2(fd, 300),
        dup3(fd, 301, O_CLOEXEC)};
    long long at = WRITTEN;
    for (int i = 0; i < 5; ++i, at += PIECE) {
        fill(at);
        CHECK(write(others[i], piece, PIECE) == PIECE);
    }
    CHECK(lseek(fd, 0, SEEK_CUR) == at && close(fd) == 0);
    fill(at);
    CHECK(write(others[0], piece, PIECE) == PIECE);
    for (int i = 0; i < 5; ++i) CHECK(close(others[i]) == 0);
    CHECK(close(fd) == -1 && errno == EBADF);
    check_file(at + PIECE);
}

static void pieces(void) {
    int fd = written(0);
    fill(WRITTEN);
    struct iovec parts[] = {{piece, 3}, {piece + 3, 0}, {piece + 3, PIECE - 3}};
    CHECK(writev(fd, parts, 3) == PIECE);
    memset(piece, 0, PIECE);
    CHECK(preadv2(fd, parts, 3, WRITTEN, 0) == PIECE && piece[PIECE - 1] == byte_at(WRITTEN + PIECE - 1));
    CHECK(pwritev2(fd, parts, 3, WRITTEN, 0) == PIECE);
    CHECK(preadv(fd, parts, 3, 0) == PIECE && piece[9] == byte_at(9));
    CHECK(close(fd) == 0);
    check_file(WRITTEN + PIECE);
}

static void sends(void) {
    int fd = written(0), ends[2], got = 0;
    CHECK(pipe(ends) == 0);
    off_t at = WRITTEN - 1000;
    CHECK(sendfile(ends[1], fd, &at, 1000) == 1000);
    while (got < 1000) got += read(ends[0], piece + got, 1000 - got);
    for (int i = 0; i < 1000; ++i) CHECK(piece[i] == byte_at(WRITTEN - 1000 + i));
    loff_t from = 0, to = WRITTEN;
    long copied = copy_file_range(fd, &from, fd, &to, PIECE, 0);
    CHECK(copied == PIECE || errno == EXDEV || errno == ENOSYS || errno == EOPNOTSUPP);
    CHECK(ftruncate(fd, WRITTEN) == 0 && close(fd) == 0);
    check_file(WRITTEN);
}

static void appending(void) {
    int fd = written(0), more = open(name, O_WRONLY | O_APPEND);
    for (long long at = WRITTEN; at < WRITTEN + 4 * PIECE; at += PIECE) {
        fill(at);
        CHECK(write(at / PIECE % 2 ? more : fd, piece, PIECE) == PIECE);
        CHECK(lseek(fd, 0, SEEK_END) == at + PIECE);
    }
    CHECK(close(fd) == 0 && close(more) == 0);
    check_file(WRITTEN + 4 * PIECE);
}

static void seeks(void) {
    int fd = written(0);
    CHECK(lseek(fd, PIECE, SEEK_CUR) == WRITTEN + PIECE); /* a hole stays behind */
    fill(WRITTEN + PIECE);
    CHECK(write(fd, piece, PIECE) == PIECE && lseek(fd, -2 * PIECE, SEEK_END) == WRITTEN);
    CHECK(read(fd, piece, PIECE) == PIECE && piece[0] == 0 && piece[PIECE - 1] == 0);
    CHECK(lseek(fd, 3 * PIECE, SEEK_SET) == 3 * PIECE); /* into what was asked for early */
    memset(piece, '?', PIECE);
    CHECK(write(fd, piece, PIECE) == PIECE && pread(fd, piece, 1, 4 * PIECE - 1) == 1 && piece[0] == '?');
    for (long long at = 3 * PIECE; at <= WRITTEN; at += WRITTEN - 3 * PIECE) {
        fill(at);
        CHECK(lseek(fd, at, SEEK_SET) == at && write(fd, piece, PIECE) == PIECE);
        CHECK(lseek(fd, 0, SEEK_CUR) == at + PIECE);
    }
    CHECK(lseek(fd, -1, SEEK_SET) == -1 && errno == EINVAL && close(fd) == 0);
    check_file(WRITTEN + 2 * PIECE);
}

/* Another program in the place of this one goes on where the descriptor stands. */
static void executing(void) {
    CHECK(close(written(0)) == 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK(dup2(written(0), STDOUT_FILENO) == STDOUT_FILENO);
        execlp("printf", "printf", "behind", NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    int fd = open(name, O_RDWR);
    CHECK(pread(fd, piece, 7, WRITTEN) == 6 && memcmp(piece, "behind", 6) == 0);
    CHECK(ftruncate(fd, WRITTEN) == 0 && close(fd) == 0);
    check_file(WRITTEN);
}

static void other_sizes(void) {
    int fd = written(0);
    CHECK(posix_fallocate(fd, 0, WRITTEN + PIECE) == 0 && lseek(fd, 0, SEEK_END) == WRITTEN + PIECE);
    CHECK(truncate(name, 5 * PIECE) == 0 && lseek(fd, 0, SEEK_END) == 5 * PIECE);
    CHECK(pread(fd, piece, 1, 5 * PIECE) == 0);
    fill(5 * PIECE);
    CHECK(write(fd, piece, PIECE) == PIECE && close(fd) == 0);
    check_file(6 * PIECE);
}

static void renaming(void) {
    int fd = written(0);
    char other[4096];
    snprintf(other, sizeof other, "%s.renamed", name);
    CHECK(rename(name, other) == 0);
    fill(WRITTEN);
    CHECK(write(fd, piece, PIECE) == PIECE);
    CHECK(rename(other, name) == 0 && close(fd) == 0);
    check_file(WRITTEN + PIECE);
}

static void locking(void) {
    int fd = written(0), other = open(name, O_RDWR);
    CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0 && flock(other, LOCK_EX | LOCK_NB) == -1);
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK(fcntl(fd, F_SETLK, &all) == 0);
    fill(WRITTEN);
    CHECK(write(fd, piece, PIECE) == PIECE);
    pid_t child = fork();
    if (child == 0) {
        struct flock asked = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        _exit(fcntl(other, F_GETLK, &asked) == 0 && asked.l_type == F_WRLCK ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);  /* nothing was closed that drops the lock */
    CHECK(close(fd) == 0 && flock(other, LOCK_EX | LOCK_NB) == 0 && close(other) == 0);
    check_file(WRITTEN + PIECE);
}

static void killed(void) {
    pid_t child = fork();
    if (child == 0) {
        written(0);
        raise(SIGKILL);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    check_file(WRITTEN);
}

static void started_others(void) {
    int fd = written(0);
    char command[4096];
    snprintf(command, sizeof command, "cmp '%s' /proc/self/fd/%d", name, fd);
    CHECK(system(command) == 0);
    pid_t child = vfork();
    if (child == 0) {
        close(fd); /* in the parent's memory */
        execlp("true", "true", NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    fill(WRITTEN);
    CHECK(write(fd, piece, PIECE) == PIECE && close(fd) == 0);
    check_file(WRITTEN + PIECE);
}

static void numbers_come_back(void) {
    int fd = written(0), other = open("/dev/null", O_WRONLY);
    CHECK(dup2(other, fd) == fd); /* closes the file */
    CHECK(write(fd, piece, PIECE) == PIECE && lseek(fd, 0, SEEK_CUR) == 0);
    CHECK(close(fd) == 0 && close(other) == 0);
    check_file(WRITTEN);
    fd = written(0);
    CHECK(syscall(SYS_close, fd) == 0); /* unseen */
    int ends[2];
    CHECK(pipe(ends) == 0 && (ends[0] == fd || ends[1] == fd));
    CHECK(write(ends[1], "x", 1) == 1 && read(ends[0], piece, 1) == 1 && piece[0] == 'x');
    CHECK(close_range((unsigned)fd, ~0U, 0) == 0 && write(ends[1], "x", 1) == -1 && errno == EBADF);
    check_file(WRITTEN);
}

static volatile sig_atomic_t caught;
static int caught_fd;
static void catch(int number) {
    (void)number;
    char one;
    if (pread(caught_fd, &one, 1, 0) == 1) ++caught;
}

static void signals(void) {
    struct sigaction action = {.sa_handler = catch, .sa_flags = SA_RESTART};
    caught_fd = written(0);
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    struct {
        long seconds, us, first_seconds, first_us;
    } every = {0, 200, 0, 200};
    CHECK(syscall(SYS_setitimer, 0, &every, NULL) == 0);
    CHECK(lseek(caught_fd, 0, SEEK_SET) == 0);
    for (int round = 0; round < 20 || caught < 20; ++round) {
        long long at = round % 12 * PIECE;
        fill(at);
        CHECK(pwrite(caught_fd, piece, PIECE, at) == PIECE);
    }
    every.us = every.first_us = 0;
    CHECK(syscall(SYS_setitimer, 0, &every, NULL) == 0 && close(caught_fd) == 0);
    check_file(WRITTEN);
}

static void* write_part(void* part) {
    char* own = malloc(PIECE);
    int first = (int)(intptr_t)part;
    for (int i = first; i < 64; i += 4) {
        for (int k = 0; k < PIECE; ++k) own[k] = byte_at((long long)i * PIECE + k);
        CHECK(pwrite(caught_fd, own, PIECE, (long long)i * PIECE) == PIECE);
    }
    free(own);
    return NULL;
}

static void threads(void) {
    pthread_t all[4];
    caught_fd = written(0);
    for (intptr_t i = 0; i < 4; ++i) CHECK(pthread_create(&all[i], NULL, write_part, (void*)i) == 0);
    for (int i = 0; i < 4; ++i) CHECK(pthread_join(all[i], NULL) == 0);
    CHECK(close(caught_fd) == 0);
    check_file(64LL * PIECE);
}

static void changed_behind_a_reader(void) {
    CHECK(close(written(0)) == 0);
    int reader = open(name, O_RDONLY), writer = open(name, O_WRONLY);
    CHECK(read(reader, piece, PIECE) == PIECE);
    for (long long at = PIECE; at < WRITTEN; at += PIECE) {  /* after what might be read ahead was */
        CHECK(pwrite(writer, "?", 1, at) == 1);
        CHECK(read(reader, piece, PIECE) == PIECE && piece[0] == '?');
    }
    CHECK(close(reader) == 0 && close(writer) == 0);
}

static void limits_of_size(void) {
    signal(SIGXFSZ, SIG_IGN);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    struct { unsigned long now, most; } limit = {10 * PIECE, ~0UL};
    CHECK(syscall(SYS_prlimit64, 0, 1, &limit, NULL) == 0);
    for (long long at = 0; at < 10 * PIECE; at += PIECE) {
        fill(at);
        CHECK(write(fd, piece, PIECE) == PIECE);
    }
    CHECK(write(fd, piece, PIECE) == -1 && errno == EFBIG);
    CHECK(close(fd) == 0);
    check_file(10 * PIECE);
}

static const struct {
    const char* name;
    void (*run)(void);
} kHazards[] = {{"mapping", mapping}, {"size_before_close", size_before_close}, {"fork", fork_shares_the_offset},
    {"dup", dup_shares_the_offset}, {"pieces", pieces}, {"sends", sends}, {"appending", appending}, {"seeks", seeks},
    {"executing", executing}, {"other_sizes", other_sizes}, {"renaming", renaming}, {"locking", locking},
    {"killed", killed}, {"started_others", started_others}, {"numbers", numbers_come_back}, {"signals", signals},
    {"threads", threads}, {"changed", changed_behind_a_reader}, {"limit", limits_of_size}};

int main(int count, char** words) {
    if (count != 3) return 2;
    name = words[2];
    for (unsigned i = 0; i < sizeof kHazards / sizeof *kHazards; ++i) {
        if (strcmp(words[1], kHazards[i].name) == 0) {
            kHazards[i].run();
            return 0;
        }
    }
    return 2;
}
