// One read or write of the program, whichever function it called: memory of a GPU goes by the engine, the rest by the
// call behind, and then the watch learns of it.
#pragma once

#include <cerrno>

#include "preload/gpu/loaded.hpp"
#include "preload/gpu/moves.hpp"
#include "preload/watch.hpp"

namespace preload {

// Smaller items of a stream are gathered by its buffer, and no program has an array of a GPU that small.
inline constexpr std::int64_t kLeastGpu = 4096;

// Whose memory an item of a stream is; host memory where it is too small to be asked for.
inline GpuPointer asked_pointer(void* data, std::int64_t bytes) {
    const bool is_asked = bytes >= kPointerBytes || (bytes >= kLeastGpu && knows_cuda());
    return is_asked ? gpu_pointer(data) : GpuPointer{};
}

// `caller` is who called the function that stands in: what the engine moves is no call of the program.
template <typename Plain>
ssize_t through(const GpuCall& call, Plain plain, const void* caller = __builtin_return_address(0)) {
    ssize_t result = 0;
    if (call.bytes >= kPointerBytes && !is_in_engine(caller)) [[unlikely]] {
        if (const GpuPointer pointer = gpu_pointer(call.data)) {
            if (move_by_gpu(call, pointer, result)) return result;
        }
    }
    result = plain();
    if (result > 0) [[likely]] {
        if (Descriptor* one = watch.find(call.number)) watch.moved(*one, {call.direction, result, call.offset});
    } else if (result < 0 && errno == EFAULT) {
        if (const GpuPointer pointer = gpu_pointer(call.data)) {
            if (!move_by_gpu(call, pointer, result)) errno = EFAULT;
        }
    }
    return result;
}

}  // namespace preload
