// The files of an array as one piece of memory: every byte is where the array has it, whichever file it is in. The
// cache counts the device's own copies by file.
#include "ondevice/files/file_mapping.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "context/test_files.hpp"
#include "ondevice/cache/cache_rig.hpp"
#include "ondevice/channel/memory_rig.hpp"
#include "ondevice/mailbox_memory.hpp"
#include "ondevice/service/registering_rig.hpp"
#include "ondevice/service/striped_rig.hpp"
#include "os/file/file_stat.hpp"
#include "penstock/ondevice/file_store.hpp"

namespace penstock::ondevice {
namespace {

const u64 kSystemPage = static_cast<u64>(::sysconf(_SC_PAGESIZE));
const u64 kStripe = 2 * kSystemPage, kBytes = 11 * kStripe + kSystemPage + 100;

class FileMappingTest : public testing::Test {
  protected:
    FileMappingTest() { names_.write(content_); }
    bool same(const MappedFiles& memory) const {
        return memory.bytes() >= kBytes && std::memcmp(memory.data(), content_.data(), kBytes) == 0;
    }

    test::TempDirectory directory_{"/dev/shm"};
    FileBytes content_ = test::stamped(kBytes);
    StripedNames names_ = striped_names(directory_.file("part"), 3, kStripe);
    std::string refusal_;
};

TEST_F(FileMappingTest, stripes_lie_one_behind_the_other_and_are_the_files) {
    const OpenedSet opened(names_);
    const MappedFiles memory(opened.set, layout_of(opened.set, 4096), refusal_);
    ASSERT_NE(memory.data(), nullptr) << refusal_;
    EXPECT_TRUE(same(memory));
    for (const u64 at : {u64{0}, kStripe + 7, 5 * kStripe - 1, kBytes - 1})
        memory.data()[at] = static_cast<std::byte>(content_[at] ^= 1);
    EXPECT_EQ(names_.read(), content_);
}

TEST_F(FileMappingTest, control_other_stripes_are_found) {
    content_.resize(12 * kStripe);
    names_.write(content_);
    names_.stripe = kSystemPage;
    const OpenedSet opened(names_, O_RDONLY);
    const MappedFiles memory(opened.set, layout_of(opened.set, 4096), refusal_);
    ASSERT_NE(memory.data(), nullptr) << refusal_;
    EXPECT_FALSE(same(memory));
}

TEST_F(FileMappingTest, what_cannot_be_mapped_says_why) {
    names_.stripe = 512;
    names_.write(content_);
    const OpenedSet fine(names_);
    const MappedFiles none(fine.set, layout_of(fine.set, 512), refusal_);
    EXPECT_EQ(none.data(), nullptr);
    EXPECT_NE(refusal_.find("stripes of 512 bytes are smaller than the"), std::string::npos) << refusal_;
    const StripedNames many = striped_names(directory_.file("many"), 2, kSystemPage);
    for (const std::string& name : many.names) test::write_file(name, {});
    for (const std::string& name : many.names) std::filesystem::resize_file(name, 20'000 * kSystemPage);
    const OpenedSet opened(many, O_RDONLY);
    EXPECT_EQ(MappedFiles(opened.set, layout_of(opened.set, 512), refusal_).data(), nullptr);
    EXPECT_NE(refusal_.find("it has 40000 stripes; at most 32768"), std::string::npos) << refusal_;
}

TEST_F(FileMappingTest, all_stripes_are_registered_at_once_and_let_go) {
    Registers device;
    const OpenedSet opened(names_, O_RDONLY);
    const FileLayout layout = layout_of(opened.set, 4096);
    {
        const FileMapping mapping(device, opened.set, layout);
        ASSERT_NE(mapping.data(), nullptr) << mapping.refusal();
        EXPECT_EQ(device.memory_, mapping.data());
        EXPECT_GE(device.bytes_, kBytes);
        EXPECT_TRUE(device.read_only_);
    }
    EXPECT_EQ(device.memory_, nullptr);
    device.refuses = true;
    EXPECT_EQ(FileMapping(device, opened.set, layout).refusal(), "it does not like it");
}

TEST_F(FileMappingTest, one_file_on_a_disk_keeps_the_array_from_being_mapped) {
    Registers device;
    const test::TempDirectory disk;
    const std::string moved = disk.file("part1");
    std::filesystem::copy_file(names_.names[1], moved);
    names_.names[1] = moved;
    const OpenedSet opened(names_, O_RDONLY);
    const FileMapping mapping(device, opened.set, layout_of(opened.set, 4096));
    if (os::file_stat(opened.files[1]->fd.get(), moved).file_system == "tmpfs") GTEST_SKIP() << "no disk here";
    EXPECT_EQ(mapping.data(), nullptr);
    EXPECT_EQ(mapping.refusal().find(moved + ": "), 0u) << mapping.refusal();
}

// The cache over a mapping, as a GPU uses it: callers post no request, and each file has a count of its own.
TEST_F(FileMappingTest, pages_that_the_device_moves_itself_are_counted_by_file) {
    const OpenedSet opened(names_);
    const FileLayout layout = layout_of(opened.set, 4096);
    const MappedFiles memory(opened.set, layout, refusal_);
    ASSERT_NE(memory.data(), nullptr) << refusal_;
    const u32 page = static_cast<u32>(kSystemPage);
    std::vector<MovedByGpu> moved(3);
    const std::vector<StoreArray> table{
        {kBytes, reinterpret_cast<u8*>(memory.data()), 1, layout.stripes, moved.data()}};
    RigMemory own;
    Mailbox mailbox(own, own, {4, page});
    const FileStore<Native> store{mailbox.ref(0), table.data(), 1, page};
    CacheRig<SweepResistant, Native, FileStore<Native>> rig(shape_of(8, page), store);
    auto cache = rig.cache();
    for (u64 number = 0; number * page < kBytes; ++number) {
        u32 frame = 0;
        ASSERT_EQ(cache.acquire(number, soon(), frame), Status::ok);
        EXPECT_EQ(std::memcmp(cache.page(frame), &content_[number * page], std::min<u64>(page, kBytes - number * page)),
                  0)
            << "page " << number;
        if (number == 3) set_word(cache.page(frame), 0, 5);
        cache.release(frame, number == 3);
    }
    ASSERT_EQ(cache.write_back_part(0, 1, soon()), Status::ok);
    for (std::size_t file = 0; file < 3; ++file) {
        const u64 stored = file == 1 ? 1 : 0;  // page 3 is in stripe 1
        EXPECT_EQ(moved[file].bytes, layout.sizes[file] + stored * page);
        EXPECT_EQ(moved[file].pages, (layout.sizes[file] + page - 1) / page + stored);
    }
    const u64 five = 5;
    std::memcpy(&content_[3 * page], &five, 8);
    EXPECT_EQ(names_.read(), content_);
}

}  // namespace
}  // namespace penstock::ondevice
