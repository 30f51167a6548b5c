// The part of the cuFile C interface that Penstock uses: layouts, constants and a table of functions.
//
// Penstock opens the library at run time and neither links it nor includes its headers. The sizes and offsets below
// were measured with versions 1.14 to 1.20 on 64-bit Linux. A function that an older library lacks is nullptr.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>

namespace penstock::path::cufile {

inline constexpr int kFirstError = 5001, kLastError = 5099;
inline constexpr int kCudaError = 5011;  // CuFileError::cuda then holds a CUresult
inline constexpr int kInvalidHandle = 5027;
inline constexpr int kDriverAlreadyOpen = 5026;

struct CuFileError {
    int error;  // 0: ok
    int cuda;
};

using Handle = void*;
using BatchId = void*;

struct Descriptor {
    int type;  // 1: a file descriptor
    int padding;
    union {
        int fd;
        void* handle;
    } file;
    const void* operations;
};

struct BatchEntry {
    int mode;  // 1: batch
    int padding;
    void* memory;
    off_t file_offset;
    off_t memory_offset;
    std::size_t bytes;
    Handle handle;
    int opcode;  // 0: read, 1: write
    int padding_too;
    void* cookie;
};

struct BatchEvent {
    void* cookie;
    int status;
    int padding;
    std::size_t result;  // bytes, or a negative error as ssize_t
};

enum BatchStatus : int {
    kWaiting = 1,
    kPending = 2,
    kInvalid = 4,
    kCancelled = 8,
    kComplete = 16,
    kTimeout = 32,
    kFailed = 64
};

struct Properties {
    std::uint32_t nvfs_major, nvfs_minor;
    std::size_t poll_threshold_kb, max_direct_io_kb;
    std::uint32_t status_flags, control_flags, feature_flags;
    std::uint32_t max_device_cache_kb, per_buffer_cache_kb, max_pinned_kb, max_batch_size, max_batch_timeout_ms;
};

inline constexpr std::uint32_t kFeatureBatch = 1u << 1, kFeatureStreams = 1u << 2, kFeatureP2p = 1u << 4;

static_assert(sizeof(CuFileError) == 8 && offsetof(CuFileError, cuda) == 4);
static_assert(sizeof(Descriptor) == 24 && offsetof(Descriptor, file) == 8 && offsetof(Descriptor, operations) == 16);
static_assert(sizeof(BatchEntry) == 64 && offsetof(BatchEntry, memory) == 8 && offsetof(BatchEntry, handle) == 40 &&
              offsetof(BatchEntry, cookie) == 56);
static_assert(sizeof(BatchEvent) == 24 && offsetof(BatchEvent, status) == 8 && offsetof(BatchEvent, result) == 16);
static_assert(sizeof(Properties) == 56 && offsetof(Properties, status_flags) == 24 &&
              offsetof(Properties, max_batch_size) == 48);

// Parameters that must be set before the driver opens.
enum class BoolParameter : int { allow_compat = 1, force_compat = 2, skip_topology = 10 };
enum class StringParameter : int { log_level = 0, log_file = 1, log_directory = 2 };

// Level 3 statistics: one block for each GPU, after a header whose size depends on the version.
inline constexpr std::size_t kStatsBytes = 8192;  // more than any version writes
inline constexpr std::size_t kGpuBlockBytes = 248, kMaxGpus = 16;
inline constexpr std::size_t kGpuP2pReads = 56, kGpuNvfsReads = 64, kGpuPosixReads = 72;
inline constexpr std::size_t kGpuP2pWrites = 160, kGpuNvfsWrites = 168, kGpuPosixWrites = 176;
// Offset of the number of GPUs. The blocks begin 8 bytes later. `version` is what get_version returns, for example
// 1150.
constexpr std::size_t gpu_count_offset(int version) noexcept { return version >= 1190 ? 1136 : 1024; }

// Numbers of storage operations, by the way the bytes took, summed over GPUs.
struct Operations {
    std::uint32_t gpus = 0;
    std::uint64_t nvfs_reads = 0, nvfs_writes = 0, p2p_reads = 0, p2p_writes = 0, posix_reads = 0, posix_writes = 0;
};
// Requires: `stats` points to kStatsBytes bytes that stats_l3 filled.
Operations count_operations(const unsigned char* stats, int version) noexcept;

struct Api {
    CuFileError (*driver_open)() = nullptr;
    CuFileError (*driver_close)() = nullptr;
    CuFileError (*driver_properties)(Properties*) = nullptr;
    CuFileError (*get_version)(int*) = nullptr;
    CuFileError (*handle_register)(Handle*, Descriptor*) = nullptr;
    void (*handle_deregister)(Handle) = nullptr;
    ssize_t (*read)(Handle, void*, std::size_t, off_t, off_t) = nullptr;
    ssize_t (*write)(Handle, const void*, std::size_t, off_t, off_t) = nullptr;
    CuFileError (*batch_setup)(BatchId*, unsigned) = nullptr;
    CuFileError (*batch_submit)(BatchId, unsigned, BatchEntry*, unsigned) = nullptr;
    CuFileError (*batch_status)(BatchId, unsigned, unsigned*, BatchEvent*, timespec*) = nullptr;
    void (*batch_destroy)(BatchId) = nullptr;
    CuFileError (*read_async)(Handle, void*, std::size_t*, off_t*, off_t*, ssize_t*, void*) = nullptr;
    CuFileError (*write_async)(Handle, void*, std::size_t*, off_t*, off_t*, ssize_t*, void*) = nullptr;
    CuFileError (*set_bool)(int, bool) = nullptr;  // since 1.14, like set_string
    CuFileError (*set_string)(int, const char*) = nullptr;
    CuFileError (*pool_slabs)(std::size_t*, std::size_t*, int) = nullptr;  // since 1.15, like the three functions below
    CuFileError (*set_stats_level)(int) = nullptr;
    CuFileError (*stats_start)() = nullptr;
    CuFileError (*stats_l3)(void*) = nullptr;
};

// For example "5033: nvidia-fs could not be set up". Names the CUresult if CUDA is the cause.
std::string error_text(const CuFileError& status);
std::string error_text(int code);

}  // namespace penstock::path::cufile
