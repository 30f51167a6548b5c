// See nvme_controller.hpp.
#include "support/nvme/nvme_controller.hpp"

#include <algorithm>
#include <cstring>

#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

[[noreturn]] void give_up(ErrorCode code, const std::string& operation, const std::string& cause, u32 status = 0) {
    ErrorInfo info;
    info.code = code;
    info.system_code = static_cast<int>(status);
    info.operation = operation;
    info.file = "NVMe controller";
    info.cause = cause;
    throw Error(info);
}

std::string text_of(const u8* at, std::size_t bytes) {
    std::string text(reinterpret_cast<const char*>(at), bytes);
    text.erase(std::find(text.begin(), text.end(), '\0'), text.end());
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

template <class T>
T get(const u8* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

NvmeCommand admin(u32 opcode, u64 prp1 = 0, u32 dword10 = 0, u32 dword11 = 0) {
    NvmeCommand command = {};
    command.dword[0] = opcode;
    command.dword[6] = static_cast<u32>(prp1);
    command.dword[7] = static_cast<u32>(prp1 >> 32);
    command.dword[10] = dword10;
    command.dword[11] = dword11;
    return command;
}

}  // namespace

NvmeController::NvmeController(NvmeRegisters registers, DmaMemory& memory, const NvmeControllerOptions& options)
    : registers_(registers), options_(options) {
    const u64 capabilities = registers_.read64(nvme_register::capabilities);
    if (capabilities == ~u64{0}) give_up(ErrorCode::device_error, "start", "its registers read as all ones");
    if (options_.ready_ns == 0) options_.ready_ns = ((capabilities >> 24 & 0xff) + 1) * 500'000'000;
    facts_.page_bytes = 4096u << (capabilities >> 48 & 15);
    facts_.most_entries = static_cast<u32>(capabilities & 0xffff) + 1;
    if (facts_.page_bytes != 4096) {
        give_up(ErrorCode::unsupported, "start", "it has no pages of 4096 bytes; the least is " +
                                                     std::to_string(facts_.page_bytes));
    }
    submission_ = memory.allocate(admin_entries * sizeof(NvmeCommand));
    completion_ = memory.allocate(admin_entries * sizeof(NvmeCompletion));
    page_ = memory.allocate(facts_.page_bytes);
    disable();
    enable();
    try {
        identify();
        ask_for_queues(options_.queues);
    } catch (...) {
        registers_.write32(nvme_register::configuration, 0);
        throw;
    }
}

NvmeController::~NvmeController() {
    try {
        disable();
    } catch (const Error&) {  // it does not answer, and nothing else can be done
    }
}

void NvmeController::wait_status(u32 mask, u32 wanted, const char* what) {
    const u64 deadline_ns = Native::now_ns() + options_.ready_ns;
    for (;;) {
        const u32 status = registers_.read32(nvme_register::status);
        if (status == ~0u) give_up(ErrorCode::device_error, what, "its registers read as all ones: it is gone");
        if ((status & mask) == wanted) return;
        if ((status & nvme_register::fatal) != 0 && wanted != 0) {
            give_up(ErrorCode::device_error, what, "it reports a fatal status", status);
        }
        if (Native::now_ns() >= deadline_ns) {
            give_up(ErrorCode::timed_out, what, "no change of its status within the time it may need", status);
        }
        Native::pause(1000);
    }
}

void NvmeController::disable() {
    registers_.write32(nvme_register::configuration, 0);
    wait_status(nvme_register::ready, 0, "reset");
}

void NvmeController::enable() {
    constexpr u32 sizes = (admin_entries - 1) << 16 | (admin_entries - 1);
    registers_.write32(nvme_register::admin_sizes, sizes);
    registers_.write64(nvme_register::admin_submission, submission_.io);
    registers_.write64(nvme_register::admin_completion, completion_.io);
    const bool all_sets = (registers_.read64(nvme_register::capabilities) >> 43 & 1) != 0;
    const u32 entry_sizes = 6u << 16 | 4u << 20;
    registers_.write32(nvme_register::configuration, entry_sizes | (all_sets ? 6u << 4 : 0) | 1);
    wait_status(nvme_register::ready, nvme_register::ready, "enable");
}

u32 NvmeController::run(NvmeCommand command, const char* what) {
    const u32 id = next_id_++;
    command.dword[0] |= id << 16;
    reinterpret_cast<NvmeCommand*>(submission_.data)[tail_] = command;
    tail_ = (tail_ + 1) % admin_entries;
    Native::store<Scope::system>(registers_.submission_doorbell(0), tail_);
    const u64 deadline_ns = Native::now_ns() + options_.command_ns;
    for (;;) {
        const auto& entry = reinterpret_cast<const NvmeCompletion*>(completion_.data)[head_];
        const u32 dword3 = Native::load<Scope::system>(&entry.dword[3]);
        if (nvme_phase(dword3) != phase_) {
            if (Native::now_ns() >= deadline_ns) give_up(ErrorCode::timed_out, what, "no completion came");
            Native::pause(1000);
            continue;
        }
        const u32 result = entry.dword[0];
        head_ = (head_ + 1) % admin_entries;
        if (head_ == 0) phase_ ^= 1;
        Native::store<Scope::system>(registers_.completion_doorbell(0), head_);
        if (nvme_id(dword3) != id) continue;  // of an earlier command that was given up
        if (nvme_status_code(dword3) == 0 && nvme_status_type(dword3) == 0) return result;
        give_up(ErrorCode::device_error, what,
                "status code " + std::to_string(nvme_status_code(dword3)) + " of type " +
                    std::to_string(nvme_status_type(dword3)),
                dword3 >> 17 & 0x7ff);
    }
}

void NvmeController::identify() {
    run(admin(0x06, page_.io, 1), "identify controller");
    facts_.serial = text_of(page_.data + 4, 20);
    facts_.model = text_of(page_.data + 24, 40);
    facts_.firmware = text_of(page_.data + 64, 8);
    facts_.namespaces = get<u32>(page_.data + 516);
    const u32 shift = page_.data[77];
    facts_.most_bytes = shift == 0 || shift > 32 ? 0 : u64{facts_.page_bytes} << shift;
}

void NvmeController::ask_for_queues(u32 queues) {
    const u32 wanted = queues - 1;
    const u32 granted = run(admin(0x09, 0, 0x07, wanted << 16 | wanted), "set the number of queues");
    facts_.queues = std::min({queues, (granted & 0xffff) + 1, (granted >> 16) + 1});
}

NvmeNamespace NvmeController::open_namespace(u32 id) {
    NvmeCommand command = admin(0x06, page_.io, 0);
    command.dword[1] = id;
    run(command, "identify namespace");
    NvmeNamespace space{id, 0, get<u64>(page_.data)};
    const u32 format = get<u32>(page_.data + 128 + 4 * (page_.data[26] & 15));
    space.block_shift = format >> 16 & 0xff;
    if (space.blocks == 0) give_up(ErrorCode::not_found, "identify namespace", "it is not active");
    if (space.block_shift < 9 || space.block_shift > 16) {
        give_up(ErrorCode::unsupported, "identify namespace", "blocks of 2^" + std::to_string(space.block_shift));
    }
    if ((format & 0xffff) != 0) give_up(ErrorCode::unsupported, "identify namespace", "blocks with metadata");
    return space;
}

void NvmeController::create_queues(NvmeRing& ring, u32 id, const NvmeNamespace& space) {
    if (id == 0 || id > facts_.queues || ring.depth() > facts_.most_entries) {
        give_up(ErrorCode::invalid_argument, "create queues",
                "pair " + std::to_string(id) + " of " + std::to_string(facts_.queues) + " with " +
                    std::to_string(ring.depth()) + " of " + std::to_string(facts_.most_entries) + " entries");
    }
    const u32 size = (ring.depth() - 1) << 16 | id;
    const u32 contiguous = 1;
    run(admin(0x05, ring.completion_io(), size, contiguous), "create completion queue");
    try {
        run(admin(0x01, ring.submission_io(), size, id << 16 | contiguous), "create submission queue");
    } catch (...) {
        run(admin(0x04, 0, id), "delete completion queue");
        throw;
    }
    ring.attach(registers_.submission_doorbell(id), registers_.completion_doorbell(id), space);
}

void NvmeController::delete_queues(u32 id) {
    run(admin(0x00, 0, id), "delete submission queue");
    run(admin(0x04, 0, id), "delete completion queue");
}

void NvmeController::shut_down() {
    const u32 configuration = registers_.read32(nvme_register::configuration);
    registers_.write32(nvme_register::configuration, (configuration & ~(3u << 14)) | 1u << 14);
    wait_status(nvme_register::shutdown_mask, nvme_register::shutdown_done, "shut down");
}

}  // namespace penstock::ondevice
