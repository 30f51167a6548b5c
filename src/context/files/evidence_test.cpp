// Evidence: what the probe reads is what happened, absent stays absent, and JSON says it all.
#include "penstock/evidence.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include "context/files/evidence_probe.hpp"
#include "context/files/open_file.hpp"
#include "context/test_files.hpp"
#include "os/system.hpp"

namespace penstock {
namespace {

using context::EvidenceProbe;
using context::Extent;
using context::OpenFile;
using test::stamped;
using test::TempDirectory;
using test::write_file;

TEST(Evidence, names_the_one_path_that_moved_bytes) {
    Evidence evidence;
    EXPECT_EQ(evidence.path_name(), "none");
    evidence.paths = {{PathKind::uring, 0, 4, 0, false}};
    EXPECT_EQ(evidence.path_name(), "none") << "operations without bytes moved nothing";
    evidence.paths.push_back({PathKind::buffered, 10, 1, 10, false});
    EXPECT_EQ(evidence.path_name(), "buffered");
    evidence.paths[0].bytes = 1;
    EXPECT_EQ(evidence.path_name(), "mixed");
}

TEST(Evidence, json_tells_absent_from_zero) {
    Evidence evidence;
    EXPECT_NE(evidence.to_json().find("\"residency_before\":null"), std::string::npos) << evidence.to_json();
    EXPECT_NE(evidence.to_json().find("\"process_io\":null"), std::string::npos);
    EXPECT_NE(evidence.to_json().find("\"cufile\":null"), std::string::npos);
    evidence.process_io.emplace();
    evidence.cufile.emplace().library = "libcufile \"1\"";
    evidence.before.emplace().source = "cachestat";
    evidence.fallbacks.push_back({PathKind::direct, PathKind::buffered, 7, "line\nbreak"});
    const std::string json = evidence.to_json();
    EXPECT_NE(json.find("\"read_chars\":0"), std::string::npos) << json;
    EXPECT_NE(json.find("libcufile \\\"1\\\""), std::string::npos) << json;
    EXPECT_NE(json.find("\"source\":\"cachestat\""), std::string::npos);
    EXPECT_NE(json.find("\"wanted\":\"direct\",\"took\":\"buffered\",\"bytes\":7"), std::string::npos) << json;
    EXPECT_NE(json.find("line\\nbreak"), std::string::npos);
}

class Probe : public testing::Test {
  protected:
    Probe() {
        write_file(directory_.file("data"), stamped(1 * kMiB));
        file_ = std::make_shared<OpenFile>(os::real_system(), directory_.file("data"), OpenOptions{});
    }
    int fd() const { return file_->handle().buffered_fd; }
    Extent extent(std::uint64_t offset_bytes, std::uint64_t bytes) const {
        return {file_, offset_bytes, nullptr, bytes, bytes};
    }
    EvidenceProbe probe(std::uint64_t bytes, std::optional<Residency> before = std::nullopt) const {
        return EvidenceProbe(std::make_shared<const std::vector<Extent>>(1, extent(0, bytes)), std::move(before));
    }
    TempDirectory directory_;
    std::shared_ptr<OpenFile> file_;
};

TEST_F(Probe, counts_what_was_read_between_its_two_looks) {
    const EvidenceProbe looking = probe(1 * kMiB);
    std::vector<char> memory(300000);
    ASSERT_EQ(::pread(fd(), memory.data(), memory.size(), 0), 300000);
    Evidence evidence;
    looking.finish(evidence);
    ASSERT_TRUE(evidence.process_io);
    EXPECT_GE(evidence.process_io->read_chars, 300000u);
    EXPECT_LT(evidence.process_io->read_chars, 400000u);
    ASSERT_TRUE(evidence.before && evidence.after);
    EXPECT_EQ(evidence.after->fraction(), 1.0);
    EXPECT_FALSE(evidence.cufile) << "cuFile was not asked";
}

TEST_F(Probe, takes_the_residency_that_the_policy_has_asked_for_already) {
    Residency known;
    known.pages = known.sampled_pages = 12345;
    Evidence evidence;
    probe(4096, known).finish(evidence);
    EXPECT_EQ(evidence.before->pages, 12345u);
    EXPECT_EQ(evidence.after->pages, 1u);
}

TEST_F(Probe, samples_at_most_sixteen_of_many_extents) {
    std::vector<Extent> extents;
    for (std::uint64_t i = 0; i < 200; ++i) extents.push_back(extent(i * 4096, 4096));
    std::string why;
    const auto all = EvidenceProbe::sample(extents, why);
    ASSERT_TRUE(all);
    EXPECT_LE(all->sampled_pages, 16u);
    EXPECT_GT(all->sampled_pages, 8u);
    EXPECT_EQ(EvidenceProbe::sample({}, why), std::nullopt);
    EXPECT_EQ(why, "");
}

TEST_F(Probe, what_cannot_be_asked_is_unknown_and_not_zero) {
    Evidence evidence;
    ASSERT_EQ(::close(fd()), 0);
    probe(4096).finish(evidence);
    EXPECT_FALSE(evidence.before);
    EXPECT_FALSE(evidence.after);
    EXPECT_EQ(evidence.notes, std::vector<std::string>{"residency unknown: Bad file descriptor"});
    EXPECT_TRUE(evidence.process_io);
}

}  // namespace
}  // namespace penstock
