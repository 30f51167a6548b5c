// Tests of stores of several processes, which are histories of this one: each writes its blocks, compressed or not, and
// the values are those of a store of one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>

#include "history/history_rig.hpp"
#include "history/processes/parts.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using Lengths = std::vector<std::uint64_t>;

// Where the boxes of the processes begin and end, along y or along x.
struct Division {
    bool by_columns;
    Lengths ends;  // of one process after the other
};

class SharedStores : public HistoryTest {
  protected:
    static constexpr std::uint64_t kRows = 6, kColumns = 10;
    SharedStores() { name_ = folder_.file("shared.zarr"); }

    HistoryOptions zarr(std::uint32_t process, std::uint32_t processes, const std::string& compression) const {
        HistoryOptions made = options();
        made.format = "zarr";
        made.process = process;
        made.processes = processes;
        made.compression.name = compression;
        if (compression != "none") made.slots = 2;
        return made;
    }
    static HistoryVariable part(const Division& division, std::size_t process) {
        const std::uint64_t first = process == 0 ? 0 : division.ends[process - 1];
        HistoryVariable made{.name = "T", .dimensions = {"y", "x"}, .shape = {kRows, kColumns}};
        made.global_shape = made.shape;
        made.start = {0, 0};
        made.shape[division.by_columns ? 1 : 0] = division.ends[process] - first;
        made.start[division.by_columns ? 1 : 0] = first;
        return made;
    }
    static void define(History& history, HistoryVariable variable) {
        history.define(variable);
        variable.name = "w";
        variable.statistic = HistoryStatistic::mean;
        variable.dtype = "float64";
        variable.source_dtype = "float32";
        history.define(variable);
        history.define({.name = "level", .dimensions = {"z"}, .shape = {3}});
    }
    // Element (y, x) of a step is 1000 step + 10 y + x, and its mean half more.
    void put(History& history, const HistoryVariable& box, int step) const {
        std::vector<float> values, more;
        for (std::uint64_t y = 0; y < box.shape[0]; ++y) {
            for (std::uint64_t x = 0; x < box.shape[1]; ++x) {
                const std::uint64_t at = kColumns * (box.start[0] + y) + box.start[1] + x;
                values.push_back(static_cast<float>(1000 * step) + static_cast<float>(at));
            }
        }
        more = values;
        for (float& one : more) one += 1;
        values.resize(std::max<std::size_t>(values.size(), 1));  // an empty box has a pointer too
        more.resize(values.size());
        history.put("T", field(values).data());
        history.put("w", field(values).data());
        history.put("w", field(more).data());
        history.put("level", field(std::vector<float>(3, static_cast<float>(step))).data());
        history.end_step(step);
    }
    std::vector<History> begun(const Division& division, const std::string& compression, bool durable = false) const {
        std::vector<History> all;
        const auto processes = static_cast<std::uint32_t>(division.ends.size());
        for (std::uint32_t i = 0; i < processes; ++i) {
            HistoryOptions wanted = zarr(i, processes, compression);
            wanted.durable = durable;
            all.emplace_back(context_, name_, wanted);
            define(all.back(), part(division, i));
        }
        agree(all);
        for (History& one : all) one.begin();
        return all;
    }
    // As penstock_mpi.h does.
    static void agree(std::vector<History>& all) {
        Lengths common(all.front().cuts().size());
        for (History& one : all) {
            for (std::size_t i = 0; i < common.size(); ++i) common[i] = std::gcd(common[i], one.cuts()[i]);
        }
        for (History& one : all) std::copy(common.begin(), common.end(), one.cuts().begin());
        for (History& one : all) EXPECT_EQ(one.digest(), all.front().digest());
    }
    static void publish(std::vector<History>& all, int steps) {
        for (History& one : all) one.wait();
        for (History& one : all) one.publish(static_cast<std::uint64_t>(steps));
    }
    // As penstock_mpi.h does at the end of a step: while the next one is written.
    static void publish_written(std::vector<History>& all) {
        std::uint64_t steps = all.front().facts().steps_written;
        for (const History& one : all) steps = std::min(steps, one.facts().steps_written);
        for (History& one : all) one.publish(steps);
    }
    void expect_steps(int steps) const {
        ASSERT_EQ(shape("T"), (std::vector<std::int64_t>{steps, kRows, kColumns}));
        const std::vector<float> found = read<float>("T"), level = read<float>("level");
        const std::vector<double> means = read<double>("w"), times = read<double>("time");
        for (std::size_t i = 0; i < found.size(); ++i) {
            const auto wanted = static_cast<float>(1000 * (i / 60 + 1) + i % 60);
            ASSERT_EQ(found[i], wanted) << i;
            ASSERT_EQ(means[i], static_cast<double>(wanted) + 0.5) << i;
        }
        for (std::size_t step = 0; step < times.size(); ++step) {
            ASSERT_EQ(times[step], static_cast<double>(step + 1));
            ASSERT_EQ(level[3 * step + 2], static_cast<float>(step + 1)) << "process 0 writes it";
        }
    }
    std::size_t files_of(const std::string& variable) const {
        std::size_t files = 0;
        for (const auto& one : fs::directory_iterator(name_ + "/" + variable)) {
            files += one.path().filename().string().starts_with("c.") ? 1 : 0;
        }
        return files;
    }
    std::string bytes(const std::string& file) const {
        std::ifstream in(name_ + "/" + file, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
};

TEST_P(SharedStores, have_the_values_of_all_boxes) {
    const std::vector<std::pair<Division, std::size_t>> divisions{
        {{false, {3, 6}}, 2},        {{false, {4, 6}}, 2},        // the last one is shorter
        {{true, {4, 8, 10}}, 3},     {{true, {3, 3, 6, 10}}, 4},  // an empty one; the last one is two blocks
        {{false, {2, 3, 6}}, 6},     {{true, {0, 10}}, 1},        // uneven; all of one
        {{true, {4, 4, 10, 10}}, 3},
    };
    for (const std::string compression : {"none", "gzip", "zstd"}) {
        for (const auto& [division, blocks] : divisions) {
            std::vector<History> all = begun(division, compression);
            for (int step = 1; step <= 28; ++step) {
                for (std::size_t i = all.size(); i-- > 0;) put(all[i], part(division, i), step);
                if (step == 22) expect_steps(21);
                if (step % 7 == 0) {
                    publish(all, step);
                } else {
                    publish_written(all);
                }
            }
            for (History& one : all) one.close();
            expect_steps(28);
            EXPECT_EQ(files_of("T"), blocks) << compression << ": a file for each block";
        }
    }
}

TEST_P(SharedStores, are_to_the_byte_those_of_one_process_where_one_has_all) {
    for (const bool durable : {false, true}) {
        for (const std::string compression : {"none", "gzip"}) {
            std::array<std::string, 2> found;
            for (const bool alone : {true, false}) {
                const Division division{false, alone ? Lengths{6} : Lengths{6, 6}};
                std::vector<History> all = begun(division, compression, durable);
                for (int step = 1; step <= 3; ++step) {
                    for (std::size_t i = 0; i < all.size(); ++i) put(all[i], part(division, i), step);
                    if (!alone) publish(all, step);
                }
                for (History& one : all) one.close();
                for (const char* file :
                     {"zarr.json", "T/zarr.json", "T/c.0.0.0", "w/c.0.0.0", "time/c.0", "level/c.0.0"}) {
                    found[alone ? 0 : 1] += bytes(file);
                }
            }
            EXPECT_TRUE(found[0] == found[1]) << compression;
        }
    }
}

// Files of all processes, each a box of them.
TEST_P(SharedStores, of_raw_files_are_those_of_one_process) {
    const std::vector<Division> divisions{{false, {2, 6}}, {true, {3, 10}}, {false, {0, 6}}, {false, {6, 6}}};
    for (const bool durable : {false, true}) {
        std::vector<std::string> found;
        const int steps = durable ? 3 : 23;  // those take long
        for (const Division& division :
             {Division{false, {6}}, divisions[0], divisions[1], divisions[2], divisions[3]}) {
            std::vector<History> all;
            const std::size_t processes = division.ends.size();
            for (std::uint32_t i = 0; i < processes; ++i) {
                HistoryOptions wanted = zarr(i, static_cast<std::uint32_t>(processes), "none");
                wanted.format = "raw";
                wanted.durable = durable;
                all.emplace_back(context_, name_, wanted);
                define(all.back(), part(division, i));
                EXPECT_TRUE(all.back().cuts().empty());
                all.back().begin();
            }
            for (int step = 1; step <= steps; ++step) {
                for (std::size_t i = processes; i-- > 0;) put(all[i], part(division, i), step);
                if (processes == 1) continue;
                if (step == steps) {
                    publish(all, step);
                } else {
                    publish_written(all);
                }
            }
            for (History& one : all) one.close();
            found.emplace_back();
            for (const char* file : {"penstock.json", "T.raw", "w.raw", "level.raw", "time.raw", "time_bnds.raw"}) {
                found.back() += bytes(file);
            }
            EXPECT_EQ(found.back().size(), found.front().size());
            EXPECT_TRUE(found.back() == found.front()) << division.ends[0] << " " << division.by_columns;
        }
    }
}

// A file that has one step.
TEST_P(SharedStores, have_large_steps_in_files_of_their_own) {
    constexpr std::uint64_t kLarge = 300'000;
    for (const std::string compression : {"none", "zstd"}) {
        std::vector<History> all;
        std::vector<HistoryVariable> boxes;
        for (std::uint32_t i = 0; i < 2; ++i) {
            all.emplace_back(context_, name_, zarr(i, 2, compression));
            boxes.push_back({.name = "T",
                             .dimensions = {"x"},
                             .shape = {i == 0 ? kLarge : kLarge / 2},
                             .keep_bits = 9,
                             .global_shape = {kLarge + kLarge / 2},
                             .start = {i == 0 ? 0 : kLarge}});
            all[i].define(boxes[i]);
        }
        agree(all);
        for (History& one : all) one.begin();
        for (int step = 1; step <= 3; ++step) {
            for (std::size_t i = 0; i < 2; ++i) {
                std::vector<float> values(boxes[i].shape[0]);
                std::iota(values.begin(), values.end(), static_cast<float>(boxes[i].start[0]));
                for (float& one : values) one = static_cast<float>(static_cast<int>(one) % 300 + step);
                all[i].put("T", field(values).data());
                all[i].end_step(step);
            }
        }
        for (History& one : all) one.wait();
        EXPECT_EQ(shape("T")[0], 0) << "written, and not published";
        EXPECT_TRUE(fs::exists(name_ + "/T/c.2.1")) << "a file is whole before its step is published";
        publish(all, 2);
        EXPECT_EQ(shape("T")[0], 2);
        publish(all, 3);
        for (History& one : all) one.close();
        const std::vector<float> found = read<float>("T");
        ASSERT_EQ(found.size(), 3 * (kLarge + kLarge / 2));
        for (std::size_t i = 0; i < found.size(); ++i) {
            const std::size_t at = i % (kLarge + kLarge / 2);
            ASSERT_EQ(found[i], static_cast<float>(at % 300 + i / (kLarge + kLarge / 2) + 1)) << i;
        }
    }
}

TEST_P(SharedStores, refuse_boxes_that_make_too_many_files_before_there_is_one) {
    std::vector<History> all;
    for (std::uint32_t i = 0; i < 3; ++i) {
        all.emplace_back(context_, name_, zarr(i, 3, "zstd"));
        const std::uint64_t first = i * 1000 / 3, end = (i + 1) * 1000 / 3;
        all[i].define({.name = "T",
                       .dimensions = {"y", "x"},
                       .shape = {end - first, 8},
                       .global_shape = {1000, 8},
                       .start = {first, 0}});
    }
    for (History& one : all) std::ranges::copy(Lengths{1, 0}, one.cuts().begin());
    expect_refusal("boxes of all processes begin and end at multiples of 1 along 'y', so the 333 of this process",
                   [&] { static_cast<void>(all[0].digest()); });
    expect_refusal("give each process 334 along it, and the last one what is left, as history_split says",
                   [&] { static_cast<void>(all[0].digest()); });
    expect_refusal("a store of its own", [&] { all[0].begin(); });
    for (History& one : all) std::ranges::copy(Lengths{500, 0}, one.cuts().begin());
    expect_refusal("the cuts are not those of all processes", [&] { all[0].begin(); });
    EXPECT_EQ(folder_.entries(), 0u);
}

TEST(HistorySplit, gives_boxes_of_which_each_is_one_block) {
    for (const std::uint64_t length : {0u, 1u, 7u, 12u, 1000u, 1025u}) {
        for (const std::uint32_t processes : {1u, 2u, 7u, 8u, 128u}) {
            std::uint64_t cut = 0, end = 0;
            for (std::uint32_t i = 0; i < processes; ++i) {
                const HistoryShare share = history_split(length, processes, i);
                EXPECT_EQ(share.start, end) << "behind the one before";
                end += share.shape;
                EXPECT_LE(share.shape, (length + processes - 1) / processes);
                cut = std::gcd(cut, history::cuts_of({{length}, {share.start}, {share.shape}})[0]);
            }
            EXPECT_EQ(end, length);
            if (processes > 1 && length > 1) EXPECT_EQ(cut, (length + processes - 1) / processes);
        }
    }
    const std::uint64_t most = ~std::uint64_t{0};
    EXPECT_EQ(history_split(most, 4, 3).start + history_split(most, 4, 3).shape, most);
    EXPECT_THROW(history_split(12, 3, 3), Error);
}

TEST_P(SharedStores, refuse_to_begin_before_all_agreed_and_another_store) {
    const Division division{false, {3, 6}};
    std::vector<History> all;
    for (std::uint32_t i = 0; i < 2; ++i) {
        all.emplace_back(context_, name_, zarr(i, 2, "zstd"));
        define(all[i], part(division, i));
    }
    expect_refusal("have not agreed on the blocks", [&] { all[0].begin(); });
    agree(all);
    EXPECT_THROW(all[1].begin(), Error) << "the first process makes it";
    History alone(context_, name_, zarr(0, 1, "zstd"));
    define(alone, part({false, {6}}, 0));
    alone.begin();
    expect_refusal("is not the one of the first process", [&] { all[1].begin(); });
    alone.close();
    all[0].begin();
    all[1].begin();
    all[1].put("T", field(std::vector<float>(30)).data());
}

TEST_P(SharedStores, compress_chunks_that_are_whole_in_a_block) {
    EXPECT_EQ(history::chunk_within(Lengths{8, 10}, Lengths{12, 10}, Lengths{30, 10}), (Lengths{6, 10}));
    EXPECT_EQ(history::chunk_within(Lengths{256}, Lengths{1009}, Lengths{3000}), Lengths{1009}) << "no small ones";
    EXPECT_EQ(history::chunk_within(Lengths{5}, Lengths{12}, Lengths{30}), Lengths{4});
    EXPECT_EQ(history::chunk_within(Lengths{12}, Lengths{12}, Lengths{30}), Lengths{12});
    EXPECT_EQ(history::chunk_within(Lengths{7}, Lengths{30}, Lengths{30}), Lengths{7}) << "one block";
    const auto with = [&](std::uint64_t length) {
        History one(context_, name_, zarr(0, 2, "zstd"));
        one.define({.name = "T",
                    .dimensions = {"y", "x"},
                    .shape = {12, 8},
                    .global_shape = {20, 8},
                    .start = {0, 0},
                    .chunk_shape = {length, 5}});
        static_cast<void>(one.cuts());
        static_cast<void>(one.digest());
    };
    EXPECT_NO_THROW(with(4));
    expect_refusal("multiples of 12 along 'y', and chunks of 5 do not", [&] { with(5); });
}

INSTANTIATE_TEST_SUITE_P(Memory, SharedStores, with_and_without_slots(),
                         [](const auto& one) { return one.param.name(); });

}  // namespace
}  // namespace penstock
