// Plans for the machine profiles of tests/golden, over a grid of requests, stay as they were decided. If a change of
// the policy changes a plan, the test shows the difference. If the change is intended, replace the .plans file by the
// one that the test wrote.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "policy/policy.hpp"

namespace penstock::policy {
namespace {

namespace fs = std::filesystem;

struct Asked {
    Direction direction;
    Residence residence;
    std::uint64_t bytes;
    MemoryKind kind;
    FirstTouch touch;
    bool durable;
};

std::string file_text(const fs::path& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string name_of(const Asked& asked) {
    std::string name = std::string(to_string(asked.direction)) + (asked.durable ? " durable" : "");
    name += asked.residence == Residence::hot ? " hot " : " cold ";
    const bool large = asked.bytes >= kMiB;
    name += std::to_string(asked.bytes / (large ? kMiB : kKiB)) + (large ? " MiB " : " KiB ");
    return name + to_string(asked.kind) + " touched by " + to_string(asked.touch);
}

RequestFacts facts_of(const Asked& asked, const Costs& costs) {
    RequestFacts facts;
    facts.direction = asked.direction;
    facts.kind = asked.kind;
    facts.first_touch = asked.touch;
    facts.durable = asked.durable;
    facts.blocking = true;
    facts.ranges = {{0, asked.bytes, 0}};
    facts.segments = {{{0, 0, asked.bytes}, asked.residence}};
    facts.direct = true;
    facts.dirty_room_bytes = kGiB;
    facts.offset_alignment = facts.memory_alignment = 4096;
    facts.gds_cause = facts.gds_compat_cause = costs.has(PathKind::gds) ? "" : "no nvidia-fs";
    facts.costs = &costs;
    return facts;
}

std::vector<Asked> grid() {
    std::vector<Asked> all;
    for (Direction direction : {Direction::read, Direction::write}) {
        for (Residence residence : {Residence::hot, Residence::cold}) {
            for (std::uint64_t bytes : {4 * kKiB, 256 * kKiB, 4 * kMiB, 64 * kMiB, 4 * kGiB}) {
                all.push_back({direction, residence, bytes, MemoryKind::device, FirstTouch::gpu, false});
            }
            for (FirstTouch touch : {FirstTouch::cpu, FirstTouch::gpu}) {
                all.push_back({direction, residence, 64 * kMiB, MemoryKind::managed, touch, false});
            }
        }
    }
    all.push_back({Direction::write, Residence::hot, 64 * kMiB, MemoryKind::device, FirstTouch::gpu, true});
    return all;
}

std::string plans_of(const Profile& profile) {
    const Costs costs(profile);
    MachineFacts machine;
    machine.cpus = static_cast<std::uint32_t>(profile.machine.cores);
    machine.emulated_device = profile.machine.driver == 0;
    machine.page_bytes = profile.machine.page_bytes;
    machine.uring = true;
    std::string text;
    for (const Asked& asked : grid()) {
        text += name_of(asked) + ":\n    " + make_plan(facts_of(asked, costs), machine).describe() + "\n";
    }
    RequestFacts mixed = facts_of({Direction::read, Residence::hot, kGiB, MemoryKind::device, FirstTouch::gpu, false},
                                  costs);
    mixed.segments = {{{0, 0, kGiB / 4}, Residence::hot},
                      {{0, kGiB / 4, kGiB / 2}, Residence::cold},
                      {{0, 3 * kGiB / 4, kGiB / 4}, Residence::hot}};
    return text + "read 1024 MiB, half of it cold:\n" + make_plan(mixed, machine).describe() + "\n";
}

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, plans_stay_as_decided) {
    const fs::path folder = PENSTOCK_GOLDEN;
    const std::string name = GetParam();
    const Profile profile = parse_profile(file_text(folder / (name + ".csv")), name);
    const std::string made = plans_of(profile);
    const fs::path beside = fs::path(testing::TempDir()) / ("penstock-" + name + ".plans");
    if (made == file_text(folder / (name + ".plans"))) return;
    std::ofstream(beside) << made;
    ADD_FAILURE() << "the plans for " << name << " changed; made: " << beside << ", decided: tests/golden";
}

// The choices that matter most, independent of the wording of plans.
TEST(GoldenProfiles, a_coherent_link_writes_by_cufile_at_every_size_and_reads_by_rule) {
    const Costs costs(parse_profile(file_text(fs::path(PENSTOCK_GOLDEN) / "coherent-link.csv"), "coherent-link"));
    MachineFacts machine{.cpus = 72, .emulated_device = false, .uring = true, .uring_cause = {}};
    machine.page_bytes = 65536;
    for (std::uint64_t bytes = 4 * kKiB; bytes <= 4 * kGiB; bytes *= 2) {
        for (Residence residence : {Residence::hot, Residence::cold}) {
            const auto path = [&](Direction direction) {
                const Asked asked{direction, residence, bytes, MemoryKind::device, FirstTouch::gpu, false};
                return make_plan(facts_of(asked, costs), machine).steps.at(0).shape.path;
            };
            EXPECT_EQ(path(Direction::write), PathKind::gds) << bytes;
            const bool cached = residence == Residence::hot || bytes <= kInlineBytes;
            const PathKind cold = bytes < 8 * kMiB ? PathKind::direct : PathKind::uring;
            EXPECT_EQ(path(Direction::read), cached ? PathKind::buffered : cold) << bytes;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Profiles, Golden, testing::Values("no-gpu", "h200-vm", "native-gds", "coherent-link", "nfs"),
                         [](const auto& profile) {
                             std::string name = profile.param;
                             for (char& c : name) c = c == '-' ? '_' : c;
                             return name;
                         });

}  // namespace
}  // namespace penstock::policy
