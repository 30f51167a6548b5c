// The identity of machines that the tests imitate by files in place of /proc and /sys.
#include "os/file/identity.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace penstock::os {
namespace {

namespace fs = std::filesystem;

class Identity : public testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (fs::temp_directory_path() / "penstock-XXXXXX").string();
        root_ = ::mkdtemp(pattern.data());
    }
    void TearDown() override { fs::remove_all(root_); }
    void write(const std::string& name, const std::string& text) const {
        fs::create_directories((root_ + name).substr(0, (root_ + name).rfind('/')));
        std::ofstream(root_ + name) << text;
    }
    std::string cpu() const { return machine_identity(Limits{}, root_).cpu; }
    std::string root_;
};

TEST_F(Identity, the_processor_is_named_as_the_kernel_names_it) {
    write("/proc/cpuinfo", "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) Gold 6140 \n\n");
    EXPECT_EQ(cpu(), "Intel(R) Xeon(R) Gold 6140");
    write("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\nCPU part\t: 0xd4f\n");
    EXPECT_EQ(cpu(), "0x41 0xd4f");
    write("/proc/cpuinfo", "");
    EXPECT_EQ(cpu(), "unknown");
}

TEST_F(Identity, a_partition_is_told_by_its_disk) {
    write("/sys/devices/nvme0n1/device/model", "Fast Disk 9000  \n");
    write("/sys/devices/nvme0n1/size", "2000\n");
    write("/sys/devices/nvme0n1/nvme0n1p2/partition", "2\n");
    fs::create_directories(root_ + "/sys/dev/block");
    fs::create_directory_symlink(root_ + "/sys/devices/nvme0n1/nvme0n1p2", root_ + "/sys/dev/block/259:2");
    FileStat facts;
    facts.file_system = "xfs";
    facts.mount_options = "rw,clientaddr=10.0.0.8,rw";
    facts.device_major = 259;
    facts.device_minor = 2;
    EXPECT_EQ(place_identity(facts, root_), (PlaceIdentity{"xfs", "rw", "nvme0n1 Fast Disk 9000 2000"}));
    facts.device_minor = 3;
    EXPECT_EQ(place_identity(facts, root_), (PlaceIdentity{"xfs", "rw", ""}));
}

TEST_F(Identity, memory_and_files_that_pose_as_disks_are_told_from_disks) {
    const auto disk_at = [&](const std::string& name) {
        write("/sys/devices/" + name + "/size", "2000\n");
        fs::create_directories(root_ + "/sys/dev/block");
        fs::remove(root_ + "/sys/dev/block/7:1");
        fs::create_directory_symlink(root_ + "/sys/devices/" + name, root_ + "/sys/dev/block/7:1");
        FileStat facts;
        facts.device_major = 7;
        facts.device_minor = 1;
        return place_identity(facts, root_).disk;
    };
    EXPECT_EQ(disk_at("zram0"), "zram0 2000 (memory)");
    EXPECT_EQ(disk_at("ram1"), "ram1 2000 (memory)");
    EXPECT_EQ(disk_at("sda"), "sda 2000");
    write("/sys/devices/loop3/loop/backing_file", "/proc/version\n");
    write("/sys/devices/loop3/loop/dio", "0\n");
    EXPECT_EQ(disk_at("loop3"), "loop3 2000 (a file of proc, by the page cache)");
    write("/sys/devices/loop3/loop/dio", "1\n");
    EXPECT_EQ(disk_at("loop3"), "loop3 2000 (a file of proc, by O_DIRECT)");
    write("/sys/devices/loop3/loop/backing_file", "/nowhere/disk.img (deleted)\n");
    EXPECT_EQ(disk_at("loop3"), "loop3 2000 (a file)");
}

}  // namespace
}  // namespace penstock::os
