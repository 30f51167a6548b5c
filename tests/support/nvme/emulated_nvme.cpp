// See emulated_nvme.hpp.
#include "support/nvme/emulated_nvme.hpp"

#include <chrono>
#include <cstring>
#include <utility>

namespace penstock::ondevice {
namespace {

constexpr u32 identify_bytes = 4096;
constexpr u32 invalid_opcode = 0x001, invalid_field = 0x002, invalid_namespace = 0x00b;
constexpr u32 no_such_completions = 0x100, invalid_queue = 0x101, invalid_size = 0x102, invalid_deletion = 0x10c;

void put_text(u8* at, std::size_t bytes, const char* text) {
    std::memset(at, ' ', bytes);
    std::memcpy(at, text, std::strlen(text));
}

DmaBlock window_of(const EmulatedNvmeOptions& options) {
    const u64 bytes = nvme_register::doorbells + (options.most_queues + 1) * 2 * (4u << options.doorbell_stride);
    if (options.window != nullptr) return options.window->allocate(bytes);
    auto memory = std::make_shared<std::vector<u64>>((bytes + 7) / 8);
    auto* const data = reinterpret_cast<u8*>(memory->data());
    return {data, reinterpret_cast<u64>(data), bytes, std::move(memory)};
}

template <class T>
void put(u8* at, T value) {
    std::memcpy(at, &value, sizeof value);
}

}  // namespace

EmulatedNvme::EmulatedNvme(BlockStore& blocks, Translate translate, const EmulatedNvmeOptions& options)
    : options_(options),
      space_{blocks, std::move(translate), options.block_shift, 4096,
             options.transfer_shift == 0 ? 0 : u64{4096} << options.transfer_shift},
      window_(window_of(options)) {
    const u64 half_seconds = 4;
    const u64 command_sets = 1;
    registers().write64(nvme_register::capabilities,
                        u64{options.most_entries - 1} | u64{1} << 16 | half_seconds << 24 |
                            u64{options.doorbell_stride} << 32 | command_sets << 37);
    registers().write32(nvme_register::version, 0x00010400);
    thread_ = std::thread([this] { serve(); });
}

EmulatedNvme::~EmulatedNvme() {
    stop_ = true;
    thread_.join();
    stop_queues();
}

void EmulatedNvme::serve() {
    while (!stop_) {
        if (registers().read32(nvme_register::configuration) != configuration_) configure();
        if (!admin_completions_ || !take_admin()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

void EmulatedNvme::stop_queues() {
    queues_.clear();
    completions_.clear();
    admin_completions_.reset();
}

void EmulatedNvme::configure() {
    const NvmeRegisters registers = this->registers();
    const u32 wanted = registers.read32(nvme_register::configuration);
    const u32 before = std::exchange(configuration_, wanted);
    if ((wanted & 1) == 0) {
        stop_queues();
        for (u32 at = nvme_register::doorbells; at < window_.bytes; at += 4) registers.write32(at, 0);
        registers.write32(nvme_register::status, 0);
        return;
    }
    if ((wanted >> 14 & 3) != 0) {
        queues_.clear();
        registers.write32(nvme_register::status, nvme_register::ready | nvme_register::shutdown_done);
        return;
    }
    if ((before & 1) != 0 || options_.never_ready) return;
    const u32 sizes = registers.read32(nvme_register::admin_sizes);
    const u32 completions = (sizes >> 16 & 0xfff) + 1;
    admin_size_ = (sizes & 0xfff) + 1;
    admin_head_ = 0;
    u8* const submission = space_.translate(registers.read64(nvme_register::admin_submission), u64{admin_size_} * 64);
    u8* const completion = space_.translate(registers.read64(nvme_register::admin_completion), u64{completions} * 16);
    const bool entries_fit = (wanted >> 16 & 0xff) == 0x46 && (wanted >> 7 & 15) == 0;
    if (submission == nullptr || completion == nullptr || !entries_fit) {
        registers.write32(nvme_register::status, nvme_register::fatal);
        return;
    }
    admin_entries_ = reinterpret_cast<const NvmeCommand*>(submission);
    admin_completions_ = std::make_unique<EmulatedCompletions>(reinterpret_cast<NvmeCompletion*>(completion),
                                                               completions, registers.completion_doorbell(0));
    registers.write32(nvme_register::status, nvme_register::ready);
}

bool EmulatedNvme::take_admin() {
    const u32 tail = Native::load<Scope::system>(registers().submission_doorbell(0));
    if (tail == admin_head_ || tail >= admin_size_) return false;
    const NvmeCommand command = admin_entries_[admin_head_];
    admin_head_ = (admin_head_ + 1) % admin_size_;
    const Answer answer = run_admin(command);
    const u32 dword3 = command.dword[0] >> 16 | answer.status << 17;
    while (!stop_ && !admin_completions_->post(answer.result, admin_head_, dword3)) Native::pause(0);
    return true;
}

EmulatedNvme::Answer EmulatedNvme::run_admin(const NvmeCommand& command) {
    switch (command.dword[0] & 0xff) {
        case 0x00:
        case 0x04: return remove_queue(command);
        case 0x01: return create_submission(command);
        case 0x05: return create_completions(command);
        case 0x06: return identify(command);
        case 0x09:
        case 0x0a: return queue_count(command);
        default: return {invalid_opcode, 0};
    }
}

EmulatedNvme::Answer EmulatedNvme::identify(const NvmeCommand& command) {
    const u64 prp1 = u64{command.dword[7]} << 32 | command.dword[6];
    u8* const data = prp1 % 4096 == 0 ? space_.translate(prp1, identify_bytes) : nullptr;
    if (data == nullptr) return {invalid_field, 0};
    std::array<u8, identify_bytes> page{};
    const u32 what = command.dword[10] & 0xff;
    if (what == 1) {
        put_text(&page[4], 20, "EMULATED");
        put_text(&page[24], 40, "Penstock emulated controller");
        put_text(&page[64], 8, "1");
        page[77] = static_cast<u8>(options_.transfer_shift);
        page[512] = 0x66;
        page[513] = 0x44;
        put<u32>(&page[516], 1);
    } else if (what == 0) {
        if (command.dword[1] != 1) return {invalid_namespace, 0};
        const u64 blocks = space_.blocks.bytes() >> space_.block_shift;
        for (const int at : {0, 8, 16}) put<u64>(&page[static_cast<std::size_t>(at)], blocks);
        put<u32>(&page[128], space_.block_shift << 16);
    } else if (what == 2) {
        if (command.dword[1] < 1) put<u32>(&page[0], 1);
    } else {
        return {invalid_field, 0};
    }
    std::memcpy(data, page.data(), page.size());
    return {};
}

u8* EmulatedNvme::queue_memory(const NvmeCommand& command, u64 entry_bytes, Answer& answer) {
    const u32 id = command.dword[10] & 0xffff;
    const u32 size = (command.dword[10] >> 16) + 1;
    const u64 prp1 = u64{command.dword[7]} << 32 | command.dword[6];
    if (id == 0 || id > options_.most_queues) answer.status = invalid_queue;
    else if (size < 2 || size > options_.most_entries) answer.status = invalid_size;
    else if ((command.dword[11] & 1) == 0 || prp1 % 4096 != 0) answer.status = invalid_field;
    if (answer.status != 0) return nullptr;
    u8* const memory = space_.translate(prp1, size * entry_bytes);
    if (memory == nullptr) answer.status = invalid_field;
    return memory;
}

EmulatedNvme::Answer EmulatedNvme::create_completions(const NvmeCommand& command) {
    Answer answer;
    const u32 id = command.dword[10] & 0xffff;
    u8* const memory = queue_memory(command, sizeof(NvmeCompletion), answer);
    if (memory == nullptr) return answer;
    if (completions_.count(id) != 0) return {invalid_queue, 0};
    u32* const doorbell = registers().completion_doorbell(id);
    Native::store<Scope::system>(doorbell, 0u);
    completions_[id] = std::make_shared<EmulatedCompletions>(reinterpret_cast<NvmeCompletion*>(memory),
                                                             (command.dword[10] >> 16) + 1, doorbell);
    return answer;
}

EmulatedNvme::Answer EmulatedNvme::create_submission(const NvmeCommand& command) {
    Answer answer;
    const u32 id = command.dword[10] & 0xffff;
    const u8* const memory = queue_memory(command, sizeof(NvmeCommand), answer);
    if (memory == nullptr) return answer;
    if (queues_.count(id) != 0) return {invalid_queue, 0};
    const auto completions = completions_.find(command.dword[11] >> 16);
    if (completions == completions_.end()) return {no_such_completions, 0};
    u32* const doorbell = registers().submission_doorbell(id);
    Native::store<Scope::system>(doorbell, 0u);
    const EmulatedQueueSetup setup{id, reinterpret_cast<const NvmeCommand*>(memory), (command.dword[10] >> 16) + 1,
                                   doorbell, completions->second};
    queues_[id] = std::make_unique<EmulatedQueue>(setup, space_, options_.faults, counts_);
    return answer;
}

EmulatedNvme::Answer EmulatedNvme::remove_queue(const NvmeCommand& command) {
    const u32 id = command.dword[10] & 0xffff;
    if ((command.dword[0] & 0xff) == 0x00) return {queues_.erase(id) == 1 ? 0 : invalid_queue, 0};
    const auto completions = completions_.find(id);
    if (completions == completions_.end()) return {invalid_queue, 0};
    if (completions->second->users != 0) return {invalid_deletion, 0};
    completions_.erase(completions);
    return {};
}

EmulatedNvme::Answer EmulatedNvme::queue_count(const NvmeCommand& command) {
    if ((command.dword[10] & 0xff) != 0x07) return {invalid_field, 0};
    const u32 most = options_.most_queues - 1;
    return {0, most << 16 | most};
}

}  // namespace penstock::ondevice
