// HDF5's nbit (filter 5): of each number of an element the bits that its type uses, one behind the other.
//
// The values describe the type: a number, an array, a compound, or bytes that are kept whole. They are taken apart
// once, to runs of equal numbers. Ensures: an element has at most kMostParts of them; what lies outside its numbers is
// zero.
#include <algorithm>
#include <cstring>

#include "data/decode/bits/bit_row.hpp"
#include "data/decode/bits/unchanged.hpp"
#include "data/decode/makers.hpp"
#include "penstock/error.hpp"

namespace penstock::data {
namespace {

constexpr std::size_t kMostParts = 1 << 16, kMostDepth = 64;
constexpr std::uint32_t kNumber = 1, kArray = 2, kCompound = 3, kBytes = 4;  // classes of types
constexpr std::size_t kFlagAt = 1, kCountAt = 2, kClassAt = 3, kSizeAt = 4;  // in the values

// Numbers that follow each other in an element.
struct NumberRun {
    std::uint64_t at, count;
    std::uint32_t bytes;  // of one, at most 8
    bool big_endian;
    std::uint32_t bits, offset;  // that one has, and how many lie below them
};

[[noreturn]] void refuse_nbit() {
    throw Error(ErrorCode::unsupported, "decode chunks", "the filter nbit has values that are not known",
                "let the format's own library decode them");
}

// Takes the description of a type apart.
class Described {
  public:
    explicit Described(const Values& values) : values_(values), next_(kSizeAt) {
        add(values[kClassAt], 0, values[kSizeAt], 0);
        if (next_ != values.size()) refuse_nbit();
    }
    std::vector<NumberRun> runs{};

  private:
    std::uint64_t next() {
        if (next_ == values_.size()) refuse_nbit();
        return values_[next_++];
    }

    // Returns the bytes of a type at byte `at` of an element, of which `most` are left.
    std::uint64_t add(std::uint32_t kind, std::uint64_t at, std::uint64_t most, std::size_t depth) {
        const std::uint64_t bytes = next();
        if (bytes == 0 || bytes > most || depth > kMostDepth) refuse_nbit();
        if (kind == kNumber) add_numbers(at, bytes, 1);
        else if (kind == kArray) add_array(at, bytes, depth);
        else if (kind == kCompound) add_members(at, bytes, depth);
        else if (kind == kBytes) push({at, bytes, 1, false, kBitsOfByte, 0});
        else refuse_nbit();
        return bytes;
    }
    void add_members(std::uint64_t at, std::uint64_t bytes, std::size_t depth) {
        const std::uint64_t members = next();
        if (members == 0) refuse_nbit();
        std::uint64_t used = 0;
        for (std::uint64_t i = 0; i < members; ++i) {
            const std::uint64_t offset = next();
            const auto kind = static_cast<std::uint32_t>(next());
            if (offset >= bytes) refuse_nbit();
            used += add(kind, at + offset, bytes - offset, depth + 1);
            if (used > bytes) refuse_nbit();
        }
    }
    void add_array(std::uint64_t at, std::uint64_t bytes, std::size_t depth) {
        const auto kind = static_cast<std::uint32_t>(next());
        if (kind == kBytes) {
            next();
            return push({at, bytes, 1, false, kBitsOfByte, 0});
        }
        const std::size_t inner = next_;
        if (kind == kNumber) {
            const std::uint64_t each = next();
            if (each == 0 || each > bytes) refuse_nbit();
            return add_numbers(at, each, bytes / each);
        }
        std::uint64_t done = 0;
        do {
            next_ = inner;
            done += add(kind, at + done, bytes - done, depth + 1);
        } while (done + values_[inner] <= bytes);
    }
    void add_numbers(std::uint64_t at, std::uint64_t bytes, std::uint64_t count) {
        const std::uint64_t order = next(), bits = next(), offset = next();
        if (order > 1 || bits == 0 || bits + offset > kBitsOfByte * bytes) refuse_nbit();
        const bool big_endian = order == 1;
        if (bytes <= sizeof(std::uint64_t)) {
            return push({at, count, static_cast<std::uint32_t>(bytes), big_endian, static_cast<std::uint32_t>(bits),
                         static_cast<std::uint32_t>(offset)});
        }
        for (std::uint64_t i = 0; i < count; ++i) add_wide(at + i * bytes, bytes, big_endian, {offset, offset + bits});
    }
    struct Bits {
        std::uint64_t begin, end;  // from the lowest bit
    };
    // The bytes of a number of more than 8, the highest first.
    void add_wide(std::uint64_t at, std::uint64_t bytes, bool big_endian, Bits used) {
        for (std::uint64_t place = bytes; place-- > 0;) {
            const std::uint64_t low = std::max(place * kBitsOfByte, used.begin);
            const std::uint64_t high = std::min((place + 1) * kBitsOfByte, used.end);
            if (low >= high) continue;
            push({at + (big_endian ? bytes - 1 - place : place), 1, 1, false, static_cast<std::uint32_t>(high - low),
                  static_cast<std::uint32_t>(low % kBitsOfByte)});
        }
    }
    void push(const NumberRun& run) {
        if (runs.size() == kMostParts) refuse_nbit();
        runs.push_back(run);
    }

    const Values& values_;
    std::size_t next_;
};

template <class Word>
void put_number(std::byte* to, std::uint64_t number, const NumberRun& run) noexcept {
    auto word = static_cast<Word>(number << run.offset);
    if (run.big_endian) word = swapped(word);
    std::memcpy(to, &word, sizeof word);
}

// Of any size up to 8 bytes.
void put_any(std::byte* to, std::uint64_t number, const NumberRun& run) noexcept {
    std::uint64_t word = number << run.offset;
    if (run.big_endian) word = swapped(word) >> (kBitsOfWord - kBitsOfByte * run.bytes);
    std::memcpy(to, &word, run.bytes);
}

void put(std::byte* to, std::uint64_t number, const NumberRun& run) noexcept {
    switch (run.bytes) {
        case 1: return put_number<std::uint8_t>(to, number, run);
        case 2: return put_number<std::uint16_t>(to, number, run);
        case 4: return put_number<std::uint32_t>(to, number, run);
        case 8: return put_number<std::uint64_t>(to, number, run);
        default: return put_any(to, number, run);
    }
}

template <class Word>
void put_all(const BitRow& row, std::uint64_t count, const NumberRun& run, std::byte* to) {
    row.each(count, run.bits, [=](std::uint64_t i, std::uint64_t number) {
        put_number<Word>(to + i * sizeof(Word), number, run);
    });
}

class Nbit final : public Stage {
  public:
    Nbit(std::uint64_t count, std::uint64_t item_bytes, std::vector<NumberRun> runs)
        : count_(count), item_bytes_(item_bytes), runs_(std::move(runs)) {
        for (const NumberRun& run : runs_) item_bits_ += run.count * run.bits;
    }

    Undone undo(std::span<const std::byte> stored, std::span<std::byte> room, StageState*) const override {
        if (item_bytes_ * count_ > room.size()) {
            return {{}, "it decodes to " + std::to_string(item_bytes_ * count_) + " bytes, more than the " +
                            std::to_string(room.size()) + " of its shape"};
        }
        if ((count_ * item_bits_ + 7) / kBitsOfByte > stored.size()) return {{}, "it was cut short"};
        const std::span<std::byte> out = room.first(item_bytes_ * count_);
        const BitRow row(stored);
        const bool is_number = runs_.size() == 1 && runs_[0].at == 0 && runs_[0].bytes * runs_[0].count == item_bytes_;
        if (!is_number) {
            put_items(row, out);
        } else {
            put_numbers(row, count_ * runs_[0].count, out.data());
        }
        return {out};
    }
    std::uint64_t most_ratio() const override { return (kBitsOfByte * item_bytes_ + item_bits_ - 1) / item_bits_; }

  private:
    void put_numbers(const BitRow& row, std::uint64_t count, std::byte* to) const {
        const NumberRun& run = runs_[0];
        switch (run.bytes) {
            case 1: return put_all<std::uint8_t>(row, count, run, to);
            case 2: return put_all<std::uint16_t>(row, count, run, to);
            case 4: return put_all<std::uint32_t>(row, count, run, to);
            case 8: return put_all<std::uint64_t>(row, count, run, to);
            default: break;
        }
        row.each(count, run.bits,
                 [=](std::uint64_t i, std::uint64_t number) { put_any(to + i * run.bytes, number, run); });
    }
    void put_items(const BitRow& row, std::span<std::byte> out) const {
        std::fill(out.begin(), out.end(), std::byte{0});
        std::uint64_t bit = 0;
        for (std::byte* item = out.data(); item != out.data() + out.size(); item += item_bytes_) {
            for (const NumberRun& run : runs_) {
                std::byte* to = item + run.at;
                for (std::uint64_t i = 0; i < run.count; ++i, bit += run.bits, to += run.bytes) {
                    put(to, row.number(bit, run.bits), run);
                }
            }
        }
    }

    std::uint64_t count_, item_bytes_;
    std::vector<NumberRun> runs_;
    std::uint64_t item_bits_ = 0;
};

}  // namespace

// Values: how many they are, whether nothing is packed, elements of a chunk, and the type.
StagePtr make_nbit(const Values& values) {
    if (values.size() <= kSizeAt || values[0] != values.size()) refuse_nbit();
    if (values[kFlagAt] != 0) return std::make_unique<Unchanged>();
    Described type(values);
    return std::make_unique<Nbit>(values[kCountAt], values[kSizeAt], std::move(type.runs));
}

}  // namespace penstock::data
