// The thread sanitizer watches a channel publish: it finds nothing in the channel as it is, and a race if the store
// lacks its release.
//
// The tests exist only in builds with that sanitizer.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "ondevice/channel/memory_rig.hpp"
#include "ondevice/mailbox_memory.hpp"

namespace penstock::ondevice {
namespace {

struct RelaxedStores : Native {
    template <Scope S, Order O = Order::release, class T>
    static void store(T* word, T value) {
        __atomic_store_n(word, value, __ATOMIC_RELAXED);
    }
    template <Order O>
    static void store_pair(u64* pair, u64 first, u64 second) {
        pair[0] = first;
        __atomic_store_n(pair + 1, second, __ATOMIC_RELAXED);
    }
};

// Stores a pair with no more order than is asked for. Native always releases on the host, where that costs nothing.
struct OrderOfPairs : Native {
    template <Order O>
    static void store_pair(u64* pair, u64 first, u64 second) {
        pair[0] = first;
        __atomic_store_n(pair + 1, second, host_order(O));
    }
};

template <class P>
void pass_requests() {
    RigMemory memory;
    Mailbox mailbox(memory, memory, {1, 512});
    const MailboxRef<Native> whole = mailbox.ref();
    const Slots<P> slots{whole.slots.free_bits, whole.slots.words, whole.slots.slots};
    const MailboxRef<P> channel{slots, whole.descriptors, whole.completions, whole.data,
                                512,   0,                 whole.abandoned,   whole.marks};
    std::thread server([&] {
        MailboxServer<Native> end = mailbox.server(0, 1);
        for (int served = 0; served < 200;) {
            u32 slot = 0;
            Request request{};
            if (!end.next(slot, request)) {
                Native::pause(0);
                continue;
            }
            end.complete(slot, mailbox.slot_data(slot)[0] == 7 ? Status::ok : Status::io_error);
            served += 1;
        }
    });
    for (int sent = 0; sent < 200; ++sent) {
        u32 ticket = 0;
        if (channel.claim(ticket) != Status::ok) std::abort();
        static_cast<u8*>(channel.slot_data(ticket))[0] = 7;
        channel.publish(ticket, {0, 0, 512, 0, RequestOperation::write, 0});
        while (channel.test(ticket) == Status::pending) Native::pause(0);
        channel.release(ticket);
    }
    server.join();
}

TEST(PublicationRace, there_is_none) { pass_requests<Native>(); }
TEST(PublicationRace, there_is_none_with_the_order_that_the_mailbox_asks_for) { pass_requests<OrderOfPairs>(); }

#if defined(__SANITIZE_THREAD__)
TEST(PublicationRaceDeathTest, control_a_store_without_release_is_reported) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto relaxed = [] {
        pass_requests<RelaxedStores>();
        std::exit(0);
    };
    EXPECT_EXIT(relaxed(), testing::ExitedWithCode(66), "data race");
}
#endif

}  // namespace
}  // namespace penstock::ondevice
