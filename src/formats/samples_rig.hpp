// Files of formats as tests make them, without the code under test: each has a dataset "data", or more, whose elements
// are known.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/source.hpp"

namespace penstock::formats::testing {

// A file that is bytes in memory.
class MemorySource final : public ByteSource {
  public:
    explicit MemorySource(std::string bytes) : bytes_(std::move(bytes)) {}
    const std::string& name() const override { return name_; }
    std::uint64_t size_bytes() const override { return bytes_.size(); }
    std::vector<std::byte> read(std::uint64_t offset_bytes, std::uint64_t bytes) const override {
        if (offset_bytes >= bytes_.size()) return {};
        const std::string some = bytes_.substr(offset_bytes, bytes);
        const auto* first = reinterpret_cast<const std::byte*>(some.data());
        return {first, first + some.size()};
    }

  private:
    std::string bytes_;
    std::string name_ = "memory";
};

inline std::string little(std::uint64_t number, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> 8 * i & 0xff);
    return out;
}
inline std::string big(std::uint64_t number, int bytes) {
    std::string out;
    for (int i = bytes; i-- > 0;) out += static_cast<char>(number >> 8 * i & 0xff);
    return out;
}

// 1000 * first index + second index, as int32, in C order.
inline std::string table(int rows, int columns, bool big_endian = false) {
    std::string out;
    for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < columns; ++column) {
            const auto value = static_cast<std::uint64_t>(1000 * row + column);
            out += big_endian ? big(value, 4) : little(value, 4);
        }
    }
    return out;
}

inline std::string npy_of(const std::string& dictionary, const std::string& data, int version = 1) {
    const int size_bytes = version == 1 ? 2 : 4;
    return "\x93NUMPY" + std::string(1, static_cast<char>(version)) + '\0' + little(dictionary.size(), size_bytes) +
           dictionary + data;
}

inline std::string sample_npy() {
    return npy_of("{'descr': '<i4', 'fortran_order': False, 'shape': (5, 7), }\n", table(5, 7));
}

// The same table, stored column by column.
inline std::string sample_npy_fortran() {
    std::string data;
    for (int column = 0; column < 7; ++column) {
        for (int row = 0; row < 5; ++row) data += little(static_cast<std::uint64_t>(1000 * row + column), 4);
    }
    return npy_of("{'descr': '<i4', 'fortran_order': True, 'shape': (5, 7), }", data, 2);
}

inline std::string sample_npy_big() {
    return npy_of("{'descr': '>i4', 'fortran_order': False, 'shape': (5L, 7L)}", table(5, 7, true), 3);
}

inline std::string safetensors_of(const std::string& json, const std::string& data) {
    return little(json.size(), 8) + json + data;
}

inline std::string sample_safetensors() {
    return safetensors_of(
        R"({"__metadata__":{"by":"test"},"other":{"dtype":"U8","shape":[3],"data_offsets":[140,143]},)"
        R"("data":{"dtype":"I32","shape":[5,7],"data_offsets":[0,140]}} )",
        table(5, 7) + "abc");
}

inline std::string cdf_name(const std::string& name, int count_bytes) {
    return big(name.size(), count_bytes) + name + std::string((4 - name.size() % 4) % 4, '\0');
}

// Dimensions row (the records, or 5) and column (7); variables "data" (row, column), and in records "time" (row) and
// "flag" (row, of one byte).
inline std::string sample_netcdf(int version, bool records, bool streaming = false) {
    const int wide = version == 5 ? 8 : 4, place = version == 1 ? 4 : 8;
    const std::string absent = big(0, 4) + big(0, wide);
    const auto head = [&](std::uint64_t begin) {
        const auto variable = [&](const std::string& name, const std::vector<int>& dimensions, int type) {
            std::string out = cdf_name(name, wide) + big(dimensions.size(), wide);
            for (const int one : dimensions) out += big(static_cast<std::uint64_t>(one), wide);
            out += absent + big(static_cast<std::uint64_t>(type), 4) + big(0, wide) + big(begin, place);
            begin += name == "data" ? 28 : name == "time" ? 8 : 4;
            return out;
        };
        std::string out = std::string("CDF") + static_cast<char>(version) +
                          big(streaming ? ~std::uint64_t{0}
                              : records ? 5
                                        : 0,
                              wide);
        out += big(10, 4) + big(2, wide) + cdf_name("row", wide) + big(records ? 0 : 5, wide) +
               cdf_name("column", wide) + big(7, wide);
        out += big(12, 4) + big(1, wide) + cdf_name("title", wide) + big(2, 4) + big(3, wide) + "abc" + '\0';
        out += big(11, 4) + big(records ? 3 : 1, wide) + variable("data", {0, 1}, 4);
        if (records) out += variable("time", {0}, 6);
        if (records) out += variable("flag", {0}, 1);
        return out;
    };
    std::string out = head(head(0).size());
    if (!records) return out + table(5, 7, true);
    for (int row = 0; row < 5; ++row) {
        for (int column = 0; column < 7; ++column) out += big(static_cast<std::uint64_t>(1000 * row + column), 4);
        out += std::string(8, 't') + std::string(1, static_cast<char>(row)) + std::string(3, '\0');
    }
    return out;
}

}  // namespace penstock::formats::testing
