// Histories in Zarr stores: values come back, readers see whole steps alone, and a name that has something else keeps
// it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

#include "history/history_rig.hpp"
#include "history/layout.hpp"
#include "history/target/history_target.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class HistoryStores : public HistoryTest {
  protected:
    HistoryStores() { name_ = folder_.file("history.zarr"); }

    HistoryOptions zarr(const std::string& compression = "none") const {
        HistoryOptions made = options();
        made.format = "zarr";
        made.compression.name = compression;
        if (compression != "none") made.slots = 2;
        return made;
    }
    static std::string text_of(const std::string& file) {
        std::ifstream in(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    std::string root() const { return text_of(name_ + "/zarr.json"); }
    std::size_t entries() const { return folder_.entries(); }

    // A step of the variable "T" of 12 numbers and of "count".
    void put_step(History& history, float first, double time) const {
        std::vector<double> numbers(16);
        std::iota(numbers.begin(), numbers.end(), static_cast<double>(first) - 1);
        history.put("T", field(numbers).data());
        history.put("count", field(std::vector<std::int32_t>{static_cast<int>(first)}).data());
        history.end_step(time);
    }
    void define(History& history) const {
        history.define({.name = "T", .dimensions = {"y", "x"}, .shape = {3, 4}, .halo_low = {1, 0},
                        .source_dtype = "float64",
                        .attributes = {{.name = "units", .text = "K"},
                                       {.name = "_FillValue", .dtype = "float32", .numbers = {-999}}}});
        history.define({.name = "count", .dimensions = {}, .shape = {}, .dtype = "int32"});
        const std::vector<double> x{0.5, 1.5, 2.5, 3.5};
        const auto bytes = std::as_bytes(std::span(x));
        history.define_constant({.name = "x", .dimensions = {"x"}, .shape = {4},
                                 .values = {bytes.begin(), bytes.end()}});
    }
};

TEST_P(HistoryStores, have_the_values_that_were_put) {
    for (const char* compression : {"none", "gzip", "zstd", "lz4"}) {
        History history(context_, name_, zarr(compression));
        define(history);
        for (int step = 0; step < 3; ++step) put_step(history, static_cast<float>(10 * step), 60.0 * step);
        history.close();
        EXPECT_EQ(shape("T"), (std::vector<std::int64_t>{3, 3, 4}));
        const std::vector<float> found = read<float>("T");
        for (std::size_t i = 0; i < 36; ++i)
            ASSERT_EQ(found[i], static_cast<float>(i / 12 * 10 + 3 + i % 12)) << compression << " " << i;
        EXPECT_EQ(read<double>("time"), (std::vector<double>{0, 60, 120})) << compression;
        EXPECT_EQ(read<std::int32_t>("count"), (std::vector<std::int32_t>{0, 10, 20}));
        EXPECT_EQ(read<double>("x"), (std::vector<double>{0.5, 1.5, 2.5, 3.5}));
        EXPECT_EQ(entries(), 1u) << "nothing lies beside the store";
    }
}

TEST_P(HistoryStores, have_means_with_bounds_over_more_steps_than_a_file_of_times_has) {
    History history(context_, name_, zarr());
    history.define({.name = "w", .dimensions = {"x"}, .shape = {2}, .dtype = "float64",
                    .statistic = HistoryStatistic::mean});
    constexpr std::size_t steps = 259;
    for (std::size_t step = 0; step < steps; ++step) {
        for (const double part : {0.0, 2.0}) {
            history.put("w", field(std::vector<double>{static_cast<double>(step) + part, 7.0}).data());
        }
        history.end_step(static_cast<double>(step) + 1);
    }
    history.close();
    const std::vector<double> means = read<double>("w"), bounds = read<double>("time_bnds");
    const std::vector<double> times = read<double>("time");
    ASSERT_EQ(means.size(), 2 * steps);
    for (std::size_t step = 0; step < steps; ++step) {
        ASSERT_EQ(means[2 * step], static_cast<double>(step) + 1) << step;
        ASSERT_EQ(times[step], static_cast<double>(step) + 1);
        ASSERT_EQ(bounds[2 * step], static_cast<double>(step));
        ASSERT_EQ(bounds[2 * step + 1], static_cast<double>(step) + 1);
    }
}

TEST_P(HistoryStores, show_no_step_before_all_of_it_is_there) {
    constexpr std::size_t cells = 300'000;  // so large that a file has one step
    history::Definitions all;
    all.variables.push_back({.name = "T", .dimensions = {"x"}, .shape = {cells}});
    const history::HistoryLayout layout = plan_history(all, zarr(), false);
    const auto target = history::make_target(context_, {.name = name_, .format = "zarr"}, layout.schema);
    EXPECT_NE(root().find(R"("shape":[0,300000])"), std::string::npos) << root();
    const auto places = target->reserve({});
    Buffer data = field(std::vector<float>(cells, 2.0F));
    target->file(1).write(data.view()).or_throw();
    target->write_numbers(0, places[0], std::vector<double>{5.0});
    EXPECT_FALSE(fs::exists(name_ + "/T/c.0.0")) << "a chunk that is not whole";
    EXPECT_NE(root().find(R"("shape":[0,300000])"), std::string::npos);
    target->finish();
    target->publish(1);
    EXPECT_EQ(fs::file_size(name_ + "/T/c.0.0"), 4 * cells);
    EXPECT_EQ(read<float>("T").at(cells - 1), 2.0F);
    target->reserve({});
    target->close();
    EXPECT_FALSE(fs::exists(name_ + "/T/c.1.0")) << "of a step that was not written";
    EXPECT_NE(root().find(R"("shape":[1,300000])"), std::string::npos);
}

// Small steps share a file. Documents change in place where the next count has one other digit.
TEST_P(HistoryStores, have_small_steps_in_one_file_and_show_each) {
    HistoryOptions wanted = zarr();
    wanted.durable = true;
    constexpr std::size_t cells = 20'000;  // 13 steps a file
    History history(context_, name_, wanted);
    history.define({.name = "T", .dimensions = {"x"}, .shape = {cells}});
    for (std::size_t step = 0; step < 28; ++step) {
        const std::string before = step == 0 ? "" : text_of(name_ + "/T/zarr.json");
        history.put("T", field(std::vector<float>(cells, static_cast<float>(step))).data());
        history.end_step(static_cast<double>(step));
        history.wait();
        const std::string shape = "\"shape\":[" + std::to_string(step + 1) + ",20000]";
        EXPECT_NE(text_of(name_ + "/T/zarr.json").find(shape), std::string::npos) << step;
        EXPECT_NE(root().find(shape), std::string::npos) << step;
        const std::vector<float> found = read<float>("T");
        ASSERT_EQ(found.size(), (step + 1) * cells);
        for (std::size_t i = 0; i <= step; ++i) {
            ASSERT_EQ(found[i * cells], static_cast<float>(i)) << "after step " << step;
            ASSERT_EQ(found[(i + 1) * cells - 1], static_cast<float>(i)) << "after step " << step;
        }
    }
    history.close();
    std::size_t files = 0;
    for (const auto& one : fs::directory_iterator(name_ + "/T")) files += one.is_regular_file() ? 1 : 0;
    EXPECT_EQ(files, 3 + 1u) << "28 steps, and the document";
    EXPECT_EQ(fs::file_size(name_ + "/T/c.2.0"), 13 * 4 * cells) << "a chunk is whole";
}

// The entries of a step are written beside those of others, which readers have in use.
TEST_P(HistoryStores, have_small_compressed_steps_in_one_shard_and_show_each) {
    constexpr std::size_t cells = 20'000;  // 13 steps a file, and two chunks a step
    History history(context_, name_, zarr("gzip"));
    history.define({.name = "T", .dimensions = {"x"}, .shape = {cells}, .chunk_shape = {15'000}});
    std::string shown;
    for (std::size_t step = 0; step < 28; ++step) {
        std::vector<float> values(cells, static_cast<float>(step));
        values.back() = -static_cast<float>(step);
        history.put("T", field(values).data());
        history.end_step(static_cast<double>(step));
        history.wait();
        const std::string file = name_ + "/T/c." + std::to_string(step / 13) + ".0", now = text_of(file);
        if (step % 13 == 0) shown.clear();
        const std::size_t entries = step % 13 * 2 * 16, head = 13 * 2 * 16;
        ASSERT_EQ(now.substr(0, entries), shown.substr(0, entries)) << "entries of earlier steps, after step " << step;
        const std::string chunks = shown.empty() ? "" : shown.substr(head);
        ASSERT_EQ(now.substr(head, chunks.size()), chunks) << "chunks of earlier steps, after step " << step;
        shown = now;
        const std::vector<float> found = read<float>("T");
        ASSERT_EQ(found.size(), (step + 1) * cells);
        for (std::size_t i = 0; i <= step; ++i) {
            ASSERT_EQ(found[i * cells], static_cast<float>(i)) << "after step " << step;
            ASSERT_EQ(found[(i + 1) * cells - 1], -static_cast<float>(i)) << "after step " << step;
        }
    }
    history.close();
    std::size_t files = 0;
    for (const auto& one : fs::directory_iterator(name_ + "/T")) files += one.is_regular_file() ? 1 : 0;
    EXPECT_EQ(files, 3 + 1u) << "28 steps, and the document";
}

// A reader that opened the old document of the root goes on to read it: the new one is another file.
TEST_P(HistoryStores, show_a_step_by_one_rename) {
    History history(context_, name_, zarr());
    define(history);
    put_step(history, 0, 0);
    history.wait();
    std::ifstream held(name_ + "/zarr.json", std::ios::binary);
    const std::string first = root();
    put_step(history, 10, 60);
    history.wait();
    EXPECT_NE(root(), first);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(held), {}), first);
    history.close();
    EXPECT_FALSE(fs::exists(name_ + "/time/.zarr.json.new"));
}

TEST_P(HistoryStores, have_one_writer_and_replace_stores_alone) {
    const auto begun = [&](HistoryOptions wanted) {
        History history(context_, name_, wanted);
        define(history);
        history.begin();
        return history;
    };
    History first = begun(zarr());
    expect_refusal("another history, of this process or another one, writes it", [&] { begun(zarr()); });
    put_step(first, 1, 1);
    first.close();
    HistoryOptions keeping = zarr();
    keeping.replace = false;
    try {
        begun(keeping);
        ADD_FAILURE() << "replaced";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code_from_errno(EEXIST)) << error.what();
    }
    EXPECT_EQ(read<double>("time").size(), 1u) << "it is as it was";
    begun(zarr()).close();
    EXPECT_EQ(read<double>("time").size(), 0u) << "replaced";
    EXPECT_EQ(entries(), 1u);
    fs::remove(name_ + "/zarr.json");
    expect_refusal("it is there, and no store of Zarr", [&] { begun(zarr()); });
    EXPECT_TRUE(fs::exists(name_ + "/T/zarr.json")) << "what is no store is not touched";
    fs::remove_all(name_);
    test::write_file(name_, {1, 2, 3});
    expect_refusal("it is there, and no store of Zarr", [&] { begun(zarr()); });
    EXPECT_EQ(fs::file_size(name_), 3u);
    EXPECT_EQ(entries(), 1u);
}

TEST_P(HistoryStores, have_one_writer_of_two_that_begin_at_once) {
    history::Definitions all;
    all.variables.push_back({.name = "T", .dimensions = {"x"}, .shape = {4}});
    const history::HistoryLayout layout = plan_history(all, zarr(), false);
    for (int round = 0; round < 40; ++round) {
        std::array<std::unique_ptr<history::HistoryTarget>, 2> begun;
        std::array<std::thread, 2> threads;
        for (std::size_t i = 0; i < 2; ++i) {
            threads[i] = std::thread([&, i] {
                try {
                    begun[i] = history::make_target(context_, {.name = name_, .format = "zarr"}, layout.schema);
                } catch (const Error& error) {
                    EXPECT_NE(std::string(error.what()).find("another history"), std::string::npos) << error.what();
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        ASSERT_NE(begun[0] == nullptr, begun[1] == nullptr) << "round " << round;
        ASSERT_EQ(entries(), 1u);
        begun = {};
        fs::remove_all(name_);
    }
}

TEST_P(HistoryStores, leave_the_name_free_where_a_forked_child_lives_on) {
    for (const char* format : {"zarr", "cdf5"}) {
        HistoryOptions wanted = zarr();
        wanted.format = format;
        History first(context_, name_, wanted);
        define(first);
        first.begin();
        std::array<int, 2> pipe{};
        ASSERT_EQ(::pipe(pipe.data()), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            ::close(pipe[1]);
            char end = 0;
            ::_exit(::read(pipe[0], &end, 1) == 0 ? 0 : 1);
        }
        first.close();
        History second(context_, name_, wanted);
        define(second);
        EXPECT_NO_THROW(second.begin()) << format;
        second.close();
        ::close(pipe[1]);
        ::close(pipe[0]);
        ASSERT_EQ(::waitpid(child, nullptr, 0), child);
        fs::remove_all(name_);
    }
}

TEST_P(HistoryStores, go_on_where_the_program_changes_its_folder) {
    const fs::path before = fs::current_path();
    fs::current_path(fs::path(name_).parent_path());
    History history(context_, "history.zarr", zarr());
    define(history);
    put_step(history, 1, 1);
    fs::current_path(before);
    put_step(history, 2, 2);
    EXPECT_NO_THROW(history.close());
    EXPECT_EQ(read<double>("time"), (std::vector<double>{1, 2}));
}

TEST_P(HistoryStores, take_long_names_and_refuse_those_that_are_too_long) {
    const fs::path folder = fs::path(name_).parent_path();
    for (const std::size_t length : {255, 256}) {
        name_ = (folder / std::string(length, 'n')).string();
        History history(context_, name_, zarr());
        define(history);
        if (length == 255) {
            EXPECT_NO_THROW(history.begin());
        } else {
            EXPECT_THROW(history.begin(), Error);
        }
    }
}

TEST_P(HistoryStores, have_whole_files_where_a_box_leaves_elements_out) {
    History history(context_, name_, zarr());
    history.define({.name = "T", .dimensions = {"x"}, .shape = {2}, .global_shape = {5}, .start = {1}});
    history.put("T", field(std::vector<float>{7, 8}).data());
    history.end_step(0);
    history.close();
    EXPECT_EQ(read<float>("T"), (std::vector<float>{0, 7, 8, 0, 0}));
}

TEST_P(HistoryStores, tell_the_step_whose_files_cannot_be_made) {
    constexpr std::uint64_t numbers = 400'000;  // a step has a file of its own
    History history(context_, name_, zarr());
    history.define({.name = "T", .dimensions = {"x"}, .shape = {numbers}});
    const Buffer values = field(std::vector<float>(numbers, 1.0F));
    history.put("T", values.data());
    history.end_step(0);
    history.wait();
    fs::rename(name_ + "/T", name_ + "/away");
    try {
        history.put("T", values.data());
        history.end_step(1);
        history.wait();
        ADD_FAILURE() << "there was no folder for it";
    } catch (const Error& error) {
        EXPECT_EQ(error.info().operation, "write history");
        EXPECT_NE(error.info().file.find("/T/c.1.0"), std::string::npos) << error.what();
        EXPECT_EQ(error.info().cause.find("step 2, create: "), 0U) << error.what();
    }
}

TEST_P(HistoryStores, refuse_what_zarr_does_not_have) {
    History history(context_, name_, zarr());
    history.define({.name = "zarr.json", .dimensions = {"x"}, .shape = {2}});
    expect_refusal("has the name of a document of Zarr",
                   [&] { history.put("zarr.json", field(std::vector<float>(2)).data()); });
    EXPECT_EQ(entries(), 0u) << "nothing was begun";
}

INSTANTIATE_TEST_SUITE_P(Memory, HistoryStores, with_and_without_slots(),
                         [](const auto& one) { return one.param.name(); });

}  // namespace
}  // namespace penstock
