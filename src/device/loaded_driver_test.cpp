// known_memory with a stand-in for the driver, which the process loads in the middle of a test as a program would.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "penstock/device.hpp"

namespace penstock {
namespace {

// The stand-in knows memory that was declared to it, as of `type` (1: host, 2: device) and managed or not.
using Declare = void (*)(const void* base, std::size_t bytes, unsigned type, unsigned managed);

TEST(KnownMemory, is_what_the_loaded_driver_says_and_nothing_before_it_is_loaded) {
    static std::byte memory[4096];
    EXPECT_FALSE(known_memory(memory).known);
    EXPECT_FALSE(known_memory(memory).known) << "no library came in between";
    void* driver = ::dlopen(FAKE_LIBCUDA, RTLD_NOW | RTLD_GLOBAL);
    ASSERT_NE(driver, nullptr) << ::dlerror();
    const auto declare = reinterpret_cast<Declare>(::dlsym(driver, "fake_declare_memory"));
    const auto start = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
    ASSERT_TRUE(declare != nullptr && start != nullptr);
    declare(memory, sizeof memory, 2, 0);
    EXPECT_FALSE(known_memory(memory).known) << "cuInit was not called";
    start(0);

    const PointerInfo info = known_memory(memory + 100);
    EXPECT_TRUE(info.known);
    EXPECT_EQ(info.kind, MemoryKind::device);
    EXPECT_EQ(info.device_index, 3);
    EXPECT_EQ(info.base, memory);
    EXPECT_EQ(info.bytes, sizeof memory);
    EXPECT_FALSE(known_memory(memory + sizeof memory).known);
    EXPECT_FALSE(known_memory(nullptr).known);

    declare(memory, sizeof memory, 1, 0);
    EXPECT_EQ(known_memory(memory).kind, MemoryKind::pinned);
    declare(memory, sizeof memory, 1, 1);
    EXPECT_EQ(known_memory(memory).kind, MemoryKind::managed) << "where its pages are now does not matter";
    declare(memory, sizeof memory, 2, 1);
    EXPECT_EQ(known_memory(memory).kind, MemoryKind::managed);
}

}  // namespace
}  // namespace penstock
