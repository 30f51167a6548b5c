// Reads of C++ file streams (libstdc++) into memory of a GPU.
//
// libstdc++ moves large arrays by read() and writev(), which are seen as they are. But a read first takes what the
// stream's buffer holds behind the values before it, and the CPU would copy that to the array. Those bytes, and arrays
// that fit the buffer, go by memory of the host here. Nothing of libstdc++ is linked: a program without it calls none
// of this.
#include <fstream>

#include "preload/symbols/moving.hpp"
#include "preload/symbols/next.hpp"

using Stream = std::basic_filebuf<char>;
extern "C" long _ZNSt13basic_filebufIcSt11char_traitsIcEE6xsgetnEPcl(Stream* stream, char* data, long bytes);

namespace {

constexpr long kBounceBytes = 8192;  // of the stack; a stream's buffer has as many

// What a class derived from the stream's may see of it: data, because its functions would have to be linked.
struct Shown : Stream {
    static long held(const Stream& stream) { return stream.*&Shown::_M_in_end - stream.*&Shown::_M_in_cur; }
    static long buffer_bytes(const Stream& stream) { return static_cast<long>(stream.*&Shown::_M_buf_size); }
};

long behind(Stream* stream, char* data, long bytes) {
    return PENSTOCK_NEXT(_ZNSt13basic_filebufIcSt11char_traitsIcEE6xsgetnEPcl)(stream, data, bytes);
}

// Bytes that moved.
long by_host(Stream* stream, const preload::GpuPointer& pointer, char* data, long bytes) {
    char host[kBounceBytes];
    long done = 0;
    while (done < bytes) {
        const long piece = std::min(kBounceBytes, bytes - done);
        const long moved = behind(stream, host, piece);
        if (moved <= 0 || !preload::copy_to_gpu(pointer, data + done, host, moved)) break;
        done += moved;
        if (moved < piece) break;
    }
    return done;
}

}  // namespace

PENSTOCK_SHOWN long _ZNSt13basic_filebufIcSt11char_traitsIcEE6xsgetnEPcl(Stream* stream, char* data, long bytes) {
    const preload::GpuPointer pointer = preload::asked_pointer(data, bytes);
    if (pointer.kind != preload::GpuPointer::Kind::device) [[likely]] return behind(stream, data, bytes);
    long done = 0;
    // Twice where a character was put back: libstdc++ has a buffer of its own for that one.
    for (long held = Shown::held(*stream); held > 0 && done < bytes; held = Shown::held(*stream)) {
        const long piece = std::min(held, bytes - done);
        const long moved = by_host(stream, pointer, data + done, piece);
        done += moved;
        if (moved < piece) return done;
    }
    const long rest = bytes - done;
    if (rest <= Shown::buffer_bytes(*stream)) return done + by_host(stream, pointer, data + done, rest);
    return done + std::max(behind(stream, data + done, rest), 0L);
}
