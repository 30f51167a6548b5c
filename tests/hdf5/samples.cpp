// hdf5_samples: writes files of HDF5 with the library's own writer, for the readers that Python's tests have.
//
//   hdf5_samples tree FILE             groups, links, attributes and datasets of all kinds; prints the places of data
//   hdf5_samples grow FILE OPTION...   a file that grows, and beside it FILE.log with each write, in their order
//
// Options of grow, each as NAME=VALUE: steps, at_once (steps that one publish() shows), fields, x (elements of a row),
// half_entries, netcdf4 (0: plain HDF5), rank; shuffle, deflate, fletcher32 (1: fields go through it); published_first
// (1: a fault that tests are to find).
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "formats/create/check_schema.hpp"
#include "formats/create/hdf5/growing.hpp"
#include "formats/create/hdf5/layout.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

class FileSink final : public ByteSink {
  public:
    explicit FileSink(const std::string& name)
        : name_(name), fd_(::open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644)) {
        if (fd_ < 0) throw Error(errno_info("create", name, errno));
    }
    ~FileSink() override { ::close(fd_); }
    FileSink(const FileSink&) = delete;
    FileSink& operator=(const FileSink&) = delete;
    const std::string& name() const override { return name_; }
    void write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
        if (::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset_bytes)) !=
            static_cast<ssize_t>(bytes.size()))
            throw Error(errno_info("write", name_, errno));
    }
    void barrier() override {}

  private:
    std::string name_;
    int fd_;
};

// Writes to the file, and notes each write: kind, offset, length, bytes. Kinds: 'w' of metadata, 'd' of data, 'b' a
// barrier, 'p' from here on readers see as many steps as the offset says.
class NotingSink final : public ByteSink {
  public:
    explicit NotingSink(const std::string& name) : file_(name), log_(std::fopen((name + ".log").c_str(), "wb")) {}
    ~NotingSink() override { std::fclose(log_); }
    NotingSink(const NotingSink&) = delete;
    NotingSink& operator=(const NotingSink&) = delete;
    const std::string& name() const override { return file_.name(); }
    void write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
        file_.write(offset_bytes, bytes);
        note('w', offset_bytes, bytes);
    }
    void write_data(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
        file_.write(offset_bytes, bytes);
        note('d', offset_bytes, bytes);
    }
    void barrier() override { note('b', 0, {}); }
    void published(std::uint64_t steps) { note('p', steps, {}); }

  private:
    void note(char kind, std::uint64_t offset, std::span<const std::byte> bytes) {
        const std::uint64_t head[] = {static_cast<std::uint64_t>(kind), offset, bytes.size()};
        std::fwrite(head, sizeof head, 1, log_);
        std::fwrite(bytes.data(), 1, bytes.size(), log_);
    }

    FileSink file_;
    std::FILE* log_;
};

template <typename Number>
std::vector<std::byte> bytes_of(std::size_t count, Number first) {
    std::vector<std::byte> bytes(count * sizeof(Number));
    for (std::size_t i = 0; i < count; ++i) {
        const Number value = static_cast<Number>(first + static_cast<Number>(i));
        std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    }
    return bytes;
}

ElementType type_of(const char* name) {
    ElementType type;
    type_named(name, type);
    return type;
}

Hdf5Object dataset_of(const char* type, std::vector<std::uint64_t> shape) {
    Hdf5Object made;
    made.dataset.type = type_of(type);
    made.dataset.shape = std::move(shape);
    return made;
}

const char* const kNumbers[] = {"int8",   "int16",   "int32",   "int64",   "uint8",     "uint16",     "uint32",
                                "uint64", "float16", "float32", "float64", "complex64", "complex128", "bool"};

Hdf5Tree sample_tree(const std::string& file) {
    Hdf5Tree tree{.file = file};
    for (const char* type : kNumbers) add_object(tree, std::string("/numbers/") + type, dataset_of(type, {2, 3}));
    Hdf5Object foreign = dataset_of("float32", {5});
    foreign.dataset.type.is_foreign_order = true;
    add_object(tree, "/numbers/foreign", foreign);
    const ObjectNumber large = add_object(tree, "/PartType1/Coordinates", dataset_of("float64", {10000, 3}));
    Hdf5Object chunked = dataset_of("float32", {1000, 3});
    chunked.dataset.chunk = {7, 2};
    chunked.dataset.filters = {{.name = "fletcher32"}};
    chunked.dataset.most = {kNoLimit, 3};
    add_object(tree, "/PartType1/Checked", chunked);
    Hdf5Object absent = dataset_of("int32", {4});
    absent.dataset.fill = bytes_of<std::int32_t>(1, -7);
    absent.dataset.has_data = false;
    add_object(tree, "/absent", absent);
    add_object(tree, "/scalar", dataset_of("float64", {}));
    add_object(tree, "/empty", dataset_of("float64", {0, 3}));
    add_object(tree, "/Header", {.is_group = true});
    Hdf5Object& root = tree.objects[0];
    root.attributes.push_back(value_attribute(text_attribute("title", "sample")));
    root.attributes.push_back(value_attribute(text_attribute("nothing", "")));
    root.attributes.push_back(value_attribute(text_attribute("zürich", "grüezi")));
    root.attributes.push_back(value_attribute(number_attribute("time", 1.5)));
    root.attributes.push_back(value_attribute(number_attribute("steps", 7)));
    const double values[] = {1, 2, 3};
    root.attributes.push_back(value_attribute(numbers_attribute("box", values)));
    Hdf5Attribute one{.value = {.name = "one"}, .holds = Hdf5Attribute::Holds::references, .lists = {{{large}}}};
    Hdf5Attribute lists{.value = {.name = "lists"},
                        .holds = Hdf5Attribute::Holds::reference_lists,
                        .lists = {{{large}, {0}}, {{large}}}};
    Hdf5Attribute uses{.value = {.name = "uses"}, .holds = Hdf5Attribute::Holds::uses, .lists = {{{large, 1}}}};
    root.attributes.insert(root.attributes.end(), {one, lists, uses});
    add_link(tree, 0, {.name = "again", .object = large});
    add_link(tree, 0, {.name = "soft", .leads = Hdf5Link::Leads::to_path, .path = "/PartType1"});
    add_link(tree, 0, {.name = "far", .leads = Hdf5Link::Leads::to_other_file, .path = "/x", .file = "other.h5"});
    return tree;
}

void write_tree(const std::string& file) {
    const Hdf5Tree tree = sample_tree(file);
    FileSink sink(file);
    const Hdf5Image image = lay_out(tree);
    write_last_byte(image, sink);
    write_metadata(image, sink);
    for (ObjectNumber i = 0; i < tree.objects.size(); ++i)
        for (const DataPlace& place : image.objects[i].data)
            std::printf("%zu %llu %llu\n", i, static_cast<unsigned long long>(place.offset_bytes),
                        static_cast<unsigned long long>(place.bytes));
}

using Options = std::map<std::string, std::string>;

std::uint64_t number_of(const Options& options, const char* name, std::uint64_t usual) {
    const auto found = options.find(name);
    return found == options.end() ? usual : std::stoull(found->second);
}

// time, time_bnds, fields over (time, y, x), a grid, and a scalar; "y" has no variable.
FileSchema sample_schema(const Options& options) {
    const std::uint64_t x = number_of(options, "x", 4);
    FileSchema schema;
    schema.dimensions = {{"time", 0, true}, {"y", 3}, {"x", x}, {"nv", 2}};
    for (std::uint64_t rank = 3; rank < number_of(options, "rank", 3); ++rank)
        schema.dimensions.push_back({"extra" + std::to_string(rank), 1});
    schema.attributes = {text_attribute("title", "sample"), text_attribute("empty", ""), number_attribute("one", 1.5)};
    const double range[] = {0.0, 1.0};
    NewVariable time{.name = "time", .type = type_of("float64"), .dimensions = {0}};
    time.attributes = {text_attribute("units", "seconds since 2000-01-01"), text_attribute("bounds", "time_bnds"),
                       text_attribute("calendar", "standard")};
    schema.variables = {time, {.name = "time_bnds", .type = type_of("float64"), .dimensions = {0, 3}}};
    NewVariable grid{.name = "x", .type = type_of("float32"), .dimensions = {2}};
    grid.values = bytes_of<float>(x, 0);
    grid.attributes = {numbers_attribute("valid_range", range), text_attribute("axis", "X")};
    schema.variables.push_back(grid);
    schema.variables.push_back({.name = "y", .type = type_of("float32"), .dimensions = {2, 1}});
    schema.variables.push_back({.name = "crs", .type = type_of("int32"), .values = bytes_of<std::int32_t>(1, 5)});
    ElementType letter = raw_type(1);
    letter.kind = 'S';
    schema.variables.push_back({.name = "label", .type = letter, .dimensions = {3}, .values = bytes_of<char>(2, 'a')});
    for (std::uint64_t i = 0; i < number_of(options, "fields", 3); ++i) {
        NewVariable field{.name = "field" + std::to_string(i), .type = type_of("float32"), .dimensions = {0, 1, 2}};
        for (std::size_t rank = 3; rank < number_of(options, "rank", 3); ++rank) field.dimensions.push_back(rank + 1);
        field.attributes = {text_attribute("units", "K"), number_attribute("_FillValue", -9.9999e30F)};
        if (number_of(options, "shuffle", 0) != 0) field.filters.push_back({.name = "shuffle"});
        if (number_of(options, "deflate", 0) != 0) field.filters.push_back({.name = "deflate", .values = {1}});
        if (number_of(options, "fletcher32", 0) != 0) field.filters.push_back({.name = "fletcher32"});
        schema.variables.push_back(field);
    }
    return schema;
}

// As HDF5 computes it: of 16-bit words whose first byte is the high one.
std::uint32_t fletcher32(std::span<const std::byte> bytes) {
    std::uint32_t one = 0, other = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
        const std::uint32_t low = i + 1 < bytes.size() ? static_cast<std::uint32_t>(bytes[i + 1]) : 0;
        one += static_cast<std::uint32_t>(bytes[i]) << 8 | low;
        one = (one & 0xFFFF) + (one >> 16);
        other += one;
        other = (other & 0xFFFF) + (other >> 16);
    }
    return other << 16 | one;
}

void put_number(std::vector<std::byte>& bytes, std::uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}

// A stream of zlib with one block that is not compressed.
std::vector<std::byte> stored_stream(const std::vector<std::byte>& bytes) {
    std::vector<std::byte> out;
    put_number(out, 0x010178, 3);
    put_number(out, bytes.size(), 2);
    put_number(out, ~bytes.size(), 2);
    out.insert(out.end(), bytes.begin(), bytes.end());
    std::uint32_t one = 1, other = 0;
    for (const std::byte byte : bytes) {
        one = (one + static_cast<std::uint32_t>(byte)) % 65521;
        other = (other + one) % 65521;
    }
    for (const std::uint32_t part : {other >> 8, other, one >> 8, one}) put_number(out, part & 0xFF, 1);
    return out;
}

std::vector<std::byte> shuffled(const std::vector<std::byte>& bytes, std::size_t item) {
    std::vector<std::byte> out;
    for (std::size_t place = 0; place < item; ++place)
        for (std::size_t i = place; i < bytes.size(); i += item) out.push_back(bytes[i]);
    return out;
}

// Element i of variable v at step s is 1000 s + 10 v + i, in the type of the variable, and through its filters.
std::vector<std::byte> step_data(const NewVariable& variable, std::uint64_t elements, std::uint64_t first) {
    std::vector<std::byte> bytes = variable.type.item_bytes == 8
                                       ? bytes_of<double>(elements, static_cast<double>(first))
                                       : bytes_of<float>(elements, static_cast<float>(first));
    for (const data::Filter& filter : variable.filters) {
        if (filter.name == "shuffle") bytes = shuffled(bytes, variable.type.item_bytes);
        if (filter.name == "deflate") bytes = stored_stream(bytes);
        if (filter.name == "fletcher32") put_number(bytes, fletcher32(bytes), 4);
    }
    return bytes;
}

void grow(const std::string& file, const Options& options) {
    const FileSchema schema = sample_schema(options);
    NotingSink sink(file);
    const GrowingFilePtr made =
        make_hdf5(schema, sink,
                  {.is_netcdf4 = number_of(options, "netcdf4", 1) != 0,
                   .half_entries = static_cast<std::uint32_t>(number_of(options, "half_entries", 0))});
    const std::uint64_t steps = number_of(options, "steps", 5), at_once = number_of(options, "at_once", 1);
    sink.published(0);
    for (std::uint64_t step = 0; step < steps; ++step) {
        std::vector<std::vector<std::byte>> data;
        std::vector<StoredChunks> sizes;
        for (std::size_t i = 0; i < schema.variables.size(); ++i) {
            const NewVariable& variable = schema.variables[i];
            const std::uint64_t bytes = grows(schema, variable) ? step_bytes(schema, variable) : 0;
            data.push_back(step_data(variable, bytes / variable.type.item_bytes, 1000 * step + 10 * i));
            sizes.push_back(bytes == 0 ? StoredChunks{} : StoredChunks{data.back().size()});
        }
        const std::vector<DataPlace> places = made->reserve(sizes);
        if (options.contains("published_first")) made->publish(step + 1);
        for (std::size_t i = 0; i < places.size(); ++i)
            if (places[i].bytes != 0) sink.write_data(places[i].offset_bytes, data[i]);
        if ((step + 1) % at_once != 0 && step + 1 != steps) continue;
        made->publish(step + 1);
        sink.published(step + 1);
    }
}

}  // namespace
}  // namespace penstock::formats

int main(int count, char** words) {
    try {
        if (count == 3 && std::strcmp(words[1], "tree") == 0) {
            penstock::formats::write_tree(words[2]);
            return 0;
        }
        if (count >= 3 && std::strcmp(words[1], "grow") == 0) {
            penstock::formats::Options options;
            for (int i = 3; i < count; ++i) {
                const std::string word = words[i];
                options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
            }
            penstock::formats::grow(words[2], options);
            return 0;
        }
        std::fprintf(stderr, "hdf5_samples tree FILE | grow FILE NAME=VALUE...\n");
    } catch (const penstock::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
    }
    return 2;
}
