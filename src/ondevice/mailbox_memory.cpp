// See mailbox_memory.hpp.
#include "ondevice/mailbox_memory.hpp"

#include <unistd.h>

#include <string>

#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

[[noreturn]] void refuse(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "make a mailbox", cause, advice);
}

u64 memory_of_the_host() {
    const auto pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
    return static_cast<u64>(pages) * static_cast<u64>(page);
}

}  // namespace

const MailboxSizes& checked(const MailboxSizes& sizes) {
    if (sizes.slots == 0 || sizes.slots > most_slots) {
        refuse(std::to_string(sizes.slots) + " slots", "give 1 to " + std::to_string(most_slots));
    }
    if (sizes.slot_bytes == 0 || sizes.slot_bytes > mailbox_most_bytes) {
        refuse("slots of " + std::to_string(sizes.slot_bytes) + " bytes",
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

Mailbox::Mailbox(DmaMemory& shared, DmaMemory& own, const MailboxSizes& sizes) : seen_laps_(checked(sizes).slots) {
    descriptors_ = shared.allocate(u64{sizes.slots} * sizeof(MailboxDescriptor));
    completions_ = shared.allocate(u64{sizes.slots} * sizeof(u32));
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
    MailboxRef<Native> ref = ref_;
    ref.hint = hint;
    return ref;
}

MailboxServer<Native> Mailbox::server(u32 first, u32 last) {
    if (first >= last || last > ref_.slots.slots) {
        refuse("a server of slots " + std::to_string(first) + " to " + std::to_string(last) + " of " +
                   std::to_string(ref_.slots.slots),
               "give a range that is not empty and ends at the last slot or before it");
    }
    return MailboxServer<Native>{ref_.descriptors, ref_.completions, seen_laps_.data(), first, last, last - 1};
}

}  // namespace penstock::ondevice
