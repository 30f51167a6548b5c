// A page cache whose users are scattered: each thread does as chance says, with an oracle of its own. On the GPU that
// PENSTOCK_TEST_DEVICE names, lanes of a warp come in any grouping; otherwise the users are threads of the host.
#include "context/cache/scattered_users_rig.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "context/cache/device_cache_rig.hpp"
#include "context/test_files.hpp"
#include "penstock/device_cache.hpp"

namespace penstock::test {
namespace {

constexpr u64 kElements = 1 << 17, kBytes = kElements * sizeof(u64);

struct Scattered {
    u64 pages = 32;
    u64 page_bytes = 4096;
    u32 turns = 100;
};

class ScatteredUsers : public testing::TestWithParam<Scattered> {
  protected:
    // Writes the file. Elements from `spoilt` on are not what their owners think.
    void write_elements(u64 spoilt = kElements) {
        Bytes content(kBytes);
        for (u64 index = 0; index < kElements; ++index)
            put(content, index, scattered_element(index, index < spoilt ? 0 : 1000));
        write_file(name_, content);
    }
    static void put(Bytes& bytes, u64 index, u64 element) {
        std::memcpy(&bytes[index * sizeof element], &element, sizeof element);
    }

    struct Found {
        ScatteredTally tally;
        bool kept;  // the file holds, when the cache is closed, what its owners stored last
    };
    Found use(const Scattered& how) {
        const File file = context_.open(name_, {.mode = OpenMode::read_write});
        const DeviceCache cache(context_, {&file, 1},
                                {.page_bytes = how.page_bytes, .cache_bytes = how.pages * how.page_bytes});
        const Buffer versions = zeros(kElements * sizeof(u32)), tally = zeros(sizeof(ScatteredTally));
        const bool emulated = context_.device().info().emulated;
        const ScatteredPlan plan{cache.ref(0), emulated ? 8u : 4096u, how.turns, static_cast<u32*>(versions.data()),
                                 static_cast<ScatteredTally*>(tally.data())};
        if (emulated) on_host(plan);
        else on_gpu(plan);
        cache.close();
        const Bytes last = fetch(context_, versions.data(), kElements * sizeof(u32)), there = read_file(name_);
        Bytes wanted(kBytes);
        for (u64 index = 0; index < kElements; ++index) {
            u32 version = 0;
            std::memcpy(&version, &last[index * sizeof version], sizeof version);
            put(wanted, index, scattered_element(index, version));
        }
        Found found{{}, there == wanted};
        std::memcpy(&found.tally, fetch(context_, tally.data(), sizeof found.tally).data(), sizeof found.tally);
        return found;
    }

  private:
    static void on_host(const ScatteredPlan& plan) {
        std::vector<std::jthread> users;
        for (u32 self = 0; self < plan.users; ++self)
            users.emplace_back([&plan, self] { ScatteredUser(plan, self).run(); });
    }
    static void on_gpu([[maybe_unused]] const ScatteredPlan& plan) {
#if defined(PENSTOCK_HAS_CUDA)
        ASSERT_EQ(run_scattered_users_on_gpu(plan), 0);
#else
        FAIL() << "built without CUDA";
#endif
    }
    Buffer zeros(u64 bytes) const {
        const Buffer buffer = context_.allocate(bytes);
        const Bytes nothing(bytes);
        context_.copy_to_device(buffer.data(), nothing.data(), bytes);
        return buffer;
    }

    Context context_{{.device = device_of_test()}};
    TempDirectory directory_;
    const std::string name_ = directory_.file("elements");
};

TEST_P(ScatteredUsers, load_and_keep_what_they_stored) {
    write_elements();
    const auto [tally, kept] = use(GetParam());
    EXPECT_EQ(tally.wrong, 0u);
    EXPECT_EQ(tally.failed, 0u);
    EXPECT_TRUE(kept);
    EXPECT_GT(tally.stores, tally.loads / 3);
    EXPECT_GT(tally.loads, tally.stores);
}

TEST_P(ScatteredUsers, control_elements_that_their_owners_did_not_store_are_noticed) {
    write_elements(kElements / 2);
    const auto [tally, kept] = use(GetParam());
    EXPECT_GT(tally.wrong, 0u);
    EXPECT_FALSE(kept);
}

INSTANTIATE_TEST_SUITE_P(, ScatteredUsers,
                         testing::Values(Scattered{}, Scattered{8, 4096, 40}, Scattered{64, 512}, Scattered{512, 512}),
                         [](const auto& chosen) {
                             const Scattered& how = chosen.param;
                             return std::to_string(how.pages) + "_of_" + std::to_string(how.page_bytes);
                         });

}  // namespace
}  // namespace penstock::test
