// The steps that need no library: the shuffle, and checksums behind the data.
#include <algorithm>

#include "data/decode/checksums/sums.hpp"
#include "data/decode/shuffles/shuffle.hpp"
#include "data/encode/step.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

class ShuffleStep final : public EncodeStep {
  public:
    explicit ShuffleStep(std::size_t item_bytes) : item_bytes_(item_bytes) {}
    Encoded apply(std::span<const std::byte> plain, std::span<std::byte> room, StageState*) const override {
        shuffle(plain, room.first(plain.size()), item_bytes_);
        return {plain.size()};
    }
    std::uint64_t most_bytes(std::uint64_t plain) const override { return plain; }

  private:
    std::size_t item_bytes_;
};

class SumStep final : public EncodeStep {
  public:
    using Sum = std::uint32_t (*)(std::span<const std::byte>);
    explicit SumStep(Sum sum) : sum_(sum) {}
    Encoded apply(std::span<const std::byte> plain, std::span<std::byte> room, StageState*) const override {
        std::copy(plain.begin(), plain.end(), room.begin());
        const std::uint32_t sum = sum_(plain);
        std::byte* const behind = room.data() + plain.size();
        for (std::size_t i = 0; i < kSumBytes; ++i) behind[i] = static_cast<std::byte>(sum >> 8 * i & 0xff);
        return {plain.size() + kSumBytes};
    }
    std::uint64_t most_bytes(std::uint64_t plain) const override { return plain + kSumBytes; }

  private:
    Sum sum_;
};

}  // namespace

EncodeStepPtr make_shuffling(const Values& values) {
    if (values.empty() || values[0] == 0) {
        throw Error(ErrorCode::invalid_argument, "encode chunks", "shuffle needs the bytes of an element",
                    "give them as its value");
    }
    return std::make_unique<ShuffleStep>(values[0]);
}
EncodeStepPtr make_fletcher32_behind(const Values&) { return std::make_unique<SumStep>(&fletcher32); }
EncodeStepPtr make_crc32c_behind(const Values&) { return std::make_unique<SumStep>(&crc32c); }

}  // namespace penstock::data
