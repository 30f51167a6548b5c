// How an array lies in its files, compared with stripes cut by hand, and which files do not fit together.
#include "ondevice/files/file_set.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "context/test_files.hpp"
#include "ondevice/service/striped_rig.hpp"

namespace penstock::ondevice {
namespace {

constexpr u64 kStripe = 64;

std::string refused(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.info().message();
    }
    return "nothing was refused";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// How many bytes of an array are not where `stripes` says, in files whose stripes were cut by hand.
u64 misplaced(const Stripes& stripes, u64 bytes) {
    const FileBytes all = test::stamped(bytes);
    const auto parts = dealt(all, stripes.files, kStripe);
    u64 wrong = 0;
    for (u64 at = 0; at < bytes; ++at) {
        const FilePlace place = stripes.place(at);
        const FileBytes& part = parts[place.file];
        wrong += place.file != stripes.file_of(at) || place.offset_bytes >= part.size() ||
                 part[place.offset_bytes] != all[at] || stripes.offset_of(place) != at;
    }
    return wrong;
}

TEST(StripesTest, every_byte_is_where_cutting_by_hand_puts_it) {
    for (const u32 files : {1u, 2u, 3u, 5u}) {
        const Stripes stripes{files, 6};
        for (u64 bytes = 0; bytes < 3 * files * kStripe; bytes += 13) {
            EXPECT_EQ(files == 1 ? 0 : misplaced(stripes, bytes), 0u) << files << " files of " << bytes;
            const auto parts = dealt(test::stamped(bytes), files, kStripe);
            for (u32 file = 0; file < files; ++file)
                EXPECT_EQ(stripes.bytes_in(file, bytes), files == 1 ? bytes : parts[file].size()) << bytes;
        }
    }
    EXPECT_EQ((Stripes{3, 6}).together(70), 58u);
    EXPECT_GE((Stripes{1, 0}).together(70), u64{1} << 62);
}

TEST(StripesTest, control_other_stripes_are_found) {
    EXPECT_GT(misplaced({3, 7}, 1000), 0u) << "too large";
    EXPECT_GT(misplaced({3, 5}, 1000), 0u) << "too small";
}

class FileSetTest : public testing::Test {
  protected:
    // Makes files of these sizes, in order.
    StripedNames of_sizes(const std::vector<u64>& sizes, u64 stripe = 4096) {
        StripedNames all = striped_names(directory_.file("part"), sizes.size(), stripe);
        for (std::size_t i = 0; i < sizes.size(); ++i) test::write_file(all.names[i], test::stamped(sizes[i]));
        return all;
    }
    test::TempDirectory directory_;
};

TEST_F(FileSetTest, sizes_say_how_large_the_array_is) {
    for (const auto& sizes : std::vector<std::vector<u64>>{
             {8192, 8192}, {8192, 4096, 4096}, {4096, 1, 0}, {8192, 5000, 4096}, {0, 0}, {12345}}) {
        const OpenedSet opened(of_sizes(sizes));
        const FileLayout layout = layout_of(opened.set, 4096);
        u64 sum = 0;
        for (const u64 size : sizes) sum += size;
        EXPECT_EQ(layout.bytes, sum);
        EXPECT_EQ(layout.sizes, sizes);
        EXPECT_EQ(layout.stripes.files, sizes.size());
    }
}

TEST_F(FileSetTest, files_whose_sizes_do_not_fit_are_named) {
    const StripedNames names = of_sizes({8192, 4095, 4096});
    const OpenedSet opened(names);
    const std::string said = refused([&] { layout_of(opened.set, 4096); });
    EXPECT_TRUE(has(said, names.names[1])) << said;
    EXPECT_TRUE(has(said, "it has 4095 bytes; as number 1 of 3 files with stripes of 4096 it would have 4096")) << said;
    const StripedNames gap = of_sizes({3 * 8192, 3 * 8192, 0, 3 * 8192, 2 * 8192 + 1}, 8192);
    const std::string lost = refused([&] { layout_of(OpenedSet(gap).set, 4096); });
    EXPECT_TRUE(has(lost, gap.names[2] + ": it has 0 bytes") && has(lost, "it would have 24576")) << lost;
    const OpenedSet swapped(of_sizes({4096, 8192}));
    EXPECT_TRUE(has(refused([&] { layout_of(swapped.set, 4096); }), "order"));
    const OpenedSet empty(of_sizes({0, 4096}));
    EXPECT_TRUE(has(refused([&] { layout_of(empty.set, 4096); }), "it has 0 bytes"));
}

TEST_F(FileSetTest, stripes_that_cannot_be_are_refused) {
    StripedNames names = of_sizes({4096, 4096});
    for (const u64 stripe : {0ull, 4095ull, 12288ull}) {
        names.stripe = stripe;
        const OpenedSet opened(names);
        EXPECT_TRUE(has(refused([&] { layout_of(opened.set, 512); }), "give a power of two")) << stripe;
    }
    names.stripe = 2048;
    const OpenedSet opened(names);
    const std::string said = refused([&] { layout_of(opened.set, 4096); });
    EXPECT_TRUE(has(said, "stripes of 2048 bytes for pages of 4096")) << said;
    const OpenedSet one(StripedNames{{names.names[0]}, 0});
    EXPECT_EQ(layout_of(one.set, 4096).bytes, 4096u) << "one file has none";
    EXPECT_TRUE(has(refused([] { layout_of(FileSet(std::vector<const FileHandle*>{}, 4096), 512); }), "no files"));
}

TEST_F(FileSetTest, a_file_named_twice_and_one_that_may_not_be_written_are_named) {
    StripedNames names = of_sizes({4096, 4096, 4096});
    std::filesystem::remove(names.names[2]);
    std::filesystem::create_hard_link(names.names[0], names.names[2]);
    const OpenedSet twice(names);
    const std::string same = refused([&] { layout_of(twice.set, 4096); });
    EXPECT_TRUE(has(same, names.names[2] + ": it is the same file as " + names.names[0])) << same;
    std::filesystem::remove(names.names[2]);
    const OpenedSet reads(of_sizes({4096, 4096, 4096}), O_RDONLY), writes(of_sizes({4096, 4096, 4096}));
    const FileSet mixed({writes.set.files[0], reads.set.files[1], writes.set.files[2]}, 4096);
    const std::string said = refused([&] { layout_of(mixed, 4096); });
    EXPECT_TRUE(has(said, names.names[1]) && has(said, "opened for reading")) << said;
    EXPECT_EQ(layout_of(reads.set, 4096).bytes, 3u * 4096) << "all alike";
}

}  // namespace
}  // namespace penstock::ondevice
