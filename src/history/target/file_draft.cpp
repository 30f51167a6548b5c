// See file_draft.hpp.
#include "history/target/file_draft.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::history {

void SummingSink::write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
    constexpr std::uint64_t prime = 0x100000001b3;
    const auto add = [this](std::uint64_t word) {
        sum_ = (sum_ ^ word) * prime;
        sum_ ^= sum_ >> 32;  // a multiplication alone takes no bit to a lower place
    };
    add(offset_bytes);
    add(bytes.size());
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), sizeof(std::uint64_t)))) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof(word)));
        add(word);
    }
}

void KeepingSink::write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
    if (sink_ != nullptr) return sink_->write(offset_bytes, bytes);
    kept_.push_back({offset_bytes, {bytes.begin(), bytes.end()}});
}

void KeepingSink::barrier() {
    if (sink_ != nullptr) return sink_->barrier();
    kept_.push_back({.is_barrier = true});
}

void KeepingSink::copy_to(formats::ByteSink& sink) const {
    for (const KeptWrite& one : kept_) {
        if (one.is_barrier) {
            sink.barrier();
        } else {
            sink.write(one.offset_bytes, one.bytes);
        }
    }
}

void KeepingSink::pass_to(formats::ByteSink& sink) {
    copy_to(sink);
    kept_ = {};
    sink_ = &sink;
}

std::uint64_t FileDraft::digest() const {
    SummingSink sum("sum");
    sink_.copy_to(sum);
    return sum.sum();
}

const std::vector<formats::DataPlace>& FileDraft::first() {
    if (!first_) first_ = growing_->reserve({});
    return *first_;
}

std::vector<formats::DataPlace> FileDraft::reserve(std::span<const formats::StoredChunks> stored) {
    if (first_ && !std::exchange(is_first_taken_, true)) return *first_;
    return growing_->reserve(stored);
}

}  // namespace penstock::history
