// Turns cuFile's error codes into words and its statistics into numbers.
#include "path/cufile/api.hpp"

#include <cstring>

namespace penstock::path::cufile {
namespace {

struct CodeText {
    int code;
    const char* words;
};

constexpr CodeText kMeanings[]{
    {5001, "the cuFile driver is not initialised"},
    {5002, "invalid driver property"},
    {5003, "a driver limit is out of range"},
    {5004, "nvidia-fs and libcufile versions do not fit"},
    {5005, "the nvidia-fs version could not be read"},
    {5006, "the cuFile driver is closing"},
    {5007, "this platform is not supported"},
    {5008, "I/O is not supported on this file"},
    {5009, "this GPU is not supported"},
    {5010, "nvidia-fs reported an error"},
    {5011, "a CUDA driver call failed"},
    {5012, "not a CUDA pointer"},
    {5013, "this kind of CUDA memory is not supported"},
    {5014, "the pointer range leaves its allocation"},
    {5015, "the memory belongs to another CUDA context"},
    {5016, "memory could not be mapped: the limit of pinned memory is reached"},
    {5017, "memory could not be mapped: bad range"},
    {5018, "this type of file is not supported"},
    {5019, "the file's open flags are not supported"},
    {5020, "the file was not opened with O_DIRECT"},
    {5022, "invalid value"},
    {5023, "the memory is registered already"},
    {5024, "the memory is not registered"},
    {5025, "permission denied"},
    {5026, "the cuFile driver is open already"},
    {5027, "the file handle could not be registered"},
    {5028, "the file handle is registered already"},
    {5029, "no such GPU"},
    {5030, "internal error of libcufile"},
    {5031, "libcufile could not open the file again"},
    {5033, "nvidia-fs could not be set up"},
    {5034, "I/O is disabled by configuration"},
    {5035, "the batch could not be submitted"},
    {5036, "GPU memory could not be pinned"},
    {5037, "the batch is full"},
    {5038, "asynchronous I/O is not supported"},
    {5039, "internal limit of libcufile"},
    {5049, "batches are not supported without compatibility mode"},
};

const char* words(int code) noexcept {
    for (const CodeText& meaning : kMeanings) {
        if (meaning.code == code) return meaning.words;
    }
    return "unknown cuFile error";
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

std::string error_text(const CuFileError& status) {
    std::string text = error_text(status.error);
    if (status.error == kCudaError) text += " (CUresult " + std::to_string(status.cuda) + ")";
    return text;
}

}  // namespace penstock::path::cufile
