// safetensors: names, types and byte ranges as JSON, then the data of all tensors without gaps.
//
// What the reference implementation refuses is refused: a header above 100 MB, names that are there twice, ranges that
// overlap, leave gaps, do not fit shape and type, or do not end where the file ends. A tensor of a type that has no
// plain bytes, or that is not known, is listed with its refusal.
#include <algorithm>
#include <array>

#include "formats/faults.hpp"
#include "formats/json/json_reader.hpp"
#include "formats/parsers.hpp"
#include "formats/safetensors/tensor_types.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint64_t kMostTensorHeader = 100'000'000;  // of the reference implementation
constexpr std::uint64_t kTensorBegin = 64;

struct Tensor {
    StoredDataset dataset;
    std::uint64_t first = 0, end = 0;  // in the section of data
};

struct TensorHeader {
    Value value;
    std::uint64_t data_offset = 0;
};

// Headers are padded with spaces, by some writers with more than the parser looks through in the time of a small read.
std::string_view without_padding(std::string_view text) {
    constexpr std::string_view kSpaces = "                                                                ";
    while (text.ends_with(kSpaces)) text.remove_suffix(kSpaces.size());
    return text;
}

TensorHeader tensor_header(const ByteSource& source) {
    const std::vector<std::byte> begin = source.read(0, kTensorBegin);
    if (begin.size() < 8 && !begin.empty()) {
        throw damaged({source.name()},
                      "it has " + std::to_string(begin.size()) + " bytes, too few for a safetensors file");
    }
    std::uint64_t size = 0;
    for (std::size_t i = std::min<std::size_t>(8, begin.size()); i-- > 0;) {
        size = size << 8 | std::to_integer<std::uint64_t>(begin[i]);
    }
    const bool is_text = std::all_of(begin.begin(), begin.begin() + std::min<std::ptrdiff_t>(8, std::ssize(begin)),
                                     [](std::byte one) { return std::to_integer<int>(one) < 0x80; });
    const bool is_ours =
        !begin.empty() && (begin.size() == 8 || begin[8] == std::byte{'{'}) && !(size > kMostTensorHeader && is_text);
    if (!is_ours) throw foreign(source.name(), "safetensors", begin);
    if (size > kMostTensorHeader) {
        throw damaged({source.name()}, "a header of " + std::to_string(size) + " bytes; the limit is 100000000");
    }
    const std::vector<std::byte> raw = 8 + size > source.size_bytes() ? std::vector<std::byte>{} : source.read(8, size);
    if (raw.size() != size) {
        throw cut_short({source.name()}, "the header ends at byte " + std::to_string(8 + size) + ", the file at " +
                                             std::to_string(source.size_bytes()));
    }
    try {
        Value value = read_json(without_padding({reinterpret_cast<const char*>(raw.data()), raw.size()}));
        if (value.members() == nullptr) throw BadDocument{"it is no object"};
        return {std::move(value), 8 + size};
    } catch (const BadDocument& bad) {
        throw damaged({source.name()}, "the header is not JSON: " + bad.cause);
    }
}

// Bits of all elements; nothing: more than a file can hold.
std::optional<std::uint64_t> bits_of(const std::vector<std::int64_t>& shape, std::uint64_t item_bits) {
    std::uint64_t bits = item_bits;
    for (const std::int64_t extent : shape) {
        if (__builtin_mul_overflow(bits, static_cast<std::uint64_t>(extent), &bits)) return std::nullopt;
    }
    return bits;
}

StoredDataset described(const Subject& place, const std::string& code, const std::vector<std::int64_t>& shape) {
    const TensorType* const known = tensor_type(code);
    ElementType type;
    std::string refusal;
    if (known == nullptr) {
        refusal = "it is of type " + shown(code) + ", which is not known";
    } else if (known->type == nullptr) {
        refusal = "it is of type " + shown(code) + "; its elements have " + std::to_string(known->bits) + " bits";
    } else {
        type_named(known->type, type);
        type = stored_in(type, false);
    }
    if (shape.size() > data::kMostDimensions) refusal = "it has " + std::to_string(shape.size()) + " dimensions";
    StoredDataset dataset = contiguous(place.dataset, type, refusal.empty() ? shape : std::vector<std::int64_t>{}, 0);
    dataset.refusal = refusal;
    return dataset;
}

Tensor tensor_of(const Subject& place, const Value& entry) {
    const Value *type = entry.member("dtype"), *sizes = entry.member("shape"), *ends = entry.member("data_offsets");
    if (type == nullptr || sizes == nullptr || ends == nullptr) {
        throw damaged(place, "its entry lacks dtype, shape or data_offsets");
    }
    if (type->text() == nullptr) throw damaged(place, "its type is no text");
    const auto shape = sizes->list() != nullptr ? integers(*sizes->list(), 0) : std::nullopt;
    if (!shape || shape->size() > 64) throw damaged(place, "its shape is no list of sizes");
    const auto range = ends->list() != nullptr ? integers(*ends->list(), 0) : std::nullopt;
    if (!range || range->size() != 2 || (*range)[0] > (*range)[1]) {
        throw damaged(place, "its data_offsets are no first and last byte");
    }
    const auto first = static_cast<std::uint64_t>((*range)[0]), end = static_cast<std::uint64_t>((*range)[1]);
    const TensorType* const known = tensor_type(*type->text());
    if (known != nullptr) {
        const auto bits = bits_of(*shape, known->bits);
        if (!bits || *bits % 8 != 0 || *bits / 8 != end - first) {
            throw damaged(place, "shape " + shown(*shape) + " of " + *type->text() + " does not need the " +
                                     std::to_string(end - first) + " bytes that its data_offsets give");
        }
    }
    return {described(place, *type->text(), *shape), first, end};
}

// Sorted by place: each begins where the one before ends, the last ends where the file does.
void check_ranges(const ByteSource& source, const std::vector<Tensor>& tensors, std::uint64_t there) {
    std::uint64_t end = 0;
    for (const Tensor& one : tensors) {
        if (one.first != end) {
            const char* what = one.first < end ? " of the data and overlaps the one before"
                                               : " of the data and leaves a gap before it";
            throw damaged({source.name(), one.dataset.name}, "it begins at " + std::to_string(one.first) + what +
                                                                 ", which ends at " + std::to_string(end));
        }
        end = one.end;
    }
    if (end == there) return;
    const std::string cause =
        "the header describes " + std::to_string(end) + " bytes of data, the file has " + std::to_string(there);
    throw there < end ? cut_short({source.name()}, cause) : damaged({source.name()}, cause);
}

}  // namespace

std::vector<StoredDataset> parse_safetensors(const ByteSource& source) {
    const TensorHeader header = tensor_header(source);
    std::vector<Tensor> tensors;
    tensors.reserve(header.value.members()->size());
    for (const auto& [name, entry] : *header.value.members()) {
        if (name != "__metadata__") {
            tensors.push_back(tensor_of({source.name(), name}, entry));
            continue;
        }
        const Members* texts = entry.members();
        const bool is_text = texts != nullptr && std::all_of(texts->begin(), texts->end(), [](const auto& one) {
                                 return one.value.text() != nullptr;
                             });
        if (!is_text) throw damaged({source.name()}, "__metadata__ is not a mapping from text to text");
    }
    const auto before = [](const Tensor& one, const Tensor& other) {
        return std::pair(one.first, one.end) < std::pair(other.first, other.end);
    };
    if (!std::is_sorted(tensors.begin(), tensors.end(), before)) {  // as writers leave them
        std::stable_sort(tensors.begin(), tensors.end(), before);
    }
    check_ranges(source, tensors, source.size_bytes() - header.data_offset);
    std::vector<StoredDataset> datasets;
    datasets.reserve(tensors.size());
    for (Tensor& one : tensors) {
        one.dataset.offset_bytes = header.data_offset + one.first;
        datasets.push_back(std::move(one.dataset));
    }
    return datasets;
}

}  // namespace penstock::formats
