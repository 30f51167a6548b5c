// Native loops that `penstock bench` compares Penstock with, and request generators for measuring Penstock.
//
// The baselines use nothing of the engine, only system calls and memcpy, as a careful program without Penstock does.
// They are compiled, so that no ratio depends on the speed of Python.
#include <fcntl.h>
#include <nanobind/stl/pair.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "measure.hpp"
#include "os/file/move_all.hpp"

namespace penstock::python {
namespace {

using Use = BorrowedMemory::Use;
// Alignment of buffers. It fits O_DIRECT everywhere and allows huge pages, which make O_DIRECT faster on some disks. A
// baseline gets every advantage of Penstock's staging memory.
constexpr std::size_t kAlignment = 2 * kMiB;

struct Descriptor {
    int fd = -1;
    Descriptor(const std::string& name, int flags) : fd(::open(name.c_str(), flags | O_CLOEXEC)) {
        if (fd < 0) throw Error(errno_info("open", name, errno));
    }
    ~Descriptor() { ::close(fd); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
};

struct AlignedMemory {
    char* data;
    explicit AlignedMemory(std::size_t bytes) {
        data = static_cast<char*>(std::aligned_alloc(kAlignment, align_up(bytes, kAlignment)));
        if (data == nullptr) throw std::bad_alloc();
        ::madvise(data, align_up(bytes, kAlignment), MADV_HUGEPAGE);  // a hint, whose failure has no effect
        std::memset(data, 1, align_up(bytes, kAlignment));            // touched before the time starts
    }
    ~AlignedMemory() { std::free(data); }
    AlignedMemory(const AlignedMemory&) = delete;
    AlignedMemory& operator=(const AlignedMemory&) = delete;
};

struct HostLoop {
    std::string file;
    bool writes = false;
    bool direct = true;
    unsigned threads = 1;
    std::uint64_t chunk_bytes = kMiB;
    std::uint64_t bytes = 0;  // from the start of the file; with `direct`, a multiple of the O_DIRECT alignment
};

// Moves all of [offset, offset + bytes). Returns an errno, or 0 if all bytes moved.
int move_chunk(const HostLoop& loop, int fd, char* memory, std::uint64_t offset) {
    const std::uint64_t bytes = std::min(loop.chunk_bytes, loop.bytes - offset);
    const os::FileMoved moved =
        os::move_all(os::real_system(), {.direction = loop.writes ? Direction::write : Direction::read,
                                         .fd = fd,
                                         .memory = reinterpret_cast<std::byte*>(memory),
                                         .bytes = bytes,
                                         .offset_bytes = offset});
    if (moved.error_number != 0) return moved.error_number;
    return moved.bytes == bytes ? 0 : EIO;  // the file is shorter than the caller said
}

double run_host_loop(const HostLoop& loop) {
    const Descriptor file(loop.file, (loop.writes ? O_RDWR : O_RDONLY) | (loop.direct ? O_DIRECT : 0));
    std::atomic<std::uint64_t> next{0};
    std::atomic<int> failure{0};
    std::barrier ready(static_cast<std::ptrdiff_t>(loop.threads) + 1);
    std::vector<std::jthread> threads;
    // made by this thread, because an exception in another thread would end the process
    std::vector<std::unique_ptr<AlignedMemory>> memories;
    for (unsigned t = 0; t < loop.threads; ++t) memories.push_back(std::make_unique<AlignedMemory>(loop.chunk_bytes));
    const auto start_thread = [&](const AlignedMemory& memory) {
        threads.emplace_back([&] {
            ready.arrive_and_wait();
            for (;;) {
                const std::uint64_t offset = next.fetch_add(loop.chunk_bytes, std::memory_order_relaxed);
                if (offset >= loop.bytes || failure.load(std::memory_order_relaxed) != 0) return;
                const int code = move_chunk(loop, file.fd, memory.data, offset);
                if (code != 0) failure.store(code, std::memory_order_relaxed);
            }
        });
    };
    try {
        for (const auto& memory : memories) start_thread(*memory);
    } catch (const std::system_error& error) {
        failure.store(EAGAIN, std::memory_order_relaxed);
        for (auto missing = loop.threads - threads.size() + 1; missing > 0; --missing) (void)ready.arrive();
        threads.clear();  // the threads see the failure and end
        throw Error(ErrorCode::out_of_memory, "start a measuring thread", error.code().message(),
                    "raise the limits of threads and memory (ulimit -u, ulimit -v)");
    }
    ready.arrive_and_wait();
    const auto start = Clock::now();
    threads.clear();  // joins
    const double seconds = seconds_since(start);
    if (failure.load() != 0) throw Error(errno_info(loop.writes ? "write" : "read", loop.file, failure.load()));
    return seconds;
}

// Returns the seconds that `threads` host threads need to move `bytes` of the file, without a device.
double host_threads(const nb::kwargs& keywords) {
    HostLoop loop;
    loop.file = file_name(keywords["file"], "measure host threads");
    loop.writes = nb::cast<std::string>(keywords["direction"]) == "write";
    loop.direct = nb::cast<bool>(keywords["direct"]);
    loop.threads = option<unsigned>("threads", keywords["threads"]);
    loop.chunk_bytes = byte_count("chunk_bytes", keywords["chunk_bytes"]);
    loop.bytes = byte_count("bytes", keywords["bytes"]);
    if (loop.threads == 0 || loop.chunk_bytes == 0) {
        throw Error(ErrorCode::invalid_argument, "measure host threads", "threads and chunk_bytes must be positive",
                    "");
    }
    const GilReleased release;
    return run_host_loop(loop);
}

// Returns the seconds that one thread needs to pread the file in chunks into a small buffer and to memcpy them to
// `memory`. Requires: the CPU can address `memory`.
double pread_memcpy(const Context& context, nb::handle path, nb::handle memory, std::uint64_t chunk_bytes) {
    const std::string name = file_name(path, "measure pread and memcpy");
    const BorrowedMemory target(context, memory, Use::write_into);
    const MemoryView view = target.view();
    if (view.kind == MemoryKind::device && !context.device().info().emulated) {
        throw Error(ErrorCode::unsupported, "measure pread and memcpy", "the CPU cannot address GPU memory", "");
    }
    if (chunk_bytes == 0) {
        throw Error(ErrorCode::invalid_argument, "measure pread and memcpy", "chunk_bytes must be positive", "");
    }
    const GilReleased release;
    const Descriptor file(name, O_RDONLY);
    const AlignedMemory staging(chunk_bytes);
    const auto start = Clock::now();
    HostLoop loop;
    loop.chunk_bytes = chunk_bytes;
    loop.bytes = view.bytes;
    for (std::uint64_t offset = 0; offset < loop.bytes; offset += chunk_bytes) {
        const int code = move_chunk(loop, file.fd, staging.data, offset);
        if (code != 0) throw Error(errno_info("read", name, code));
        std::memcpy(static_cast<char*>(view.data) + offset, staging.data, std::min(chunk_bytes, view.bytes - offset));
    }
    return seconds_since(start);
}

// Returns the seconds of one asynchronous copy of all of `pinned` to or from `device`: the ceiling of the link.
double copy_seconds(const Context& context, bool to_device, nb::handle device, nb::handle pinned) {
    const BorrowedMemory far(context, device, to_device ? Use::write_into : Use::read_from);
    const BorrowedMemory near(context, pinned, to_device ? Use::read_from : Use::write_into);
    const std::uint64_t bytes = std::min(far.view().bytes, near.view().bytes);
    need_own_process(context);
    const GilReleased release;
    context.device().enter_thread();
    const auto stream = context.device().make_stream();
    const auto start = Clock::now();
    if (to_device)
        stream->copy(CopyDirection::to_device, far.view().data, near.view().data, bytes);
    else
        stream->copy(CopyDirection::to_host, near.view().data, far.view().data, bytes);
    stream->synchronize();
    return seconds_since(start);
}

// Reads blocks at random block offsets, one after the other, each into the next block of `memory`, so that all can be
// checked afterwards. Returns their offsets in the file and the seconds of each.
std::pair<std::vector<std::uint64_t>, std::vector<double>> read_latencies(const PythonFile& file, nb::handle memory,
                                                                          std::uint64_t block_bytes,
                                                                          std::uint64_t seed) {
    const BorrowedMemory target(file.context, memory, Use::write_into);
    const MemoryView all = target.view();
    const GilReleased release;
    const std::uint64_t blocks = block_bytes == 0 ? 0 : file.file.size_bytes() / block_bytes;
    if (blocks == 0)
        throw Error(ErrorCode::invalid_argument, "measure latency", "the file is smaller than a block", "");
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> offsets;
    std::vector<double> seconds;
    offsets.reserve(all.bytes / block_bytes);
    seconds.reserve(all.bytes / block_bytes);
    for (std::uint64_t at = 0; at + block_bytes <= all.bytes; at += block_bytes) {
        const MemoryView block = all.slice(at, block_bytes);
        const std::uint64_t offset = random() % blocks * block_bytes;
        const auto start = Clock::now();
        file.file.read(block, offset).or_throw();
        seconds.push_back(seconds_since(start));
        offsets.push_back(offset);
    }
    return {std::move(offsets), std::move(seconds)};
}

// Starts one submission that moves the first len(memory) bytes of the file as requests of block_bytes each, in an order
// shuffled by `seed` (0: in order). Keywords: direction, block_bytes, seed. All others are transfer options.
std::unique_ptr<PythonTransfer> start_blocks(PythonFile& file, nb::handle memory, const nb::dict& blocks,
                                             const nb::kwargs& options_keywords) {
    const bool writes = nb::cast<std::string>(blocks["direction"]) == "write";
    const auto block_bytes = nb::cast<std::uint64_t>(blocks["block_bytes"]);
    const auto seed = nb::cast<std::uint64_t>(blocks["seed"]);
    auto borrowed = std::make_shared<BorrowedMemory>(file.context, memory, writes ? Use::read_from : Use::write_into);
    const TransferOptions options = transfer_options(options_keywords);
    const MemoryView view = borrowed->view();
    if (block_bytes == 0) throw Error(ErrorCode::invalid_argument, "start blocks", "block_bytes must be positive", "");
    Transfer transfer;
    {
        const GilReleased release;
        std::vector<std::uint64_t> order((view.bytes + block_bytes - 1) / block_bytes);
        std::iota(order.begin(), order.end(), std::uint64_t{0});
        std::mt19937_64 random(seed);
        if (seed != 0) std::shuffle(order.begin(), order.end(), random);
        std::vector<Range> ranges;
        ranges.reserve(order.size());
        for (const std::uint64_t block : order) {
            const std::uint64_t offset = block * block_bytes;
            ranges.push_back({&file.file, offset, static_cast<char*>(view.data) + offset,
                              std::min(block_bytes, view.bytes - offset)});
        }
        transfer = file.context.start(writes ? Direction::write : Direction::read, ranges, view.kind, options);
    }
    file.began(transfer);
    return std::make_unique<PythonTransfer>(std::move(transfer), std::vector<SharedMemory>{std::move(borrowed)},
                                            options.deadline);
}

}  // namespace

void bind_baseline(nb::module_& module) {
    using nb::arg;
    module.def("host_threads", &host_threads);
    module.def("pread_memcpy", &pread_memcpy, arg("context"), arg("file"), arg("memory"), arg("chunk_bytes"));
    module.def("copy_seconds", &copy_seconds, arg("context"), arg("to_device"), arg("device"), arg("pinned"));
    module.def("read_latencies", &read_latencies, arg("file"), arg("memory"), arg("block_bytes"), arg("seed"));
    module.def("start_blocks", &start_blocks, arg("file"), arg("memory"), arg("blocks"), arg("options"));
}

}  // namespace penstock::python
