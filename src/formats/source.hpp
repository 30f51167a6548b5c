// ByteSource: the bytes that a format's parser looks at, so that parsers know neither files nor contexts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::formats {

class ByteSource {
  public:
    virtual ~ByteSource() = default;
    virtual const std::string& name() const = 0;  // of the file, for errors
    virtual std::uint64_t size_bytes() const = 0;
    // Fewer bytes than asked for where the file ends. Throws Error of the system.
    virtual std::vector<std::byte> read(std::uint64_t offset_bytes, std::uint64_t bytes) const = 0;
};

}  // namespace penstock::formats
