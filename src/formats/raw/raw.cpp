// Raw files: elements and nothing else; the caller says which type and shape. The one dataset is called "data".
#include "formats/faults.hpp"
#include "formats/parsers.hpp"

namespace penstock::formats {

std::vector<StoredDataset> describe_raw(const ByteSource& source, const RawShape& raw) {
    StoredDataset dataset = contiguous("data", raw.type, raw.shape, raw.offset_bytes);
    data::check_grid(dataset.grid);
    const std::uint64_t there = source.size_bytes(), needed = extent_bytes(dataset);
    if (raw.offset_bytes > there || needed > there - raw.offset_bytes) {
        throw Error([&] {
            ErrorInfo info;
            info.code = ErrorCode::invalid_argument;
            info.operation = "open";
            info.file = source.name();
            info.cause = "shape " + shown(raw.shape) + " of " + raw.type.name + " needs " + std::to_string(needed) +
                         " bytes at " + std::to_string(raw.offset_bytes) + "; the file has " + std::to_string(there);
            info.advice = "check dtype, shape and offset_bytes";
            return info;
        }());
    }
    return {std::move(dataset)};
}

}  // namespace penstock::formats
