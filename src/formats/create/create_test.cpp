// Tests of new files: schemas, and what readers find after each write of a file that grows.
// Tried with them: document_text.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "context/test_files.hpp"
#include "formats/create/file_sink.hpp"
#include "formats/create/netcdf/cdf_writer.hpp"
#include "formats/create/schema.hpp"
#include "formats/netcdf/cdf_header.hpp"
#include "formats/samples_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

TEST(Schema, TextIsBytesOfFixedLength) {
    const NewAttribute made = text_attribute("units", "K");
    EXPECT_EQ(made.type.kind, 'S');
    EXPECT_EQ(made.type.item_bytes, 1U);
    EXPECT_TRUE(made.shape.empty());
    ASSERT_EQ(made.bytes.size(), 1U);
    EXPECT_EQ(static_cast<char>(made.bytes[0]), 'K');
}

TEST(Schema, NumbersKeepTheirTypeAndBytes) {
    const double values[] = {1.5, -2.0};
    const NewAttribute made = numbers_attribute("range", values);
    EXPECT_EQ(made.type.name, "float64");
    ASSERT_EQ(made.shape, std::vector<std::uint64_t>{2});
    ASSERT_EQ(made.bytes.size(), sizeof values);
    EXPECT_EQ(std::memcmp(made.bytes.data(), values, sizeof values), 0);
    EXPECT_EQ(number_attribute("n", 7).type.name, "int32");
    EXPECT_EQ(number_attribute("n", 7.0F).bytes.size(), 4U);
}

TEST(FileSink, BytesLieWhereTheyWereWritten) {
    const test::TempDirectory folder;
    const Context context({.device = "host"});
    const std::string name = folder.file("sink");
    File file = context.open(name, {.mode = OpenMode::create});
    FileSink sink(name, true);
    sink.use(file);
    const std::vector<std::byte> bytes(3, std::byte{7});
    sink.write(2, bytes);
    sink.barrier();
    file.close();
    EXPECT_EQ(test::read_file(name), (std::vector<unsigned char>{0, 0, 7, 7, 7}));
}

// Remembers every write, so that a test can look at the file after each of them.
class RecordingSink final : public ByteSink {
  public:
    const std::string& name() const override { return name_; }
    void write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
        if (fails_at == writes.size()) throw Error(ErrorCode::no_space, "write " + name_, "the disk is full");
        writes.push_back({offset_bytes, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
    }
    void barrier() override { barriers.push_back(writes.size()); }

    // The file after the first `count` writes.
    std::string after(std::size_t count) const {
        std::string file;
        for (std::size_t i = 0; i < count; ++i) {
            const auto& [offset, bytes] = writes[i];
            if (file.size() < offset + bytes.size()) file.resize(offset + bytes.size());
            file.replace(offset, bytes.size(), bytes);
        }
        return file;
    }

    std::size_t fails_at = ~std::size_t{0};
    std::vector<std::pair<std::uint64_t, std::string>> writes;
    std::vector<std::size_t> barriers;  // number of writes before each

  private:
    std::string name_ = "history.nc";
};

ElementType type_of(const char* name) {
    ElementType type;
    EXPECT_TRUE(type_named(name, type));
    return type;
}

// time, x of 3; T(time, x) float32, n(time) int16, x(x) float64 with values, and attributes.
FileSchema small_schema() {
    FileSchema schema;
    schema.dimensions = {{"time", 0, true}, {"x", 3, false}};
    std::vector<std::byte> x(24);
    const double values[] = {0.5, 1.5, 2.5};
    std::memcpy(x.data(), values, sizeof values);
    schema.variables = {{"time", type_of("float64"), {0}, {text_attribute("units", "seconds since 2000-01-01")}, {}},
                        {"T", type_of("float32"), {0, 1}, {text_attribute("units", "K")}, {}},
                        {"n", type_of("int16"), {0}, {}, {}},
                        {"x", type_of("float64"), {1}, {}, x}};
    schema.attributes = {text_attribute("title", "a test"), number_attribute("n", 3)};
    return schema;
}

TEST(CdfWriter, EachVersionIsReadBackByTheParserOfTheReader) {
    for (const CdfVersion version : {CdfVersion::cdf2, CdfVersion::cdf5}) {
        RecordingSink sink;
        const GrowingFilePtr file = make_cdf(small_schema(), sink, version);
        const CdfHeader header = read_cdf_header(testing::MemorySource(sink.after(sink.writes.size())));
        ASSERT_EQ(header.variables.size(), 4U);
        EXPECT_EQ(header.records, 0U);
        EXPECT_EQ(header.record_bytes, 8U + 12U + 4U);
        const std::vector<DataPlace> fixed = file->fixed();
        const std::vector<DataPlace> first = file->reserve({});
        for (std::size_t i = 0; i < header.variables.size(); ++i) {
            const CdfVariable& found = header.variables[i];
            const DataPlace& place = found.is_record ? first[i] : fixed[i];
            EXPECT_EQ(found.begin, place.offset_bytes) << found.name;
            EXPECT_GE(place.bytes, found.row_bytes) << found.name;
        }
        EXPECT_EQ(first[0].offset_bytes % 4096, 0U);
        EXPECT_EQ(file->reserve({})[1].offset_bytes, first[1].offset_bytes + header.record_bytes);
    }
}

TEST(CdfWriter, ValuesLieInTheFileWithTheHighestByteFirst) {
    RecordingSink sink;
    const GrowingFilePtr file = make_cdf(small_schema(), sink, CdfVersion::cdf5);
    const std::string bytes = sink.after(sink.writes.size());
    EXPECT_EQ(bytes.substr(file->fixed()[3].offset_bytes, 8), testing::big(0x3FE0000000000000, 8));  // 0.5
}

TEST(CdfWriter, StepsAreSeenOneByOneAndNoneBeforeItIsPublished) {
    RecordingSink sink;
    const GrowingFilePtr file = make_cdf(small_schema(), sink, CdfVersion::cdf5);
    const std::size_t created = sink.writes.size();
    for (std::uint64_t step = 1; step <= 3; ++step) {
        file->reserve({});
        file->publish(step);
    }
    for (std::size_t count = created; count <= sink.writes.size(); ++count) {
        EXPECT_EQ(read_cdf_header(testing::MemorySource(sink.after(count))).records, count - created);
    }
    // Before and behind each write of a count: the step first, and then its count, survive a power cut.
    std::vector<std::size_t> barriers;
    for (std::size_t count = created; count < created + 3; ++count) barriers.insert(barriers.end(), {count, count + 1});
    EXPECT_EQ(sink.barriers, barriers);
    EXPECT_EQ(file->end_bytes(), 4096U + 3 * 24U);
}

TEST(CdfWriter, TheOnlyGrowingVariableIsNotPadded) {
    FileSchema schema;
    schema.dimensions = {{"time", 0, true}, {"x", 3, false}};
    schema.variables = {{"n", type_of("int16"), {0, 1}, {}, {}}};
    RecordingSink sink;
    const GrowingFilePtr file = make_cdf(schema, sink, CdfVersion::cdf5);
    EXPECT_EQ(file->reserve({})[0].bytes, 6U);
    EXPECT_EQ(file->reserve({})[0].offset_bytes, 4096U + 6U);
    EXPECT_EQ(read_cdf_header(testing::MemorySource(sink.after(sink.writes.size()))).record_bytes, 6U);
}

TEST(CdfWriter, AFailedWriteIsTheCallersError) {
    RecordingSink sink;
    const GrowingFilePtr file = make_cdf(small_schema(), sink, CdfVersion::cdf5);
    file->reserve({});
    sink.fails_at = sink.writes.size();
    EXPECT_THROW(file->publish(1), Error);
    EXPECT_EQ(file->end_bytes(), 4096U);
}

void expect_refusal(const FileSchema& schema, const std::string& words, CdfVersion version = CdfVersion::cdf5) {
    RecordingSink sink;
    try {
        make_cdf(schema, sink, version);
        ADD_FAILURE() << "not refused: " << words;
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
    EXPECT_TRUE(sink.writes.empty());
}

TEST(CdfWriter, SchemasThatNoFileCanHaveAreRefusedBeforeAnythingIsWritten) {
    const auto changed = [](auto change) {
        FileSchema schema = small_schema();
        change(schema);
        return schema;
    };
    expect_refusal(changed([](FileSchema& s) { s.variables[1].name = "a/b"; }), "a/b");
    expect_refusal(changed([](FileSchema& s) { s.variables[1].name = ""; }), "a variable has the name");
    expect_refusal(changed([](FileSchema& s) { s.variables[1].name = "\xff"; }), "a variable has the name");
    expect_refusal(changed([](FileSchema& s) { s.variables[1].name = "time"; }), "given twice");
    expect_refusal(changed([](FileSchema& s) { s.dimensions[1].grows = true; }), "two dimensions grow");
    expect_refusal(changed([](FileSchema& s) { s.dimensions[1].length = 0; }), "length 0");
    expect_refusal(changed([](FileSchema& s) { s.variables[1].dimensions = {1, 0}; }), "grows along axis 1");
    expect_refusal(changed([](FileSchema& s) { s.variables[1].dimensions = {0, 7}; }), "dimension 7 of 2");
    expect_refusal(changed([](FileSchema& s) { s.variables[3].values.pop_back(); }), "values of 23 bytes, not 24");
    expect_refusal(changed([](FileSchema& s) { s.variables[1].type = type_of("complex64"); }), "type complex64");
    expect_refusal(changed([](FileSchema& s) { s.variables[1].type = type_of("int64"); }), "CDF-2", CdfVersion::cdf2);
    expect_refusal(changed([](FileSchema& s) { s.dimensions[1].length = std::uint64_t{1} << 61; }), "larger than");
    expect_refusal(changed([](FileSchema& s) { s.variables[1].attributes[0].name = "a/b"; }), "a/b");
    expect_refusal(changed([](FileSchema& s) { s.attributes.push_back(s.attributes[0]); }), "given twice");
    expect_refusal(changed([](FileSchema& s) { s.variables[1].filters = {{.name = "deflate"}}; }), "has filters");
    expect_refusal(changed([](FileSchema& s) {
                       s.dimensions[1].length = std::uint64_t{1} << 31;
                       s.variables[3].values.clear();
                   }),
                   "more than 4 GiB", CdfVersion::cdf2);
}

}  // namespace
}  // namespace penstock::formats
