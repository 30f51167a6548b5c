// See mailbox_memory.hpp.
#include "ondevice/mailbox_memory.hpp"

#include <unistd.h>

#include <string>

#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

[[noreturn]] void refuse_mailbox(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "make a mailbox", cause, advice);
}

u64 memory_of_the_host() {
    const auto pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
    return static_cast<u64>(pages) * static_cast<u64>(page);
}

}  // namespace

const MailboxSizes& checked(const MailboxSizes& sizes) {
    if (sizes.slots == 0 || sizes.slots > most_slots) {
        refuse_mailbox(std::to_string(sizes.slots) + " slots", "give 1 to " + std::to_string(most_slots));
    }
    if (sizes.slot_bytes == 0 || sizes.slot_bytes > mailbox_most_bytes) {
        refuse_mailbox("slots of " + std::to_string(sizes.slot_bytes) + " bytes",
                       "give 1 to " + std::to_string(mailbox_most_bytes));
    }
    const u64 bytes = u64{sizes.slots} * sizes.slot_bytes, there = memory_of_the_host();
    if (bytes > there) {
        throw Error(ErrorCode::out_of_memory, "make a mailbox",
                    std::to_string(sizes.slots) + " slots of " + std::to_string(sizes.slot_bytes) + " bytes take " +
                        std::to_string(bytes) + " of the host's memory, which has " + std::to_string(there),
                    "give fewer slots, or smaller pages");
    }
    return sizes;
}

Mailbox::Mailbox(DmaMemory& shared, DmaMemory& own, const MailboxSizes& sizes)
    : answers_(sizes.answers), seen_laps_(checked(sizes).slots) {
    descriptors_ = shared.allocate(u64{sizes.slots} * sizeof(MailboxDescriptor));
    completions_ = shared.allocate(u64{sizes.slots} * (answers_ ? sizeof(MailboxAnswer) : sizeof(u32)));
    data_ = shared.allocate(u64{sizes.slots} * sizes.slot_bytes);
    const u32 groups = (sizes.slots + 31) / 32;
    std::vector<u32> start(groups + 2 * sizes.slots + 1);
    Slots<Native>{start.data(), start.data() + groups, sizes.slots}.reset();
    words_ = own.allocate(start.size() * sizeof(u32));
    own.write(words_, start.data(), start.size() * sizeof(u32));
    auto* const words = reinterpret_cast<u32*>(words_.data);
    ref_.slots = {words, words + groups, sizes.slots};
    ref_.abandoned = words + groups + sizes.slots;
    ref_.marks = ref_.abandoned + 1;
    ref_.descriptors = reinterpret_cast<MailboxDescriptor*>(descriptors_.data);
    ref_.completions = reinterpret_cast<u32*>(completions_.data);
    ref_.data = data_.data;
    ref_.slot_bytes = sizes.slot_bytes;
}

MailboxRef<Native> Mailbox::ref(u32 hint) const {
    need_answers(false);
    MailboxRef<Native> ref = ref_;
    ref.hint = hint;
    return ref;
}

MailboxRef<Native, true> Mailbox::answering_ref() const {
    need_answers(true);
    auto* const answers = reinterpret_cast<MailboxAnswer*>(completions_.data);
    return {ref_.slots, ref_.descriptors, answers, ref_.data, ref_.slot_bytes, ref_.hint, ref_.abandoned, ref_.marks};
}

MailboxServer<Native, true> Mailbox::answering_server() {
    need_answers(true);
    const u32 slots = ref_.slots.slots;
    return {ref_.descriptors, reinterpret_cast<MailboxAnswer*>(completions_.data), seen_laps_.data(), 0, slots,
            slots - 1};
}

void Mailbox::need_answers(bool wanted) const {
    if (answers_ == wanted) return;
    refuse_mailbox(answers_ ? "its completions carry answers" : "its completions carry no answers",
                   answers_ ? "use its answering end" : "make it with answers");
}

MailboxServer<Native> Mailbox::server(u32 first, u32 last) {
    need_answers(false);
    if (first >= last || last > ref_.slots.slots) {
        refuse_mailbox("a server of slots " + std::to_string(first) + " to " + std::to_string(last) + " of " +
                           std::to_string(ref_.slots.slots),
                       "give a range that is not empty and ends at the last slot or before it");
    }
    return MailboxServer<Native>{ref_.descriptors, ref_.completions, seen_laps_.data(), first, last, last - 1};
}

}  // namespace penstock::ondevice
