// See plain_header.hpp.
#include "formats/safetensors/plain_header.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "data/layout/layout.hpp"
#include "formats/safetensors/tensor_types.hpp"

namespace penstock::formats {
namespace {

constexpr std::size_t kMostNotes = 16;  // of the metadata, which are compared with each other
constexpr int kMostDigits = 18;         // of a number of 64 bits

// What comes next in the text. Each function is false, and the place undefined, where that is something else.
class PlainText {
  public:
    explicit PlainText(std::string_view text) : text_(text) {}

    bool has(char wanted) noexcept {
        skip_space();
        if (at_ == text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }
    // Nothing but space is left. Headers are padded with up to many KiB of it, which are compared with themselves, many
    // bytes at a time.
    bool is_over() noexcept {
        const std::string_view rest = text_.substr(at_);
        if (rest.starts_with(' ') && std::memcmp(rest.data(), rest.data() + 1, rest.size() - 1) == 0) return true;
        skip_space();
        return at_ == text_.size();
    }
    bool word(std::string_view& found) noexcept {
        if (!has('"')) return false;
        const std::size_t begin = at_;
        const auto is_plain = [](char one) { return one >= ' ' && one < 0x7f && one != '"' && one != '\\'; };
        while (at_ < text_.size() && is_plain(text_[at_])) ++at_;
        found = text_.substr(begin, at_ - begin);
        return has_here('"');
    }
    bool number(std::int64_t& found) noexcept {
        skip_space();
        const std::size_t begin = at_;
        found = 0;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - begin < kMostDigits) {
            found = found * 10 + (text_[at_++] - '0');
        }
        const std::size_t digits = at_ - begin;
        return digits == 1 || (digits > 1 && text_[begin] != '0');
    }
    // Numbers in brackets; `take` is false of one that is not wanted.
    template <typename Take>
    bool numbers(const Take& take) {
        if (!has('[')) return false;
        if (has(']')) return true;
        do {
            std::int64_t one = 0;
            if (!number(one) || !take(one)) return false;
        } while (has(','));
        return has(']');
    }
    // Members of an object; `take` gets the name, and reads the value.
    template <typename Take>
    bool members(const Take& take) {
        if (!has('{')) return false;
        if (has('}')) return true;
        do {
            std::string_view name;
            if (!word(name) || !has(':') || !take(name)) return false;
        } while (has(','));
        return has('}');
    }

  private:
    bool has_here(char wanted) noexcept {
        if (at_ == text_.size() || text_[at_] != wanted) return false;
        ++at_;
        return true;
    }
    void skip_space() noexcept {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' ||
                                      text_[at_] == '\r')) {
            ++at_;
        }
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

bool read_texts(PlainText& text) {
    std::vector<std::string_view> names;
    return text.members([&](std::string_view name) {
        if (names.size() == kMostNotes || std::find(names.begin(), names.end(), name) != names.end()) return false;
        names.push_back(name);
        std::string_view value;
        return text.word(value);
    });
}

bool read_ends(PlainText& text, PlainTensor& tensor) {
    std::int64_t ends[2] = {0, 0};
    std::size_t count = 0;
    const bool is_read = text.numbers([&](std::int64_t one) {
        if (count == 2) return false;
        ends[count++] = one;
        return true;
    });
    tensor.first = static_cast<std::uint64_t>(ends[0]);
    tensor.end = static_cast<std::uint64_t>(ends[1]);
    return is_read && count == 2 && tensor.first <= tensor.end;
}

bool read_shape(PlainText& text, PlainTensor& tensor, std::vector<std::int64_t>& extents) {
    tensor.first_extent = extents.size();
    const bool is_read = text.numbers([&](std::int64_t one) {
        extents.push_back(one);
        return ++tensor.dimensions <= data::kMostDimensions;
    });
    return is_read;
}

// The entry of one tensor, whose shape is added to `extents`.
bool read_tensor(PlainText& text, PlainTensor& tensor, std::vector<std::int64_t>& extents) {
    const TensorType* type = nullptr;
    bool has_shape = false, has_ends = false;
    const bool is_read = text.members([&](std::string_view name) {
        if (name == "dtype" && type == nullptr) {
            std::string_view code;
            if (!text.word(code)) return false;
            type = tensor_type(code);
            return type != nullptr && type->type != nullptr;
        }
        if (name == "shape" && !has_shape) return has_shape = true, read_shape(text, tensor, extents);
        if (name == "data_offsets" && !has_ends) return has_ends = true, read_ends(text, tensor);
        return false;
    });
    if (!is_read || type == nullptr || !has_shape || !has_ends) return false;
    tensor.type = type->type;
    std::uint64_t bytes = type->bits / 8;
    for (std::size_t axis = 0; axis < tensor.dimensions; ++axis) {
        const auto extent = static_cast<std::uint64_t>(extents[tensor.first_extent + axis]);
        if (__builtin_mul_overflow(bytes, extent, &bytes)) return false;
    }
    return bytes == tensor.end - tensor.first;
}

}  // namespace

bool PlainHeader::read(std::string_view text, std::uint64_t data_bytes) {
    if (!text.starts_with('{')) return false;
    PlainText rest(text);
    const bool is_read = rest.members([&](std::string_view name) {
        if (name == "__metadata__") return !std::exchange(has_metadata_, true) && read_texts(rest);
        PlainTensor& tensor = tensors_.emplace_back();
        tensor.name = name;
        return !name.empty() && read_tensor(rest, tensor, extents_);
    });
    return is_read && rest.is_over() && order(data_bytes);
}

// Each begins where the one before ends, the last ends where the data do.
bool PlainHeader::order(std::uint64_t data_bytes) {
    const auto before = [](const PlainTensor& one, const PlainTensor& other) {
        return std::pair(one.first, one.end) < std::pair(other.first, other.end);
    };
    if (!std::is_sorted(tensors_.begin(), tensors_.end(), before)) {
        std::stable_sort(tensors_.begin(), tensors_.end(), before);
    }
    std::uint64_t end = 0;
    for (const PlainTensor& one : tensors_) {
        if (one.first != end) return false;
        end = one.end;
    }
    return end == data_bytes;
}

}  // namespace penstock::formats
