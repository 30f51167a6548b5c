// Restarts of one process: what is written is read, generations alternate, and what cannot be is refused. The Python
// tests compare the files with what h5py and zlib read.
#include "penstock/restart.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "os/new_file/name_lock.hpp"
#include "penstock/checksum.hpp"
#include "restart/restart_rig.hpp"

namespace penstock {
namespace {

INSTANTIATE_TEST_SUITE_P(memory, RestartTest, testing::Values(MemoryKind::device, MemoryKind::system),
                         [](const auto& one) { return std::string(to_string(one.param)); });

TEST_P(RestartTest, what_was_written_is_read) {
    constexpr std::uint64_t kRows = 100'001;  // more than two blocks, with a part of one
    Buffer positions = counting(3 * kRows, 1), mass = counting(1, 7), none = memory(8);
    Restart restart = open();
    EXPECT_FALSE(restart.find());
    restart.set_field({"gas/positions", "float64", {kRows, 3}, positions.data()});
    restart.set_field({"gas/mass", "float64", {}, mass.data()});
    restart.set_field({"stars/positions", "float64", {0, 3}, nullptr});
    restart.set_attribute(snapshot_scalar<std::uint64_t>("step", 12));
    restart.set_attribute(snapshot_array("dice", {0.5, -1.0}));
    restart.set_attribute(snapshot_text("model", "flow"));
    const RestartFacts facts = restart.write();
    EXPECT_EQ(facts.generation, 1U);
    EXPECT_EQ(facts.data_bytes, (3 * kRows + 1) * 8);
    EXPECT_TRUE(facts.is_locked);
    EXPECT_EQ(folder_.entries(), 2U) << "the generation and the lock of the name";

    Restart next = open();
    ASSERT_TRUE(next.find());
    EXPECT_EQ(next.field_names(), (std::vector<std::string>{"gas/positions", "gas/mass", "stars/positions"}));
    EXPECT_EQ(next.stored("gas/positions").shape, (std::vector<std::uint64_t>{kRows, 3}));
    EXPECT_EQ(next.stored("gas/positions").dtype, "float64");
    EXPECT_EQ(next.attribute("step").values[0], std::byte{12});
    EXPECT_EQ(next.attribute("dice").shape, (std::vector<std::uint64_t>{2}));
    EXPECT_EQ(next.attribute("model").texts, (std::vector<std::string>{"flow"}));
    Buffer found = memory(positions.bytes()), found_mass = memory(8);
    next.set_field({"gas/positions", "float64", {kRows, 3}, found.data()});
    next.set_field({"gas/mass", "float64", {}, found_mass.data()});
    const RestartFacts read = next.read();
    EXPECT_TRUE(counts_from(found, 3 * kRows, 1));
    EXPECT_TRUE(counts_from(found_mass, 1, 7));
    EXPECT_EQ(read.generation, 1U);
    EXPECT_EQ(read.passed_over, "");
    std::uint64_t moved = 0, pieces = read.evidence.paths.empty() ? 0 : read.evidence.paths[0].bytes;
    for (const PathShare& one : read.evidence.paths) moved += one.bytes;
    EXPECT_EQ(moved, read.data_bytes) << pieces;
}

TEST_P(RestartTest, nothing_at_all_takes_no_generations_place) {
    Buffer values = memory(8);
    Restart restart = open();
    restart.set_field({"x", "float64", {1}, values.data()});
    restart.write();
    restart.clear();
    for (int time = 0; time < 2; ++time) expect_error({"no field and no attribute is set"}, [&] { restart.write(); });
    EXPECT_TRUE(restart.find());
    EXPECT_EQ(restart.field_names(), std::vector<std::string>{"x"});
    restart.set_attribute(snapshot_scalar("step", 3));
    EXPECT_EQ(restart.write().generation, 2U) << "attributes alone are a state";
}

TEST_P(RestartTest, generations_take_turns_and_the_newest_is_read) {
    Buffer values = memory(8);
    Restart restart = open();
    restart.set_field({"x", "float64", {1}, values.data()});
    for (int generation = 1; generation <= 5; ++generation) {
        *static_cast<double*>(values.data()) = generation;
        Restart other = open();  // also where each write is of another program
        other.set_field({"x", "float64", {1}, values.data()});
        EXPECT_EQ((generation % 2 == 0 ? restart : other).write().generation, static_cast<unsigned>(generation));
        restart.release();
        *static_cast<double*>(values.data()) = 0;
        ASSERT_TRUE(restart.find());
        EXPECT_EQ(restart.read().generation, static_cast<unsigned>(generation));
        EXPECT_EQ(*static_cast<double*>(values.data()), generation);
    }
    EXPECT_EQ(folder_.entries(), 2U);
}

TEST_P(RestartTest, a_second_writer_of_a_name_is_refused_and_readers_are_not) {
    Buffer values = counting(1, 1), others = counting(1, 5);
    Restart restart = open(), second = open();
    restart.set_field({"x", "float64", {1}, values.data()});
    second.set_field({"x", "float64", {1}, others.data()});
    restart.write();
    const std::vector<std::string> words{"write restart", "another writer", "end that one, or give another name"};
    for (int time = 0; time < 2; ++time) {
        expect_error(words, [&] { second.write(); }, ErrorCode::io_error);
        EXPECT_EQ(folder_.entries(), 2U);
        EXPECT_EQ(second.read().generation, 1U);
        EXPECT_TRUE(counts_from(others, 1, 1));
    }
    EXPECT_EQ(restart.write().generation, 2U) << "the first one goes on";
    restart.release();
    EXPECT_EQ(second.write().generation, 3U);
    expect_error(words, [&] { restart.write(); }, ErrorCode::io_error);
}

TEST_P(RestartTest, two_that_begin_at_once_do_not_write_one_generation) {
    Buffer values = counting(1, 1);
    Restart restart = open(0, 2), second = open(0, 2);
    for (Restart* one : {&restart, &second}) one->set_field({"x", "float64", {1}, values.data()});
    restart.begin();
    expect_error({"another writer"}, [&] { second.begin(); }, ErrorCode::io_error);
    restart.abandon();
    EXPECT_EQ(folder_.entries(), 0U) << "a write that ended without a generation holds nothing";
    second.begin();
    EXPECT_EQ(second.commit(second.move()).generation, 1U);
    EXPECT_TRUE(std::filesystem::exists(slot(0)));
}

TEST_P(RestartTest, a_lock_that_was_removed_is_taken_again) {
    Buffer values = counting(1, 1);
    Restart restart = open(), second = open();
    for (Restart* one : {&restart, &second}) one->set_field({"x", "float64", {1}, values.data()});
    restart.write();
    std::filesystem::remove(os::lock_file_of(slot(0)));
    EXPECT_TRUE(restart.write().is_locked);
    expect_error({"another writer"}, [&] { second.write(); }, ErrorCode::io_error);
    std::filesystem::remove(os::lock_file_of(slot(0)));
    EXPECT_EQ(second.write().generation, 3U);
    expect_error({"another writer"}, [&] { restart.write(); }, ErrorCode::io_error);
}

TEST_P(RestartTest, fields_and_attributes_are_replaced_by_those_of_their_name) {
    Buffer few = counting(2, 1), many = counting(5, 10);
    Restart restart = open();
    restart.set_field({"x", "float64", {2}, few.data()});
    restart.set_attribute(snapshot_scalar("step", 1));
    restart.write();
    restart.set_field({"x", "float64", {5}, many.data()});
    restart.set_attribute(snapshot_scalar("step", 2));
    restart.write();
    ASSERT_TRUE(restart.find());
    EXPECT_EQ(restart.stored("x").shape, (std::vector<std::uint64_t>{5}));
    EXPECT_EQ(restart.attribute("step").values[0], std::byte{2});
}

TEST_P(RestartTest, what_makes_no_sense_is_refused_and_not_kept) {
    Buffer values = memory(64);
    Restart restart = open();
    const RestartField good{"a/x", "float64", {2, 2}, values.data()};
    restart.set_field(good);
    expect_error({"'a/y'", "float31"}, [&] { restart.set_field({"a/y", "float31", {2}, values.data()}); });
    expect_error({"'/a'", "no name"}, [&] { restart.set_field({"/a", "float64", {2}, values.data()}); });
    expect_error({"'penstock/x'"}, [&] { restart.set_field({"penstock/x", "float64", {2}, values.data()}); });
    expect_error({"the box of field 'a/x'", "(3, 0)", "(2, 2)"}, [&] {
        restart.set_field({"a/x", "float64", {2, 2}, values.data(), {3, 0}});
    });
    expect_error({"two members"}, [&] { restart.set_field({"a", "float64", {2}, values.data()}); });
    expect_error({"no file has so many"}, [&] { restart.set_field({"b", "float64", {~0ULL >> 3, 3}, nullptr}); });
    expect_error({": attribute 'long' takes ", "65528"},
                 [&] { restart.set_attribute(snapshot_text("long", std::string(70000, 'x'))); });
    expect_error({"no generation was found"}, [&] { restart.generation(); });
    expect_error({"no generation"}, [&] { restart.read(); });
    expect_error({"no write was begun"}, [&] { restart.move(); });
    expect_error({"process 3 of 3"}, [&] { open(3, 3); });
    restart.set_field({"a/x", "float64", {2, 2}, nullptr});
    expect_error({"'a/x' is a null pointer"}, [&] { restart.write(); });
    EXPECT_EQ(folder_.entries(), 0U);
    restart.set_field(good);
    restart.write();
    ASSERT_TRUE(restart.find());
    restart.set_field({"a/x", "float64", {4}, values.data()});
    expect_error({"'a/x' is float64 (2, 2) in generation 1", "float64 (4)"}, [&] { restart.read(); });
    restart.set_field({"b", "float64", {4}, values.data()});
    restart.set_field(good);
    expect_error({"no field 'b' in generation 1"}, [&] { restart.read(); });
    expect_error({"no attribute 'step'"}, [&] { restart.attribute("step"); });
}

TEST_P(RestartTest, a_file_that_is_no_restart_is_not_replaced) {
    test::write_file(slot(0), std::vector<unsigned char>(100, 'x'));
    Restart restart = open();
    expect_error(
        {"no generation is whole", "restart.0: it does not end with the record"}, [&] { restart.find(); },
        ErrorCode::io_error);
    restart.set_attribute(snapshot_scalar("step", 3));
    expect_error({"restart.0", "is no restart"}, [&] { restart.write(); });
    EXPECT_EQ(test::read_file(slot(0)), std::vector<unsigned char>(100, 'x'));
    EXPECT_EQ(folder_.entries(), 1U);
}

}  // namespace
}  // namespace penstock
