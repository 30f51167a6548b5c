// A byte of a restart that is not what was written: it is found, wherever it is, and the other generation is taken.
// Tried with them: generations.cpp, record.cpp, box_reader.cpp.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "restart/restart_rig.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kNumbers = 300'000;

class DamageTest : public RestartTest {
  protected:
    Restart with_field(Buffer& values) const {
        Restart restart = open();
        restart.set_field({"x", "float64", {kNumbers}, values.data()});
        return restart;
    }
    void write_two() const {
        for (const double first : {1000.0, 2000.0}) {
            Buffer values = counting(kNumbers, first);
            with_field(values).write();
        }
    }
    void turn_bit(int number, std::uint64_t at) const {
        std::fstream file(slot(number), std::ios::binary | std::ios::in | std::ios::out);
        file.seekg(static_cast<std::streamoff>(at));
        const int old = file.get();
        file.seekp(static_cast<std::streamoff>(at));
        file.put(static_cast<char>(old ^ 4));
    }
};

INSTANTIATE_TEST_SUITE_P(memory, DamageTest, testing::Values(MemoryKind::device, MemoryKind::system),
                         [](const auto& one) { return std::string(to_string(one.param)); });

TEST_P(DamageTest, a_wrong_byte_anywhere_is_found_and_the_older_generation_is_taken) {
    write_two();
    const std::uint64_t bytes = std::filesystem::file_size(slot(1));
    const auto data_begin = bytes - 4096 - kNumbers * 8;  // about: a page of metadata before, the record behind
    std::vector<std::uint64_t> places{0, 9, 100, bytes - 1, bytes - 64, bytes - 40, bytes - 100, bytes - 300};
    for (std::uint64_t at = data_begin + 8192; at < bytes - 8192; at += 199'999) places.push_back(at);
    for (const std::uint64_t at : places) {
        turn_bit(1, at);
        Buffer found = memory(kNumbers * 8);
        Restart restart = with_field(found);
        const RestartFacts facts = restart.read();
        EXPECT_EQ(facts.generation, 1U) << at;
        EXPECT_NE(facts.passed_over.find("restart.1: "), std::string::npos) << facts.passed_over;
        EXPECT_TRUE(counts_from(found, kNumbers, 1000)) << at;
        turn_bit(1, at);
    }
    Buffer found = memory(kNumbers * 8);
    EXPECT_EQ(with_field(found).read().generation, 2U);
    EXPECT_TRUE(counts_from(found, kNumbers, 2000));
}

TEST_P(DamageTest, the_damaged_generation_is_the_next_to_be_replaced) {
    write_two();
    turn_bit(1, std::filesystem::file_size(slot(1)) / 2);
    Buffer values = memory(kNumbers * 8);
    Restart restart = with_field(values);
    const RestartFacts facts = restart.read();
    EXPECT_EQ(facts.generation, 1U);
    EXPECT_NE(facts.passed_over.find("generation 2: field 'x': bytes 1048576 to 2097152"), std::string::npos)
        << facts.passed_over;
    const RestartFacts written = restart.write();
    EXPECT_EQ(written.generation, 3U);
    EXPECT_NE(written.passed_over, "");
    EXPECT_EQ(restart.write().generation, 4U);
    EXPECT_EQ(restart.write().passed_over, "");
}

TEST_P(DamageTest, files_that_were_cut_short_are_passed_over) {
    write_two();
    const std::uint64_t bytes = std::filesystem::file_size(slot(1));
    for (const std::uint64_t left : {bytes - 1, bytes - 64, bytes / 2, std::uint64_t{10}, std::uint64_t{0}}) {
        std::filesystem::resize_file(slot(1), left);
        Buffer found = memory(kNumbers * 8);
        EXPECT_EQ(with_field(found).read().generation, 1U) << left;
        EXPECT_TRUE(counts_from(found, kNumbers, 1000));
    }
    Buffer values = counting(kNumbers, 3000);
    EXPECT_EQ(with_field(values).write().generation, 2U);
    EXPECT_EQ(with_field(values).read().generation, 2U);
}

TEST_P(DamageTest, a_generation_whose_file_is_missing_is_told) {
    write_two();
    std::filesystem::remove(slot(1));
    Buffer found = memory(kNumbers * 8);
    RestartFacts facts = with_field(found).read();
    EXPECT_EQ(facts.generation, 1U) << "the first: nothing says that there was another";
    EXPECT_EQ(facts.passed_over, "");
    write_two();
    std::filesystem::remove(slot(0));
    facts = with_field(found).read();
    EXPECT_NE(facts.passed_over.find("restart.0: it is not there, and held generation"), std::string::npos)
        << facts.passed_over;
    EXPECT_EQ(facts.generation, 2U) << "the third is lost";
    EXPECT_TRUE(counts_from(found, kNumbers, 1000));
    Buffer values = counting(kNumbers, 3000);
    EXPECT_EQ(with_field(values).write().passed_over, "");
    EXPECT_EQ(with_field(values).read().passed_over, "");
}

TEST_P(DamageTest, two_damaged_generations_are_an_error_that_names_both) {
    write_two();
    for (const int number : {0, 1}) turn_bit(number, std::filesystem::file_size(slot(number)) / 2);
    Buffer found = memory(kNumbers * 8);
    expect_error(
        {"no generation is whole", "restart.0: generation 1: field 'x'", "restart.1: generation 2: field 'x'"},
        [&] { with_field(found).read(); }, ErrorCode::io_error);
}

TEST_P(DamageTest, an_older_generation_of_another_shape_is_told_and_read_when_asked_for) {
    Buffer few = counting(10'000, 1), many = counting(20'000, 1);
    Restart restart = open();
    restart.set_field({"x", "float64", {10'000}, few.data()});
    restart.write();
    restart.set_field({"x", "float64", {20'000}, many.data()});
    restart.write();
    turn_bit(1, std::filesystem::file_size(slot(1)) / 2);
    ASSERT_TRUE(restart.find());
    expect_error({"'x' is float64 (10000) in generation 1", "float64 (20000)"}, [&] { restart.read(); });
    EXPECT_EQ(restart.generation(), 1U);
    restart.set_field({"x", "float64", restart.stored("x").shape, many.data()});
    EXPECT_EQ(restart.read().generation, 1U);
    EXPECT_TRUE(counts_from(many, 10'000, 1));
}

}  // namespace
}  // namespace penstock
