// Speaks the kernel's FUSE protocol directly: one request as it arrived, and the answers to it. Without a library in
// between, tests control everything that the kernel asks: unnamed files, interrupted requests, missing answers.
#pragma once

#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace faults {

// The headers of some systems lack these.
constexpr std::uint32_t kSyncFs = 50, kTmpfile = 51;

class Request {
  public:
    Request(int channel, std::span<const std::byte> all) : channel_(channel), all_(all) {
        std::memcpy(&head, all.data(), sizeof head);
    }

    // Returns what follows the header, from `skip` on, as a structure of the protocol. The rest is zero if the kernel
    // sent less.
    template <class T>
    T as(std::size_t skip = 0) const {
        T value{};
        const auto rest = body().subspan(std::min(skip, body().size()));
        std::memcpy(&value, rest.data(), std::min(sizeof value, rest.size()));
        return value;
    }

    // Returns the zero-terminated text at `skip`.
    std::string text(std::size_t skip = 0) const {
        if (skip >= body().size()) return {};
        const auto rest = body().subspan(skip);
        const char* begin = reinterpret_cast<const char*>(rest.data());
        return {begin, strnlen(begin, rest.size())};
    }

    std::span<const std::byte> body() const { return all_.subspan(sizeof(fuse_in_header)); }

    void fail(int error) const { send(-error, {}); }
    void done() const { send(0, {}); }
    // Answers with the result of a system call: errno if it failed.
    void result(long value) const { fail(value < 0 ? errno : 0); }

    template <class... T>
    void answer(const T&... parts) const {
        std::vector<std::byte> bytes;
        (append(bytes, parts), ...);
        send(0, bytes);
    }

    void send(int error, std::span<const std::byte> bytes) const {
        if (first) first();
        const fuse_out_header out{static_cast<std::uint32_t>(sizeof out + bytes.size()), error, head.unique};
        const std::array<iovec, 2> parts{
            {{const_cast<fuse_out_header*>(&out), sizeof out}, {const_cast<std::byte*>(bytes.data()), bytes.size()}}};
        // The kernel may have ended the request (ENOENT), which needs no action.
        [[maybe_unused]] const auto sent = writev(channel_, parts.data(), 2);
    }

    fuse_in_header head{};
    mutable std::function<void()> first;  // called after the operation and before its answer

  private:
    template <class T>
    static void append(std::vector<std::byte>& bytes, const T& part) {
        const auto* begin = reinterpret_cast<const std::byte*>(&part);
        bytes.insert(bytes.end(), begin, begin + sizeof part);
    }

    int channel_;
    std::span<const std::byte> all_;
};

}  // namespace faults
