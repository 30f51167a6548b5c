/* A program with memory of a GPU in ordinary calls, that knows nothing of Penstock. Its first word is the case, its
 * second the memory (device, managed), its third a file. Without a preloaded library device memory ends with EFAULT. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define BYTES (12L << 20)
#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, strerror(errno)); \
            exit(1); \
        } \
    } while (0)

void* fake_allocate(size_t bytes, int managed);
void* fake_reach(const void* data);
int fake_questions(void);
int cuCtxGetCurrent(void** context);
int cuCtxSetCurrent(void* context);

static char *data, *reach;
static const char* name;

static void fill(int seed) {
    for (long i = 0; i < BYTES; ++i) reach[i] = (char)(i * 31 + i / 4096 + seed);
}
static int is_filled(long from, long bytes, int seed) {
    for (long i = from; i < from + bytes; ++i) {
        if (reach[i] != (char)(i * 31 + i / 4096 + seed)) return 0;
    }
    return 1;
}
static void check_file(int seed) {
    char* all = malloc(BYTES + 1);
    int fd = open(name, O_RDONLY);
    CHECK(read(fd, all, BYTES + 1) == BYTES && close(fd) == 0);
    for (long i = 0; i < BYTES; ++i) CHECK(all[i] == (char)(i * 31 + i / 4096 + seed));
    free(all);
}

static void posix(void) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    fill(1);
    CHECK(write(fd, data, 8 << 20) == 8 << 20 && lseek(fd, 0, SEEK_CUR) == 8 << 20);
    CHECK(write(fd, data + (8 << 20), 4 << 20) == 4 << 20 && close(fd) == 0);
    check_file(1);
    memset(reach, 0, BYTES);
    fd = open(name, O_RDONLY);
    errno = EDOM;
    CHECK(read(fd, data, 5 << 20) == 5 << 20 && lseek(fd, 0, SEEK_CUR) == 5 << 20 && errno == EDOM);
    CHECK(pread(fd, data + (5 << 20), BYTES, 5 << 20) == 7 << 20); /* the file ends */
    CHECK(lseek(fd, 0, SEEK_CUR) == 5 << 20 && is_filled(0, BYTES, 1));
    CHECK(read(fd, data, BYTES) == 7 << 20 && read(fd, data, BYTES) == 0 && close(fd) == 0);
}

static void small(void) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    fill(2);
    for (long at = 0; at < BYTES; at += 4096) CHECK(write(fd, data + at, 4096) == 4096);
    check_file(2);
    memset(reach, 0, 8192);
    struct iovec parts[] = {{data, 4096}, {data + 4096, 4096}};
    ssize_t got = preadv(fd, parts, 2, 0); /* of device memory the first piece */
    CHECK((got == 4096 || got == 8192) && is_filled(0, got, 2) && close(fd) == 0);
}

/* Memory of the host and of the GPU in one call, which moves all of it as it would without a GPU. */
static void pieces(void) {
    char head[10] = "head", tail[7] = "tail";
    struct iovec parts[] = {{head, sizeof head}, {data, 4 << 20}, {tail, sizeof tail}, {data + (4 << 20), 1 << 20}};
    const long all = sizeof head + (4 << 20) + sizeof tail + (1 << 20);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    fill(9);
    CHECK(writev(fd, parts, 4) == all && lseek(fd, 0, SEEK_CUR) == all);
    CHECK(pwritev(fd, parts, 4, all) == all && lseek(fd, 0, SEEK_CUR) == all);
    for (int turn = 0; turn < 2; ++turn) {
        memset(reach, 0, BYTES);
        head[0] = tail[0] = 0;
        CHECK(preadv(fd, parts, 4, turn * all) == all && is_filled(0, 5 << 20, 9));
        CHECK(strcmp(head, "head") == 0 && strcmp(tail, "tail") == 0);
    }
    CHECK(preadv(fd, parts, 4, 2 * all - (2 << 20)) == 2 << 20); /* the file ends in the second piece */
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && readv(fd, parts, 4) == all && lseek(fd, 0, SEEK_CUR) == all);
    CHECK(close(fd) == 0);
}

static void streams(void) {
    FILE* file = fopen(name, "w+");
    fill(3);
    CHECK(fwrite("head", 1, 4, file) == 4 && fwrite(data, 8, BYTES / 8, file) == BYTES / 8);
    CHECK(ftell(file) == BYTES + 4 && fwrite("tail", 1, 4, file) == 4);
    rewind(file);
    char text[5] = "";
    CHECK(fread(text, 1, 4, file) == 4 && strcmp(text, "head") == 0);
    memset(reach, 0, BYTES);
    CHECK(fread(data, 1, BYTES, file) == BYTES && is_filled(0, BYTES, 3));
    CHECK(fread(text, 1, 4, file) == 4 && strcmp(text, "tail") == 0 && !feof(file));
    CHECK(fread(data, 1, BYTES, file) == 0 && feof(file) && fclose(file) == 0);
}

static void appends_and_pipes(void) {
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644), ends[2];
    fill(4);
    CHECK(write(fd, data, BYTES) == BYTES && close(fd) == 0);
    check_file(4);
    CHECK(pipe(ends) == 0 && write(ends[1], data, 4096) == 4096);
    memset(reach, 0, 4096);
    CHECK(read(ends[0], data, 4096) == 4096 && is_filled(0, 4096, 4));
}

/* Streams that the engine takes nothing of: opened to append, of a small file, of a pipe whose buffer has the first
 * bytes of what is asked for. */
static void other_streams(void) {
    const long some = 32 << 10;
    char text[5] = "", *host = malloc(some);
    fill(10);
    FILE* file = fopen(name, "w");
    CHECK(fclose(file) == 0 && (file = fopen(name, "a")) != NULL);
    CHECK(fwrite(data, 1, BYTES, file) == BYTES && !ferror(file) && fclose(file) == 0);
    check_file(10);
    CHECK(truncate(name, some) == 0 && (file = fopen(name, "r")) != NULL);
    memset(reach, 0, BYTES);
    CHECK(fread(data, 1, BYTES, file) == (size_t)some && feof(file) && !ferror(file) && fclose(file) == 0);
    CHECK(is_filled(0, some, 10));
    int ends[2];
    CHECK(pipe(ends) == 0);
    FILE *out = fdopen(ends[1], "w"), *in = fdopen(ends[0], "r");
    CHECK(fwrite("head", 1, 4, out) == 4 && fwrite(data, 1, some, out) == (size_t)some);
    CHECK(fwrite("tail", 1, 4, out) == 4 && fclose(out) == 0);
    memcpy(host, reach, some);
    memset(reach, 0, some);
    CHECK(fread(text, 1, 4, in) == 4 && strcmp(text, "head") == 0);
    CHECK(fread(data, 1, some, in) == (size_t)some && memcmp(reach, host, some) == 0);
    CHECK(fread(text, 1, 4, in) == 4 && strcmp(text, "tail") == 0 && !feof(in));
    CHECK(fread(data, 1, some, in) == 0 && feof(in) && fclose(in) == 0);
    free(host);
}

/* What the descriptor was not opened for, or no offset is, is refused as the kernel refuses it, and nothing moves. */
static void modes(void) {
    struct iovec all = {data, BYTES};
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    fill(8);
    CHECK(write(fd, data, BYTES) == BYTES);
    CHECK(pread(fd, data, BYTES, 0) == -1 && errno == EBADF && close(fd) == 0);
    fd = open(name, O_RDONLY);
    fill(9);
    CHECK(write(fd, data, BYTES) == -1 && errno == EBADF && lseek(fd, 0, SEEK_CUR) == 0);
    CHECK(pwrite(fd, data, BYTES, 0) == -1 && errno == EBADF);
    CHECK(pread(fd, data, BYTES, -1) == -1 && errno == EINVAL);
    CHECK(preadv(fd, &all, 1, -1) == -1 && errno == EINVAL);
    CHECK(preadv2(fd, &all, 1, -2, 0) == -1 && errno == EINVAL);
    CHECK(lseek(fd, 0, SEEK_CUR) == 0 && is_filled(0, BYTES, 9) && close(fd) == 0);
    check_file(8);
    FILE* file = fopen(name, "r");
    CHECK(fwrite(data, 1, BYTES, file) == 0 && errno == EBADF && ferror(file) && fclose(file) == 0);
    check_file(8);
}

/* A write that is to be on the disk when it returns: a descriptor of the engine's own would wait for nothing. */
static void synchronous(void) {
    for (int turn = 0; turn < 2; ++turn) {
        int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | (turn == 0 ? O_DSYNC : O_SYNC), 0644);
        fill(11 + turn);
        CHECK(write(fd, data, BYTES) == BYTES && close(fd) == 0);
        check_file(11 + turn);
    }
}

/* Whose memory it is is asked once a call: the engine's own calls are not asked about. */
static void questions(void) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    fill(13);
    CHECK(write(fd, data, BYTES) == BYTES && pread(fd, data, BYTES, 0) == BYTES);
    int before = fake_questions();
    CHECK(pwrite(fd, data, BYTES, 0) == BYTES && pread(fd, data, BYTES, 0) == BYTES);
    CHECK(fake_questions() == before + 2 && close(fd) == 0);
    check_file(13);
}

/* The number was closed by a system call that no library sees, and means another file now. */
static void other_file(void) {
    char other[4096];
    snprintf(other, sizeof other, "%s.other", name);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    fill(5);
    CHECK(write(fd, data, BYTES) == BYTES);
    CHECK(syscall(SYS_close, fd) == 0);
    CHECK(syscall(SYS_open, other, O_RDWR | O_CREAT | O_TRUNC, 0644) == fd);
    fill(6);
    CHECK(write(fd, data, 1 << 20) == 1 << 20 && close(fd) == 0);
    check_file(5);
}

static void fails(void) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    fill(7);
    ssize_t wrote = write(fd, data, BYTES);
    printf("%ld %s\n", (long)wrote, wrote < 0 ? strerror(errno) : "");
    CHECK(close(fd) == 0);
}

static void stream_fails(void) {
    FILE* file = fopen(name, "w");
    fill(7);
    size_t wrote = fwrite(data, 1, BYTES, file);
    int cause = errno;
    printf("%ld %s\n", ferror(file) ? -1 : (long)wrote, ferror(file) ? strerror(cause) : "");
    CHECK((wrote == 0) == (ferror(file) != 0));
    fclose(file);
}

/* Threads that share a descriptor, or a stream, have parts of their own, in memory of the GPU and of the host. */
#define PART (64L << 10)
#define PARTS (BYTES / PART)
#define THREADS 4
static struct {
    int fd;
    FILE* file;
    int reads;
    char* host; /* of the first thread */
    int next;
    char seen[PARTS];
} shared;

static long which_part(const char* bytes) {
    for (long part = 0; part < PARTS; ++part) {
        if (memcmp(bytes, shared.host + part * PART, PART) == 0) return part;
    }
    return -1;
}

static void* share(void* number) {
    char *mine = malloc(PART), *reached = reach;
    for (;;) {
        int part = __atomic_fetch_add(&shared.next, 1, __ATOMIC_RELAXED);
        if (part >= PARTS) break;
        char* from = number == NULL ? (shared.reads ? mine : shared.host + part * PART) : data + part * PART;
        long moved = shared.file == NULL ? (shared.reads ? read(shared.fd, from, PART) : write(shared.fd, from, PART))
                     : shared.reads      ? (long)fread(from, 1, PART, shared.file)
                                         : (long)fwrite(from, 1, PART, shared.file);
        CHECK(moved == PART);
        if (!shared.reads) continue;
        long found = which_part(number == NULL ? mine : reached + part * PART);
        CHECK(found >= 0 && __atomic_exchange_n(&shared.seen[found], 1, __ATOMIC_RELAXED) == 0);
    }
    free(mine);
    return NULL;
}

static void share_all(int reads) {
    pthread_t threads[THREADS];
    shared.reads = reads;
    shared.next = 0;
    for (long i = 0; i < THREADS; ++i) CHECK(pthread_create(&threads[i], NULL, share, (void*)i) == 0);
    for (int i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void threads_of(int streams) {
    shared.host = malloc(BYTES);
    for (int turn = 0; turn < 8; ++turn) {
        fill(turn);
        for (long part = 0; part < PARTS; ++part) memcpy(reach + part * PART, &part, sizeof part);
        memcpy(shared.host, reach, BYTES);
        shared.fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
        shared.file = streams ? fdopen(shared.fd, "w+") : NULL;
        share_all(0);
        CHECK((streams ? ftell(shared.file) : lseek(shared.fd, 0, SEEK_CUR)) == BYTES);
        memset(reach, 0, BYTES);
        memset(shared.seen, 0, sizeof shared.seen);
        if (streams) rewind(shared.file);
        else CHECK(lseek(shared.fd, 0, SEEK_SET) == 0);
        share_all(1); /* each part is found once: none is lost, none is there twice */
        CHECK((streams ? fclose(shared.file) : close(shared.fd)) == 0);
    }
    free(shared.host);
}
static void threads(void) { threads_of(0); }
static void threads_of_a_stream(void) { threads_of(1); }

int main(int count, char** words) {
    if (count != 4) return 2;
    name = words[3];
    data = fake_allocate(BYTES, strcmp(words[2], "managed") == 0);
    reach = fake_reach(data);
    static const struct {
        const char* name;
        void (*run)(void);
    } cases[] = {{"posix", posix}, {"small", small}, {"pieces", pieces}, {"streams", streams},
        {"appends", appends_and_pipes}, {"other", other_file}, {"fails", fails}, {"stream fails", stream_fails},
        {"other streams", other_streams}, {"modes", modes}, {"synchronous", synchronous}, {"questions", questions},
        {"threads", threads}, {"stream threads", threads_of_a_stream}};
    void* mine = NULL;
    CHECK(cuCtxSetCurrent((void*)"mine") == 0);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; ++i) {
        if (strcmp(words[1], cases[i].name) == 0) cases[i].run();
    }
    CHECK(cuCtxGetCurrent(&mine) == 0 && strcmp(mine, "mine") == 0);
    return 0;
}
