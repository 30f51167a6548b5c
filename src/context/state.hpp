// What the public handles point to. Declaration order is destruction order reversed: the engine ends before the device.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "context/cufile_slot.hpp"
#include "context/files/open_file.hpp"
#include "context/files/process_mark.hpp"
#include "context/profiles.hpp"
#include "context/seams.hpp"
#include "context/transfer/small/small_read.hpp"
#include "device/kept_streams.hpp"
#include "engine/engine.hpp"
#include "engine/transfer_state.hpp"
#include "os/threads/crew.hpp"
#include "path/mapped/mappings.hpp"
#include "penstock/context.hpp"
#include "policy/policy.hpp"

namespace penstock::context {

// Memory from Context::allocate. Keeps the device, not the context, so that transfers may hold it.
class Memory {
  public:
    Memory(std::shared_ptr<Device> device, MemoryKind kind, std::uint64_t bytes, FirstTouch touch)
        : device_(std::move(device)), kind_(kind), touch_(touch), bytes_(bytes), data_(device_->allocate(kind, bytes)) {
    }
    ~Memory() {
        if (process_.here()) device_->release(kind_, data_);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    MemoryView view() const noexcept { return {data_, bytes_, kind_}; }
    FirstTouch first_touch() const noexcept { return touch_; }

  private:
    std::shared_ptr<Device> device_;
    MemoryKind kind_;
    FirstTouch touch_;
    std::uint64_t bytes_;
    void* data_;
    ProcessMark process_;
};

// Registers the mappings of files that are read again, one thread at a time, and only while no transfer runs: pinning
// pages holds the device's locks (34 ms for each GiB on an H200 host), and a read beside it fell from 53 to 13 GB/s.
class Registrar {
  public:
    Registrar(std::shared_ptr<path::Mappings> mappings, const std::atomic<int>& running)
        : mappings_(std::move(mappings)), running_(running) {}
    ~Registrar();
    void start(const std::shared_ptr<OpenFile>& file);

  private:
    bool wait_for_quiet(const OpenFile& file) const;
    std::shared_ptr<path::Mappings> mappings_;
    const std::atomic<int>& running_;  // transfers under way
    std::mutex mutex_;
    std::thread thread_;
    std::atomic<bool> busy_{false};
    std::atomic<bool> stop_{false};
};

class ContextState {
  public:
    explicit ContextState(const ContextOptions& options, Seams seams = {});
    static Context handle(std::shared_ptr<ContextState> state) { return Context(std::move(state)); }
    static ContextState& of(const Context& context) noexcept { return *context.state_; }

    void check_process() const;  // throws in a forked child
    bool in_child() const noexcept { return !process_.here(); }
    std::shared_ptr<OpenFile> open(const std::string& name, const OpenOptions& options);
    std::shared_ptr<Memory> memory_at(const void* data);  // the allocation around it, if it is one of ours
    void remember(const std::shared_ptr<Memory>& memory);
    std::unique_ptr<Path> make_path(PathKind kind, PathOptions path_options);
    const policy::MachineFacts& machine() const noexcept { return machine_; }

    ContextOptions options;
    const Seams seams;
    std::shared_ptr<Device> device;
    const int device_index = device->info().index;  // to ask for all of info() is slow
    const bool emulated = device->info().emulated;
    device::KeptStreams streams{*device};
    os::System& system;
    std::shared_ptr<path::Mappings> mappings;
    std::shared_ptr<CuFileSlot> cufile;
    Profiles profiles;
    SmallPlans small_plans;
    std::shared_ptr<std::atomic<int>> running = std::make_shared<std::atomic<int>>(0);  // transfers under way
    std::atomic<unsigned> decoding{0};  // calls of small reads that decode chunks on several cores
    os::Crew crew;  // of calls that work on all cores

  private:
    ProcessMark process_;
    policy::MachineFacts machine_;
    std::mutex memories_mutex_;
    std::map<const std::byte*, std::weak_ptr<Memory>> memories_;  // by first byte; guarded by memories_mutex_
    std::size_t forget_at_ = 64;  // when there are this many, those that are gone are dropped; guarded as they are

  public:
    Registrar registrar;
    engine::Engine engine;
};

class FileState {
  public:
    std::shared_ptr<ContextState> context;
    std::shared_ptr<OpenFile> file;
};

class BufferState {
  public:
    std::shared_ptr<ContextState> context;
    std::shared_ptr<Memory> memory;
};

}  // namespace penstock::context
