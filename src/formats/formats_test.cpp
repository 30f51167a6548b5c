// The kit that every format of one file passes: its elements are read, whole and in boxes, and written; names, ends of
// files and damage are told. Each case is a file with the table of samples_rig.hpp as dataset "data".
//
// What formats share is tried with it: chunk_files, flat, raw, stored_dataset, faults, cdf_header, literal,
// numpy_type, and of move: batches, box_moves, sum_outcomes.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "context/test_files.hpp"
#include "formats/data_file.hpp"
#include "formats/hdf5/hdf5_samples_rig.hpp"
#include "formats/move/move_dataset.hpp"
#include "formats/samples_rig.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

using Parser = std::vector<StoredDataset> (*)(const ByteSource&);

struct FormatCase {
    const char* name;
    Parser parse;
    std::function<std::string()> make;
    friend std::ostream& operator<<(std::ostream& out, const FormatCase& one) { return out << one.name; }
};

const FormatCase kCases[] = {
    {"npy", &parse_npy, [] { return testing::sample_npy(); }},
    {"npy_fortran", &parse_npy, [] { return testing::sample_npy_fortran(); }},
    {"npy_big", &parse_npy, [] { return testing::sample_npy_big(); }},
    {"safetensors", &parse_safetensors, [] { return testing::sample_safetensors(); }},
    {"cdf1", &parse_netcdf3, [] { return testing::sample_netcdf(1, false); }},
    {"cdf2_records", &parse_netcdf3, [] { return testing::sample_netcdf(2, true); }},
    {"cdf5_records", &parse_netcdf3, [] { return testing::sample_netcdf(5, true); }},
    {"cdf5", &parse_netcdf3, [] { return testing::sample_netcdf(5, false); }},
    {"hdf5", &testing::parse_hdf5, [] { return testing::sample_hdf5(); }},
    {"hdf5_big", &testing::parse_hdf5, [] { return testing::sample_hdf5(true); }},
    {"hdf5_chunks", &testing::parse_hdf5, [] { return testing::sample_hdf5_chunks(); }},
    {"cdf2_streaming", &parse_netcdf3, [] { return testing::sample_netcdf(2, true, true); }},
};

Context host_context() {
    ContextOptions options;
    options.device = "host";
    return Context(options);
}

class FormatKit : public ::testing::TestWithParam<FormatCase> {
  protected:
    FormatKit() { write(GetParam().make()); }
    void write(const std::string& bytes) { test::write_file(name_, {bytes.begin(), bytes.end()}); }
    std::string bytes() const {
        const auto found = test::read_file(name_);
        return {found.begin(), found.end()};
    }
    DataFile open(bool writable = false) const { return DataFile(context_, name_, {.writable = writable}); }

    static DatasetMove move_of(const data::ElementBox& box, std::vector<std::int32_t>& memory, MemoryKind kind) {
        memory.assign(static_cast<std::size_t>(box.count[0] * box.count[1]), -1);
        DatasetMove move;
        move.selection.box = box;
        move.selection.memory_strides = {box.count[1] * 4, 4};
        move.memory = {memory.data(), memory.size() * 4, kind};
        return move;
    }
    static std::vector<std::int32_t> wanted(const data::ElementBox& box) {
        std::vector<std::int32_t> found;
        for (std::int64_t row = 0; row < box.count[0]; ++row) {
            for (std::int64_t column = 0; column < box.count[1]; ++column) {
                found.push_back(static_cast<std::int32_t>(1000 * (box.start[0] + row * box.step[0]) + box.start[1] +
                                                          column * box.step[1]));
            }
        }
        return found;
    }
    static data::ElementBox box_of(std::vector<std::int64_t> start, std::vector<std::int64_t> count,
                                   std::vector<std::int64_t> step) {
        data::ElementBox box;
        for (std::size_t axis = 0; axis < 2; ++axis) {
            box.start[axis] = start[axis], box.count[axis] = count[axis], box.step[axis] = step[axis];
        }
        return box;
    }
    static std::vector<data::ElementBox> boxes() {
        return {box_of({0, 0}, {5, 7}, {1, 1}), box_of({1, 2}, {3, 4}, {1, 1}), box_of({4, 6}, {1, 1}, {1, 1}),
                box_of({0, 0}, {5, 1}, {1, 1}), box_of({0, 1}, {3, 3}, {2, 2}), box_of({0, 3}, {0, 4}, {1, 1})};
    }
    static const char* open_format() {
        const Parser parse = GetParam().parse;
        if (parse == &testing::parse_hdf5) return "hdf5";
        return parse == &parse_npy ? "npy" : parse == &parse_safetensors ? "safetensors" : "netcdf3";
    }
    ErrorCode code_of(const std::function<void()>& action) const {
        try {
            action();
        } catch (const Error& error) {
            EXPECT_FALSE(error.info().cause.empty());
            return error.code();
        }
        return ErrorCode::ok;
    }

    test::TempDirectory directory_;
    const std::string name_ = directory_.file("sample");
    const Context context_ = host_context();
};

TEST_P(FormatKit, tells_names_shape_and_type) {
    const DataFile file = open();
    const std::vector<std::string> names = file.container().names();
    EXPECT_NE(std::find(names.begin(), names.end(), "data"), names.end());
    const StoredDataset dataset = file.container().dataset("data");
    EXPECT_EQ(dataset.grid.shape, (std::vector<std::int64_t>{5, 7}));
    EXPECT_EQ(dataset.type.name, "int32");
    EXPECT_EQ(dataset.grid.item_bytes, 4u);
}

TEST_P(FormatKit, reads_boxes_into_memory_of_host_and_device) {
    const DataFile file = open();
    const StoredDataset dataset = file.container().dataset("data");
    for (const MemoryKind kind : {MemoryKind::system, MemoryKind::device}) {
        for (const data::ElementBox& box : boxes()) {
            std::vector<std::int32_t> host;
            DatasetMove move = move_of(box, host, kind);
            const std::uint64_t room = std::max<std::uint64_t>(4, move.memory.bytes);
            const Buffer buffer = context_.allocate(room, MemoryKind::device);
            if (kind == MemoryKind::device) move.memory.data = buffer.data();
            const DatasetMoved moved = read_dataset(file, dataset, move);
            ASSERT_TRUE(moved.outcome.ok()) << moved.outcome.error.message();
            EXPECT_EQ(moved.outcome.bytes, 4 * host.size());
            if (kind == MemoryKind::device && !host.empty()) {
                context_.copy_to_host(host.data(), buffer.data(), 4 * host.size());
            }
            EXPECT_EQ(host, wanted(box));
            EXPECT_EQ(moved.outcome.evidence.paths.empty(), host.empty()) << "evidence of the bytes";
        }
    }
}

TEST_P(FormatKit, writes_what_is_selected_and_nothing_else) {
    for (const data::ElementBox& box : boxes()) {
        write(GetParam().make());
        const std::string before = bytes();
        std::vector<std::int32_t> memory, same;
        const DataFile file = open(true);
        const StoredDataset dataset = file.container().dataset("data");
        const DatasetMove back = move_of(box, same, MemoryKind::system);
        const std::vector<std::int32_t> values = wanted(box);
        std::copy(values.begin(), values.end(), same.begin());
        const DatasetMoved unchanged = write_dataset(file, dataset, back);
        ASSERT_TRUE(unchanged.outcome.ok()) << unchanged.outcome.error.message();
        EXPECT_EQ(bytes(), before) << "the same elements change nothing";
        const DatasetMove move = move_of(box, memory, MemoryKind::system);
        std::fill(memory.begin(), memory.end(), 0x7b7b7b7b);
        ASSERT_TRUE(write_dataset(file, dataset, move).outcome.ok());
        const std::string after = bytes();
        ASSERT_EQ(after.size(), before.size());
        std::size_t changed = 0;
        for (std::size_t i = 0; i < after.size(); ++i) changed += after[i] == '{' && before[i] != '{';
        EXPECT_EQ(changed, 4 * memory.size());
        std::vector<std::int32_t> got;
        ASSERT_TRUE(read_dataset(file, dataset, move_of(box, got, MemoryKind::system)).outcome.ok());
        EXPECT_EQ(got, memory);
    }
}

TEST_P(FormatKit, refuses_what_makes_no_sense) {
    const DataFile file = open();
    const StoredDataset dataset = file.container().dataset("data");
    std::vector<std::int32_t> memory;
    const auto reads = [&](const DatasetMove& move) { return code_of([&] { read_dataset(file, dataset, move); }); };
    EXPECT_EQ(reads(move_of(box_of({0, 0}, {5, 8}, {1, 1}), memory, MemoryKind::system)), ErrorCode::invalid_argument);
    DatasetMove move = move_of(box_of({0, 0}, {5, 7}, {1, 1}), memory, MemoryKind::system);
    move.memory.bytes -= 1;
    EXPECT_EQ(reads(move), ErrorCode::invalid_argument) << "the memory is too small";
    move.memory.bytes += 1;
    move.selection.memory_strides = {24, 4};
    EXPECT_EQ(reads(move), ErrorCode::invalid_argument) << "elements overlap in memory";
    move.selection.memory_strides = {-28, 4};
    EXPECT_EQ(reads(move), ErrorCode::invalid_argument) << "elements before the memory";
    move.selection.memory_strides = {28, 4};
    EXPECT_EQ(code_of([&] { write_dataset(file, dataset, move); }), ErrorCode::read_only);
    EXPECT_EQ(code_of([&] { file.container().dataset("dota"); }), ErrorCode::not_found);
}

TEST_P(FormatKit, a_file_that_is_cut_short_is_an_error_at_any_byte) {
    const std::string whole = bytes();
    // A record ends with a flag of one byte and three that no element has.
    const std::size_t behind = std::string_view(GetParam().name).ends_with("_records") ? 3 : 0;
    for (std::size_t length = 0; length < whole.size(); ++length) {
        write(whole.substr(0, length));
        const ErrorCode code = code_of([&] {
            const DataFile file(context_, name_, {.format = open_format()});
            for (const std::string& name : file.container().names()) {
                const StoredDataset dataset = file.container().dataset(name);
                std::vector<std::byte> memory(std::max<std::uint64_t>(1, extent_bytes(dataset)));
                DatasetMove move;
                move.memory = {memory.data(), memory.size(), MemoryKind::system};
                for (std::size_t axis = 0; axis < dataset.grid.shape.size(); ++axis) {
                    move.selection.box.count[axis] = dataset.grid.shape[axis];
                    move.selection.memory_strides[axis] = dataset.grid.strides[axis];
                }
                read_dataset(file, dataset, move).outcome.or_throw();
            }
        });
        // A streaming writer's file tells its records by its size.
        if (std::string_view(GetParam().name) == "cdf2_streaming" && code == ErrorCode::ok) continue;
        if (length + behind >= whole.size()) {
            EXPECT_EQ(code, ErrorCode::ok) << "all elements are there";
            continue;
        }
        EXPECT_NE(code, ErrorCode::ok) << length << " of " << whole.size() << " bytes";
        EXPECT_NE(code, ErrorCode::internal) << length;
        EXPECT_NE(code, ErrorCode::out_of_memory) << length;
    }
}

TEST_P(FormatKit, changed_bytes_of_a_header_are_an_error_or_another_dataset) {
    std::mt19937 random(5);
    const std::string whole = GetParam().make();
    for (int turn = 0; turn < 3000; ++turn) {
        std::string changed = whole;
        for (std::size_t left = random() % 3 + 1; left > 0; --left) {
            const std::size_t at = random() % (whole.size() - 139);
            changed[at] = static_cast<char>(random() % 4 == 0 ? 0xff : random());
        }
        try {
            for (const StoredDataset& one : GetParam().parse(testing::MemorySource(changed)))
                data::check_grid(one.grid);
        } catch (const Error& error) {
            EXPECT_NE(error.code(), ErrorCode::internal);
        }
    }
}

std::string case_name(const ::testing::TestParamInfo<FormatCase>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Formats, FormatKit, ::testing::ValuesIn(kCases), case_name);

// (cause, code) of what a parser says of bytes.
std::pair<std::string, ErrorCode> refusal(Parser parse, const std::string& bytes) {
    try {
        const auto datasets = parse(testing::MemorySource(bytes));
        return {datasets.empty() ? "" : datasets.front().refusal, ErrorCode::ok};
    } catch (const Error& error) {
        return {error.info().cause, error.code()};
    }
}

std::string npy(const std::string& descr, const std::string& shape, const std::string& data = {}) {
    return testing::npy_of("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}", data);
}

TEST(Npy, sizes_that_overflow_are_refused) {
    EXPECT_EQ(refusal(&parse_npy, npy("'<f8'", "(4611686018427387904, 4)")).second, ErrorCode::io_error);
    EXPECT_EQ(refusal(&parse_npy, npy("'<f8'", "(99999999999999999999,)")).second, ErrorCode::io_error);
    EXPECT_EQ(refusal(&parse_npy, npy("'<f8'", "(-1,)")).second, ErrorCode::io_error);
    EXPECT_EQ(refusal(&parse_npy, npy("'<f8'", "(1000000,)")).second, ErrorCode::end_of_file);
    EXPECT_EQ(refusal(&parse_npy, npy("'<f8'", "[1]", "12345678")).second, ErrorCode::io_error);
    EXPECT_EQ(refusal(&parse_npy, npy("[('a', '<i4', (4294967296, 4294967296))]", "(1,)")).second,
              ErrorCode::unsupported);
}

TEST(Npy, objects_are_never_read) {
    EXPECT_EQ(refusal(&parse_npy, npy("'|O'", "(1,)", "12345678")).second, ErrorCode::unsupported);
    EXPECT_EQ(refusal(&parse_npy, npy("[('a', '|O')]", "(1,)", "12345678")).second, ErrorCode::unsupported);
}

TEST(Npy, types_have_their_names_and_sizes) {
    const std::pair<const char*, const char*> types[] = {
        {"'<f8'", "float64"},     {"'|b1'", "bool"},
        {"'<c16'", "complex128"}, {"'|S16'", "S16"},
        {"'<U4'", "U4"},          {"'|V16'", "void128"},
        {"'<M8[ns]'", "M8[ns]"},  {"[('a', '<f8'), ('b', [('c', 'u1', (2, 4))])]", "void128"}};
    for (const auto& [descr, name] : types) {
        const auto datasets = parse_npy(testing::MemorySource(npy(descr, "()", std::string(64, 'x'))));
        ASSERT_EQ(datasets.size(), 1u);
        EXPECT_EQ(datasets.front().type.name, name);
        EXPECT_TRUE(datasets.front().grid.shape.empty());
    }
    EXPECT_EQ(parse_npy(testing::MemorySource(npy("'>U4'", "(1,)", std::string(16, 'x')))).front().type.swap_bytes(),
              4u);
}

TEST(Npy, a_file_that_ends_in_its_first_bytes_is_cut_short) {
    const std::string whole = npy("'<f8'", "(1,)", "12345678");
    for (std::size_t length = 6; length < 10; ++length) {
        const auto [cause, code] = refusal(&parse_npy, whole.substr(0, length));
        EXPECT_NE(cause.find("the file has " + std::to_string(length)), std::string::npos) << cause;
        EXPECT_EQ(code, ErrorCode::end_of_file);
    }
    EXPECT_EQ(refusal(&parse_npy, whole.substr(0, 5)).second, ErrorCode::unsupported) << "control: half of the magic";
}

TEST(Npy, another_file_is_told_by_its_first_bytes) {
    EXPECT_NE(refusal(&parse_npy, "PK\x03\x04 and more bytes").first.find("ZIP"), std::string::npos);
    EXPECT_NE(refusal(&parse_npy, "\x89HDF\r\n\x1a\n and more").first.find("HDF5"), std::string::npos);
    EXPECT_NE(refusal(&parse_npy, "").first.find("empty"), std::string::npos);
    const std::string told = refusal(&parse_npy, "\x88\xff and others").first;
    EXPECT_NE(told.find("'\\x88\\xff and o'"), std::string::npos) << told << ": errors are UTF-8";
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& ends) {
    return R"("t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + ends + "}";
}

TEST(Safetensors, ranges_that_the_reference_refuses_are_refused) {
    const auto code = [](const std::string& members, std::size_t bytes) {
        return refusal(&parse_safetensors, testing::safetensors_of("{" + members + "}", std::string(bytes, 'x')))
            .second;
    };
    EXPECT_EQ(code(tensor("U8", "[4]", "[0,4]"), 4), ErrorCode::ok);
    EXPECT_EQ(code(tensor("U8", "[4]", "[0,4]"), 3), ErrorCode::end_of_file);
    EXPECT_EQ(code(tensor("U8", "[4]", "[0,4]"), 5), ErrorCode::io_error);
    EXPECT_EQ(code(tensor("U8", "[3]", "[1,4]"), 4), ErrorCode::io_error);
    EXPECT_EQ(code(tensor("U8", "[5]", "[0,4]"), 4), ErrorCode::io_error);
    EXPECT_EQ(code(tensor("F64", "[4294967296,4294967296,2]", "[0,0]"), 0), ErrorCode::io_error);
    EXPECT_EQ(code(tensor("U8", "[4]", "[0,4]") + "," + tensor("U8", "[0]", "[4,4]"), 4), ErrorCode::io_error)
        << "twice";
    EXPECT_EQ(code(R"("__metadata__":{"a":1})", 0), ErrorCode::io_error);
    EXPECT_EQ(refusal(&parse_safetensors, testing::little(std::uint64_t{0xff} << 40, 8) + "{}").second,
              ErrorCode::io_error);
}

TEST(Safetensors, a_type_without_plain_bytes_is_listed_with_its_refusal) {
    const std::string file = testing::safetensors_of("{" + tensor("F4", "[2]", "[0,1]") + "}", "x");
    EXPECT_NE(refusal(&parse_safetensors, file).first.find("4 bits"), std::string::npos);
}

TEST(Netcdf, counts_that_the_file_cannot_hold_are_refused) {
    std::string file = testing::sample_netcdf(1, false);
    file.replace(12, 4, testing::big(0x7fffffff, 4));  // number of dimensions
    EXPECT_EQ(refusal(&parse_netcdf3, file).second, ErrorCode::io_error);
    EXPECT_EQ(refusal(&parse_netcdf3, "CDF\x03 and more").second, ErrorCode::unsupported);
}

}  // namespace
}  // namespace penstock::formats
