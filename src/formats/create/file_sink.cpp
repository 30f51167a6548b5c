// See file_sink.hpp.
#include "formats/create/file_sink.hpp"

#include <vector>

namespace penstock::formats {

void FileSink::write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
    std::vector<std::byte> copy(bytes.begin(), bytes.end());  // a transfer takes memory that it could change
    file_
        ->write({copy.data(), copy.size(), MemoryKind::system}, offset_bytes,
                {.path = PathKind::buffered, .caller_waits = true})
        .or_throw();
}

void FileSink::barrier() {
    if (durable_) file_->sync();
}

}  // namespace penstock::formats
