// A pair of NVMe queues driven by device code: it writes submission entries, rings the doorbell and takes completions.
//
// A slot (slots.hpp) is a command id. It has a data area whose PRP list the owner of the memory wrote beforehand, so
// device code builds none. One thread at a time works on the queues: the only user of a ring, or, if several share it
// (`shared`), the thread that has the ring's turn. No thread waits for the turn. A thread that publishes a command
// leaves it in its slot, and the thread with the turn sends all that are there with one doorbell. If lanes of a warp
// spun for the turn, they would take the time of the lane that has it. Completions come in any order. The thread with
// the turn puts each status into its slot's word, where the warp that waits finds it.
//
// Both queues have the same depth, a power of two from 2 to 1024. One entry stays empty, as NVMe demands, so there are
// depth - 1 slots. So outstanding commands are fewer than either queue's entries even if completions get lost, and
// neither queue overflows.
#pragma once

#include "penstock/ondevice/nvme_entry.hpp"
#include "penstock/ondevice/slots.hpp"

namespace penstock::ondevice {

// The state of a ring, in memory of the GPU (or of the process): zero at first except `phase`, which begins as 1. Only
// the thread with the turn touches it, but for `turn`, `unsent` and `contended`.
struct NvmeRingState {
    u32 turn;    // 1: taken
    u32 unsent;  // commands that are published and not sent yet
    u32 tail;
    u32 submission_head;  // as the controller told last
    u32 completion_head;
    u32 phase;
    u32 last_error;     // dword 3 of the last completion with a status other than 0
    u64 submitted;
    u64 completed;
    u64 errors;
    u64 late;           // completions of tickets that had timed out
    u64 stray;          // completions of no command: the controller is at fault
    u64 contended;      // commands published while another thread had the turn
};

// The right to work on a ring that several threads share. Pairs with: the exchange that takes it acquires what the
// releasing store that gave it published.
template <class P>
struct RingTurn {
    u32* word;

    PENSTOCK_ONDEVICE bool try_take() const {
        u32 expected = 0;
        return P::template load<Scope::device, Order::relaxed>(word) == 0 &&
               P::template swap_if<Scope::device>(word, expected, 1u);
    }
    PENSTOCK_ONDEVICE void give() const { P::template store<Scope::device>(word, 0u); }
};

struct NvmeNamespace {
    u32 id;
    u32 block_shift;  // bytes of a block as a power of two
    u64 blocks;
};

// The data areas of the slots: `slot_bytes` each, a multiple of the page, one after another. The list of slot i, at
// lists_io + i * list_stride, holds the addresses of its pages from the second on.
struct NvmeData {
    u8* data;
    u64 data_io;  // the address by which the controller knows `data`
    u64 lists_io;
    u32 list_stride;
    u32 slot_bytes;
    u32 page_bytes;
    u32 most_bytes;  // that one command moves
};

template <class P>
struct NvmeRingRef {
    Slots<P> slots;  // depth - 1
    NvmeRingState* state;
    NvmeCommand* submission;
    NvmeCompletion* completion;
    u32* submission_doorbell;
    u32* completion_doorbell;
    NvmeNamespace space;
    NvmeData area;
    u32 entries;  // of each queue
    u32 shared;   // 0: calls never overlap, so there is no turn
    u32 hint;     // where this warp looks for a free slot first
    NvmeCommand* commands;  // one for each slot
    u32* unsent;            // a bit for each slot: its command waits to be sent
    u32* abandoned;  // how many slots wait for a late completion
    u32* marks;      // one for each slot: its owner's word for what the slot is used for; see late()

    PENSTOCK_ONDEVICE u32 depth() const { return slots.slots; }
    PENSTOCK_ONDEVICE void* slot_data(u32 ticket) const {
        return area.data + static_cast<u64>(slot_of(ticket)) * area.slot_bytes;
    }

    PENSTOCK_ONDEVICE Status claim(u32& ticket) const { return claim(ticket, hint); }
    PENSTOCK_ONDEVICE Status claim(u32& ticket, u32 from) const {
        Status status = slots.claim_one(from, ticket);
        if (status == Status::busy && serve()) status = slots.claim_one(from, ticket);
        return status;
    }

    PENSTOCK_ONDEVICE Status publish(u32 ticket, const Request& request) const {
        if (!slots.is(ticket, SlotState::held)) return Status::invalid;
        NvmeIo io = {};
        const Status status = plan(slot_of(ticket), request, io);
        if (status != Status::ok) return status;
        const u32 slot = slot_of(ticket);
        Watch<P>::writes(commands + slot, sizeof(NvmeCommand));
        commands[slot] = nvme_command(io);
        slots.mark(ticket, SlotState::sent);
        P::template set_bits<Scope::device, Order::release>(unsent + slot / 32, 1u << slot % 32);
        P::template add<Scope::device>(&state->unsent, 1u);  // pairs with the addition in `serve`
        if (!serve()) P::tick(&state->contended, u64{1});
        return Status::ok;
    }

    PENSTOCK_ONDEVICE Status submit(const Request& request, u32& ticket) const { return submit(request, ticket, hint); }
    PENSTOCK_ONDEVICE Status submit(const Request& request, u32& ticket, u32 from) const {
        Status status = claim(ticket, from);
        if (status != Status::ok) return status;
        status = publish(ticket, request);
        if (status != Status::ok) slots.release(ticket);
        return status;
    }

    PENSTOCK_ONDEVICE Status test(u32 ticket) const {
        const Status status = slots.test(ticket);
        return status == Status::pending && serve() ? slots.test(ticket) : status;
    }

    PENSTOCK_ONDEVICE Status wait(u32 ticket, u64 deadline_ns) const {
        const Status status = poll_until<P>(*this, ticket, deadline_ns);
        if (status != Status::pending) return status;
        P::template add<Scope::device>(abandoned, 1u);  // first, because the late completion counts down
        if (slots.abandon(ticket)) return Status::timed_out;
        P::template add<Scope::device>(abandoned, ~0u);
        return slots.test(ticket);
    }

    PENSTOCK_ONDEVICE void release(u32 ticket) const { slots.release(ticket); }

    PENSTOCK_ONDEVICE bool settled(u32 ticket) const {
        return slots.settled(ticket) || (serve() && slots.settled(ticket));
    }

    PENSTOCK_ONDEVICE void mark(u32 ticket, u32 mark) const {
        P::template store<Scope::device>(marks + slot_of(ticket), mark);
    }
    PENSTOCK_ONDEVICE bool late(u32 mark) const {
        if (P::template load<Scope::device>(abandoned) == 0) return false;
        serve();
        for (u32 slot = 0; slot < slots.slots; ++slot) {
            if (state_of(P::template load<Scope::device>(slots.words + slot)) != SlotState::abandoned) continue;
            if (P::template load<Scope::device>(marks + slot) == mark) return true;
        }
        return false;
    }

    // Sends all commands that wait and takes all completions, unless another thread has the turn, which then does so.
    // Whether this thread did. A thread that publishes meanwhile either finds the turn free, or this thread's last look
    // at the count finds its command: both are exchanges of one word, and the later one sees what came before the
    // earlier.
    PENSTOCK_ONDEVICE bool serve() const {
        constexpr u32 most = 4;  // times; then the next caller goes on, so that no thread works for others without end
        bool looked = false;
        for (u32 time = 0; time < most; ++time) {
            if (shared != 0 && !turn().try_take()) break;
            send();
            drain();
            looked = true;
            if (shared == 0) break;
            turn().give();
            if (P::template add<Scope::device>(&state->unsent, 0u) == 0) break;
        }
        return looked;
    }

  private:
    PENSTOCK_ONDEVICE RingTurn<P> turn() const { return RingTurn<P>{&state->turn}; }

    PENSTOCK_ONDEVICE Status plan(u32 slot, const Request& request, NvmeIo& io) const {
        io.id = static_cast<u16>(slot);
        io.namespace_id = space.id;
        if (request.file != 0) return Status::invalid;
        if (request.operation == RequestOperation::flush) {
            io.opcode = NvmeOpcode::flush;
            return Status::ok;
        }
        if (static_cast<u8>(request.operation) > static_cast<u8>(RequestOperation::flush)) return Status::invalid;
        io.opcode = request.operation == RequestOperation::read ? NvmeOpcode::read : NvmeOpcode::write;
        const u64 block_mask = (u64{1} << space.block_shift) - 1;
        if (request.bytes == 0 || request.bytes > area.most_bytes) return Status::invalid;
        if (((request.offset_bytes | request.bytes) & block_mask) != 0) return Status::invalid;
        io.first_block = request.offset_bytes >> space.block_shift;
        io.blocks = request.bytes >> space.block_shift;
        if (io.blocks > 65536) return Status::invalid;
        if (io.first_block > space.blocks || io.blocks > space.blocks - io.first_block) return Status::out_of_range;
        return place(slot, request, io.pages);
    }

    // Says where the bytes of a command lie. Memory of the caller's own has no list: it is at most two pages, one after
    // the other in the controller's addresses, from a page's start.
    PENSTOCK_ONDEVICE Status place(u32 slot, const Request& request, NvmePages& pages) const {
        const bool own = request.memory == 0;
        if (own && request.bytes > area.slot_bytes) return Status::invalid;
        if (!own && (request.bytes > 2 * area.page_bytes || request.memory % area.page_bytes != 0)) {
            return Status::invalid;
        }
        pages.prp1 = own ? area.data_io + static_cast<u64>(slot) * area.slot_bytes : request.memory;
        if (request.bytes <= area.page_bytes) {
            pages.prp2 = 0;
        } else if (request.bytes <= 2 * area.page_bytes) {
            pages.prp2 = pages.prp1 + area.page_bytes;
        } else {
            pages.prp2 = area.lists_io + static_cast<u64>(slot) * area.list_stride;
        }
        return Status::ok;
    }

    // Sends all commands that wait, with one doorbell. A command that finds no room waits on, which happens only if the
    // controller breaks the rules. The doorbell's release publishes the entries to the controller.
    PENSTOCK_ONDEVICE void send() const {
        u32 sent = 0;
        for (u32 group = 0; group * 32 < slots.slots; ++group) {
            u32 bits = P::template load<Scope::device, Order::relaxed>(unsent + group);
            if (bits == 0) continue;
            P::template clear_bits<Scope::device, Order::acquire>(unsent + group, bits);
            for (; bits != 0 && enter(commands[group * 32 + lowest(bits)]); bits &= bits - 1) ++sent;
            if (bits != 0) P::template set_bits<Scope::device, Order::release>(unsent + group, bits);
        }
        if (sent == 0) return;
        state->submitted += sent;
        P::template store<Scope::system>(submission_doorbell, state->tail);
        P::template add<Scope::device>(&state->unsent, 0u - sent);
    }

    PENSTOCK_ONDEVICE bool enter(const NvmeCommand& command) const {
        const u32 next = (state->tail + 1) & (entries - 1);
        if (next == state->submission_head) return false;
        NvmeCommand* const entry = submission + state->tail;
        Watch<P>::reads(&command, sizeof(NvmeCommand));
        Watch<P>::writes(entry, sizeof(NvmeCommand));
        *entry = command;
        state->tail = next;
        return true;
    }

    PENSTOCK_ONDEVICE void drain() const {
        u32 taken = 0;
        for (; taken < entries; ++taken) {
            const NvmeCompletion* entry = completion + state->completion_head;
            const u32 dword3 = P::template load<Scope::system>(&entry->dword[3]);
            if (nvme_phase(dword3) != state->phase) break;
            Watch<P>::reads(entry, 12);
            state->submission_head = entry->dword[2] & (entries - 1);
            state->completion_head = (state->completion_head + 1) & (entries - 1);
            if (state->completion_head == 0) state->phase ^= 1;
            accept(dword3);
        }
        if (taken != 0) P::template store<Scope::system>(completion_doorbell, state->completion_head);
    }

    PENSTOCK_ONDEVICE void accept(u32 dword3) const {
        const Status status = nvme_status(dword3);
        if (status != Status::ok) {
            state->errors += 1;
            state->last_error = dword3;
        }
        state->completed += 1;
        const u32 slot = nvme_id(dword3);
        const Finish finish = slot < slots.slots ? slots.finish(slot, status) : Finish::stray;
        if (finish == Finish::late) {
            state->late += 1;
            P::template add<Scope::device>(abandoned, ~0u);
        }
        if (finish == Finish::stray) state->stray += 1;
    }
};

}  // namespace penstock::ondevice
