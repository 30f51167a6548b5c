// The room for dirty pages, from counters of /proc/vmstat.
#include "os/file/dirty.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "os/limits.hpp"

namespace penstock::os {
namespace {

TEST(DirtyRoom, is_what_is_left_to_the_middle_of_the_thresholds) {
    std::string pattern = (std::filesystem::temp_directory_path() / "penstock-XXXXXX").string();
    const std::string root = ::mkdtemp(pattern.data());
    std::filesystem::create_directories(root + "/proc");
    const auto with = [&](const std::string& text) {
        std::ofstream(root + "/proc/vmstat") << text;
        return dirty_room_bytes(root);
    };
    const std::string thresholds = "nr_dirty_threshold 1000\nnr_dirty_background_threshold 500\n";
    EXPECT_EQ(with("nr_free_pages 7\nnr_dirty 100\nnr_writeback 50\n" + thresholds), 600 * page_bytes());
    EXPECT_EQ(with("nr_dirty 700\nnr_writeback 100\n" + thresholds), 0u);
    EXPECT_EQ(with("nr_dirty 700\nnr_writeback 100\n"), std::nullopt);
    EXPECT_EQ(with(""), std::nullopt);
    std::filesystem::remove_all(root);
    EXPECT_EQ(dirty_room_bytes(root), std::nullopt);
}

}  // namespace
}  // namespace penstock::os
