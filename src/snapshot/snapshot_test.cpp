// Snapshots: what is told is in the file, the data lie where the layout says, and a refusal leaves no file. The Python
// tests compare the file with what h5py reads. Tried with them: arepo, chunk_sums, gadget_family, gizmo, gothic,
// move_fields, target_file, told_tree.
#include "penstock/snapshot.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "context/test_files.hpp"
#include "penstock/checksum.hpp"
#include "penstock/context.hpp"
#include "penstock/history.hpp"
#include "snapshot/chunk_sums.hpp"

namespace penstock {
namespace {

class SnapshotTest : public testing::TestWithParam<MemoryKind> {
  protected:
    SnapshotTest() : context_({.device = "host"}), name_(folder_.file("snapshot.hdf5")) {}

    Snapshot made(SnapshotOptions options = {}) const {
        options.memory = GetParam();
        return {context_, name_, options};
    }

    Buffer numbers(std::size_t count) const {
        std::vector<float> values(count);
        std::iota(values.begin(), values.end(), 1.0F);
        Buffer made = context_.allocate(count * sizeof(float), GetParam());
        std::memcpy(made.data(), values.data(), made.bytes());
        return made;
    }

    // One line that names the file, and all of `words`. Nothing is left in the folder that was not there.
    template <typename Call>
    void expect_refusal(const std::vector<std::string>& words, Call&& call,
                        ErrorCode code = ErrorCode::invalid_argument) const {
        const std::size_t before = folder_.entries();
        try {
            call();
            ADD_FAILURE() << "not refused: " << words[0];
        } catch (const Error& error) {
            const std::string told = error.what();
            for (const std::string& word : words) EXPECT_NE(told.find(word), std::string::npos) << told;
            EXPECT_NE(told.find("snapshot.hdf5"), std::string::npos) << told;
            EXPECT_EQ(told.find('\n'), std::string::npos) << told;
            EXPECT_EQ(error.code(), code) << told;
        }
        EXPECT_EQ(folder_.entries(), before);
    }

    test::TempDirectory folder_;
    Context context_;
    std::string name_;
};

INSTANTIATE_TEST_SUITE_P(memory, SnapshotTest, testing::Values(MemoryKind::device, MemoryKind::system),
                         [](const auto& one) { return std::string(to_string(one.param)); });

TEST_P(SnapshotTest, all_fields_are_in_the_file_behind_its_metadata) {
    const Buffer coordinates = numbers(3 * 100000), masses = numbers(7);
    Snapshot snapshot = made({.durable = true});
    snapshot.add_group("Header");
    snapshot.add_dataset({"PartType0/Coordinates", "float32", {100000, 3}});
    snapshot.add_dataset({"/PartType0/Masses", "float32", {7}});
    snapshot.add_dataset({"PartType1/Masses", "float32", {0}});
    snapshot.set_attribute("/Header", snapshot_scalar("Time", 0.25));
    EXPECT_EQ(folder_.entries(), 0U);
    const SnapshotFacts facts = snapshot.write({{"PartType1/Masses", nullptr, 0},
                                                {"/PartType0/Coordinates", coordinates.data(), coordinates.bytes()},
                                                {"PartType0/Masses", masses.data(), masses.bytes()}});
    EXPECT_EQ(facts.data_bytes, coordinates.bytes() + masses.bytes());
    EXPECT_EQ(facts.file_bytes, std::filesystem::file_size(name_));
    std::uint64_t moved = 0;
    for (const PathShare& one : facts.evidence.paths) moved += one.bytes;
    EXPECT_EQ(moved, facts.data_bytes);
    const std::vector<unsigned char> file = test::read_file(name_);
    EXPECT_EQ(std::memcmp(file.data(), "\x89HDF\r\n\x1a\n", 8), 0);
    const auto holds = [&](const Buffer& buffer) {
        const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
        return all.find(std::string_view(static_cast<const char*>(buffer.data()), buffer.bytes())) != all.npos;
    };
    EXPECT_TRUE(holds(coordinates));
    EXPECT_TRUE(holds(masses));
    EXPECT_EQ(folder_.entries(), 1U);
}

TEST_P(SnapshotTest, wrong_definitions_are_refused_and_not_kept) {
    Snapshot snapshot = made();
    snapshot.add_dataset({"a/x", "float32", {2}});
    expect_refusal({"'a/x' is added twice"}, [&] { snapshot.add_dataset({"/a/x", "float32", {2}}); });
    expect_refusal({"two members x"}, [&] { snapshot.add_dataset({"a/x/y", "float32", {2}}); });
    expect_refusal({"two members x"}, [&] { snapshot.add_link("a/x", "/b"); });
    expect_refusal({"'a/z' has the type 'float31'"}, [&] { snapshot.add_dataset({"a/z", "float31", {2}}); });
    expect_refusal({"is no name of a member"}, [&] { snapshot.add_dataset({std::string("a\0b", 3), "float32", {2}}); });
    expect_refusal({"a zero byte"},
                   [&] { snapshot.set_attribute("a", {.name = "text", .texts = {std::string("x\0y", 3)}}); });
    expect_refusal({"leads nowhere"}, [&] { snapshot.add_link("a/z", ""); });
    expect_refusal({"no group or dataset 'b'"}, [&] { snapshot.set_attribute("b", snapshot_scalar("n", 1)); });
    SnapshotAttribute attribute = snapshot_scalar("n", 1);
    attribute.shape = {2};
    expect_refusal({"'n' of 'a' has 4 bytes", "take 8"}, [&] { snapshot.set_attribute("a", attribute); });
    attribute = snapshot_text("t", "longer");
    attribute.text_bytes = 3;
    expect_refusal({"'t' of 'a' has a text of 6 bytes"}, [&] { snapshot.set_attribute("a", attribute); });
    expect_refusal(
        {"takes", "65528"}, [&] { snapshot.set_attribute("a", snapshot_text("long", std::string(70000, 'x'))); },
        ErrorCode::unsupported);
    const Buffer x = numbers(2);
    snapshot.write({{"a/x", x.data(), x.bytes()}});
    EXPECT_EQ(folder_.entries(), 1U);
}

TEST_P(SnapshotTest, wrong_fields_are_refused_and_leave_no_file) {
    const Buffer x = numbers(4);
    Snapshot snapshot = made();
    snapshot.add_dataset({"a/x", "float32", {2, 2}});
    snapshot.add_dataset({"a/y", "float32", {4}});
    const SnapshotField good{"a/x", x.data(), 16}, other{"a/y", x.data(), 16};
    expect_refusal({"'a/y' is not given"}, [&] { snapshot.write({good}); });
    expect_refusal({"'a/x' is given twice"}, [&] { snapshot.write({good, other, good}); });
    expect_refusal({"'a/z' was not added"}, [&] { snapshot.write({{"a/z", x.data(), 16}}); });
    expect_refusal({"'a/x'", "12 bytes", "takes 16", "float32 (2, 2)"}, [&] {
        snapshot.write({{"a/x", x.data(), 12}, other});
    });
    expect_refusal({"'a/x' is a null pointer"}, [&] { snapshot.write({{"a/x", nullptr, 16}, other}); });
    if (GetParam() == MemoryKind::device) {
        const std::vector<float> host(4);
        expect_refusal({"'a/y'", "not device memory"}, [&] { snapshot.write({good, {"a/y", host.data(), 16}}); });
    }
    snapshot.write({good, other});
    expect_refusal({"written already"}, [&] { snapshot.write({good, other}); });
    expect_refusal({"written already"}, [&] { snapshot.add_group("b"); });
}

TEST_P(SnapshotTest, memory_of_an_emulated_device_is_memory_of_the_host) {
    const Buffer x = context_.allocate(16);
    std::memset(x.data(), 7, x.bytes());
    Snapshot snapshot = made();
    snapshot.add_dataset({"x", "float32", {4}});
    EXPECT_EQ(snapshot.write({{"x", x.data(), x.bytes()}}).data_bytes, x.bytes());
    const std::vector<unsigned char> file = test::read_file(name_);
    const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
    EXPECT_NE(all.find(std::string(16, '\7')), all.npos);
}

TEST_P(SnapshotTest, presets_that_make_no_sense_are_refused) {
    Snapshot snapshot = made();
    snapshot.add_dataset({"PartType7/Masses", "float32", {5}});
    expect_refusal({"no layout 'gadget5'", "gadget4, swift"}, [&] { snapshot.use_preset({.layout = "gadget5"}); });
    expect_refusal({"swift has no PartType7"}, [&] { snapshot.use_preset({.layout = "swift"}); });
    SnapshotPreset preset{.layout = "gadget4"};
    preset.unit_mass_g = 0;
    expect_refusal({"unit_mass_g is 0"}, [&] { snapshot.use_preset(preset); });
    for (const double length : {std::nan(""), -1.0}) {
        const SnapshotPreset other{.layout = "swift", .box_size = {1, length, 1}};
        expect_refusal({"the box has a length of"}, [&] { snapshot.use_preset(other); });
    }
    snapshot.add_dataset({"PartType7/Velocities", "float32", {6, 3}});
    expect_refusal({"'PartType7/Velocities' has 6 particles", "has 5"},
                   [&] { snapshot.use_preset({.layout = "gadget4"}); });
}

TEST_P(SnapshotTest, a_file_that_exists_stays_where_it_may_not_be_replaced) {
    const Buffer x = numbers(1);
    test::write_file(name_, test::stamped(100));
    Snapshot snapshot = made({.replace = false});
    snapshot.add_dataset({"x", "float32", {1}});
    expect_refusal(
        {"File exists"},
        [&] {
            snapshot.write({{"x", x.data(), 4}});
        },
        ErrorCode::io_error);
    EXPECT_EQ(test::read_file(name_), test::stamped(100));
    Snapshot replacing = made();
    replacing.add_dataset({"x", "float32", {1}});
    replacing.write({{"x", x.data(), 4}});
    EXPECT_NE(test::read_file(name_), test::stamped(100));
}

// No disk has room for 2^43 bytes; the room is asked for before a byte of the field is read.
TEST_P(SnapshotTest, a_full_disk_is_told_before_data_move) {
    if (GetParam() == MemoryKind::device) GTEST_SKIP() << "no device has so much memory";
    const std::vector<float> x(1);
    Snapshot snapshot = made();
    snapshot.add_dataset({"x", "float32", {std::uint64_t{1} << 41}});
    test::write_file(name_, test::stamped(100));
    expect_refusal(
        {"No space left"},
        [&] {
            snapshot.write({{"x", x.data(), std::uint64_t{1} << 43}});
        },
        ErrorCode::no_space);
    EXPECT_EQ(test::read_file(name_), test::stamped(100));
}

TEST_P(SnapshotTest, rows_of_processes_lie_one_behind_the_other_in_a_file_that_the_last_call_names) {
    const Buffer first = numbers(3), second = numbers(5);
    const std::vector<std::uint64_t> rows{3, 5};
    Snapshot zero = made({.process = 0, .processes = 2}), one = made({.process = 1, .processes = 2});
    zero.add_dataset({"x", "float32", {3}, rows});
    one.add_dataset({"x", "float32", {5}, rows});
    EXPECT_EQ(zero.digest(), one.digest());
    expect_refusal({"process_rows tells 3 of process 0"}, [&] { zero.add_dataset({"y", "float32", {4}, rows}); });
    expect_refusal({"the file is not begun"}, [&] { one.write({{"x", second.data(), second.bytes()}}); });
    zero.begin();
    one.begin(zero.place());
    one.write({{"x", second.data(), second.bytes()}});
    zero.write({{"x", first.data(), first.bytes()}});
    one.commit();
    EXPECT_FALSE(std::filesystem::exists(name_));
    zero.commit();
    EXPECT_EQ(folder_.entries(), 1U);
    const std::vector<unsigned char> file = test::read_file(name_);
    std::string both(static_cast<const char*>(first.data()), first.bytes());
    both.append(static_cast<const char*>(second.data()), second.bytes());
    EXPECT_NE(std::string_view(reinterpret_cast<const char*>(file.data()), file.size()).find(both), std::string::npos);
}

TEST_P(SnapshotTest, a_second_writer_of_the_name_is_refused_while_the_first_writes) {
    const Buffer values = numbers(3);
    const std::vector<std::uint64_t> rows{3, 0};
    Snapshot first = made({.process = 0, .processes = 2}), shared = made({.process = 0, .processes = 2}), one = made();
    for (Snapshot* each : {&first, &shared}) each->add_dataset({"x", "float32", {3}, rows});
    one.add_dataset({"x", "float32", {3}});
    first.begin();
    const std::vector<std::string> words{"write snapshot", "another writer", "give another name"};
    expect_refusal(words, [&] { shared.begin(); }, ErrorCode::io_error);
    expect_refusal(words, [&] { one.write({{"x", values.data(), values.bytes()}}); }, ErrorCode::io_error);
    first.write({{"x", values.data(), values.bytes()}});
    first.commit();
    const std::vector<unsigned char> written = test::read_file(name_);
    EXPECT_EQ(folder_.entries(), 1U);
    one.write({{"x", values.data(), values.bytes()}});
    EXPECT_EQ(folder_.entries(), 1U) << "the first one has ended";
    shared.begin();
    shared.abandon();
    EXPECT_EQ(folder_.entries(), 1U);
}

TEST_P(SnapshotTest, a_history_that_began_while_a_snapshot_was_written_keeps_the_name) {
    const Buffer values = numbers(3);
    const std::vector<std::uint64_t> rows{3, 0};
    Snapshot snapshot = made({.process = 0, .processes = 2});
    snapshot.add_dataset({"x", "float32", {3}, rows});
    snapshot.begin();
    HistoryOptions options;
    options.memory = GetParam();
    History history(context_, name_, options);
    history.define({.name = "T", .dimensions = {"x"}, .shape = {3}});
    history.begin();
    snapshot.write({{"x", values.data(), values.bytes()}});
    const std::vector<unsigned char> before = test::read_file(name_);
    try {
        snapshot.commit();
        ADD_FAILURE() << "the file of the history was replaced";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("a history, of this program or another one"), std::string::npos);
    }
    snapshot.abandon();
    EXPECT_EQ(test::read_file(name_), before);
    history.put("T", values.data());
    history.end_step(1);
    history.close();
}

TEST_P(SnapshotTest, each_layout_writes_what_its_readers_look_for) {
    const std::pair<const char*, const char*> wanted[] = {{"arepo", "UnitLength_in_cm"},
                                                          {"gizmo", "UnitLength_In_CGS"},
                                                          {"gothic", "length2astro"},
                                                          {"swift", "TotalNumberOfParticles"}};
    const Buffer masses = numbers(4);
    for (const auto& [layout, name] : wanted) {
        const std::string path = std::string(layout) == "gothic" ? "snp/mass" : "PartType1/Masses";
        Snapshot snapshot = made();
        snapshot.add_dataset({path, "float32", {4}, {}, 3, true});
        snapshot.use_preset({.layout = layout});
        snapshot.write({{path, masses.data(), masses.bytes()}});
        const std::vector<unsigned char> file = test::read_file(name_);
        const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
        EXPECT_NE(all.find(name), std::string::npos) << layout;
    }
}

TEST(ChunkSums, zeros_behind_the_data_are_summed_by_arithmetic) {
    for (const std::size_t bytes : {0U, 1U, 2U, 7U, 1000U, 4097U}) {
        for (const int fill : {0, 1, 255}) {
            for (const std::size_t zeros : {0U, 1U, 2U, 131070U, 131072U}) {
                std::vector<std::byte> data(bytes, static_cast<std::byte>(fill));
                const std::uint32_t sum = checksum(ChecksumKind::fletcher32, data);
                data.resize(bytes + zeros);
                EXPECT_EQ(snapshot::fletcher_with_zeros(sum, bytes, data.size()),
                          checksum(ChecksumKind::fletcher32, data))
                    << bytes << " " << fill << " " << zeros;
            }
        }
    }
}

}  // namespace
}  // namespace penstock
