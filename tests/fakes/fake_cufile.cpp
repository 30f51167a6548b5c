// A stand-in for libcufile.so.0. It moves real bytes with pread and pwrite, and misbehaves on request.
//
// FAKE_CUFILE_BEHAVIOUR holds words: hang_open, crash_open, open_5033, native (counts operations as nvidia-fs ones),
// crash_stats, refuse_files (5027), wrong_bytes, short_reads, broken_status. FAKE_CUFILE_VERSION is 1150 unless set.
// FAKE_CUFILE_SLABS is the number of buffers in the compatibility pool. A batch that needs more of them blocks in the
// real library. Here it fails with 5037, so that tests notice it.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "path/cufile/api.hpp"

namespace penstock::path::cufile {

namespace {

struct State {
    std::recursive_mutex mutex;
    bool open = false, force_compat = false, stats = false;
    Operations counted;
    std::set<void*> handles;
    std::deque<BatchEntry> queued;
    unsigned batch_depth = 0;
    int registered = 0;
};

State& state() {
    static State value;
    return value;
}

bool behaves(const char* word) {
    const char* words = std::getenv("FAKE_CUFILE_BEHAVIOUR");
    return words != nullptr && std::strstr(words, word) != nullptr;
}

int number(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
}

bool native() { return behaves("native") && !state().force_compat; }

struct FakeHandle {
    int fd;
};

ssize_t move(Handle handle, void* memory, std::size_t bytes, off_t offset, bool reading) {
    const std::lock_guard lock(state().mutex);
    if (!state().open) return -5001;
    if (state().handles.count(handle) == 0) return -5027;
    const int fd = static_cast<FakeHandle*>(handle)->fd;
    if (behaves("short_reads") && bytes > 1) bytes /= 2;
    const ssize_t count = reading ? ::pread(fd, memory, bytes, offset) : ::pwrite(fd, memory, bytes, offset);
    if (count < 0) return -1;
    if (reading && behaves("wrong_bytes") && count > 0) static_cast<char*>(memory)[count / 2] ^= 1;
    Operations& counted = state().counted;
    (reading ? (native() ? counted.nvfs_reads : counted.posix_reads)
             : (native() ? counted.nvfs_writes : counted.posix_writes))++;
    return count;
}

#ifndef FAKE_CUFILE_OLD
void put(unsigned char* at, std::uint64_t value) { std::memcpy(at, &value, sizeof value); }
#endif

}  // namespace

extern "C" {

CuFileError cuFileDriverOpen() {
    if (behaves("logs")) {
        const char* named = std::getenv("CUFILE_LOGFILE_PATH");
        if (std::FILE* log = std::fopen(named == nullptr ? "cufile.log" : named, "a")) std::fclose(log);
    }
    if (behaves("hang_open")) {
        while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    if (behaves("crash_open")) ::_exit(7);
    if (behaves("open_5033")) return {5033, 0};
    if (state().open) return {5026, 0};
    state().open = true;
    return {0, 0};
}

CuFileError cuFileDriverClose_v2() {
    state().open = false;
    state().force_compat = false;
    state().counted = {};
    return {0, 0};
}

CuFileError cuFileDriverGetProperties(Properties* properties) {
    *properties = {};
    if (behaves("native")) properties->nvfs_major = 2;
    properties->max_direct_io_kb = 16384;
    properties->max_batch_size = 128;
    return {0, 0};
}

CuFileError cuFileGetVersion(int* version) {
    *version = number("FAKE_CUFILE_VERSION", 1150);
    return {0, 0};
}

CuFileError cuFileHandleRegister(Handle* handle, Descriptor* descriptor) {
    const std::lock_guard lock(state().mutex);
    if (behaves("refuse_files")) return {5027, 0};
    if (descriptor->type != 1 || descriptor->operations != nullptr) return {5022, 0};
    *handle = new FakeHandle{descriptor->file.fd};
    state().handles.insert(*handle);
    ++state().registered;
    return {0, 0};
}

void cuFileHandleDeregister(Handle handle) {
    const std::lock_guard lock(state().mutex);
    if (state().handles.erase(handle) == 1) delete static_cast<FakeHandle*>(handle);
}

ssize_t cuFileRead(Handle handle, void* memory, std::size_t bytes, off_t offset, off_t memory_offset) {
    return move(handle, static_cast<char*>(memory) + memory_offset, bytes, offset, true);
}

ssize_t cuFileWrite(Handle handle, const void* memory, std::size_t bytes, off_t offset, off_t memory_offset) {
    return move(handle, const_cast<char*>(static_cast<const char*>(memory)) + memory_offset, bytes, offset, false);
}

CuFileError cuFileBatchIOSetUp(BatchId* batch, unsigned depth) {
    if (depth == 0 || depth > 128) return {5022, 0};
    state().batch_depth = depth;
    *batch = &state();
    return {0, 0};
}

CuFileError cuFileBatchIOSubmit(BatchId, unsigned count, BatchEntry* entries, unsigned) {
    const std::lock_guard lock(state().mutex);
    State& fake = state();
    if (fake.queued.size() + count > static_cast<unsigned>(number("FAKE_CUFILE_SLABS", 64))) return {5037, 0};
    if (fake.queued.size() + count > fake.batch_depth) return {5037, 0};
    fake.queued.insert(fake.queued.end(), entries, entries + count);
    return {0, 0};
}

// Returns the newest first, because a batch promises no order, and at most half of the waiting entries at a time.
CuFileError cuFileBatchIOGetStatus(BatchId, unsigned least, unsigned* count, BatchEvent* events, timespec*) {
    const std::lock_guard lock(state().mutex);
    if (behaves("broken_status")) return {5030, 0};
    State& fake = state();
    unsigned wanted = static_cast<unsigned>((fake.queued.size() + 1) / 2);
    wanted = wanted < least ? least : wanted;
    unsigned done = 0;
    for (; done < *count && done < wanted && !fake.queued.empty(); ++done) {
        const BatchEntry entry = fake.queued.back();
        fake.queued.pop_back();
        char* memory = static_cast<char*>(entry.memory) + entry.memory_offset;
        ssize_t result = move(entry.handle, memory, entry.bytes, entry.file_offset, entry.opcode == 0);
        if (result == -1) result = -errno;
        events[done] = {entry.cookie, result < 0 ? kFailed : kComplete, 0, static_cast<std::size_t>(result)};
    }
    *count = done;
    return {0, 0};
}

void cuFileBatchIODestroy(BatchId) { state().queued.clear(); }

CuFileError cuFileReadAsync(Handle handle, void* memory, std::size_t* bytes, off_t* offset, off_t* memory_offset,
                            ssize_t* moved, void*) {
    *moved = move(handle, static_cast<char*>(memory) + *memory_offset, *bytes, *offset, true);
    if (*moved == -1) *moved = -errno;
    return {0, 0};
}

CuFileError cuFileWriteAsync(Handle handle, void* memory, std::size_t* bytes, off_t* offset, off_t* memory_offset,
                             ssize_t* moved, void*) {
    *moved = move(handle, static_cast<char*>(memory) + *memory_offset, *bytes, *offset, false);
    if (*moved == -1) *moved = -errno;
    return {0, 0};
}

#ifndef FAKE_CUFILE_OLD
CuFileError cuFileSetParameterBool(int parameter, bool value) {
    if (state().open) return {5026, 0};
    if (parameter == static_cast<int>(BoolParameter::force_compat)) state().force_compat = value;
    return {0, 0};
}

CuFileError cuFileSetParameterString(int, const char*) { return {0, 0}; }

CuFileError cuFileGetParameterPosixPoolSlabArray(std::size_t* sizes, std::size_t* counts, int length) {
    if (length != 3) return {5022, 0};
    for (int i = 0; i < 3; ++i) {
        sizes[i] = 4u << (4 * i);
        counts[i] = static_cast<std::size_t>(number("FAKE_CUFILE_SLABS", 64));
    }
    return {0, 0};
}

CuFileError cuFileSetStatsLevel(int level) {
    state().stats = level == 3;
    return {0, 0};
}

CuFileError cuFileStatsStart() { return {0, 0}; }

CuFileError cuFileGetStatsL3(void* out) {
    if (behaves("crash_stats")) std::abort();
    const std::lock_guard lock(state().mutex);
    const int version = number("FAKE_CUFILE_VERSION", 1150);
    auto* bytes = static_cast<unsigned char*>(out);
    std::memset(bytes, 0xEE, gpu_count_offset(version));  // levels 1 and 2 are not zero, so that a wrong offset shows
    unsigned char* header = bytes + gpu_count_offset(version);
    put(header, 1);
    const Operations& counted = state().counted;
    put(header + 8 + kGpuNvfsReads, counted.nvfs_reads);
    put(header + 8 + kGpuPosixReads, counted.posix_reads);
    put(header + 8 + kGpuNvfsWrites, counted.nvfs_writes);
    put(header + 8 + kGpuPosixWrites, counted.posix_writes);
    return {0, 0};
}
#endif

// In this stand-in only: handles that are registered now, and the number of all registrations.
int fake_cufile_live_handles() { return static_cast<int>(state().handles.size()); }
int fake_cufile_registrations() { return state().registered; }

}  // extern "C"

}  // namespace penstock::path::cufile
