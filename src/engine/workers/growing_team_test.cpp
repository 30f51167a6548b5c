// A team begins with two slots and gets others while it works, where the budget and the system give them.
#include <atomic>
#include <memory>

#include "device/forwarding_device.hpp"
#include "engine/memory_rig.hpp"

namespace penstock::engine {
namespace {

using test::EngineOverMemory;
using test::random_bytes;

// Its link takes 50 ms a slot, which members fill in 1 ms (5 ms under a sanitizer of threads), so that they find all
// slots taken. It registers memory some times only.
class RegistersSomeTimes : public device::test::ForwardingDevice {
  public:
    explicit RegistersSomeTimes(int times) : ForwardingDevice(slow()), left_(times) {}
    bool register_host(void* memory, std::uint64_t bytes, bool read_only, std::string& why) override {
        why = "no more";
        return left_-- > 0 && ForwardingDevice::register_host(memory, bytes, read_only, why);
    }

  private:
    static HostDeviceOptions slow() {
        HostDeviceOptions options;
        options.bandwidth_bytes_per_s = 40e6;
        return options;
    }
    std::atomic<int> left_;
};

class GrowingTeam : public EngineOverMemory {
  protected:
    static constexpr std::uint64_t kBytes = 16 * kMiB, kSlot = 2 * kMiB;

    void read_all(int registrations) {
        device_ = std::make_shared<RegistersSomeTimes>(registrations);
        make_engine();
        store_->put(1, random_bytes(kBytes, 9));
        std::byte* memory = device_bytes(kBytes);
        const Shape shape{.chunk_bytes = kSlot, .part_bytes = 256 * kKiB, .workers = 2, .depth = 6};
        const auto read = transfer(Direction::read, {{&file_, 0, memory, kBytes, 0}}, shape);
        engine_->start(read);
        ASSERT_TRUE(read->wait(Deadline::after(std::chrono::seconds(20))));
        EXPECT_EQ(read->result().bytes, kBytes) << read->result().error.message();
        std::vector<std::byte> got(kBytes);
        copy(CopyDirection::to_host, got.data(), memory, got.size());
        EXPECT_TRUE(got == store_->contents(1));
    }
};

TEST_F(GrowingTeam, has_all_its_slots_once_the_link_is_the_slower_side) {
    read_all(100);
    EXPECT_GE(engine_->pinned_bytes(), 6 * kSlot);
}

TEST_F(GrowingTeam, goes_on_with_two_where_the_system_registers_no_more) {
    read_all(1);
    EXPECT_EQ(engine_->pinned_bytes(), 2 * kSlot);
}

TEST_F(GrowingTeam, ends_with_the_systems_error_where_not_even_two_are_given) {
    device_ = std::make_shared<RegistersSomeTimes>(0);
    make_engine();
    store_->put(1, random_bytes(kBytes, 9));
    const Shape shape{.chunk_bytes = kSlot, .part_bytes = 256 * kKiB, .workers = 2, .depth = 6};
    const auto read = transfer(Direction::read, {{&file_, 0, device_bytes(kBytes), kBytes, 0}}, shape);
    engine_->start(read);
    ASSERT_TRUE(read->wait(Deadline::after(std::chrono::seconds(20))));
    EXPECT_EQ(read->result().error.code, ErrorCode::out_of_memory);
    EXPECT_EQ(read->result().error.cause, "no more");
}

}  // namespace
}  // namespace penstock::engine
