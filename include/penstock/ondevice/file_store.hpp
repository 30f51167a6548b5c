// The store of a page cache over arrays. Pages come and go through a channel (request.hpp). If the GPU can address a
// mapping of the file, it copies them from there itself, without a host thread. The channel is a mailbox that host
// threads serve, for ordinary files, or a pair of NVMe queues (nvme.hpp), whose namespace is the one array.
//
// A request names an array by its number in the key. The host says which of its files has the page, so that the
// protocol knows nothing of stripes. This store counts by file only the pages that the GPU moves itself. The last page
// of an array is shorter in its file than in the cache; the bytes past the end are zero and never written. All lanes
// that call copy between page and slot. The host may still carry out a write-back whose answer did not come in time, so
// the store does not write the page again before that answer came.
#pragma once

#include "penstock/ondevice/lanes.hpp"
#include "penstock/ondevice/mailbox.hpp"
#include "penstock/ondevice/cache/frame.hpp"
#include "penstock/ondevice/store.hpp"
#include "penstock/ondevice/stripes.hpp"

namespace penstock::ondevice {

// What the GPU moved to and from a file through its mapping.
struct MovedByGpu {
    u64 pages;
    u64 rows;   // and parts of rows, which no page of the cache has
    u64 bytes;  // of both
};

// What the store knows of one array.
struct StoreArray {
    u64 bytes;
    u8* mapping;  // of the whole array in its own order, that the GPU can address; nullptr: none
    u32 writable;
    Stripes stripes = {};         // with a mapping: how the array lies in its files
    MovedByGpu* moved = nullptr;  // with a mapping: what the GPU moved of each of these files
};

template <class P, class Channel = MailboxRef<P>>
struct FileStore {
    static constexpr u32 kMapped = ~0u;  // the ticket of a page that lies in a mapping

    Channel channel;
    const StoreArray* arrays;
    u32 array_count;
    u32 page_bytes;  // at most what a slot of the channel holds

    PENSTOCK_ONDEVICE Status begin(Lanes group, u64 key, void*, u64, u32& ticket) const {
        Request request{};
        const Status wrong = place(key, RequestOperation::read, request);
        if (wrong != Status::ok) return wrong;
        if (arrays[request.file].mapping != nullptr) {
            ticket = kMapped;
            return Status::ok;
        }
        return P::lane() == lowest(group) ? channel.submit(request, ticket, P::caller()) : Status::ok;
    }

    PENSTOCK_ONDEVICE Status test(Lanes group, u32 ticket, u64 key, void* page) const {
        Request request{};
        place(key, RequestOperation::read, request);
        if (ticket == kMapped) {
            fill(group, page, arrays[request.file].mapping + request.offset_bytes, request.bytes);
            count_moved(group, request);
            return Status::ok;
        }
        const u32 leader = lowest(group);
        Status status = Status::pending;
        if (P::lane() == leader) status = channel.test(ticket);
        status = static_cast<Status>(P::from(group, static_cast<int>(status), leader));
        if (status == Status::pending) return status;
        P::sync(group);  // what the leader may see, all may
        if (status == Status::ok) fill(group, page, channel.slot_data(ticket), request.bytes);
        P::sync(group);
        if (P::lane() == leader) channel.release(ticket);
        return status;
    }

    // Callers may store to the page meanwhile; they make it dirty again afterwards.
    PENSTOCK_ONDEVICE Status prepare(Lanes group, u64 key, const void* page, u64, u32& ticket) const {
        Request request{};
        const Status wrong = place(key, RequestOperation::write, request);
        if (wrong != Status::ok) return wrong;
        if (!arrays[request.file].writable) return Status::read_only;
        if (arrays[request.file].mapping != nullptr) {
            put(group, arrays[request.file].mapping + request.offset_bytes, page, request.bytes);
            count_moved(group, request);
            ticket = kMapped;
            return Status::ok;
        }
        const u32 leader = lowest(group);
        Status status = Status::ok;
        if (P::lane() == leader)
            status = channel.late(mark_of(key)) ? Status::busy : channel.claim(ticket, P::caller());
        status = static_cast<Status>(P::from(group, static_cast<int>(status), leader));
        if (status != Status::ok) return status;
        ticket = P::from(group, ticket, leader);
        put(group, channel.slot_data(ticket), page, request.bytes);
        if (P::lane() == leader) channel.mark(ticket, mark_of(key));
        return Status::ok;
    }

    // The release that publishes the request also publishes what the lanes copied that the caller has synchronised
    // with.
    PENSTOCK_ONDEVICE Status send(u64 key, u32 ticket, u64 deadline) const {
        if (ticket == kMapped) return Status::ok;
        Request request{};
        place(key, RequestOperation::write, request);
        return sent(ticket, request, deadline);
    }

    // Syncs every array that can be written. Each of them may take as long as the first.
    PENSTOCK_ONDEVICE Status commit(Lanes group, u64 deadline) const {
        if (P::lane() != lowest(group)) return Status::ok;
        const u64 began = P::now_ns(), each = deadline > began ? deadline - began : 0;
        Status first = Status::ok;
        for (u32 array = 0; array < array_count; ++array) {
            if (!arrays[array].writable) continue;
            u32 ticket = 0;
            Status status = channel.claim(ticket, P::caller());
            if (status != Status::ok) return status;
            const Request request{0, 0, 0, static_cast<u16>(array), RequestOperation::flush, 0};
            channel.mark(ticket, 0);
            const u64 now = P::now_ns();
            status = sent(ticket, request, now + each < now ? ~u64{0} : now + each);
            if (first == Status::ok) first = status;
        }
        return first;
    }

    // Counts bytes that a caller copies from the mapping itself, past the cache: of one row, in one page.
    struct CopiedRows {
        u64 rows, bytes;
    };
    PENSTOCK_ONDEVICE void count_rows(u32 array, u64 offset_bytes, const CopiedRows& more) const {
        MovedByGpu& moved = arrays[array].moved[arrays[array].stripes.file_of(offset_bytes)];
        P::tick(&moved.rows, more.rows);
        P::tick(&moved.bytes, more.bytes);
    }
    PENSTOCK_ONDEVICE bool in_one_file(u32 array) const { return arrays[array].stripes.files == 1; }

  private:
    // The channel's mark of a page, never 0. Two pages may share a mark; then one waits for the other, which does no
    // harm.
    static PENSTOCK_ONDEVICE u32 mark_of(u64 key) { return static_cast<u32>(key * 0x9e3779b97f4a7c15ull >> 32) | 1u; }

    PENSTOCK_ONDEVICE Status place(u64 key, RequestOperation operation, Request& request) const {
        const u32 array = array_of(key);
        const u64 offset = (key & ((u64{1} << kPageBits) - 1)) * page_bytes;
        if (array >= array_count || offset >= arrays[array].bytes) return Status::out_of_range;
        const u64 rest = arrays[array].bytes - offset;
        request = {offset,    0, rest < page_bytes ? static_cast<u32>(rest) : page_bytes, static_cast<u16>(array),
                   operation, 0};
        return Status::ok;
    }

    PENSTOCK_ONDEVICE void count_moved(Lanes group, const Request& request) const {
        if (P::lane() != lowest(group)) return;
        const StoreArray& array = arrays[request.file];
        MovedByGpu& moved = array.moved[array.stripes.file_of(request.offset_bytes)];
        P::tick(&moved.pages, u64{1});
        P::tick(&moved.bytes, u64{request.bytes});
    }

    PENSTOCK_ONDEVICE void fill(Lanes group, void* page, const void* from, u32 bytes) const {
        get(group, page, from, bytes);
        if (bytes < page_bytes) zero_together<P>(group, static_cast<u8*>(page) + bytes, page_bytes - bytes);
    }
    // These copies are calls, so that the bytes under way have registers of their own. Inlined into a caller with few
    // registers, they would go through local memory, and the lanes would wait for each.
    static PENSTOCK_ONDEVICE_SLOW void get(Lanes group, void* page, const void* from, u32 bytes) {
        copy_together<P>(group, page, from, bytes);
    }
    static PENSTOCK_ONDEVICE_SLOW void put(Lanes group, void* to, const void* page, u32 bytes) {
        copy_unsettled<P>(group, to, page, bytes);
    }

    PENSTOCK_ONDEVICE Status sent(u32 ticket, const Request& request, u64 deadline) const {
        Status status = channel.publish(ticket, request);
        if (status == Status::ok) status = channel.wait(ticket, deadline);
        if (status != Status::timed_out) channel.release(ticket);  // else it is the channel's until the late answer
        return status;
    }
};

}  // namespace penstock::ondevice
