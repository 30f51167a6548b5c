// Calls from device code to the host: files by name, and functions that the host registered, through a mailbox.
//
//     __global__ void step(const penstock::ondevice::CallsRef* calls, unsigned trigger, long long log) {
//         calls->call(trigger, blockIdx.x);                       // the host's function, and its result
//         calls->print(log, "block ", blockIdx.x, " at ", 0.5f);  // a line of each lane, by one call of a warp
//     }
//
// A call claims a slot of the mailbox, puts a head and its argument there, and waits for the host's answer, which comes
// into the same slot. A descriptor (mailbox.hpp) carries {function, bytes of the argument, a number}; the completion
// carries {status, bytes of the answer, a result}. Arguments and answers of at most 8 bytes are in the head, and so is
// all that the GPU waits for: one store until the host has the call, and one load until the caller has the answer.
// Every wait ends:
// at the deadline with timed_out, and then the host may still do what was asked; or with busy, if no slot was free up
// to then, and nothing was sent. What the caller stored before a call, and what other lanes stored before they
// synchronised with the caller, the host sees.
//
// Lanes of a warp that call together claim their slots by one atomic. `append` and `print` put the records of lanes
// that call together into one slot, so that a warp makes one call. Lanes that have waited each for its own answer go on
// apart, and call apart, until they meet: __syncwarp() before `append` or `print` makes one call of 32.
//
// Requires: the host's function does not wait for the calling kernel: no cudaDeviceSynchronize, no work on its stream,
// and on the default stream no H5Dread of the HDF5 driver and no read() under penstock run into device memory.
#pragma once

#include "penstock/ondevice/lanes.hpp"
#include "penstock/ondevice/line.hpp"
#include "penstock/ondevice/mailbox.hpp"

namespace penstock::ondevice {

// The functions that there always are. Those that the host registers have numbers from first_registered on.
enum class HostWork : u32 { find = 0, open, read, write, seek, sync, close };
constexpr u32 first_registered = 16;
constexpr u32 most_functions = 1u << 16;

// How a file is opened: bits, at least one of the first two.
constexpr u64 file_read = 1;
constexpr u64 file_write = 2;
constexpr u64 file_create = 4;
constexpr u64 file_truncate = 8;
constexpr u64 file_append = 16;  // each write goes behind the end, in one piece
constexpr u64 file_new = 32;     // with file_create: the file must not be there

constexpr u64 at_position = ~u64{0};  // in place of an offset: where the file's last read, write or seek ended
enum class SeekFrom : u32 { start = 0, position = 1, end = 2 };

// The first bytes of a slot, which are stored and loaded in one piece (store_pair): the block is that of the lap beside
// it, and of the host where its bit is set. The caller's block is an argument, if it has a place there and no file is
// meant; else it is the file. The host's block is an answer, if it has a place there.
struct alignas(16) CallHead {
    u64 block;
    u64 rest;  // lap 63:42, of the host 41, how long an answer may be 23:0
    PENSTOCK_ONDEVICE u32 answer_most() const { return static_cast<u32>(rest & mailbox_most_bytes); }
};
static_assert(sizeof(CallHead) == 16, "crosses between host and GPU");
constexpr u32 most_in_head = sizeof(u64);
constexpr RequestOperation call_in_head = RequestOperation::flush;   // the head has the argument, and may come later
constexpr RequestOperation call_in_slot = RequestOperation::write;  // all is in the slot when the call is posted

PENSTOCK_ONDEVICE u64 head_rest(u32 lap, bool of_host, u32 answer_most) {
    return u64{lap} << 42 | (of_host ? u64{1} << 41 : 0) | answer_most;
}

// Loads a slot's head. False: it is not that of this lap and this side, or not yet.
template <class P>
PENSTOCK_ONDEVICE bool load_head(const void* slot, u32 lap, bool of_host, CallHead& head) {
    P::template load_pair<Order::relaxed>(static_cast<const u64*>(slot), head.block, head.rest);
    return head.rest >> 41 == head_rest(lap, of_host, 0) >> 41;
}

struct CallAsk {
    u32 function;
    u64 value = 0;  // handed to the function beside its argument
    const void* argument = nullptr;
    u32 argument_bytes = 0;
    void* answer = nullptr;
    u32 answer_most = 0;
};

// How a call ended. status: ok; failed: the function threw; invalid: there is no such function or file, or the argument
// does not fit in a slot; io_error or read_only: `value` is the negative errno; timed_out, busy: see above; cancelled:
// the host ended the calls.
struct CallEnd {
    Status status;
    u32 answer_bytes;
    long long value;
    PENSTOCK_ONDEVICE bool ok() const { return status == Status::ok; }
};

// The host's answer. Requires: its bytes are in the slot behind the head.
template <class P>
PENSTOCK_ONDEVICE void answer_call(MailboxServer<P, true>& server, void* slot_memory, u32 slot, const CallEnd& end) {
    if (end.answer_bytes != 0 && end.answer_bytes <= most_in_head) {
        u64 block = 0;
        const u8* const answer = static_cast<const u8*>(slot_memory) + sizeof(CallHead);
        for (u32 i = 0; i < end.answer_bytes; ++i) block |= u64{answer[i]} << i * 8;
        P::template store_pair<Order::relaxed>(static_cast<u64*>(slot_memory), block,
                                               head_rest(server.lap(slot), true, 0));
    }
    server.answer(slot, end.status, static_cast<u64>(end.value), end.answer_bytes);
}

template <class P>
struct Calls {
    MailboxRef<P, true> channel;
    u64 timeout_ns;

    // The longest argument or answer.
    PENSTOCK_ONDEVICE u32 room() const { return channel.slot_bytes - static_cast<u32>(sizeof(CallHead)); }
    PENSTOCK_ONDEVICE u64 deadline() const {
        const u64 now = P::now_ns();
        return timeout_ns < ~u64{0} - now ? now + timeout_ns : ~u64{0};
    }

    // Calls a function with a number; with a number and blocks of bytes; up to a deadline.
    PENSTOCK_ONDEVICE CallEnd call(u32 function, u64 value) const { return call(CallAsk{function, value}); }
    PENSTOCK_ONDEVICE CallEnd call(const CallAsk& ask) const { return call(ask, deadline()); }
    PENSTOCK_ONDEVICE CallEnd call(const CallAsk& ask, u64 deadline_ns) const {
        return exchange(ask, 0, deadline_ns);
    }

    // As call, for the functions that mean an open file.
    PENSTOCK_ONDEVICE CallEnd exchange(const CallAsk& ask, long long file, u64 deadline_ns) const {
        u32 ticket = 0;
        const Status status = send(ask, file, ticket, deadline_ns);
        if (status != Status::ok) return {status, 0, 0};
        return take(ticket, ask.answer, ask.answer_most, deadline_ns);
    }

    // Sends a call and does not wait. take() gives its end, leave() leaves it to itself; one of them must be called.
    PENSTOCK_ONDEVICE Status post(const CallAsk& ask, u32& ticket) const { return send(ask, 0, ticket, deadline()); }
    PENSTOCK_ONDEVICE CallEnd take(u32 ticket, void* answer, u32 answer_most, u64 deadline_ns) const {
        Reply reply{};
        const Status status = channel.wait(ticket, deadline_ns, AwaitedCall{this, &reply, answer_most != 0});
        if (status == Status::timed_out) return {status, 0, 0};
        CallEnd end{status, status == Status::ok ? reply.end.bytes() : 0, static_cast<long long>(reply.end.value)};
        if (end.answer_bytes > answer_most) end.answer_bytes = answer_most;
        if (end.answer_bytes != 0) take_answer(ticket, reply, answer, end.answer_bytes);
        if (status == Status::invalid) channel.release(ticket);  // of no call, perhaps
        else channel.release_held(ticket);
        return end;
    }
    PENSTOCK_ONDEVICE void leave(u32 ticket) const {
        if (channel.wait(ticket, 0) != Status::timed_out) channel.release(ticket);
    }
    // Sends a call and leaves it to itself. A function that throws is in the host's errors all the same.
    PENSTOCK_ONDEVICE Status tell(const CallAsk& ask) const {
        u32 ticket = 0;
        const Status status = post(ask, ticket);
        if (status == Status::ok) leave(ticket);
        return status;
    }

    // The number of the function of a name, for later calls.
    PENSTOCK_ONDEVICE Status find(const char* name, u32& function) const {
        const CallEnd end = call({static_cast<u32>(HostWork::find), 0, name, length_of(name)});
        if (end.ok()) function = static_cast<u32>(end.value);
        return end.status;
    }

    // Opens a file; the value is its number. A failed call's value is the negative errno, here and below.
    PENSTOCK_ONDEVICE CallEnd open(const char* name, u64 flags) const {
        return call({static_cast<u32>(HostWork::open), flags, name, length_of(name)});
    }
    PENSTOCK_ONDEVICE CallEnd close(long long file) const { return on_file(HostWork::close, file); }
    // Makes durable what was written.
    PENSTOCK_ONDEVICE CallEnd sync(long long file) const { return on_file(HostWork::sync, file); }
    // The value is the position that the file is at then.
    PENSTOCK_ONDEVICE CallEnd seek(long long file, long long by, SeekFrom from) const {
        const CallAsk ask{static_cast<u32>(HostWork::seek), static_cast<u64>(by), &from, sizeof from};
        return exchange(ask, file, deadline());
    }

    // Reads from an offset of the file; what is longer than a slot goes in several calls. The value is how many bytes
    // there were, fewer only where the file ends.
    PENSTOCK_ONDEVICE CallEnd read(long long file, u64 offset_bytes, void* to, u64 bytes) const {
        CallEnd end{Status::ok, 0, 0};
        for (u64 done = 0; done < bytes;) {
            const u32 piece = piece_of(bytes - done);
            CallAsk ask{static_cast<u32>(HostWork::read), place(offset_bytes, done)};
            ask.answer = static_cast<u8*>(to) + done;
            ask.answer_most = piece;
            const CallEnd part = exchange(ask, file, deadline());
            if (!part.ok()) return part;
            done += part.answer_bytes;
            end.value = static_cast<long long>(done);
            if (part.answer_bytes < piece) break;
        }
        return end;
    }
    // Writes all bytes, in several calls where they are longer than a slot. After a failure some may be written.
    PENSTOCK_ONDEVICE CallEnd write(long long file, u64 offset_bytes, const void* from, u64 bytes) const {
        CallEnd end{Status::ok, 0, 0};
        for (u64 done = 0; done < bytes; done = static_cast<u64>(end.value)) {
            const u32 piece = piece_of(bytes - done);
            const CallAsk ask{static_cast<u32>(HostWork::write), place(offset_bytes, done),
                              static_cast<const u8*>(from) + done, piece};
            const CallEnd part = exchange(ask, file, deadline());
            if (!part.ok()) return part;
            end.value = static_cast<long long>(done + piece);
        }
        return end;
    }

    // Appends a record to a file that was opened with file_append: in one piece, which only a disk that fills up, or an
    // error of the device, cuts. Lanes that call together for one file send their records in as few calls as slots
    // hold. The records of one call are in the order of lanes, and share its status: after a failure some may be
    // written. The value is the bytes of the caller's record.
    PENSTOCK_ONDEVICE_SLOW CallEnd append(long long file, const void* record, u32 bytes) const {
        if (bytes > room()) return {Status::invalid, 0, 0};
        for (;;) {
            const Lanes group = P::same(P::active(), static_cast<u64>(file));
            u32 place = 0;
            for (Lanes left = group; left != 0; left &= left - 1) {
                const u32 lane = lowest(left), theirs = P::from(group, bytes, lane);
                if (lane < P::lane()) place += theirs;
            }
            const bool fits = place + bytes <= room();
            const Lanes sent = P::ballot(group, fits);
            if (fits) return append_together(sent, file, {record, bytes, place});
        }
    }

    // Appends a line of texts and numbers (line.hpp), at most 255 characters and the end of the line.
    template <class... Parts>
    PENSTOCK_ONDEVICE CallEnd print(long long file, const Parts&... parts) const {
        TextLine<most_line> line;
        (line.add(parts), ...);
        line.end();
        return append(file, line.text(), line.length());
    }

  private:
    static constexpr u32 most_line = 255;
    struct Record {
        const void* bytes;
        u32 length;
        u32 place;  // in the slot, behind the head
    };

    struct Reply {
        MailboxAnswer end;
        CallHead head;
        bool has_head;
    };
    // Looks whether the answer is there. Both loads are under way at once: each crosses the link to the host.
    struct AwaitedCall {
        const Calls* calls;
        Reply* reply;
        bool looks_at_head;
        PENSTOCK_ONDEVICE Status test(u32 ticket) const {
            if (looks_at_head) reply->has_head = calls->load_answer(ticket, reply->head);
            return calls->channel.test(ticket, reply->end);
        }
    };

    PENSTOCK_ONDEVICE bool load_answer(u32 ticket, CallHead& head) const {
        return load_head<P>(channel.slot_data(ticket), lap_of(ticket), true, head);
    }
    PENSTOCK_ONDEVICE void take_answer(u32 ticket, Reply& reply, void* answer, u32 bytes) const {
        if (reply.end.bytes() > most_in_head) {
            const u8* const data = static_cast<const u8*>(channel.slot_data(ticket)) + sizeof(CallHead);
            Watch<P>::reads(data, bytes);
            copy_together<P>(Lanes{1} << P::lane(), answer, data, bytes);
            return;
        }
        if (!reply.has_head) load_answer(ticket, reply.head);  // the host stored it before the completion
        for (u32 i = 0; i < bytes; ++i) static_cast<u8*>(answer)[i] = static_cast<u8>(reply.head.block >> i * 8);
    }

    static PENSTOCK_ONDEVICE u32 length_of(const char* text) {
        u32 length = 0;
        while (text[length] != '\0') ++length;
        return length;
    }
    static PENSTOCK_ONDEVICE u64 place(u64 offset_bytes, u64 done) {
        return offset_bytes == at_position ? at_position : offset_bytes + done;
    }
    PENSTOCK_ONDEVICE u32 piece_of(u64 bytes) const { return bytes < room() ? static_cast<u32>(bytes) : room(); }
    PENSTOCK_ONDEVICE CallEnd on_file(HostWork work, long long file) const {
        return exchange(CallAsk{static_cast<u32>(work)}, file, deadline());
    }

    PENSTOCK_ONDEVICE Status send(const CallAsk& ask, long long file, u32& ticket, u64 deadline_ns) const {
        if (ask.argument_bytes > room() || ask.function >= most_functions) return Status::invalid;
        const Status status = claim(ticket, deadline_ns);
        if (status != Status::ok) return status;
        if (file == 0 && ask.argument_bytes <= most_in_head) {
            post_head(ticket, ask);
            return Status::ok;
        }
        u8* const data = static_cast<u8*>(channel.slot_data(ticket)) + sizeof(CallHead);
        if (ask.argument_bytes != 0) {
            Watch<P>::writes(data, ask.argument_bytes);
            copy_together<P>(Lanes{1} << P::lane(), data, ask.argument, ask.argument_bytes);
        }
        post_slot(ticket, ask, file);
        return Status::ok;
    }

    // Posts a call whose argument is in its head. The head goes after the descriptor, whose release would else wait
    // until the head is in the host's memory.
    PENSTOCK_ONDEVICE void post_head(u32 ticket, const CallAsk& ask) const {
        u64 block = 0;
        for (u32 i = 0; i < ask.argument_bytes; ++i) block |= u64{static_cast<const u8*>(ask.argument)[i]} << i * 8;
        post_as(call_in_head, ticket, ask);
        store_head(ticket, block, ask.answer_most);
    }
    // Posts a slot whose argument is in place.
    PENSTOCK_ONDEVICE void post_slot(u32 ticket, const CallAsk& ask, long long file) const {
        store_head(ticket, static_cast<u64>(file), ask.answer_most);
        post_as(call_in_slot, ticket, ask);
    }
    PENSTOCK_ONDEVICE void store_head(u32 ticket, u64 block, u32 answer_most) const {
        const u64 rest = head_rest(lap_of(ticket), false, answer_most < room() ? answer_most : room());
        P::template store_pair<Order::relaxed>(static_cast<u64*>(channel.slot_data(ticket)), block, rest);
    }
    // No operation of a call is a read, whose descriptor would not release what the caller stored.
    PENSTOCK_ONDEVICE void post_as(RequestOperation operation, u32 ticket, const CallAsk& ask) const {
        channel.post(ticket, {ask.value, 0, ask.argument_bytes, static_cast<u16>(ask.function), operation, 0});
    }

    // Claims a slot for each lane that calls; the lanes that come together claim theirs by one atomic.
    PENSTOCK_ONDEVICE_SLOW Status claim(u32& ticket, u64 deadline_ns) const {
        for (;;) {
            const Lanes group = P::active();
            const u32 leader = lowest(group);
            ClaimedSlots claimed{0, 0};
            if (P::lane() == leader) claimed = claim_slots(count(group));
            claimed.first = P::from(group, claimed.first, leader);
            claimed.bits = P::from(group, claimed.bits, leader);
            P::sync(group);  // what the leader acquired with the slots is acquired for all: they store to them
            for (u32 before = rank<P>(group); before != 0; --before) claimed.bits &= claimed.bits - 1;
            if (claimed.bits != 0) {
                ticket = channel.open(claimed.first + lowest(claimed.bits));
                return Status::ok;
            }
            if (P::now_ns() >= deadline_ns) return Status::busy;
            P::pause(256);
        }
    }
    PENSTOCK_ONDEVICE ClaimedSlots claim_slots(u32 wanted) const {
        const u32 from = channel.beside_neighbours(P::caller());
        const ClaimedSlots claimed = channel.slots.claim(wanted, from);
        if (claimed.bits != 0 || channel.reclaim() == 0) return claimed;
        return channel.slots.claim(wanted, from);
    }

    // Each lane of `group` puts its record into the slot that the first of them claims; that one makes the call.
    PENSTOCK_ONDEVICE_SLOW CallEnd append_together(Lanes group, long long file, const Record& record) const {
        const u32 leader = lowest(group), last = highest(group);
        const u64 until = deadline();
        u32 ticket = 0;
        CallEnd end{Status::ok, 0, 0};
        if (P::lane() == leader) end.status = claim_alone(ticket, until);
        end.status = agreed<P>(group, end.status);
        if (end.status != Status::ok) return end;
        ticket = P::from(group, ticket, leader);
        P::sync(group);  // as in `claim`
        const u32 bytes = P::from(group, record.place + record.length, last);
        u8* const data = static_cast<u8*>(channel.slot_data(ticket)) + sizeof(CallHead);
        if (record.length != 0) {
            Watch<P>::writes(data + record.place, record.length);
            copy_together<P>(Lanes{1} << P::lane(), data + record.place, record.bytes, record.length);
        }
        P::sync(group);
        if (P::lane() == leader) {
            post_slot(ticket, CallAsk{static_cast<u32>(HostWork::write), at_position, nullptr, bytes}, file);
            end = take(ticket, nullptr, 0, until);
        }
        end.status = agreed<P>(group, end.status);
        end.value = P::from(group, end.value, leader);
        if (end.ok()) end.value = record.length;
        return end;
    }
    PENSTOCK_ONDEVICE Status claim_alone(u32& ticket, u64 deadline_ns) const {
        for (;;) {
            const Status status = channel.claim(ticket, P::caller());
            if (status != Status::busy || P::now_ns() >= deadline_ns) return status;
            P::pause(256);
        }
    }
    static PENSTOCK_ONDEVICE u32 highest(Lanes lanes) {
#if defined(__CUDA_ARCH__)
        return 31 - static_cast<u32>(__clz(static_cast<int>(lanes)));
#else
        return 31 - static_cast<u32>(__builtin_clz(lanes));
#endif
    }
};

// What a kernel is given, in memory of the device.
struct CallsRef : Calls<Native> {};

}  // namespace penstock::ondevice
