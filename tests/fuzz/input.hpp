// What the fuzz targets share: numbers and text drawn from a fuzzer's bytes, and the report of a broken promise.
//
// An input that is used up gives zeros, so every input is a valid case. Targets are deterministic: the same bytes give
// the same case. Each defines LLVMFuzzerTestOneInput, which libFuzzer calls, or replay.cpp with the kept inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>

namespace penstock::fuzz {

class Input {
  public:
    Input(const std::uint8_t* data, std::size_t bytes) : left_(data, bytes) {}

    template <typename Number>
    Number number() {
        Number value{};
        const std::size_t bytes = left_.size() < sizeof value ? left_.size() : sizeof value;
        if (bytes != 0) std::memcpy(&value, left_.data(), bytes);
        left_ = left_.subspan(bytes);
        return value;
    }
    // Returns a number in [low, high].
    std::uint64_t between(std::uint64_t low, std::uint64_t high) {
        return low + number<std::uint32_t>() % (high - low + 1);
    }
    bool coin() { return (number<std::uint8_t>() & 1) != 0; }
    std::string rest() const { return {reinterpret_cast<const char*>(left_.data()), left_.size()}; }
    bool empty() const noexcept { return left_.empty(); }

  private:
    std::span<const std::uint8_t> left_;
};

// A new folder in the temporary directory, removed by the destructor.
class Folder {
  public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "penstock-fuzz-XXXXXX").string();
        if (::mkdtemp(name.data()) != nullptr) name_ = name;
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(name_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string operator/(const char* leaf) const { return name_ + "/" + leaf; }

  private:
    std::string name_ = "/nonexistent";
};

// Ends the program if a promise is broken: libFuzzer then keeps the input, and the replay fails.
inline void promise(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "promise broken: %s\n", what);
    std::abort();
}

}  // namespace penstock::fuzz
