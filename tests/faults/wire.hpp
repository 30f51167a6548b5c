// The kernel's FUSE protocol, spoken directly: one request as it came, and answers to it. No library is needed, and
// none stands between a test and what the kernel asks: unnamed files, interrupted requests, answers that never come.
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

// Newer than the headers of some systems.
constexpr std::uint32_t kSyncFs = 50, kTmpfile = 51;

class Request {
  public:
    Request(int channel, std::span<const std::byte> all) : channel_(channel), all_(all) {
        std::memcpy(&head, all.data(), sizeof head);
    }

    // What follows the header, from `skip` on, as a structure of the protocol; zeros where the kernel sent less.
    template <class T>
    T as(std::size_t skip = 0) const {
        T value{};
        const auto rest = body().subspan(std::min(skip, body().size()));
        std::memcpy(&value, rest.data(), std::min(sizeof value, rest.size()));
        return value;
    }

    // The text at `skip`, up to its end mark.
    std::string text(std::size_t skip = 0) const {
        if (skip >= body().size()) return {};
        const auto rest = body().subspan(skip);
        const char* begin = reinterpret_cast<const char*>(rest.data());
        return {begin, strnlen(begin, rest.size())};
    }

    std::span<const std::byte> body() const { return all_.subspan(sizeof(fuse_in_header)); }

    void fail(int error) const { send(-error, {}); }
    void done() const { send(0, {}); }
    // A call's own result: its errno where it failed.
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
        // The kernel may have given the request up (ENOENT); nothing is to be done about it here.
        [[maybe_unused]] const auto sent = writev(channel_, parts.data(), 2);
    }

    fuse_in_header head{};
    mutable std::function<void()> first;  // called between the deed and its answer

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
