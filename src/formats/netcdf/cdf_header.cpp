// See cdf_header.hpp.
#include "formats/netcdf/cdf_header.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "formats/faults.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint64_t kMostCdfHeader = std::uint64_t{256} << 20;
constexpr std::uint64_t kMostDimensionsOfVariable = 1024;  // NC_MAX_VAR_DIMS
constexpr std::uint64_t kFetch = std::uint64_t{64} << 10;
constexpr std::uint64_t kLargest = std::uint64_t{1} << 63;

std::uint64_t to_four_bytes(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

// A position in the first bytes of a file, which are fetched as far as they are needed.
class CdfReader {
  public:
    explicit CdfReader(const ByteSource& source)
        : source_(source), limit_(std::min(source.size_bytes(), kMostCdfHeader)) {}

    CdfHeader header() {
        magic();
        CdfHeader header;
        header.records = records();
        for (std::uint64_t left = list(kCdfDimensions, 12, "dimensions"); left > 0; --left) {
            std::string name = text("dimension");
            const std::uint64_t length = number_of(wide_ ? 8 : 4, "length of dimension " + shown(name));
            header.dimensions.push_back({std::move(name), length});
        }
        skip_attributes("the file");
        for (std::uint64_t left = list(kCdfVariables, wide_ ? 40 : 32, "variables"); left > 0; --left) {
            header.variables.push_back(variable(header.dimensions));
        }
        header.bytes = at_;
        header.record_bytes = record_bytes(header);
        std::uint64_t all = 0;
        const std::uint64_t records = std::max<std::uint64_t>(1, header.records.value_or(1));
        if (__builtin_mul_overflow(header.record_bytes, records, &all) || all >= kLargest) {
            wrong(std::to_string(records) + " records of " + std::to_string(header.record_bytes) +
                  " bytes fit into no file");
        }
        return header;
    }

  private:
    [[noreturn]] void wrong(std::string cause, const char* advice = "the file is damaged") const {
        throw damaged({source_.name()}, std::move(cause), advice);
    }

    void magic() {
        const std::vector<std::byte> begin = source_.read(0, 64);
        const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
        if (text.size() < 4 || !text.starts_with("CDF")) throw foreign(source_.name(), "classic netCDF", begin);
        version_ = static_cast<unsigned char>(take(4, "magic number")[3]);
        if (version_ != 1 && version_ != 2 && version_ != 5) {
            throw unsupported({source_.name()}, "it begins with " + shown(text.substr(0, 4)),
                              "classic netCDF has the versions 1, 2 and 5");
        }
        wide_ = version_ == 5;
    }

    std::optional<std::uint64_t> records() {
        const std::uint64_t found = number_of(wide_ ? 8 : 4, "number of records");
        if (found == (wide_ ? ~std::uint64_t{0} : 0xFFFFFFFFu)) return std::nullopt;
        return wide_ ? not_negative(found, 8, "number of records") : found;
    }

    void skip_attributes(const std::string& owner) {
        for (std::uint64_t left = list(kCdfAttributes, 16, "attributes of " + owner); left > 0; --left) {
            const std::string name = text("attribute of " + owner);
            const std::string what = "attribute " + shown(name) + " of " + owner;
            const std::uint64_t size = cdf_item_bytes(type(what));
            take(to_four_bytes(size * count(size, "values of " + what)), what);
        }
    }

    CdfVariable variable(const std::vector<CdfDimension>& dimensions) {
        CdfVariable found;
        found.name = text("variable");
        const std::string owner = "variable " + shown(found.name);
        const std::uint64_t rank = count(wide_ ? 8 : 4, "dimensions of " + owner);
        if (rank > kMostDimensionsOfVariable)
            wrong(owner + " has " + std::to_string(rank) + " dimensions; the format allows 1024");
        for (std::uint64_t place = 0; place < rank; ++place) {
            const std::uint64_t index = number("dimension of " + owner);
            if (index >= dimensions.size()) {
                wrong(owner + " has dimension " + std::to_string(index) + " of " + std::to_string(dimensions.size()));
            }
            if (dimensions[index].length == 0 && place > 0) {
                wrong(owner + " has the record dimension at place " + std::to_string(place) + "; it may only be first");
            }
            found.dimensions.push_back(index);
        }
        skip_attributes(owner);
        found.type = type(owner);
        number_of(wide_ ? 8 : 4, "size of " + owner);  // follows from the shape, and is wrong if large
        found.begin = not_negative(number_of(version_ == 1 ? 4 : 8, "begin of " + owner), version_ == 1 ? 4 : 8,
                                   "begin of " + owner);
        found.row_bytes = cdf_item_bytes(found.type);
        found.is_record = !found.dimensions.empty() && dimensions[found.dimensions.front()].length == 0;
        std::uint64_t end = 0;
        bool is_too_large = false;
        for (const std::size_t index : found.dimensions) {
            const std::uint64_t length = std::max<std::uint64_t>(1, dimensions[index].length);
            is_too_large = is_too_large || __builtin_mul_overflow(found.row_bytes, length, &found.row_bytes);
        }
        if (is_too_large || __builtin_add_overflow(found.row_bytes, found.begin, &end) || end >= kLargest) {
            wrong(owner + " is larger than any file");
        }
        return found;
    }

    // The only record variable of a file is not padded.
    std::uint64_t record_bytes(const CdfHeader& header) const {
        std::uint64_t count = 0, all = 0, last = 0;
        for (const CdfVariable& one : header.variables) {
            if (!one.is_record) continue;
            ++count;
            last = one.row_bytes;
            if (__builtin_add_overflow(all, to_four_bytes(last), &all)) wrong("its records are larger than any file");
        }
        return count == 1 ? last : all;
    }

    // Number of entries of a list; 0 where it is absent. `smallest`: bytes of the shortest entry.
    std::uint64_t list(std::uint32_t tag, std::uint64_t smallest, const std::string& what) {
        const std::uint64_t found = number_of(4, "list of " + what);
        const std::uint64_t entries = count(smallest, what);
        if (found != tag && entries != 0) {
            wrong("the list of " + what + " has tag " + std::to_string(found) + " and " + std::to_string(entries) +
                  " entries; its tag is " + std::to_string(tag));
        }
        return entries;
    }

    std::uint32_t type(const std::string& what) {
        const auto found = static_cast<std::uint32_t>(number_of(4, "type of " + what));
        if (cdf_item_bytes(found) == 0)
            wrong(what + " has type " + std::to_string(found) + ", which classic netCDF does not have");
        return found;
    }

    // The name ends at the first zero.
    std::string text(const std::string& what) {
        const std::uint64_t bytes = count(1, "characters of the name of a " + what);
        const std::string_view raw = take(to_four_bytes(bytes), "name of a " + what).substr(0, bytes);
        return std::string(raw.substr(0, raw.find('\0')));
    }

    // A number of things of at least `each` bytes, which the file must be long enough to hold.
    std::uint64_t count(std::uint64_t each, const std::string& what) {
        const std::uint64_t found = number("number of " + what);
        if (found > (limit_ - at_) / each) {
            wrong(std::to_string(found) + " " + what + " do not fit into the " + std::to_string(limit_) +
                      " bytes a header may have here",
                  "the file is damaged or was cut short");
        }
        return found;
    }

    std::uint64_t number(const std::string& what) {
        const std::uint64_t bytes = wide_ ? 8 : 4;
        return not_negative(number_of(bytes, what), bytes, what);
    }
    std::uint64_t not_negative(std::uint64_t value, std::uint64_t bytes, const std::string& what) const {
        if ((value >> (8 * bytes - 1) & 1) != 0) wrong("the " + what + " is negative");
        return value;
    }
    std::uint64_t number_of(std::uint64_t bytes, const std::string& what) {
        std::uint64_t value = 0;
        for (const char one : take(bytes, what)) value = value << 8 | static_cast<unsigned char>(one);
        return value;
    }

    // Valid until the next call.
    std::string_view take(std::uint64_t bytes, const std::string& what) {
        if (bytes > limit_ - at_) {
            wrong("the header ends before the " + what + ": " + std::to_string(limit_) + " bytes, " +
                      std::to_string(at_ + bytes) + " are needed",
                  "the file is damaged or was cut short");
        }
        const std::uint64_t end = at_ + bytes;
        while (held_.size() < end) {
            const std::uint64_t wanted = std::min(limit_, std::max({end, 2 * std::uint64_t{held_.size()}, kFetch}));
            const std::vector<std::byte> more = source_.read(held_.size(), wanted - held_.size());
            if (more.empty()) throw cut_short({source_.name()}, "it became shorter while it was read");
            held_.append(reinterpret_cast<const char*>(more.data()), more.size());
        }
        return std::string_view(held_).substr(std::exchange(at_, end), bytes);
    }

    const ByteSource& source_;
    const std::uint64_t limit_;
    std::string held_;
    std::uint64_t at_ = 0;
    int version_ = 1;
    bool wide_ = false;
};

}  // namespace

std::uint32_t cdf_item_bytes(std::uint32_t type) {
    constexpr std::array<std::uint32_t, 12> bytes{0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
    return type < bytes.size() ? bytes[type] : 0;
}

CdfHeader read_cdf_header(const ByteSource& source) { return CdfReader(source).header(); }

}  // namespace penstock::formats
