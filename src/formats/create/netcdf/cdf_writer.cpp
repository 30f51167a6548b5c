// See cdf_writer.hpp. Three parts: the bytes of a header (HeaderBytes), where everything lies (CdfPlan), and the file
// that grows (CdfFile).
#include "formats/create/netcdf/cdf_writer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "formats/create/check_schema.hpp"
#include "formats/faults.hpp"
#include "formats/netcdf/cdf_header.hpp"

namespace penstock::formats {
namespace {

constexpr std::uint32_t kText = 2;
constexpr std::uint64_t kLargestOfCdf2 = 0xFFFFFFFC;  // bytes of a variable whose size a header of CDF-2 can tell
constexpr std::uint64_t kDataAlignment = 4096;        // of the first record, for paths that go past the page cache
constexpr std::uint64_t kRecordsAt = 4;               // behind the magic number

std::uint64_t padded(std::uint64_t bytes) { return align_up(bytes, 4); }

struct CdfName {
    const char* name;
    std::uint32_t number;
    bool only_cdf5;
};
constexpr std::array<CdfName, 10> kWrittenTypes{{{"int8", 1, false},
                                                 {"int16", 3, false},
                                                 {"int32", 4, false},
                                                 {"float32", 5, false},
                                                 {"float64", 6, false},
                                                 {"uint8", 7, true},
                                                 {"uint16", 8, true},
                                                 {"uint32", 9, true},
                                                 {"int64", 10, true},
                                                 {"uint64", 11, true}}};

// Elements in the order of bytes of the file.
std::vector<std::byte> big_endian(const ElementType& type, std::span<const std::byte> values) {
    std::vector<std::byte> out(values.begin(), values.end());
    const std::size_t word = type.kind == 'S' ? 1 : type.word_bytes;
    if constexpr (std::endian::native == std::endian::little) {
        for (std::size_t at = 0; at + word <= out.size(); at += word) {
            std::reverse(out.begin() + static_cast<std::ptrdiff_t>(at),
                         out.begin() + static_cast<std::ptrdiff_t>(at + word));
        }
    }
    return out;
}

class HeaderBytes {
  public:
    explicit HeaderBytes(CdfVersion version) : wide_(version == CdfVersion::cdf5) {}

    void number(std::uint64_t value, int bytes) {
        for (int i = bytes; i-- > 0;) bytes_.push_back(static_cast<std::byte>(value >> 8 * i & 0xff));
    }
    void count(std::uint64_t value) { number(value, wide_ ? 8 : 4); }
    void offset(std::uint64_t value) { number(value, 8); }
    void name(std::string_view text) {
        count(text.size());
        raw(std::as_bytes(std::span(text.data(), text.size())));
    }
    void raw(std::span<const std::byte> bytes) {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        bytes_.resize(padded(bytes_.size()));
    }
    void list(std::uint32_t tag, std::size_t entries) {
        number(entries == 0 ? 0 : tag, 4);
        count(entries);
    }
    const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    bool wide_;
    std::vector<std::byte> bytes_;  // a multiple of 4 between entries
};

// Where each variable lies. The header's length does not depend on these numbers.
struct CdfPlan {
    std::vector<DataPlace> places;  // of one that grows: in the first record
    std::uint64_t first_record = 0;
    std::uint64_t record_bytes = 0;
};

void write_attributes(HeaderBytes& out, const std::vector<NewAttribute>& attributes, CdfVersion version) {
    out.list(kCdfAttributes, attributes.size());
    for (const NewAttribute& one : attributes) {
        const bool is_text = one.type.kind == 'S';
        out.name(one.name);
        out.number(is_text ? kText : cdf_type(one.type, version), 4);
        out.count(is_text ? one.bytes.size() : one.bytes.size() / one.type.item_bytes);
        out.raw(big_endian(one.type, one.bytes));
    }
}

std::uint64_t row_bytes(const FileSchema& schema, const NewVariable& variable) {
    std::uint64_t bytes = variable.type.item_bytes;
    for (const std::size_t index : variable.dimensions) {
        if (!schema.dimensions[index].grows) bytes *= schema.dimensions[index].length;
    }
    return bytes;
}

std::vector<std::byte> header_bytes(const FileSchema& schema, const CdfPlan& plan, CdfVersion version) {
    HeaderBytes out(version);
    out.number(0x43444600 | static_cast<std::uint32_t>(version), 4);
    out.count(0);  // steps
    out.list(kCdfDimensions, schema.dimensions.size());
    for (const NewDimension& one : schema.dimensions) {
        out.name(one.name);
        out.count(one.grows ? 0 : one.length);
    }
    write_attributes(out, schema.attributes, version);
    out.list(kCdfVariables, schema.variables.size());
    for (std::size_t i = 0; i < schema.variables.size(); ++i) {
        const NewVariable& one = schema.variables[i];
        out.name(one.name);
        out.count(one.dimensions.size());
        for (const std::size_t index : one.dimensions) out.count(index);
        write_attributes(out, one.attributes, version);
        out.number(cdf_type(one.type, version), 4);
        out.count(padded(row_bytes(schema, one)));
        out.offset(plan.places[i].offset_bytes);
    }
    return out.bytes();
}

// The only growing variable of a file is not padded, says the format.
CdfPlan plan_of(const FileSchema& schema, CdfVersion version) {
    CdfPlan plan;
    plan.places.resize(schema.variables.size());
    std::uint64_t at = header_bytes(schema, plan, version).size();
    const auto growing = std::count_if(schema.variables.begin(), schema.variables.end(),
                                       [&](const NewVariable& one) { return grows(schema, one); });
    for (const bool in_records : {false, true}) {
        if (in_records) at = plan.first_record = align_up(at, kDataAlignment);
        for (std::size_t i = 0; i < schema.variables.size(); ++i) {
            if (grows(schema, schema.variables[i]) != in_records) continue;
            const std::uint64_t row = row_bytes(schema, schema.variables[i]);
            plan.places[i] = {at, in_records && growing == 1 ? row : padded(row)};
            at += plan.places[i].bytes;
        }
    }
    plan.record_bytes = at - plan.first_record;
    return plan;
}

void check_types(const FileSchema& schema, const std::string& file, CdfVersion version) {
    const auto check = [&](const std::string& what, const ElementType& type) {
        if (cdf_type(type, version) != 0) return;
        throw not_created(file, what + " has type " + type.name,
                          version == CdfVersion::cdf2
                              ? "CDF-2 has int8, int16, int32, float32 and float64; use \"cdf5\""
                              : "classic netCDF has integers, float32, float64 and text");
    };
    for (const NewAttribute& one : schema.attributes) check("attribute " + shown(one.name), one.type);
    for (const NewVariable& variable : schema.variables) {
        check("variable " + shown(variable.name), variable.type);
        if (!variable.filters.empty()) {
            throw not_created(file, "variable " + shown(variable.name) + " has filters",
                              "classic netCDF stores no compressed data; write netCDF-4");
        }
        if (variable.type.kind == 'S' && variable.type.item_bytes != 1) {
            throw not_created(file, "variable " + shown(variable.name) + " has text of " + variable.type.name,
                              "use S1 and one more dimension for the characters");
        }
        for (const NewAttribute& one : variable.attributes) {
            check("attribute " + shown(one.name) + " of " + shown(variable.name), one.type);
        }
        if (version == CdfVersion::cdf2 && row_bytes(schema, variable) > kLargestOfCdf2) {
            throw not_created(file, "variable " + shown(variable.name) + " takes more than 4 GiB", "use \"cdf5\"");
        }
    }
}

class CdfFile final : public GrowingFile {
  public:
    CdfFile(ByteSink& sink, CdfPlan plan, std::vector<bool> in_records, CdfVersion version)
        : sink_(sink), plan_(std::move(plan)), in_records_(std::move(in_records)), version_(version) {}

    const char* format() const override { return version_ == CdfVersion::cdf5 ? "cdf5" : "cdf2"; }
    bool is_big_endian() const override { return true; }
    std::vector<DataPlace> fixed() const override { return places(false, 0); }
    std::vector<DataPlace> reserve(std::span<const StoredChunks> stored) override {
        if (!stored.empty()) {
            throw Error(ErrorCode::unsupported, "write " + sink_.name(), "classic netCDF stores no compressed data",
                        "use \"netcdf4\" or \"hdf5\"");
        }
        return places(true, reserved_++);
    }

    void publish(std::uint64_t steps) override {
        sink_.barrier();
        HeaderBytes count(version_);
        count.count(steps);
        sink_.write(kRecordsAt, count.bytes());
        sink_.barrier();
        published_ = steps;
    }

    std::uint64_t end_bytes() const override { return plan_.first_record + published_ * plan_.record_bytes; }

  private:
    std::vector<DataPlace> places(bool in_records, std::uint64_t step) const {
        std::vector<DataPlace> found(plan_.places.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            if (in_records_[i] != in_records) continue;
            found[i] = plan_.places[i];
            found[i].offset_bytes += step * plan_.record_bytes;
        }
        return found;
    }

    ByteSink& sink_;
    CdfPlan plan_;
    std::vector<bool> in_records_;
    CdfVersion version_;
    std::uint64_t reserved_ = 0;
    std::uint64_t published_ = 0;
};

// Variables without values, too, have bytes in a file from its first moment on.
void write_values(const FileSchema& schema, const CdfPlan& plan, ByteSink& sink) {
    for (std::size_t i = 0; i < schema.variables.size(); ++i) {
        const NewVariable& one = schema.variables[i];
        if (grows(schema, one) || one.values.empty()) continue;
        std::vector<std::byte> values = big_endian(one.type, one.values);
        values.resize(plan.places[i].bytes);
        sink.write(plan.places[i].offset_bytes, values);
    }
    const std::byte last{0};
    if (plan.first_record > 0) sink.write(plan.first_record - 1, {&last, 1});
}

}  // namespace

std::uint32_t cdf_type(const ElementType& type, CdfVersion version) {
    if (type.kind == 'S') return kText;
    for (const CdfName& one : kWrittenTypes) {
        if (type.name == one.name) return one.only_cdf5 && version != CdfVersion::cdf5 ? 0 : one.number;
    }
    return 0;
}

GrowingFilePtr make_cdf(const FileSchema& schema, ByteSink& sink, CdfVersion version) {
    check_schema(schema, sink.name());
    check_types(schema, sink.name(), version);
    CdfPlan plan = plan_of(schema, version);
    sink.write(0, header_bytes(schema, plan, version));
    write_values(schema, plan, sink);
    std::vector<bool> in_records;
    for (const NewVariable& one : schema.variables) in_records.push_back(grows(schema, one));
    return std::make_unique<CdfFile>(sink, std::move(plan), std::move(in_records), version);
}

}  // namespace penstock::formats
