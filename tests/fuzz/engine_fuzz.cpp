// Random plans over files in memory, with faults, compared with the expected bytes.
//
// Whatever the ranges, the shape and the faults, bytes that are reported as moved are right, bytes outside the ranges
// do not change, and every transfer ends. With PENSTOCK_PLANT one bit of a read is wrong: the negative control.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/engine.hpp"
#include "engine/transfer_state.hpp"
#include "input.hpp"
#include "path/memory_store.hpp"
#include "support/decorators/fault.hpp"

namespace {

using penstock::Direction;
using penstock::engine::Engine;
using penstock::engine::RequestRange;
using penstock::engine::TransferState;
using penstock::fuzz::Input;
using penstock::fuzz::promise;

constexpr std::uint64_t kFileBytes = 100'000;
constexpr std::uint64_t kMemoryBytes = 200'000;
constexpr std::byte kUntouched{0x5A};

// One engine with one file and one piece of device memory, as one input describes them.
class Machine {
  public:
    explicit Machine(Input& input) {
        file_.id = 1;
        file_.name = "memory";
        file_.writable = true;
        contents_.resize(kFileBytes);
        for (std::size_t i = 0; i < contents_.size(); ++i) contents_[i] = static_cast<std::byte>(i * 131 >> 3);
        memory_ = static_cast<std::byte*>(device_->allocate(penstock::MemoryKind::device, kMemoryBytes));
        // the memory of the host device is ordinary memory
        std::memset(memory_, static_cast<int>(kUntouched), kMemoryBytes);
        faults_.seed = input.number<std::uint32_t>();
        faults_.short_count = static_cast<double>(input.between(0, 40)) / 100;
        faults_.interrupted = static_cast<double>(input.between(0, 20)) / 100;
        faults_.again = static_cast<double>(input.between(0, 20)) / 100;
        if (input.between(0, 3) == 0) faults_.bad_from = input.between(0, kFileBytes);
#if defined(PENSTOCK_PLANT)
        faults_.script.push_back({0, penstock::path::FaultKind::corrupt});
#endif
        penstock::engine::EngineOptions options;
        options.device = device_.get();
        options.system = &system_;
        options.budget_bytes = input.between(4, 16) * penstock::kMiB;
        options.make_path = [this](penstock::PathKind kind, penstock::PathOptions path_options) {
            path_options.store = store_;
            return penstock::path::faulty(penstock::make_path(kind, path_options), faults_);
        };
        engine_ = std::make_unique<Engine>(options);
    }
    ~Machine() {
        engine_.reset();
        device_->release(penstock::MemoryKind::device, memory_);
    }
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    // Ranges with gaps between them in memory.
    std::vector<RequestRange> ranges(Input& input) {
        std::vector<RequestRange> made;
        std::uint64_t place = 0, position = 0;
        for (std::uint64_t i = 0, count = input.between(1, 20); i < count; ++i) {
            const std::uint64_t offset = input.between(0, kFileBytes - 1);
            const std::uint64_t bytes = 1 + input.between(0, 9000) % (kFileBytes - offset);
            made.push_back({&file_, offset, memory_ + place, bytes, position});
            place += bytes + input.between(0, 64);
            position += bytes;
        }
        return made;
    }

    penstock::Outcome run(Direction direction, std::vector<RequestRange> ranges, Input& input) {
        store_->put(1, contents_);
        penstock::Plan plan;
        for (std::uint64_t i = 0; i < ranges.size(); ++i) {
            if (plan.steps.empty() || input.between(0, 4) == 0) plan.steps.push_back(step(direction, input));
            plan.steps.back().pieces.push_back({i, 0, ranges[i].bytes});
        }
        penstock::engine::TransferRequest request;
        request.direction = direction;
        request.ranges = std::move(ranges);
        const auto transfer = std::make_shared<TransferState>(std::move(request), std::move(plan));
        engine_->start(transfer);
        promise(transfer->wait(penstock::Deadline::after(std::chrono::seconds(20))), "a transfer ends");
        return transfer->result();
    }

    const std::vector<std::byte>& contents() const { return contents_; }
    std::vector<std::byte> stored() const { return store_->contents(1); }
    std::byte* memory() const { return memory_; }

  private:
    static penstock::Step step(Direction direction, Input& input) {
        penstock::Step made;
        made.shape.path = penstock::PathKind::memory;
        made.shape.direction = direction;
        made.shape.chunk_bytes = std::uint64_t{512} << input.between(0, 8);
        made.shape.workers = static_cast<std::uint32_t>(input.between(1, 4));
        made.shape.depth = static_cast<std::uint32_t>(input.between(1, 4));
        return made;
    }

    std::shared_ptr<penstock::Device> device_ = penstock::make_host_device();
    penstock::os::System system_;
    std::shared_ptr<penstock::path::MemoryStore> store_ = std::make_shared<penstock::path::MemoryStore>();
    penstock::FileHandle file_;
    penstock::path::FaultOptions faults_;
    std::vector<std::byte> contents_;
    std::byte* memory_ = nullptr;
    std::unique_ptr<Engine> engine_;
};

// A read must have moved all of the ranges up to outcome.bytes, and nothing outside the ranges.
void check_read(const Machine& machine, const std::vector<RequestRange>& ranges, std::uint64_t moved_bytes) {
    std::vector<bool> wanted(kMemoryBytes + 1);
    for (const RequestRange& range : ranges) {
        const std::uint64_t past = moved_bytes > range.position ? moved_bytes - range.position : 0;
        const std::uint64_t good = std::min(range.bytes, past);
        promise(std::memcmp(range.memory, machine.contents().data() + range.offset_bytes, good) == 0,
                "bytes reported as read are the file's");
        const auto first = static_cast<std::uint64_t>(range.memory - machine.memory());
        std::fill_n(wanted.begin() + static_cast<long>(first), range.bytes, true);
    }
    for (std::uint64_t i = 0; i < kMemoryBytes; ++i) {
        promise(wanted[i] || machine.memory()[i] == kUntouched, "memory outside the ranges is left alone");
    }
}

// Compares the file after a write of bytes that all differ from its contents.
void check_write(const Machine& machine, const std::vector<RequestRange>& ranges, bool complete) {
    std::vector<bool> wanted(kFileBytes);
    for (const RequestRange& range : ranges) {
        std::fill_n(wanted.begin() + static_cast<long>(range.offset_bytes), range.bytes, true);
    }
    const auto stored = machine.stored();
    promise(stored.size() == kFileBytes, "a write within the file keeps its size");
    for (std::uint64_t i = 0; i < kFileBytes; ++i) {
        const bool changed = stored[i] == ~machine.contents()[i];
        promise(changed || stored[i] == machine.contents()[i], "a byte is the old one or the new one");
        promise(!changed || wanted[i], "bytes outside the ranges are left alone");
        promise(changed || !wanted[i] || !complete, "a complete write wrote every byte");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    Input input(data, bytes);
    Machine machine(input);
    const auto ranges = machine.ranges(input);
    const std::uint64_t total = ranges.back().position + ranges.back().bytes;
    const auto read = machine.run(Direction::read, ranges, input);
    promise(read.ok() ? read.bytes == total : read.bytes < total, "a read is complete or says why not");
    check_read(machine, ranges, read.bytes);
    for (const RequestRange& range : ranges) {
        for (std::uint64_t i = 0; i < range.bytes; ++i) range.memory[i] = ~machine.contents()[range.offset_bytes + i];
    }
    const auto write = machine.run(Direction::write, ranges, input);
    promise(write.ok() ? write.bytes == total : write.bytes < total, "a write is complete or says why not");
    check_write(machine, ranges, write.ok());
    return 0;
}
