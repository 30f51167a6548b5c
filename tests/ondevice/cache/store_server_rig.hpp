// The far end of a mailbox for tests of the file store: bytes in memory, and requests that fail, come late, out of
// order, or not before the test lets them go. A request's bytes move when it ends, as those of a slow disk do.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "ondevice/channel/memory_rig.hpp"
#include "ondevice/mailbox_memory.hpp"
#include "penstock/ondevice/file_store.hpp"

namespace penstock::ondevice {

struct Fate {
    static constexpr u64 held = std::numeric_limits<u64>::max();
    u64 delay_ns = 0;  // held: until let_go
    bool fails = false;
    bool dropped = false;  // for controls: the server answers ok and does nothing
};

class StoreServer {
  public:
    struct Sizes {
        u32 slots;
        u32 page_bytes;
        std::vector<u64> files;  // bytes of each
    };

    explicit StoreServer(const Sizes& sizes, std::function<Fate(const Request&)> fate = {})
        : fate_(std::move(fate)),
          page_bytes_(sizes.page_bytes),
          mailbox_(memory_, memory_, {sizes.slots, page_bytes_}) {
        for (const u64 bytes : sizes.files) {
            files_.emplace_back(bytes);
            table_.push_back({bytes, nullptr, 1});
        }
        thread_ = std::thread([this] { serve(); });
    }
    ~StoreServer() { stop(); }
    StoreServer(const StoreServer&) = delete;
    StoreServer& operator=(const StoreServer&) = delete;

    FileStore<Native> store(u32 hint = 0) const {
        return {mailbox_.ref(hint), table_.data(), static_cast<u32>(table_.size()), page_bytes_};
    }
    // Requires: no request has come yet, or `stop` has returned.
    std::vector<u8>& file(u32 number) { return files_[number]; }
    std::atomic<u32> taken{0}, waiting{0}, ended{0};

    void let_go() { free_ = true; }
    void stop() {
        over_ = true;
        if (thread_.joinable()) thread_.join();
    }

  private:
    struct Work {
        u32 slot;
        Request request;
        u64 due_ns;
        bool fails, dropped;
    };

    void serve() {
        MailboxServer<Native> server = mailbox_.server(0, mailbox_.ref().depth());
        std::vector<Work> works;
        while (!over_ || !works.empty()) {
            Work work{};
            const bool came = !over_ && server.next(work.slot, work.request);
            if (came) {
                const Fate fate = fate_ ? fate_(work.request) : Fate{};
                work.fails = fate.fails;
                work.dropped = fate.dropped;
                work.due_ns = fate.delay_ns == Fate::held ? Fate::held : Native::now_ns() + fate.delay_ns;
                works.push_back(work);
                ++taken;
            }
            const u64 now = free_ || over_ ? Fate::held : Native::now_ns();
            const auto due = [&](const Work& one) { return one.due_ns <= now; };
            for (auto at = works.begin(); (at = std::find_if(at, works.end(), due)) != works.end();) {
                end(server, *at);
                at = works.erase(at);
            }
            waiting = static_cast<u32>(works.size());
            if (!came) Native::pause(0);
        }
    }

    void end(MailboxServer<Native>& server, const Work& work) {
        const Request& request = work.request;
        u8* const slot = mailbox_.slot_data(work.slot);
        if (!work.fails && !work.dropped && request.operation != RequestOperation::flush) {
            u8* const at = files_[request.file].data() + request.offset_bytes;
            if (request.operation == RequestOperation::read) std::memcpy(slot, at, request.bytes);
            else std::memcpy(at, slot, request.bytes);
        }
        server.complete(work.slot, work.fails ? Status::io_error : Status::ok);
        ++ended;
    }

    RigMemory memory_;
    std::function<Fate(const Request&)> fate_;
    u32 page_bytes_;
    Mailbox mailbox_;
    std::vector<std::vector<u8>> files_;
    std::vector<StoreArray> table_;
    std::atomic<bool> free_{false}, over_{false};
    std::thread thread_;
};

}  // namespace penstock::ondevice
