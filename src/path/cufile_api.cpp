// What cuFile reports, made readable: its error codes in words, its statistics as numbers.
#include "path/cufile_api.hpp"

#include <cstring>

namespace penstock::path::cufile {
namespace {

const char* words(int code) noexcept {
    switch (code) {
        case 5001: return "the cuFile driver is not initialised";
        case 5002: return "invalid driver property";
        case 5003: return "a driver limit is out of range";
        case 5004: return "nvidia-fs and libcufile versions do not fit";
        case 5005: return "the nvidia-fs version could not be read";
        case 5006: return "the cuFile driver is closing";
        case 5007: return "this platform is not supported";
        case 5008: return "I/O is not supported on this file";
        case 5009: return "this GPU is not supported";
        case 5010: return "nvidia-fs reported an error";
        case 5011: return "a CUDA driver call failed";
        case 5012: return "not a CUDA pointer";
        case 5013: return "this kind of CUDA memory is not supported";
        case 5014: return "the pointer range leaves its allocation";
        case 5015: return "the memory belongs to another CUDA context";
        case 5016: return "memory could not be mapped: the limit of pinned memory is reached";
        case 5017: return "memory could not be mapped: bad range";
        case 5018: return "this type of file is not supported";
        case 5019: return "the file's open flags are not supported";
        case 5020: return "the file was not opened with O_DIRECT";
        case 5022: return "invalid value";
        case 5023: return "the memory is registered already";
        case 5024: return "the memory is not registered";
        case 5025: return "permission denied";
        case 5026: return "the cuFile driver is open already";
        case 5027: return "the file handle could not be registered";
        case 5028: return "the file handle is registered already";
        case 5029: return "no such GPU";
        case 5030: return "internal error of libcufile";
        case 5031: return "libcufile could not open the file again";
        case 5033: return "nvidia-fs could not be set up";
        case 5034: return "I/O is disabled by configuration";
        case 5035: return "the batch could not be submitted";
        case 5036: return "GPU memory could not be pinned";
        case 5037: return "the batch is full";
        case 5038: return "asynchronous I/O is not supported";
        case 5039: return "internal limit of libcufile";
        case 5049: return "batches are not supported without compatibility mode";
        default: return "unknown cuFile error";
    }
}

std::uint64_t number_at(const unsigned char* at) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
}

}  // namespace

Operations count_operations(const unsigned char* stats, int version) noexcept {
    Operations sum;
    const unsigned char* header = stats + gpu_count_offset(version);
    std::memcpy(&sum.gpus, header, sizeof sum.gpus);
    if (sum.gpus > kMaxGpus) sum.gpus = kMaxGpus;
    for (std::uint32_t gpu = 0; gpu < sum.gpus; ++gpu) {
        const unsigned char* block = header + 8 + gpu * kGpuBlockBytes;
        sum.p2p_reads += number_at(block + kGpuP2pReads);
        sum.nvfs_reads += number_at(block + kGpuNvfsReads);
        sum.posix_reads += number_at(block + kGpuPosixReads);
        sum.p2p_writes += number_at(block + kGpuP2pWrites);
        sum.nvfs_writes += number_at(block + kGpuNvfsWrites);
        sum.posix_writes += number_at(block + kGpuPosixWrites);
    }
    return sum;
}

std::string error_text(int code) { return std::to_string(code) + ": " + words(code); }

std::string error_text(const Status& status) {
    std::string text = error_text(status.error);
    if (status.error == kCudaError) text += " (CUresult " + std::to_string(status.cuda) + ")";
    return text;
}

}  // namespace penstock::path::cufile
