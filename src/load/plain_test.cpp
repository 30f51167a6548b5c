// The plain way (plain.hpp) gives the same bytes as Penstock and uses no part of its engine.
#include "load/plain.hpp"

#include <gtest/gtest.h>

#include "context/test_files.hpp"
#include "load/load.hpp"

namespace penstock::load {
namespace {

using test::kSeed;
using test::read_file;
using test::stamped;
using test::TempDirectory;
using test::write_file;

constexpr std::uint64_t kPlainBytes = 2 * kMiB;

class PlainWay : public testing::Test {
  protected:
    PlainWay() {
        ContextOptions on_host;
        on_host.device = "host";
        context_.emplace(on_host);
        write_file(name_, stamped(kPlainBytes));
    }
    LoadReport run(LoadOptions options, MemoryKind kind) {
        options.plain = true;
        options.request_bytes = 64 * kKiB;
        options.threads = 3;
        options.stamp_seed = kSeed;
        const File file = context_->open(name_, {.mode = OpenMode::read_write});
        const Buffer buffer = context_->allocate(memory_needed(options, kPlainBytes), kind);
        return run_load(*context_, {&file, 1}, buffer.view(), options);
    }
    TempDirectory directory_;
    std::string name_ = directory_.file("data");
    std::optional<Context> context_;
};

TEST_F(PlainWay, reads_every_byte_into_any_memory) {
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::system}) {
        for (const bool mirror : {false, true}) {
            LoadOptions options;
            options.plain_direct = false;
            options.mirror = mirror;
            const LoadReport report = run(options, kind);
            EXPECT_EQ(report.verified_bytes, kPlainBytes);
            EXPECT_EQ(report.path_bytes.at("buffered"), kPlainBytes);
            EXPECT_EQ(report.reads.count(), kPlainBytes / (64 * kKiB));
        }
    }
    EXPECT_EQ(context_->pinned_bytes(), 0u);  // no staging memory of the engine was used
}

TEST_F(PlainWay, bypasses_the_page_cache_where_the_file_system_can) {
    if (!context_->open(name_).facts().direct) GTEST_SKIP() << "this file system has no O_DIRECT";
    const LoadReport report = run({}, MemoryKind::device);
    EXPECT_EQ(report.verified_bytes, kPlainBytes);
    EXPECT_EQ(report.path_bytes.at("direct"), kPlainBytes);
}

TEST_F(PlainWay, writes_what_lies_on_the_device) {
    write_file(name_, std::vector<unsigned char>(kPlainBytes, 1));
    LoadOptions options;
    options.plain_direct = false;
    options.read_percent = 0;
    EXPECT_EQ(run(options, MemoryKind::device).bytes, kPlainBytes);
    EXPECT_EQ(read_file(name_), stamped(kPlainBytes));
}

TEST_F(PlainWay, finds_wrong_bytes_and_refuses_what_is_not_plain) {
    auto data = stamped(kPlainBytes);
    data[kMiB] ^= 4;
    write_file(name_, data);
    LoadOptions options;
    options.plain_direct = false;
    EXPECT_THROW(run(options, MemoryKind::device), Error);
    options.in_flight = 2;
    EXPECT_THROW(run(options, MemoryKind::device), Error);
}

}  // namespace
}  // namespace penstock::load
