// penstock-cufile-probe: opens libcufile in a process of its own, which may hang or crash, and says what happened.
//
// Prints key=value lines, each before or right after the step it names, so that the last line tells where it stopped.
// Started by the Penstock library under a time limit; can be run by hand as well. Exit code 0: the driver opened, and
// the file, if one was given, was read correctly.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "path/cufile/library.hpp"

namespace cufile = penstock::path::cufile;

namespace {

constexpr std::size_t kReadBytes = 4096;

struct Request {
    cufile::LibraryOptions libraries;
    cufile::Setup setup;
    std::string file;
    int device = 0;
    bool counters = true;
};

void say(const char* key, const std::string& value) {
    std::printf("%s=%s\n", key, value.c_str());
    std::fflush(stdout);
}

void say(const char* key, unsigned long long value) { say(key, std::to_string(value)); }

int fail(const std::string& cause, int code = 0) {
    say("cause", cause);
    say("code", static_cast<unsigned long long>(code));
    return 1;
}

Request parse(int count, char** words) {
    Request request;
    request.setup.skip_topology = false;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        const auto value = [&] { return i + 1 < count ? std::string(words[++i]) : std::string(); };
        if (word == "--library")
            request.libraries.library = value();
        else if (word == "--cuda-library")
            request.libraries.cuda_library = value();
        else if (word == "--directory")
            request.libraries.directories.push_back(value());
        else if (word == "--file")
            request.file = value();
        else if (word == "--device")
            request.device = std::atoi(value().c_str());
        else if (word == "--force-compat")
            request.setup.force_compat = true;
        else if (word == "--skip-topology")
            request.setup.skip_topology = true;
        else if (word == "--no-counters")
            request.counters = false;
    }
    return request;
}

void say_properties(const cufile::Api& api) {
    cufile::Properties properties{};
    say("step", "driver_properties");
    if (api.driver_properties(&properties).error != 0) return;
    say("nvfs_major", properties.nvfs_major);
    say("nvfs_minor", properties.nvfs_minor);
    say("status_flags", properties.status_flags);
    say("control_flags", properties.control_flags);
    say("feature_flags", properties.feature_flags);
    say("max_direct_io_kb", properties.max_direct_io_kb);
    say("max_batch_size", properties.max_batch_size);
    say("max_pinned_kb", properties.max_pinned_kb);
}

// The array call wants the exact number of slabs, which nothing tells; the shipped configurations have one to four.
void say_slabs(const cufile::Api& api) {
    if (api.pool_slabs == nullptr) return;
    say("step", "pool_slabs");
    for (const int length : {3, 4, 2, 1}) {
        std::vector<std::size_t> sizes(16), counts(16);
        if (api.pool_slabs(sizes.data(), counts.data(), length).error != 0) continue;
        std::size_t least = counts[0];
        for (int i = 1; i < length; ++i) least = counts[i] < least ? counts[i] : least;
        say("pool_slabs", least);
        return;
    }
}

// True when the library will count from here on.
bool start_counters(const cufile::Api& api) {
    if (api.set_stats_level == nullptr || api.stats_l3 == nullptr) return false;
    say("step", "stats_start");
    const int level = api.set_stats_level(3).error;
    const int start = api.stats_start == nullptr ? 0 : api.stats_start().error;
    if (level != 0) say("stats_level_error", static_cast<unsigned long long>(level));
    if (start != 0) say("stats_start_error", static_cast<unsigned long long>(start));
    return level == 0 && start == 0;
}

void say_counters(const cufile::Library& library) {
    if (library.version == 0) return;  // the layout depends on it
    say("step", "stats_l3");
    std::vector<unsigned char> stats(cufile::kStatsBytes);
    if (const auto status = library.api.stats_l3(stats.data()); status.error != 0) {
        say("stats_l3_error", static_cast<unsigned long long>(status.error));
        return;
    }
    const cufile::Operations counted = cufile::count_operations(stats.data(), library.version);
    say("gpus", counted.gpus);
    say("p2p_reads", counted.p2p_reads);
    say("nvfs_reads", counted.nvfs_reads);
    say("posix_reads", counted.posix_reads);
    say("counters", "ok");
}

int open_file(const std::string& name) {
    const int fd = ::open(name.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    say("file_direct", fd >= 0 ? 1ull : 0ull);
    return fd >= 0 ? fd : ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
}

// Reads the file's first bytes into GPU memory through cuFile and compares them with what pread says.
int read_file(const cufile::Api& api, const cufile::CudaDriver& cuda, int fd, const std::string& name) {
    cufile::Descriptor descriptor{};
    descriptor.type = 1;
    descriptor.file.fd = fd;
    cufile::Handle handle = nullptr;
    say("step", "handle_register");
    if (const auto status = api.handle_register(&handle, &descriptor); status.error != 0) {
        return fail("cuFileHandleRegister: " + cufile::error_text(status), status.error);
    }
    std::uint64_t memory = 0;
    if (const int code = cuda.allocate(&memory, 2 * kReadBytes); code != 0) {
        return fail("cuMemAlloc: CUresult " + std::to_string(code));
    }
    say("step", "read");
    const ssize_t count = api.read(handle, reinterpret_cast<void*>(memory), kReadBytes, 0, 0);
    if (count == -1) return fail(std::string("cuFileRead: ") + std::strerror(errno), errno);
    if (count < 0) return fail("cuFileRead: " + cufile::error_text(static_cast<int>(-count)), static_cast<int>(-count));
    std::vector<char> got(kReadBytes), expected(kReadBytes);
    const int plain = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    const ssize_t wanted = ::pread(plain, expected.data(), kReadBytes, 0);
    ::close(plain);
    if (count > 0) cuda.copy_to_host(got.data(), memory, static_cast<std::size_t>(count));
    if (count != wanted || got != expected) return fail("cuFileRead brought other bytes than pread");
    say("read_bytes", static_cast<unsigned long long>(count));
    api.handle_deregister(handle);
    return 0;
}

int probe(const Request& request) {
    std::string why;
    say("step", "load_cuda");
    const auto cuda = cufile::open_cuda(request.libraries.cuda_library, why);
    if (!cuda) return fail(why);
    if (!cufile::ensure_context(*cuda, request.device, why)) return fail(why);
    say("step", "load_cufile");
    const auto library = cufile::open_library(request.libraries, why);
    if (!library) return fail(why);
    say("library", library->file);
    say("version", static_cast<unsigned long long>(library->version));
    for (const std::string& note : cufile::configure(library->api, request.setup)) say("note", note);
    say("step", "driver_open");
    const auto opened = library->api.driver_open();
    if (opened.error != 0) return fail("cuFileDriverOpen: " + cufile::error_text(opened), opened.error);
    say("driver", "open");
    say_properties(library->api);
    say_slabs(library->api);
    const bool counting = request.counters && start_counters(library->api);
    int result = 0;
    if (!request.file.empty()) {
        const int fd = open_file(request.file);
        if (fd < 0) return fail(request.file + ": " + std::strerror(errno), errno);
        result = read_file(library->api, *cuda, fd, request.file);
        say("file", result == 0 ? "ok" : "failed");
        ::close(fd);
    }
    if (counting) say_counters(*library);
    say("step", "driver_close");
    library->api.driver_close();
    say("step", "end");
    return result;
}

}  // namespace

int main(int count, char** words) { return probe(parse(count, words)); }
