// Memory of a GPU in the program's reads and writes: whose a pointer is, and the engine that moves its bytes.
//
// CUDA is never loaded here: a process that has not loaded it has no such pointer. libpenstock.so is loaded at the
// first one. Bytes that a call moved are in the file, or in memory, when the call returns, as with the kernel's own.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "preload/ask/table.hpp"

namespace preload {

// Calls of fewer bytes are tried as they are: with memory of a device they fail with EFAULT, and then it is asked.
inline constexpr std::int64_t kPointerBytes = 64 * 1024;

struct GpuPointer {
    enum class Kind : std::uint8_t { host, device, managed };
    Kind kind = Kind::host;
    int device = 0;
    explicit operator bool() const { return kind != Kind::host; }
};

struct GpuCall {
    Direction direction;
    int number;  // the descriptor
    void* data;
    std::int64_t bytes;
    std::int64_t offset = -1;  // below 0: where the descriptor stands, which then moves on
};

// Whose memory it is. Host memory wherever CUDA is not loaded or does not know it.
GpuPointer gpu_pointer(void* data);

// Moves the bytes of a call as read() or write() would, and sets `result` to what they would return. Returns false if
// it moved nothing, so that the caller makes the ordinary call.
bool move_by_gpu(const GpuCall& call, const GpuPointer& pointer, ssize_t& result);

// Bytes of the host, to where a stream's own copy would be the CPU's. Comes after what the default stream was given.
bool copy_to_gpu(const GpuPointer& pointer, void* data, const void* host, std::int64_t bytes);

void close_engine_files(Descriptor& descriptor);
void forget_engine();  // in the child of a fork: contexts and handles are the parent's

}  // namespace preload
