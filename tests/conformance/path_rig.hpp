// What the Path kit needs from a test. A Rig makes paths, files and memory, and reads a file back in another way.
//
// A rig for device memory overrides allocate, store and load. The rest of the kit stays the same.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "path/path.hpp"
#include "penstock/stamp.hpp"

namespace penstock::conformance {

using Bytes = std::vector<std::byte>;

inline Bytes pattern(std::uint64_t bytes, std::uint64_t seed) {
    Bytes out(bytes);
    for (std::uint64_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(stamp_byte(seed, i));
    return out;
}

struct RigTraits {
    std::uint32_t offset_step = 1;               // offsets and lengths of operations are multiples of this
    std::uint32_t memory_step = 1;               // addresses are multiples of this
    bool extends = true;                         // a write past the end extends the file
    std::chrono::milliseconds patience{10'000};  // a completion that has not arrived after this time never will
};

class Rig {
  public:
    virtual ~Rig() = default;
    virtual std::unique_ptr<Path> path(std::uint32_t depth) = 0;
    // Files are closed with the rig.
    virtual FileHandle make_file(const Bytes& contents, bool writable) = 0;
    virtual FileHandle closed_file() = 0;  // a handle behind which nothing is open
    virtual Bytes contents(const FileHandle& file) = 0;

    virtual std::shared_ptr<std::byte> allocate(std::uint64_t bytes) {
        constexpr std::size_t kAlignment = 64 * 1024;
        void* memory = std::aligned_alloc(kAlignment, align_up(bytes, kAlignment));
        if (memory == nullptr) throw std::bad_alloc();
        return {static_cast<std::byte*>(memory), [](std::byte* owned) { std::free(owned); }};
    }
    virtual void store(std::byte* memory, std::span<const std::byte> bytes) {
        std::memcpy(memory, bytes.data(), bytes.size());
    }
    virtual Bytes load(const std::byte* memory, std::uint64_t bytes) { return {memory, memory + bytes}; }

    RigTraits traits;
};

// The same rig with every path wrapped, for decorators.
class WrappedRig final : public Rig {
  public:
    using Wrap = std::function<std::unique_ptr<Path>(std::unique_ptr<Path>)>;
    WrappedRig(std::unique_ptr<Rig> inner, Wrap wrap) : inner_(std::move(inner)), wrap_(std::move(wrap)) {
        traits = inner_->traits;
    }
    std::unique_ptr<Path> path(std::uint32_t depth) override { return wrap_(inner_->path(depth)); }
    FileHandle make_file(const Bytes& contents, bool writable) override {
        return inner_->make_file(contents, writable);
    }
    FileHandle closed_file() override { return inner_->closed_file(); }
    Bytes contents(const FileHandle& file) override { return inner_->contents(file); }
    std::shared_ptr<std::byte> allocate(std::uint64_t bytes) override { return inner_->allocate(bytes); }
    void store(std::byte* memory, std::span<const std::byte> bytes) override { inner_->store(memory, bytes); }
    Bytes load(const std::byte* memory, std::uint64_t bytes) override { return inner_->load(memory, bytes); }

  private:
    std::unique_ptr<Rig> inner_;
    Wrap wrap_;
};

}  // namespace penstock::conformance
