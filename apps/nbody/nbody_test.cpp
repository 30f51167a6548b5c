// The cluster keeps its energy, does not depend on threads, and goes on from a restart bit by bit; its snapshots have
// what it has. Tried with them: body_engine_host, body_engine_absent, body_engine_cuda.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "context/test_files.hpp"
#include "nbody/nbody_model.hpp"

namespace penstock::nbody {
namespace {

class ClusterTest : public testing::Test {
  protected:
    static ContextOptions options() {
        const char* device = std::getenv("PENSTOCK_TEST_DEVICE");
        return {.device = device != nullptr ? device : "host"};
    }
    Restart restart() const { return {context_, folder_.file("restart"), {.durable = false}}; }

    Context context_{options()};
    test::TempDirectory folder_;
};

TEST_F(ClusterTest, keeps_its_energy) {
    Cluster cluster(context_, {.bodies = 128});
    const double before = cluster.energy();
    EXPECT_NEAR(before, -0.25, 0.06) << "a cluster in balance";
    cluster.advance(8);
    EXPECT_EQ(cluster.time(), 0.5);
    EXPECT_NEAR(cluster.energy() / before, 1, 1e-5);
    Cluster coarse(context_, {.bodies = 128, .accuracy = 0.5});
    coarse.advance(8);
    EXPECT_GT(std::abs(coarse.energy() / before - 1), std::abs(cluster.energy() / before - 1)) << "the control";
}

TEST_F(ClusterTest, has_the_same_bits_whatever_the_threads) {
    Cluster one(context_, {.bodies = 130, .threads = 1}), three(context_, {.bodies = 130, .threads = 3});
    Cluster other(context_, {.bodies = 130, .seed = 2});
    one.advance(2);
    three.advance(2);
    other.advance(2);
    EXPECT_TRUE(one.state() == three.state());
    EXPECT_FALSE(one.state() == other.state()) << "the control";
}

TEST_F(ClusterTest, goes_on_from_a_restart_bit_by_bit) {
    Cluster whole(context_, {.bodies = 200});
    whole.advance(3);
    {
        Restart files = restart();
        whole.describe(files);
        files.write();
    }
    whole.advance(4);
    Cluster later(context_, {.bodies = 200, .seed = 9, .softening = 0.5, .accuracy = 0.1});
    Restart files = restart();
    later.describe(files);
    files.read();
    later.resume(files);
    EXPECT_EQ(later.time(), 3 * 0.0625);
    later.advance(4);
    EXPECT_TRUE(later.state() == whole.state());
}

TEST_F(ClusterTest, writes_what_it_has) {
    Cluster cluster(context_, {.bodies = 100});
    cluster.advance(1);
    const SnapshotFacts facts = cluster.write_snapshot(folder_.file("snapshot_000.hdf5"));
    EXPECT_EQ(facts.data_bytes, 100u * (3 + 3 + 1 + 1) * 8);
    const auto file = test::read_file(folder_.file("snapshot_000.hdf5"));
    const std::vector<std::byte> state = cluster.state();
    const auto* bits = reinterpret_cast<const unsigned char*>(state.data());
    const auto has = [&](std::size_t first, std::size_t count) {
        return std::search(file.begin(), file.end(), bits + first, bits + first + count) != file.end();
    };
    EXPECT_TRUE(has(0, 2400)) << "positions";
    EXPECT_TRUE(has(2400, 2400)) << "velocities";
    EXPECT_FALSE(has(4800, 2400)) << "the control: accelerations are not in it";
}

TEST_F(ClusterTest, refuses_what_is_no_cluster) {
    EXPECT_THROW(Cluster(context_, {.bodies = 1}), Error);
    EXPECT_THROW(Cluster(context_, {.bodies = 8, .softening = -1}), Error);
    EXPECT_THROW(Cluster(context_, {.bodies = 8, .accuracy = std::nan("")}), Error);
}

}  // namespace
}  // namespace penstock::nbody
