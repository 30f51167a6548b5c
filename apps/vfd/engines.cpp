// See engines.hpp.
#include "vfd/engines.hpp"

#include <unistd.h>

#include <atomic>

#include "vfd/fault.hpp"

namespace penstock::vfd {
namespace {

void check(int code, const penstock_error& error) {
    if (code != PENSTOCK_OK) throw library_fault(error);
}

// Of one process. That of a parent is left as it is: its threads do not exist here.
struct Owned {
    pid_t process = ::getpid();
    Engines engines;
};

}  // namespace

Engine::Engine(const std::string& device) : device_(device) {
    penstock_context_options options = PENSTOCK_CONTEXT_OPTIONS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_context* made = nullptr;
    options.device = device_.c_str();
    check(penstock_context_create(&options, &made, &error), error);
    context_.reset(made);
}

std::byte* Engine::staging() {
    if (!staging_) {
        penstock_buffer_options options = PENSTOCK_BUFFER_OPTIONS_INIT;
        penstock_error error = PENSTOCK_ERROR_INIT;
        penstock_buffer* made = nullptr;
        options.bytes = kStagingBytes;
        options.kind = PENSTOCK_PINNED;
        check(penstock_buffer_allocate(context(), &options, &made, &error), error);
        staging_.reset(made);
    }
    return static_cast<std::byte*>(penstock_buffer_pointer(staging_.get()));
}

void Engine::copy_to_device(void* device, const void* host, std::size_t bytes) const {
    penstock_error error = PENSTOCK_ERROR_INIT;
    check(penstock_copy_to_device(context(), device, host, bytes, &error), error);
}

void Engine::copy_to_host(void* host, const void* device, std::size_t bytes) const {
    penstock_error error = PENSTOCK_ERROR_INIT;
    check(penstock_copy_to_host(context(), host, device, bytes, &error), error);
}

void Engine::synchronize() const {
    penstock_error error = PENSTOCK_ERROR_INIT;
    check(penstock_synchronize_stream(context(), nullptr, &error), error);
}

void Engine::copy_pieces(int direction, std::span<const penstock_copy> pieces) const {
    penstock_error error = PENSTOCK_ERROR_INIT;
    check(penstock_copy_pieces(context(), direction, pieces.data(), pieces.size(), &error), error);
}

// Never destroyed: HDF5 may close files while the process ends, after destructors of this library have run.
Engines& Engines::here() {
    static std::mutex mutex;
    static Owned* owned = nullptr;
    const std::lock_guard lock(mutex);
    if (owned == nullptr || owned->process != ::getpid()) owned = std::make_unique<Owned>().release();
    return owned->engines;
}

std::shared_ptr<Engine> Engines::get(const std::string& device) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Engine>& engine = engines_[device];
    if (!engine) engine = std::make_shared<Engine>(device);
    return engine;
}

Place Engines::place_of(const void* memory, const std::string& device) {
    penstock_pointer found = PENSTOCK_POINTER_INIT;
    const penstock_context* context = device == "host" ? get(device)->context() : nullptr;
    // Without an error's 4 KiB, which take longer to clear than the question.
    if (penstock_memory_kind(context, memory, &found, nullptr) != PENSTOCK_OK) return {};
    return {found.kind, found.device_index};
}

}  // namespace penstock::vfd
