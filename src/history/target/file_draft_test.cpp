// What is laid out once is the file that is made, and the same sum and places each time.
#include "history/target/file_draft.hpp"

#include <gtest/gtest.h>

#include <set>

#include "formats/create/netcdf/cdf_writer.hpp"
#include "history/history_rig.hpp"
#include "history/layout.hpp"

namespace penstock {
namespace {

// Processes that define different files are told from each other by it.
TEST(SummingSinkTest, EachBitEachPlaceAndEachLengthMakesAnotherSum) {
    std::set<std::uint64_t> seen;
    const auto sum_of = [](std::uint64_t place, std::vector<std::byte> bytes, int flipped) {
        if (flipped >= 0) bytes[static_cast<std::size_t>(flipped / 8)] ^= std::byte(1 << flipped % 8);
        history::SummingSink sink("sum");
        sink.write(place, bytes);
        return sink.sum();
    };
    const std::vector<std::byte> twenty(20);
    for (int bit = -1; bit < 160; ++bit) EXPECT_TRUE(seen.insert(sum_of(8, twenty, bit)).second) << bit;
    EXPECT_TRUE(seen.insert(sum_of(9, twenty, -1)).second) << "at another place";
    for (std::size_t length = 0; length < 20; ++length) {
        EXPECT_TRUE(seen.insert(sum_of(8, std::vector<std::byte>(length), -1)).second) << length;
    }
    EXPECT_EQ(sum_of(8, twenty, 7), sum_of(8, twenty, 7));
}

// Writes and barriers, in their order.
class ListingSink final : public formats::ByteSink {
  public:
    const std::string& name() const override { return name_; }
    void write(std::uint64_t offset, std::span<const std::byte> bytes) override {
        list += std::to_string(offset) + ":" + std::to_string(bytes.size()) + " ";
    }
    void barrier() override { list += "| "; }
    std::string list;

  private:
    std::string name_ = "list";
};

TEST(KeepingSink, passes_on_what_it_keeps_and_all_that_follows_in_one_order) {
    history::KeepingSink sink("kept");
    const std::vector<std::byte> five(5);
    sink.write(8, five);
    sink.barrier();
    sink.write(0, std::span(five).first(2));
    ListingSink once, twice;
    sink.copy_to(once);
    EXPECT_EQ(once.list, "8:5 | 0:2 ");
    sink.pass_to(twice);
    sink.write(16, five);
    sink.barrier();
    EXPECT_EQ(twice.list, "8:5 | 0:2 16:5 | ");
    EXPECT_EQ(once.list, "8:5 | 0:2 ") << "copied, not joined";
}

formats::FileSchema two_variables() {
    history::Definitions definitions;
    definitions.variables = {{.name = "T", .dimensions = {"y", "x"}, .shape = {2, 3}},
                             {.name = "U", .dimensions = {"x"}, .shape = {3}}};
    return history::plan_history(definitions, {}, false).schema;
}

using Places = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Places places_of(const std::vector<formats::DataPlace>& found) {
    Places places;
    for (const formats::DataPlace& one : found) places.emplace_back(one.offset_bytes, one.bytes);
    return places;
}

TEST(FileDraft, the_first_step_is_reserved_once_whoever_asks_for_it) {
    const formats::FileSchema schema = two_variables();
    const auto make = [](const formats::FileSchema& wanted, formats::ByteSink& sink) {
        return make_cdf(wanted, sink, formats::CdfVersion::cdf5);
    };
    history::FileDraft asked("asked", schema, make), not_asked("not asked", schema, make);
    const std::uint64_t sum = asked.digest();
    const Places first = places_of(asked.first());
    EXPECT_EQ(places_of(asked.first()), first);
    for (int step = 0; step < 3; ++step) {
        const Places places = places_of(asked.reserve({}));
        EXPECT_EQ(places, places_of(not_asked.reserve({}))) << step;
        EXPECT_EQ(places == first, step == 0) << step;
    }
    EXPECT_EQ(asked.digest(), sum);
    EXPECT_EQ(not_asked.digest(), sum) << "the same definitions";
    formats::FileSchema other = schema;
    other.variables.back().name = "V";
    EXPECT_NE(history::FileDraft("other", other, make).digest(), sum);
}

}  // namespace
}  // namespace penstock
