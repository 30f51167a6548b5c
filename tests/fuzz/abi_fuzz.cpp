// The C ABI with option structs of random bytes: every call returns a code, does not crash and writes no byte outside.
//
// Random pointers would crash, so pointers are drawn from good ones and null. Counts that cause work are kept small.
// Sizes, offsets, kinds, flags and struct_size are fully random.
#include <cstddef>
#include <fstream>
#include <vector>

#include "input.hpp"
#include "penstock.h"

namespace {

using penstock::fuzz::Input;
using penstock::fuzz::promise;

constexpr std::uint64_t kBytes = 70'000;

// A struct with more bytes behind it, because struct_size may include them.
template <typename Struct>
struct Roomy {
    Struct value{};
    unsigned char later[64] = {};
    explicit Roomy(Input& input) {
        for (std::size_t i = 0; i < sizeof(Struct); ++i) {
            reinterpret_cast<unsigned char*>(&value)[i] = input.number<std::uint8_t>();
        }
        const std::uint64_t choices[] = {sizeof(Struct), sizeof(Struct), sizeof(Struct), sizeof(Struct) + 8,
                                         sizeof(Struct) + 64, sizeof(Struct) - 8, 0, 8, UINT64_MAX};
        value.struct_size = choices[input.between(0, 8)];
        if (input.between(0, 3) == 0) later[input.between(0, 63)] = 1;
    }
};

const char* drawn_name(Input& input) {
    const char* names[] = {nullptr, "host", "auto", "buffered", "direct", "memory", "mmap", "warp", "", "cuda:99"};
    return names[input.between(0, 9)];
}

// After every call the error struct is complete: terminated texts and the returned code.
int checked(int code, const penstock_error& error) {
    promise(code >= PENSTOCK_OK && code <= PENSTOCK_INTERNAL, "the code is one of the header's");
    promise(error.code == code, "the error has the returned code");
    promise(std::memchr(error.message, 0, sizeof(error.message)) != nullptr, "the message is terminated");
    promise(code == PENSTOCK_OK || error.message[0] != '\0', "a failure has a message");
    return code;
}

const std::string& scratch_file() {
    static const penstock::fuzz::Folder folder;
    static const std::string name = [] {
        const std::string made = folder / "data";
        std::ofstream(made, std::ios::binary) << std::string(kBytes, 'x');
        return made;
    }();
    return name;
}

penstock_context* drawn_context(Input& input) {
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context* context = nullptr;
    Roomy<penstock_context_options> options(input);
    options.value.device = input.coin() ? "host" : drawn_name(input);
    options.value.path = drawn_name(input);
    options.value.profile = input.coin() ? nullptr : drawn_name(input);
    options.value.workers %= 8;
    options.value.emulated_latency_ns %= 1000;
    options.value.emulated_bandwidth_bytes_per_s = input.coin() ? 0 : options.value.emulated_bandwidth_bytes_per_s;
    if (options.value.emulated_bandwidth_bytes_per_s > 0) options.value.emulated_bandwidth_bytes_per_s += 1e9;
    const int code = checked(penstock_context_create(&options.value, &context, &error), error);
    promise((code == PENSTOCK_OK) == (context != nullptr), "a handle comes with success and only then");
    if (context == nullptr) {
        penstock_context_options plain = PENSTOCK_CONTEXT_OPTIONS_INIT;
        plain.device = "host";
        promise(penstock_context_create(&plain, &context, nullptr) == PENSTOCK_OK, "a host context can be made");
    }
    return context;
}

void try_transfer(Input& input, const penstock_file* file, const penstock_memory& memory) {
    penstock_error error = PENSTOCK_ERROR_INIT;
    Roomy<penstock_request> request(input);
    Roomy<penstock_result> result(input);
    request.value.path = drawn_name(input);
    request.value.workers %= 8;
    request.value.depth %= 64;
    request.value.progress = nullptr;
    request.value.timeout_ms = input.coin() ? 0 : request.value.timeout_ms;
    request.value.reserved = 0;
    if (input.between(0, 3) != 0) request.value.offset_bytes %= kBytes + 10;
    const std::int32_t kind = request.value.memory.kind;
    request.value.memory = memory;
    if (input.between(0, 3) == 0) request.value.memory.kind = kind;
    if (input.coin()) request.value.memory.bytes = input.between(0, memory.bytes);
    const int code = checked(penstock_read(file, &request.value, &result.value, &error), error);
    if (code == PENSTOCK_OK) {
        promise(result.value.bytes <= request.value.memory.bytes, "no more bytes come than were asked");
        promise(std::memchr(result.value.path, 0, sizeof(result.value.path)) != nullptr, "the path is terminated");
    }
}

// A box of the scratch file as raw elements, with pointers to numbers of any size.
void try_dataset(Input& input, const penstock_context* context, const penstock_memory& memory) {
    penstock_error error = PENSTOCK_ERROR_INIT;
    Roomy<penstock_datafile_options> how(input);
    Roomy<penstock_selection> box(input);
    Roomy<penstock_request> request(input);
    Roomy<penstock_dataset_result> result(input);
    std::uint64_t shape[] = {input.between(1, 300), input.between(1, 30)}, numbers[3][2];
    std::int64_t strides[2];
    for (int i = 0; i < 6; ++i) {
        numbers[i / 2][i % 2] = input.coin() ? input.between(0, 9) : input.number<std::uint64_t>();
    }
    for (std::int64_t& one : strides) {
        one = input.coin() ? static_cast<std::int64_t>(input.between(0, 300)) : input.number<std::int64_t>();
    }
    how.value.format = input.between(0, 7) != 0 ? "raw" : drawn_name(input);
    how.value.dtype = input.coin() ? "int16" : drawn_name(input);
    how.value.rank = input.between(0, 3) != 0 ? 2 : how.value.rank;
    how.value.shape = input.between(0, 7) != 0 && how.value.rank <= 2 ? shape : nullptr;
    how.value.offset_bytes = input.coin() ? 0 : how.value.offset_bytes;
    penstock_datafile* file = nullptr;
    penstock_dataset* dataset = nullptr;
    checked(penstock_datafile_open(context, scratch_file().c_str(), &how.value, &file, &error), error);
    checked(penstock_dataset_open(file, input.coin() ? nullptr : "data", &dataset, &error), error);
    box.value.rank = input.coin() ? 2 : box.value.rank;
    box.value.start = input.coin() ? numbers[0] : nullptr;
    box.value.count = input.coin() ? numbers[1] : nullptr;
    box.value.step = input.coin() ? numbers[2] : nullptr;
    box.value.strides_bytes = input.coin() ? strides : nullptr;
    request.value = PENSTOCK_REQUEST_INIT;
    request.value.memory = memory;
    result.value.evidence = nullptr;
    const int code = checked(penstock_dataset_read(dataset, input.coin() ? &box.value : nullptr, &request.value,
                                                   input.coin() ? &result.value : nullptr, &error), error);
    promise(code != PENSTOCK_INTERNAL, "no selection is an internal error");
    checked(penstock_dataset_write(dataset, &box.value, &request.value, nullptr, &error), error);
    penstock_dataset_close(dataset);
    penstock_datafile_close(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    Input input(data, bytes);
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context* context = drawn_context(input);
    Roomy<penstock_buffer_options> wanted(input);
    wanted.value.bytes %= 2 * kBytes;
    penstock_buffer* buffer = nullptr;
    checked(penstock_buffer_allocate(context, &wanted.value, &buffer, &error), error);
    Roomy<penstock_open_options> how(input);
    how.value.mode = input.coin() ? PENSTOCK_READ : how.value.mode % 2;
    penstock_file* file = nullptr;
    checked(penstock_file_open(context, scratch_file().c_str(), &how.value, &file, &error), error);
    penstock_memory memory = {nullptr, 0, 0, 0};
    if (buffer != nullptr) checked(penstock_buffer_memory(buffer, &memory, &error), error);
    for (int i = 0; i < 3; ++i) try_transfer(input, file, memory);
    checked(penstock_file_close(file, &error), error);
    try_dataset(input, context, memory);
    penstock_buffer_free(buffer);
    penstock_context_destroy(context);
    return 0;
}
