// Extent: bytes of an open file and the memory that belongs to them, as the context knows them.
//
// A user's Range becomes an Extent when its file is found. check() (transfer/check.hpp) adds what the file and the
// device know of it. The policy is told where it lies, the engine is given its addresses, and what reads the system's
// counters asks about its bytes.
#pragma once

#include <cstdint>
#include <memory>

namespace penstock::context {

class OpenFile;

struct Extent {
    std::shared_ptr<OpenFile> file;
    std::uint64_t offset_bytes = 0;
    void* memory = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t bytes_in_file = 0;   // a read: those before the end of the file; a write: all
    const void* allocation = nullptr;  // that the memory lies in; null where neither context nor device knows it
};

}  // namespace penstock::context
