// Histories whose steps are compressed: values come back, a step that cannot be compressed is told and leaves those
// before it, and what no file can have is refused before there is one.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <numeric>

#include "data/decode/pipeline.hpp"
#include "formats/create/hdf5/reading_rig.hpp"
#include "history/compression.hpp"
#include "history/history_rig.hpp"
#include "history/step_encoder.hpp"
#include "history/step_writer.hpp"
#include "history/target/history_target.hpp"

namespace penstock {
namespace {

class CompressedHistory : public HistoryTest {
  protected:
    HistoryOptions compressed(const std::string& name) const {
        HistoryOptions made = options();
        made.format = "hdf5";
        made.compression.name = name;
        return made;
    }
};

struct StoredStep {
    std::vector<data::Filter> filters;
    std::size_t elements;
};

// What a reader finds of a step that is one chunk.
std::vector<float> decoded_step(const std::string& file, const std::string& name, std::uint64_t step,
                                const StoredStep& stored) {
    std::ifstream in(file, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto bytes = std::as_bytes(std::span(text));
    const auto place = formats::SeenFile(bytes).chunk(name, step);
    std::vector<float> found(stored.elements);
    data::Scratch scratch;
    const data::Pipeline pipeline(stored.filters, stored.elements * sizeof(float));
    const data::StoredStream step_stream{bytes.subspan(place.first, place.second)};
    EXPECT_EQ(pipeline.decode(step_stream, std::as_writable_bytes(std::span(found)), scratch), "");
    return found;
}

HistoryVariable cube(const std::string& name) {
    return {.name = name,
            .dimensions = {"z", "y", "x"},
            .shape = {5, 7, 11},
            .halo_low = {0, 1, 2},
            .halo_high = {0, 1, 2},
            .source_dtype = "float64"};
}

TEST_P(CompressedHistory, has_the_values_that_were_put) {
    for (const char* compression : {"gzip", "zstd", "lz4"}) {
        History history(context_, name_, compressed(compression));
        history.define(cube("T"));
        history.define({.name = "one", .dimensions = {}, .shape = {}, .source_dtype = "float64"});
        std::vector<double> numbers(5 * 9 * 15);
        for (int step = 0; step < 9; ++step) {
            std::iota(numbers.begin(), numbers.end(), 1000.0 * step);
            const Buffer memory = field(numbers);
            history.put("T", memory.data());
            history.put("one", memory.data());
            history.end_step(step);
        }
        history.close();
        EXPECT_EQ(history.facts().steps_published, 9U);
        EXPECT_EQ(history.facts().step_bytes, 8U + 5 * 7 * 11 * 4 + 4);
        const std::vector<data::Filter> filters = history::filters_of("", {.name = compression}, compressed("none"), 4);
        for (std::uint64_t step = 0; step < 9; ++step) {
            const std::vector<float> found = decoded_step(name_, "T", step, {filters, 5 * 7 * 11});
            for (std::size_t i = 0; i < found.size(); ++i) {
                const std::size_t x = i % 11, y = i / 11 % 7, z = i / 77;
                ASSERT_EQ(found[i], static_cast<float>(1000 * step + (z * 9 + y + 1) * 15 + x + 2)) << i;
            }
            EXPECT_EQ(decoded_step(name_, "one", step, {{}, 1}).at(0), static_cast<float>(1000 * step));
        }
    }
}

TEST_P(CompressedHistory, has_less_in_the_file_and_facts_tell_it) {
    History history(context_, name_, compressed("gzip"));
    history.define({.name = "T", .dimensions = {"x"}, .shape = {1 << 20}});
    const Buffer memory = field(std::vector<float>(1 << 20, 2.5F));
    for (int step = 0; step < 3; ++step) {
        history.put("T", memory.data());
        history.end_step(step);
    }
    history.wait();
    const HistoryFacts facts = history.facts();
    EXPECT_EQ(facts.step_bytes, 8U + (4U << 20));
    EXPECT_LT(facts.stored_bytes, facts.step_bytes / 10);
    EXPECT_GT(facts.encode_seconds, 0);
    EXPECT_LE(facts.encode_seconds, facts.write_seconds);
}

TEST_P(CompressedHistory, refuses_what_no_file_can_have) {
    const auto refused = [&](const std::string& words, const HistoryOptions& options) {
        expect_refusal(words, [&] { History(context_, name_, options); });
    };
    refused("there is no compression 'rar'; use one of gzip, zstd, lz4", compressed("rar"));
    HistoryOptions wrong = compressed("gzip");
    wrong.compression.level = 10;
    refused("gzip has no level 10; give one of 1 to 9", wrong);
    wrong = compressed("lz4");
    wrong.compression.level = 1;
    refused("leave the level out", wrong);
    wrong = compressed("zstd");
    wrong.format = "cdf5";
    refused("the format 'cdf5' stores no compressed data; use the format netcdf4, hdf5 or zarr", wrong);
    wrong = compressed("zstd");
    wrong.processes = 2;
    refused("give each process a file of its own", wrong);
    History history(context_, name_, compressed("none"));
    HistoryVariable one = cube("T");
    one.chunk_shape = {1, 7, 11};
    expect_refusal("has chunks and no filters; compress it", [&] { history.define(one); });
    one.compression = HistoryCompression{.name = "gzip"};
    one.chunk_shape = {1, 7};
    expect_refusal("2 lengths of chunks", [&] { history.define(one); });
    one.chunk_shape = {1, 7, 12};
    expect_refusal("11 elements along a dimension, and chunks of 12", [&] { history.define(one); });
    one.chunk_shape = {1, 0, 11};
    expect_refusal("and chunks of 0", [&] { history.define(one); });
}

TEST_P(CompressedHistory, a_box_of_one_process_is_compressed_where_it_is_all) {
    HistoryOptions wanted = options();
    wanted.format = "zarr";
    wanted.compression.name = "gzip";
    std::vector<float> numbers(4000);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i / 7);
    HistoryVariable all{.name = "T", .dimensions = {"x"}, .shape = {4000}, .global_shape = {4000}, .start = {0}};
    all.chunk_shape = {1000};
    {
        History history(context_, name_, wanted);
        history.define(all);
        for (int step = 0; step < 2; ++step) {
            history.put("T", field(numbers).data());
            history.end_step(step);
        }
        history.close();
    }
    const std::vector<float> found = read<float>("T");
    ASSERT_EQ(found.size(), 8000u);
    EXPECT_TRUE(std::equal(numbers.begin(), numbers.end(), found.begin()));
    EXPECT_TRUE(std::equal(numbers.begin(), numbers.end(), found.begin() + 4000));
    History part(context_, name_, wanted);
    all.shape = {2000};
    expect_refusal("this process has a part of its elements", [&] { part.define(all); });
}

INSTANTIATE_TEST_SUITE_P(Memory, CompressedHistory, testing::Values(MemoryKind::device, MemoryKind::system));

TEST(UsualChunks, are_whole_layers_of_a_mebibyte_at_most) {
    using Shape = std::vector<std::uint64_t>;
    EXPECT_EQ(history::usual_chunk(Shape{40, 256, 256}, 4), (Shape{4, 256, 256}));
    EXPECT_EQ(history::usual_chunk(Shape{41, 512, 512}, 4), (Shape{1, 512, 512}));
    EXPECT_EQ(history::usual_chunk(Shape{3, 1024, 1000}, 4), (Shape{1, 256, 1000}));
    EXPECT_EQ(history::usual_chunk(Shape{10, 10}, 8), (Shape{10, 10}));
    EXPECT_EQ(history::usual_chunk(Shape{}, 8), Shape{});
}

// Encodes two steps, and no third one.
class FaultyEncoder final : public history::StepEncoder {
  public:
    using StepEncoder::StepEncoder;
    std::vector<formats::StoredChunks> encode() override {
        if (steps_++ < 2) return StepEncoder::encode();
        throw Error(ErrorCode::unsupported, "compress", "variable 'T': the encoder gave up", "");
    }

  private:
    int steps_ = 0;
};

using FaultyCompression = HistoryTest;

TEST_P(FaultyCompression, leaves_the_steps_before_it_and_names_the_step_and_the_variable) {
    HistoryOptions wanted = options();
    wanted.format = "hdf5";
    wanted.compression.name = "gzip";
    history::Definitions all;
    all.variables.push_back({.name = "T", .dimensions = {"x"}, .shape = {100}});
    const history::HistoryLayout layout = plan_history(all, wanted, false);
    const auto file = history::make_target(context_, {.name = name_, .format = "hdf5"}, layout.schema);
    std::vector<history::HistorySlot> slots;
    slots.push_back({field(std::vector<float>(100, 3.0F)), nullptr, true});
    const history::PlainField plain{.variable = 1, .place = 1};
    history::WriterPlan plan{context_, {{"T", 1, 0, {}}}, {}};
    plan.encoder = std::make_unique<FaultyEncoder>(context_, layout.schema, std::span(&plain, 1),
                                                   history::StepEncoderOptions{.slot_bytes = 400, .places = 2});
    history::StepWriter writer(std::move(plan));
    writer.begin(*file, slots);
    for (int step = 0; step < 3; ++step) {
        writer.give({0, static_cast<double>(step), 0});
        writer.wait(Deadline::never());
    }
    try {
        writer.check();
        FAIL() << "no error of step 3";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("step 3, compression: variable 'T': the encoder gave up"),
                  std::string::npos)
            << error.what();
        EXPECT_EQ(error.info().file, name_);
    }
    EXPECT_EQ(decoded_step(name_, "T", 1, {layout.schema.variables[1].filters, 100}).at(99), 3.0F);
    HistoryFacts facts;
    writer.tell(facts);
    EXPECT_EQ(facts.steps_published, 2U);
}

INSTANTIATE_TEST_SUITE_P(Memory, FaultyCompression, testing::Values(MemoryKind::pinned));

}  // namespace
}  // namespace penstock
