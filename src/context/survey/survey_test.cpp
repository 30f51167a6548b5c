// The survey says what is there, and for what is missing what it would take; on this machine and on imagined ones.
#include "penstock/survey.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "context/survey/item.hpp"
#include "path/cufile/cufile.hpp"
#include "penstock/error.hpp"

namespace penstock::context {
namespace {

namespace fs = std::filesystem;

// An imagined machine: a folder with the /proc and /sys files it would have. Removed afterwards.
class Imagined : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "penstock-survey-test-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        root_ = name;
    }
    void TearDown() override { fs::remove_all(root_); }
    void put(const std::string& name, const std::string& text) const {
        fs::create_directories(fs::path(root_ + name).parent_path());
        std::ofstream(root_ + name) << text;
    }
    // All a machine needs for PCI peer-to-peer.
    void put_p2pdma() const {
        put("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95\nGCC\n");
        put("/proc/driver/nvidia/params", "RegistryDwords: \"RMForceStaticBar1=1;RmForceDisableIomapWC=1\"\n");
        put("/proc/kallsyms", "ffffffff81000000 T pci_p2pdma_add_resource\n");
    }
    std::string root_;
};

SurveyItem named(const std::vector<SurveyItem>& items, const std::string& name) {
    for (const SurveyItem& item : items) {
        if (item.name == name) return item;
    }
    ADD_FAILURE() << "no item " << name;
    return {};
}

SurveyGpus one_gpu() {
    SurveyGpus gpus;
    gpus.found.emplace_back();
    gpus.found.front().driver_version = 13000;
    return gpus;
}

SurveyPlace ext4_on(bool nvme) {
    SurveyPlace place;
    place.facts.file_system = "ext4";
    place.nvme = nvme;
    return place;
}

using Survey = Imagined;

TEST_F(Survey, every_item_of_this_machine_that_is_not_yes_carries_advice) {
    const auto place = survey_place(root_, "");
    const auto gpus = survey_gpus();
    for (const auto& items : {gpu_items(gpus, ""), direct_items(gpus, place, ""), system_items(os::limits(), ""),
                              place_items(place)}) {
        EXPECT_FALSE(items.empty());
        for (const SurveyItem& item : items) {
            EXPECT_FALSE(item.detail.empty()) << item.name;
            EXPECT_EQ(item.advice.empty(), item.state == SurveyState::yes) << item.name << ": " << item.advice;
        }
    }
}

TEST_F(Survey, is_one_json_object_with_the_promised_keys_and_leaves_nothing_behind) {
    const auto start = std::chrono::steady_clock::now();
    const std::string text = survey_json(root_);
    const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_LT(seconds, survey_gpus().found.empty() ? 2.0 : 20.0);
    EXPECT_EQ(text.front(), '{');
    EXPECT_EQ(text.back(), '}');
    for (const char* key : {"machine", "cpu_model", "cores", "memory_bytes", "kernel", "os", "architecture",
                            "page_bytes", "numa_nodes", "gpus", "items", "state", "detail", "advice"}) {
        EXPECT_NE(text.find("\"" + std::string(key) + "\":"), std::string::npos) << key;
    }
    for (const char* name : {"gpu", "driver", "link", "cufile", "nvidia_fs", "p2pdma", "gpu_direct", "io_uring",
                             "libaio", "o_direct", "cachestat", "memlock", "numa", "power_cpu", "power_gpu",
                             "file_system", "free_space", "writable"}) {
        EXPECT_NE(text.find("{\"name\":\"" + std::string(name) + "\""), std::string::npos) << name;
    }
    EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(Survey, refuses_what_is_no_place_for_files) {
    try {
        survey_json(root_ + "/absent");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_found);
        EXPECT_EQ(error.info().file, root_ + "/absent");
    }
    ASSERT_EQ(::mkfifo((root_ + "/pipe").c_str(), 0600), 0);
    try {
        survey_json(root_ + "/pipe");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::not_a_regular_file);
    }
}

TEST_F(Survey, accepts_a_file_and_does_not_change_it) {
    put("/data", "some bytes");
    EXPECT_EQ(survey_json(root_ + "/data").front(), '{');
    EXPECT_EQ(file_text(root_ + "/data"), "some bytes");
}

SurveyPlace folder_on(const std::string& kind) {
    SurveyPlace place;
    place.path = "/scratch/run";
    place.facts.type = os::FileType::directory;
    place.facts.kind = kind;
    place.facts.unit_bytes = 4 * 1024 * 1024;
    return place;
}

TEST_F(Survey, tells_what_lustre_says_of_a_place_or_why_it_says_nothing) {
    const SurveyPlace place = folder_on("lustre");
    os::ExtendedAttribute layout{.value = std::vector<std::byte>(32)};
    const unsigned char head[] = {0xD0, 0x0B, 0xD1, 0x0B, 1}, size[] = {0, 0, 0x40, 0, 8};
    for (std::size_t i = 0; i < 5; ++i) {
        layout.value[i] = std::byte{head[i]};
        layout.value[24 + i] = std::byte{size[i]};
    }
    EXPECT_EQ(described(layout, place).state, SurveyState::yes);
    EXPECT_EQ(described(layout, place).detail, "stripes of 4 MiB over 8 OSTs");
    layout.value[0] = {};
    EXPECT_EQ(described(layout, place).state, SurveyState::partly);
    const SurveyItem none = described({.error = ENODATA}, place);
    EXPECT_EQ(none.state, SurveyState::partly);
    EXPECT_NE(none.advice.find("lfs setstripe -c 8 -S 4M /scratch/run"), std::string::npos);
    EXPECT_NE(described({.error = EACCES}, place).detail.find("Permission denied"), std::string::npos);
}

TEST_F(Survey, tells_units_where_servers_have_the_files_and_nothing_elsewhere) {
    for (const char* kind : {"nfs", "gpfs", "beegfs"}) {
        EXPECT_EQ(named(server_items(folder_on(kind)), "stripes").detail, "units of 4 MiB") << kind;
    }
    for (const char* kind : {"ext4", "tmpfs", "xfs"}) EXPECT_TRUE(server_items(folder_on(kind)).empty()) << kind;
    EXPECT_EQ(exact_bytes(1536 * 1024), "1536 KiB");
    EXPECT_EQ(exact_bytes(100), "100 bytes");
}

TEST_F(Survey, names_the_sysctl_that_forbids_io_uring) {
    os::Limits limits;
    limits.io_uring = {false, 1, "io_uring_setup: Operation not permitted"};
    put("/proc/sys/kernel/io_uring_disabled", "2\n");
    const SurveyItem forbidden = named(system_items(limits, root_), "io_uring");
    EXPECT_EQ(forbidden.state, SurveyState::no);
    EXPECT_NE(forbidden.advice.find("kernel.io_uring_disabled=0"), std::string::npos);
    put("/proc/sys/kernel/io_uring_disabled", "0\n");  // control: then it is not the sysctl
    EXPECT_EQ(named(system_items(limits, root_), "io_uring").advice.find("sysctl"), std::string::npos);
}

TEST_F(Survey, counts_energy_counters_as_there_only_when_they_can_be_read) {
    EXPECT_EQ(named(system_items({}, root_), "power_cpu").state, SurveyState::no);
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "");  // what a refused read looks like, also to root
    EXPECT_NE(named(system_items({}, root_), "power_cpu").advice.find("chmod"), std::string::npos);
    put("/sys/class/powercap/intel-rapl:0/energy_uj", "123456\n");
    EXPECT_EQ(named(system_items({}, root_), "power_cpu").state, SurveyState::yes);
}

TEST(SurveyCuFile, is_yes_only_when_native_was_shown) {
    path::CuFileStatus status;
    status.version = 1150;
    status.cause = "the probe hung";
    EXPECT_EQ(described(status).state, SurveyState::no);
    EXPECT_NE(described(status).detail.find("the probe hung"), std::string::npos);
    status.usable = true;
    status.mode = path::CuFileMode::compat;
    EXPECT_EQ(described(status).state, SurveyState::partly);
    EXPECT_NE(described(status).detail.find("libcufile 1.15, compat mode"), std::string::npos);
    EXPECT_FALSE(described(status).advice.empty());
    status.mode = path::CuFileMode::native;
    EXPECT_EQ(described(status).state, SurveyState::yes);
}

TEST_F(Survey, finds_nvidia_fs_by_its_module) {
    EXPECT_EQ(named(direct_items({}, {}, root_), "nvidia_fs").state, SurveyState::no);
    put("/proc/driver/nvidia-fs/stats", "GDS Version: 1.15\n");
    put("/proc/driver/nvidia-fs/version", "version: 2.26.6\n");
    const SurveyItem found = named(direct_items({}, {}, root_), "nvidia_fs");
    EXPECT_EQ(found.state, SurveyState::yes);
    EXPECT_NE(found.detail.find("2.26.6"), std::string::npos);
}

TEST_F(Survey, lists_what_peer_to_peer_lacks_and_nothing_else) {
    put_p2pdma();
    EXPECT_EQ(named(direct_items(one_gpu(), {}, root_), "p2pdma").state, SurveyState::yes);
    EXPECT_EQ(named(direct_items({}, {}, root_), "p2pdma").advice, "a GPU");
    put("/proc/driver/nvidia/params", "RegistryDwords: \"\"\n");
    const SurveyItem item = named(direct_items(one_gpu(), {}, root_), "p2pdma");
    EXPECT_EQ(item.state, SurveyState::no);
    EXPECT_NE(item.advice.find("RMForceStaticBar1=1"), std::string::npos);
    EXPECT_EQ(item.advice.find("CONFIG_PCI_P2PDMA"), std::string::npos);
}

TEST_F(Survey, calls_a_place_direct_only_when_every_condition_holds) {
    put_p2pdma();
    EXPECT_EQ(named(direct_items(one_gpu(), ext4_on(true), root_), "gpu_direct").state, SurveyState::yes);
    EXPECT_EQ(named(direct_items(one_gpu(), ext4_on(false), root_), "gpu_direct").state, SurveyState::no);
    EXPECT_EQ(named(direct_items({}, ext4_on(true), root_), "gpu_direct").state, SurveyState::no);
    fs::remove_all(root_ + "/proc/driver/nvidia");
    EXPECT_EQ(named(direct_items(one_gpu(), ext4_on(true), root_), "gpu_direct").state, SurveyState::no);
}

}  // namespace
}  // namespace penstock::context
