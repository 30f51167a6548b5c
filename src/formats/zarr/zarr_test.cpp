// Zarr stores of both versions: chunks that are stored, missing, encoded, turned and cut short; names that lead out of
// the store; documents that are wrong. Tried with them: zarr_array, zarr_store, fill_value, chunk_files, and of move:
// decoded.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "context/test_files.hpp"
#include "data/decode/stored_rig.hpp"
#include "formats/data_file.hpp"
#include "formats/json/json_reader.hpp"
#include "formats/move/move_dataset.hpp"
#include "formats/samples_rig.hpp"
#include "formats/zarr/zarr_array.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

constexpr int kRows = 5, kColumns = 7, kChunkRows = 2, kChunkColumns = 3;

Context zarr_context() {
    ContextOptions options;
    options.device = "host";
    return Context(options);
}

// Elements of one chunk, behind the edge too, stored as `order` and `big_endian` say.
std::string chunk_of(int row, int column, bool turned, bool big_endian) {
    std::string out;
    for (int i = 0; i < kChunkRows * kChunkColumns; ++i) {
        const int r = turned ? i % kChunkRows : i / kChunkColumns, c = turned ? i / kChunkRows : i % kChunkColumns;
        const auto value = static_cast<std::uint64_t>(1000 * (row * kChunkRows + r) + column * kChunkColumns + c);
        out += big_endian ? testing::big(value, 4) : testing::little(value, 4);
    }
    return out;
}

class Zarr : public ::testing::Test {
  protected:
    struct Store {
        std::string codecs = R"({"name":"bytes","configuration":{"endian":"little"}})";
        bool turned = false, big_endian = false, zlib = false;
    };
    void write(const std::string& name, const std::string& bytes) const {
        const std::string path = directory_.file(name);
        std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        test::write_file(path, {bytes.begin(), bytes.end()});
    }
    static std::string document(const std::string& codecs) {
        return R"({"zarr_format":3,"node_type":"array","shape":[5,7],"data_type":"int32","fill_value":-1,)"
               R"("chunk_grid":{"name":"regular","configuration":{"chunk_shape":[2,3]}},)"
               R"("chunk_key_encoding":{"name":"default"},"codecs":[)" +
               codecs + R"(],"attributes":{"a":NaN}})";
    }
    void make(const Store& store) const {
        write("zarr.json", R"({"zarr_format":3,"node_type":"group"})");
        write("data/zarr.json", document(store.codecs));
        for (int row = 0; row < 3; ++row) {
            for (int column = 0; column < 3; ++column) {
                std::string bytes = chunk_of(row, column, store.turned, store.big_endian);
                if (store.zlib) bytes = packed(bytes);
                write("data/c/" + std::to_string(row) + "/" + std::to_string(column), bytes);
            }
        }
    }
    static std::string packed(const std::string& bytes) {
        const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
        const data::testing::Bytes stream = data::testing::zlib_of({first, first + bytes.size()});
        return {reinterpret_cast<const char*>(stream.data()), stream.size()};
    }
    DataFile open(bool writable = false) const { return DataFile(context_, directory_.path(), {.writable = writable}); }
    // Rows 1 and 3, columns 1 to 6 by the step, into memory of that kind.
    std::vector<std::int32_t> read(MemoryKind kind, DatasetMoved& moved, std::int64_t step = 1) const {
        const DataFile file = open();
        const StoredDataset dataset = file.container().dataset("data");
        DatasetMove move;
        move.selection.box.start = {1, 1};
        move.selection.box.step = {2, step};
        move.selection.box.count = {2, 5 / step + 1};
        move.selection.memory_strides = {move.selection.box.count[1] * 4, 4};
        std::vector<std::int32_t> host(static_cast<std::size_t>(2 * move.selection.box.count[1]), -7);
        const Buffer buffer = context_.allocate(4 * host.size(), kind);
        move.memory = buffer.view();
        moved = read_dataset(file, dataset, move);
        if (kind == MemoryKind::device)
            context_.copy_to_host(host.data(), buffer.data(), 4 * host.size());
        else
            std::memcpy(host.data(), buffer.data(), 4 * host.size());
        return host;
    }
    static std::vector<std::int32_t> wanted(std::int64_t step = 1) {
        std::vector<std::int32_t> found;
        for (const int row : {1, 3}) {
            for (std::int64_t column = 1; column < kColumns; column += step) {
                found.push_back(static_cast<std::int32_t>(1000 * row + column));
            }
        }
        return found;
    }
    void expect_reads() const {
        for (const MemoryKind kind :
             {MemoryKind::system, MemoryKind::pinned, MemoryKind::device, MemoryKind::managed}) {
            for (const std::int64_t step : {1, 4}) {
                DatasetMoved moved;
                const auto got = read(kind, moved, step);
                ASSERT_TRUE(moved.outcome.ok()) << moved.outcome.error.message();
                EXPECT_EQ(got, wanted(step)) << static_cast<int>(kind) << " " << step;
                EXPECT_EQ(moved.outcome.bytes, 4 * got.size());
            }
        }
    }
    ErrorCode code_of_open() const {
        try {
            open().container().dataset("data");
        } catch (const Error& error) {
            return error.code();
        }
        return ErrorCode::ok;
    }

    test::TempDirectory directory_;
    const Context context_ = zarr_context();
};

TEST_F(Zarr, reads_plain_turned_and_swapped_chunks) {
    make({});
    expect_reads();
    const std::string big = R"({"name":"bytes","configuration":{"endian":"big"}})";
    make({.codecs = big, .big_endian = true});
    expect_reads();
    make({.codecs = R"({"name":"transpose","configuration":{"order":[1,0]}},)" + big,
          .turned = true,
          .big_endian = true});
    expect_reads();
}

// Lowers the limit of descriptors for its lifetime.
class FewDescriptors {
  public:
    explicit FewDescriptors(rlim_t most) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const struct rlimit few { most, before_.rlim_max };
        ::setrlimit(RLIMIT_NOFILE, &few);
    }
    ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    FewDescriptors(const FewDescriptors&) = delete;
    FewDescriptors& operator=(const FewDescriptors&) = delete;

  private:
    struct rlimit before_ {};
};

TEST_F(Zarr, of_many_chunks_is_read_with_few_descriptors) {
    constexpr std::int64_t chunks = 300;
    const auto make_all = [&](bool zlib) {
        write("zarr.json", R"({"zarr_format":3,"node_type":"group"})");
        std::string text = document(R"({"name":"bytes","configuration":{"endian":"little"}})" +
                                    std::string(zlib ? R"(,{"name":"numcodecs.zlib"})" : ""));
        text.replace(text.find("[5,7]"), 5, "[600,3]");
        write("data/zarr.json", text);
        for (int row = 0; row < chunks; ++row) {
            const std::string bytes = chunk_of(row, 0, false, false);
            write("data/c/" + std::to_string(row) + "/0", zlib ? packed(bytes) : bytes);
        }
    };
    for (const bool zlib : {false, true}) {
        if (zlib && !data::testing::has_deflate()) continue;
        make_all(zlib);
        const FewDescriptors few(64);
        const DataFile file = open();
        const StoredDataset dataset = file.container().dataset("data");
        for (int turn = 0; turn < 2; ++turn) {
            std::vector<std::int32_t> host(2 * chunks * 3);
            DatasetMove move;
            move.selection.box.start = {0, 0};
            move.selection.box.step = {1, 1};
            move.selection.box.count = {2 * chunks, 3};
            move.selection.memory_strides = {12, 4};
            move.memory = {host.data(), 4 * host.size(), MemoryKind::system};
            const DatasetMoved moved = read_dataset(file, dataset, move);
            ASSERT_TRUE(moved.outcome.ok()) << moved.outcome.error.message();
            for (std::size_t at = 0; at < host.size(); ++at) {
                ASSERT_EQ(host[at], static_cast<std::int32_t>(1000 * (at / 3) + at % 3)) << zlib << " " << at;
            }
        }
    }
}

TEST_F(Zarr, a_chunk_file_that_was_replaced_is_read_anew) {
    make({});
    const DataFile file = open();
    const StoredDataset dataset = file.container().dataset("data");
    std::vector<std::int32_t> host(6);
    DatasetMove move;
    move.selection.box.start = {0, 0};
    move.selection.box.step = {1, 1};
    move.selection.box.count = {2, 3};
    move.selection.memory_strides = {12, 4};
    move.memory = {host.data(), 24, MemoryKind::system};
    for (const int row : {0, 2, 1}) {
        write("new", chunk_of(row, 0, false, false));
        std::filesystem::rename(directory_.file("new"), directory_.file("data/c/0/0"));
        ASSERT_TRUE(read_dataset(file, dataset, move).outcome.ok());
        EXPECT_EQ(host[4], 1000 * (2 * row + 1) + 1) << "the older file was kept open";
    }
}

TEST_F(Zarr, decodes_chunks_on_the_cores) {
    if (!data::testing::has_deflate()) GTEST_SKIP() << "this build has no libdeflate";
    const std::string big = R"({"name":"bytes","configuration":{"endian":"big"}},{"name":"numcodecs.zlib"})";
    make({.codecs = big, .big_endian = true, .zlib = true});
    expect_reads();
    DatasetMoved moved;
    read(MemoryKind::system, moved);
    EXPECT_EQ(moved.decoded_bytes, moved.outcome.bytes);
    make({.codecs = R"({"name":"transpose","configuration":{"order":[1,0]}},)" + big,
          .turned = true,
          .big_endian = true,
          .zlib = true});
    expect_reads();
    const DataFile file = open(true);
    EXPECT_THROW(write_dataset(file, file.container().dataset("data"), {}), Error);
    write("data/c/0/0", packed("short"));
    read(MemoryKind::system, moved);
    EXPECT_EQ(moved.outcome.error.code, ErrorCode::io_error);
    EXPECT_NE(moved.outcome.error.file.find("data/c/0/0"), std::string::npos) << moved.outcome.error.message();
}

TEST_F(Zarr, a_chunk_that_is_not_stored_reads_as_the_fill_value) {
    make({});
    std::filesystem::remove(directory_.file("data/c/1/0"));
    for (const MemoryKind kind : {MemoryKind::system, MemoryKind::device}) {
        DatasetMoved moved;
        std::vector<std::int32_t> filled = wanted();
        filled[6] = filled[7] = -1;
        EXPECT_EQ(read(kind, moved), filled);
        EXPECT_EQ(moved.filled_bytes, 8u);
    }
    const DataFile file = open(true);
    const StoredDataset dataset = file.container().dataset("data");
    std::vector<std::int32_t> memory(35);
    DatasetMove move;
    move.selection.box.count = {5, 7};
    move.selection.memory_strides = {28, 4};
    move.memory = {memory.data(), 140, MemoryKind::system};
    EXPECT_EQ(write_dataset(file, dataset, move).outcome.error.code, ErrorCode::unsupported);
}

TEST_F(Zarr, writes_into_plain_chunks) {
    make({});
    const DataFile file = open(true);
    std::vector<std::int32_t> memory(35);
    for (int i = 0; i < 35; ++i) memory[static_cast<std::size_t>(i)] = 1000 * (i / 7) + i % 7 + 500'000;
    DatasetMove move;
    move.selection.box.count = {5, 7};
    move.selection.memory_strides = {28, 4};
    move.memory = {memory.data(), 140, MemoryKind::system};
    ASSERT_TRUE(write_dataset(file, file.container().dataset("data"), move).outcome.ok());
    DatasetMoved moved;
    std::vector<std::int32_t> shifted = wanted();
    for (std::int32_t& one : shifted) one += 500'000;
    EXPECT_EQ(read(MemoryKind::system, moved), shifted);
    std::filesystem::rename(directory_.file("data/c/0"), directory_.file("elsewhere"));
    std::filesystem::create_directory_symlink(directory_.file("elsewhere"), directory_.file("data/c/0"));
    EXPECT_EQ(read(MemoryKind::system, moved), shifted) << "links are read";
    EXPECT_EQ(write_dataset(file, file.container().dataset("data"), move).outcome.error.code, ErrorCode::unsupported);
    const auto edge = test::read_file(directory_.file("data/c/2/2"));
    EXPECT_EQ(std::string(edge.begin() + 4, edge.end()), chunk_of(2, 2, false, false).substr(4)) << "behind the edge";
}

TEST_F(Zarr, a_chunk_that_is_too_short_is_told_with_its_file) {
    make({});
    write("data/c/0/0", "short");
    DatasetMoved moved;
    read(MemoryKind::system, moved);
    EXPECT_EQ(moved.outcome.error.code, ErrorCode::end_of_file);
    EXPECT_NE(moved.outcome.error.message().find("data/c/0/0"), std::string::npos);
}

TEST_F(Zarr, names_do_not_lead_out_of_the_store) {
    make({});
    const test::TempDirectory other;
    std::filesystem::copy(directory_.file("data"), other.file("data"), std::filesystem::copy_options::recursive);
    std::filesystem::create_directory_symlink(other.file("data"), directory_.file("link"));
    const DataFile file = open();
    EXPECT_EQ(file.container().names(), std::vector<std::string>{"data"});
    const std::string outside = "../" + std::filesystem::path(other.path()).filename().string() + "/data";
    for (const std::string& name : {std::string("link"), outside, std::string("./data"), std::string("data/../data"),
                                    other.file("data"), std::string("data//")}) {
        EXPECT_THROW(file.container().dataset(name), Error) << name;
    }
}

TEST_F(Zarr, documents_that_are_wrong_or_not_done_are_told) {
    make({});
    write("data/zarr.json", "{");
    EXPECT_EQ(code_of_open(), ErrorCode::io_error);
    write("data/zarr.json", document(R"({"name":"zstd"})"));
    EXPECT_NE(open().container().dataset("data").refusal, "");
    write("data/zarr.json", document(R"({"name":"bytes","configuration":{"endian":"little"}},{"name":"lzma"})"));
    EXPECT_NE(open().container().dataset("data").refusal.find("lzma"), std::string::npos);
    write("data/zarr.json", document(R"({"name":"bytes"})"));
    EXPECT_EQ(code_of_open(), ErrorCode::io_error) << "no order of bytes";
    const std::string shards = R"({"name":"sharding_indexed","configuration":{"chunk_shape":[1,3],"codecs":[)";
    const std::string bytes = R"({"name":"bytes","configuration":{"endian":"little"}})";
    write("data/zarr.json", document(shards + R"({"name":"sharding_indexed"}],"index_codecs":[)" + bytes + "]}}"));
    EXPECT_NE(open().container().dataset("data").refusal.find("Python"), std::string::npos);
    write("data/zarr.json", document(shards + bytes + R"(],"index_codecs":[{"name":"gzip"}]}})"));
    EXPECT_NE(open().container().dataset("data").refusal.find("index"), std::string::npos);
    write("data/zarr.json", document(R"({"name":"sharding_indexed","configuration":{}})"));
    EXPECT_EQ(code_of_open(), ErrorCode::io_error) << "no shape of chunks";
    write("data/zarr.json", document(R"({"name":"sharding_indexed","configuration":{"chunk_shape":[2,2]}})"));
    EXPECT_EQ(code_of_open(), ErrorCode::io_error) << "no whole number of chunks in a shard";
    std::filesystem::remove(directory_.file("zarr.json"));
    EXPECT_THROW(open(), Error);
}

TEST_F(Zarr, version_2_is_read_too) {
    write(".zgroup", R"({"zarr_format":2})");
    write("data/.zarray",
          R"({"zarr_format":2,"shape":[5,7],"chunks":[2,3],"dtype":">i4","compressor":null,"order":"F",)"
          R"("filters":null,"fill_value":0})");
    for (int row = 0; row < 3; ++row) {
        for (int column = 0; column < 3; ++column) {
            write("data/" + std::to_string(row) + "." + std::to_string(column), chunk_of(row, column, true, true));
        }
    }
    expect_reads();
}

TEST(ZarrFill, values_become_their_bytes_or_are_refused) {
    const auto fill = [](const char* json, const char* type_name) {
        ElementType type;
        EXPECT_TRUE(type_named(type_name, type));
        std::string text;
        try {
            for (const std::byte one : fill_of(read_json(json), type)) text += static_cast<char>(one);
        } catch (const BadDocument&) {
            return std::string("refused");
        }
        return text;
    };
    EXPECT_EQ(fill("-2", "int16"), std::string("\xfe\xff", 2));
    EXPECT_EQ(fill("18446744073709551615", "uint64"), std::string(8, '\xff'));
    EXPECT_EQ(fill("1.0", "uint8"), "\x01");
    EXPECT_EQ(fill("256", "uint8"), "refused");
    EXPECT_EQ(fill("-129", "int8"), "refused");
    EXPECT_EQ(fill("true", "bool"), "\x01");
    EXPECT_EQ(fill("1.5", "float32"), std::string("\x00\x00\xc0\x3f", 4));
    EXPECT_EQ(fill("\"0x7fc00001\"", "float32"), std::string("\x01\x00\xc0\x7f", 4));
    EXPECT_EQ(fill("\"-Infinity\"", "float64"), std::string("\0\0\0\0\0\0\xf0\xff", 8));
    EXPECT_EQ(fill("[1, 0]", "complex64"), std::string("\0\0\x80\x3f\0\0\0\0", 8));
    EXPECT_EQ(fill("1.5", "bfloat16"), "refused");
    EXPECT_EQ(fill("null", "float32"), "");
    EXPECT_EQ(fill("\"x\"", "float32"), "refused");
}

}  // namespace
}  // namespace penstock::formats
