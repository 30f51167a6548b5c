// Records what reached a file, in order: each write, each range of zeros, each flush, and the marks that a test sets in
// between. A power cut loses what comes after the last flush in the record.
//
// An entry begins with a head of 24 bytes, all numbers little-endian: kind (4), length (4), offset (8), and the length
// of a range of zeros (8). For writes and marks, `length` bytes follow.
#pragma once

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

namespace faults {

class Record {
  public:
    explicit Record(const std::string& path)
        : file_(path.empty() ? -1 : open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600)) {}
    Record(const Record&) = delete;
    Record& operator=(const Record&) = delete;
    ~Record() {
        if (on()) close(file_);
    }

    bool on() const { return file_ >= 0; }
    void write(std::uint64_t offset, std::span<const std::byte> data) { add(kWrite, offset, 0, data); }
    void zero(std::uint64_t offset, std::uint64_t length) { add(kZero, offset, length, {}); }
    void flush() { add(kFlush, 0, 0, {}); }
    void mark(const std::string& text) { add(kMark, 0, 0, std::as_bytes(std::span(text))); }

  private:
    enum Kind : std::uint32_t { kWrite = 1, kFlush = 2, kZero = 3, kMark = 4 };
    struct Head {
        std::uint32_t kind, bytes;
        std::uint64_t offset, length;
    };

    void add(Kind kind, std::uint64_t offset, std::uint64_t length, std::span<const std::byte> data) {
        if (!on()) return;
        const std::scoped_lock lock(mutex_);
        Head head{kind, static_cast<std::uint32_t>(data.size()), offset, length};
        const std::array<iovec, 2> parts{{{&head, sizeof head}, {const_cast<std::byte*>(data.data()), data.size()}}};
        // An incomplete record proves nothing, so the test's reader refuses one that ends inside an entry.
        [[maybe_unused]] const auto put = writev(file_, parts.data(), 2);
    }

    std::mutex mutex_;  // keeps entries complete and in order
    int file_;
};

}  // namespace faults
