// Page caches over files under many users at once, checked by what each of them knows: over the service on a system
// that has bad days, over a server that loses answers, and with their owner at work while the files leave the system's
// cache.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "context/test_files.hpp"
#include "ondevice/cache/cache_users_rig.hpp"
#include "ondevice/cache/file_cache.hpp"
#include "ondevice/cache/store_server_rig.hpp"
#include "ondevice/service/bad_system_rig.hpp"
#include "ondevice/service/striped_rig.hpp"
#include "os/file/residency.hpp"

namespace penstock::ondevice {
namespace {

void expect_sound(const Users& users) {
    EXPECT_EQ(users.wrong, 0u);
    EXPECT_EQ(users.refused, 0u) << words(static_cast<Status>(users.first_refused.load()));
}

// Two files, the second with a page that is not whole. The cache holds a quarter of them.
UsersPlan plan_of(u32 page_bytes) {
    UsersPlan plan;
    plan.page_bytes = page_bytes;
    plan.files = {u64{48} * page_bytes, u64{32} * page_bytes - 264};
    return plan;
}
CacheShape quarter(u32 page_bytes) { return shape_of(20, page_bytes); }

class UsersOfFiles : public testing::Test {
  protected:
    // Writes array 0 over `first_parts` files, and each further array over one file more, in stripes of a page.
    void write(const UsersPlan& plan, u64 first_parts = 1) {
        for (u64 array = 0; array < plan.files.size(); ++array) {
            const u64 parts = first_parts == 1 ? 1 : first_parts + array;
            names_.push_back(striped_names(directory_.file(std::to_string(array) + "."), parts, plan.page_bytes));
            names_.back().write(users_file(array, plan.files[array]));
            opened_.push_back(std::make_unique<OpenedSet>(names_.back()));
            sets_.push_back(opened_.back()->set);
            for (const auto& file : opened_.back()->files) files_.push_back(file.get());
            table_.push_back({plan.files[array], nullptr, 1});
        }
    }
    void expect_stored(const Users& users) const {
        for (u64 array = 0; array < names_.size(); ++array)
            EXPECT_EQ(users.lost(array, names_[array].read()), 0u) << "array " << array;
    }

    test::TempDirectory directory_;
    std::vector<StripedNames> names_;
    std::vector<std::unique_ptr<OpenedSet>> opened_;
    std::vector<OpenedFile*> files_;  // all arrays' files
    std::vector<FileSet> sets_;
    std::vector<StoreArray> table_;
    RigMemory memory_;
    BadDays system_;
};

class UsersOfAService : public UsersOfFiles {
  protected:
    using Rig = CacheRig<SweepResistant, Native, FileStore<Native>>;

    void run(const UsersPlan& plan, Users& users, bool direct = false) {
        Mailbox mailbox(memory_, memory_, {8, plan.page_bytes});
        const Service service(mailbox, sets_,
                              {.threads = 2, .mappings = false, .direct = direct, .system = &system_});
        const auto store = [&](u32 user) {
            return FileStore<Native>{mailbox.ref(user), table_.data(), static_cast<u32>(table_.size()),
                                     plan.page_bytes};
        };
        Rig rig(quarter(plan.page_bytes), store(0), plan.users + 1);
        users.run([&](u32 user) {
            auto cache = rig.cache(user);
            cache.store() = store(user);
            return cache;
        });
        system_.good();
        auto last = rig.cache(plan.users);
        EXPECT_EQ(last.settle(soon()), Status::ok);
        EXPECT_EQ(last.flush(soon()), Status::ok);
        EXPECT_EQ(rig.references(), 0u);
        EXPECT_TRUE(rig.every_frame_is_somewhere_once());
    }
};

// Pages smaller than the system's come by every way. If some were written past its cache and some through it, one of
// two in one page of the system's would be lost, and fdatasync would say EIO.
TEST_F(UsersOfAService, small_pages_by_every_way_while_files_leave_the_systems_cache) {
    const UsersPlan plan = plan_of(512);
    Users users(plan);
    write(plan);
    std::atomic<bool> over{false};
    std::atomic<u32> failed{0};
    std::thread dropper([&] {
        for (u64 turn = 0; !over; ++turn) {
            const FileHandle& file = files_[turn % 2]->handle;
            failed += ::fdatasync(file.buffered_fd) != 0;
            ::posix_fadvise(file.buffered_fd, 0, 0, POSIX_FADV_DONTNEED);
            char byte = 0;
            failed += ::pread(file.buffered_fd, &byte, 1, static_cast<off_t>(turn / 2 % 4 * 4096)) != 1;
        }
    });
    run(plan, users, true);
    over = true;
    dropper.join();
    EXPECT_EQ(failed, 0u);
    expect_sound(users);
    expect_stored(users);
}

TEST_F(UsersOfAService, interruptions_short_counts_and_delays_are_healed) {
    system_.interrupts = 7;
    system_.shortens = 5;
    system_.delays = 11;
    const UsersPlan plan = plan_of(512);
    Users users(plan);
    write(plan);
    run(plan, users);
    expect_sound(users);
    expect_stored(users);
    EXPECT_GT(system_.injected, 0u);
}

TEST_F(UsersOfAService, what_fails_is_told_and_nothing_is_lost) {
    system_.fails_read = 23;
    system_.fails_write = 17;
    UsersPlan plan = plan_of(512);
    plan.expects = {Status::io_error};
    Users users(plan);
    write(plan);
    run(plan, users);
    expect_sound(users);
    expect_stored(users);
    EXPECT_GT(users.expected, 0u);
}

TEST_F(UsersOfAService, the_disk_is_full_now_and_then) {
    UsersPlan plan = plan_of(512);
    plan.expects = {Status::io_error};
    system_.full_at_times = true;
    Users users(plan);
    write(plan);
    run(plan, users);
    expect_sound(users);
    expect_stored(users);
    EXPECT_GT(system_.injected, 0u);
}

// Some of the server's answers come after all callers have given up, and a few not before the end.
TEST(UsersOfAServer, late_and_lost_answers_are_a_status_and_nothing_is_lost) {
    UsersPlan plan = plan_of(512);
    plan.wait_ms = 15;
    plan.turns = 800;
    plan.expects = {Status::timed_out, Status::all_pinned};
    std::mt19937 random(5);
    u32 lost = 0;
    StoreServer server({16, 512, plan.files}, [&](const Request&) {
        const u32 what = static_cast<u32>(random() % 1000);
        if (what < 2 && lost < 4) return ++lost, Fate{Fate::held, false};
        if (what < 12) return Fate{30'000'000, false};
        return Fate{what < 300 ? u64{20'000} : 0, false};
    });
    for (u32 array = 0; array < plan.files.size(); ++array) server.file(array) = users_file(array, plan.files[array]);
    CacheRig<SweepResistant, Native, FileStore<Native>> rig(quarter(512), server.store(), plan.users + 1);
    Users users(plan);
    users.run([&](u32 user) {
        auto cache = rig.cache(user);
        cache.store() = server.store(user);
        return cache;
    });
    EXPECT_GT(users.expected, 0u);
    server.let_go();
    auto last = rig.cache(plan.users);
    EXPECT_EQ(last.settle(soon()), Status::ok);
    EXPECT_EQ(last.flush(soon()), Status::ok);
    server.stop();
    expect_sound(users);
    for (u32 array = 0; array < plan.files.size(); ++array) EXPECT_EQ(users.lost(array, server.file(array)), 0u);
    EXPECT_EQ(rig.references(), 0u);
    EXPECT_TRUE(rig.every_frame_is_somewhere_once());
}

// The server drops one write in fifty and answers ok.
TEST(UsersOfAServer, control_a_lost_write_is_found) {
    const UsersPlan plan = plan_of(512);
    u32 writes = 0;
    StoreServer server({16, 512, plan.files}, [&](const Request& request) {
        return Fate{0, false, request.operation == RequestOperation::write && ++writes % 50 == 0};
    });
    for (u32 array = 0; array < plan.files.size(); ++array) server.file(array) = users_file(array, plan.files[array]);
    CacheRig<SweepResistant, Native, FileStore<Native>> rig(quarter(512), server.store(), plan.users + 1);
    Users users(plan);
    users.run([&](u32 user) { return rig.cache(user); });
    EXPECT_EQ(rig.cache(plan.users).flush(soon()), Status::ok);
    server.stop();
    EXPECT_GT(users.wrong + users.lost(0, server.file(0)) + users.lost(1, server.file(1)), 0u);
}

// While users' own threads use the cache, its owner flushes and pins, and the files leave the system's cache, so that
// pages come and go by every source.
//
// The users are threads of the host that take pages of the cache's memory themselves, as device code does. So these
// tests run on the emulated device, whatever PENSTOCK_TEST_DEVICE names. cache_callers_test.cpp runs on any device.
class UsersOfACache : public UsersOfFiles {
  protected:
    void run(const UsersPlan& plan, Replacement policy, u64 first_parts = 1) {
        write(plan, first_parts);
        const auto device = make_device("host");
        FileCacheOptions options;
        options.page_bytes = plan.page_bytes;
        options.cache_bytes = u64{20} * plan.page_bytes;
        options.replacement = policy;
        options.threads = 2;
        options.slots = 8;
        options.wait_ns = 60'000'000'000;
        FileCache cache(*device, sets_, options);
        Users users(plan);
        std::atomic<bool> over{false};
        std::atomic<u32> failed{0};
        std::thread owner([&] {
            while (!over) {
                failed += cache.flush().status != Status::ok;
                const Status pinned = cache.pin(0, 1, 2).status;
                failed += pinned != Status::ok && pinned != Status::all_pinned;
                CacheWork work{};
                work.task = CacheTask::unpin;
                work.first = 1;
                work.count = 2;
                if (pinned == Status::ok) failed += cache.run(0, work).status != Status::ok;
                for (const OpenedFile* file : files_)
                    os::drop_cache(os::real_system(), file->handle.buffered_fd, file->handle.name);
                ::usleep(1000);
            }
        });
        users.run([&](u32 user) {
            StoredCache own = cache.ref(0)->cache;
            own.store().channel.hint = user;
            return own;
        });
        over = true;
        owner.join();
        EXPECT_EQ(cache.flush().status, Status::ok);
        EXPECT_EQ(failed, 0u);
        expect_sound(users);
        expect_stored(users);
    }
};

TEST_F(UsersOfACache, pages_of_4096_bytes) { run(plan_of(4096), Replacement::sweep_resistant); }
TEST_F(UsersOfACache, pages_of_512_bytes) { run(plan_of(512), Replacement::clock); }
TEST_F(UsersOfACache, pages_of_arrays_in_stripes_over_several_files) {
    run(plan_of(4096), Replacement::sweep_resistant, 2);
    EXPECT_EQ(files_.size(), 5u);
}
TEST_F(UsersOfACache, pages_of_64_kib) {
    UsersPlan plan = plan_of(65536);
    plan.turns = 500;
    run(plan, Replacement::fifo);
}

}  // namespace
}  // namespace penstock::ondevice
