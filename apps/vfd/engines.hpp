// The Penstock contexts of a process: one for memory of the host and one for each GPU, made when a request first needs
// it and kept until the process ends. A child of fork() makes its own: threads do not come along.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "penstock.h"

namespace penstock::vfd {

struct ContextDeleter {
    void operator()(penstock_context* context) const noexcept { penstock_context_destroy(context); }
};
struct BufferDeleter {
    void operator()(penstock_buffer* buffer) const noexcept { penstock_buffer_free(buffer); }
};

// One context, and pinned memory through which small requests reach device memory. HDF5 runs one call at a time;
// programs of several threads without its lock are held apart here.
class Engine {
  public:
    static constexpr std::size_t kStagingBytes = std::size_t{4} << 20;

    explicit Engine(const std::string& device);
    const penstock_context* context() const noexcept { return context_.get(); }
    const std::string& device() const noexcept { return device_; }

    // Lets `work` use the staging memory alone.
    template <typename Work>
    void with_staging(Work&& work) {
        const std::lock_guard lock(mutex_);
        work(staging());
    }
    void copy_to_device(void* device, const void* host, std::size_t bytes) const;
    void copy_to_host(void* host, const void* device, std::size_t bytes) const;
    void synchronize() const;  // waits for the default stream
    // Between device memory and the staging memory.
    void copy_pieces(int direction, std::span<const penstock_copy> pieces) const;

  private:
    std::byte* staging();

    std::string device_;
    std::unique_ptr<penstock_context, ContextDeleter> context_;
    std::mutex mutex_;  // guards the bytes of staging_
    std::unique_ptr<penstock_buffer, BufferDeleter> staging_;
};

// Whose a pointer is.
struct Place {
    int kind = PENSTOCK_SYSTEM;
    int device_index = -1;
    bool on_device() const noexcept { return kind == PENSTOCK_DEVICE; }
    bool operator==(const Place&) const = default;
};

class Engines {
  public:
    // The one of this process.
    static Engines& here();

    // By device name, as penstock_context_options.device has it. Throws Fault.
    std::shared_ptr<Engine> get(const std::string& device);
    // "host" stands for an emulated GPU, whose context knows its memory; otherwise the driver of the process is asked.
    Place place_of(const void* memory, const std::string& device);

  private:
    std::mutex mutex_;  // guards engines_
    std::map<std::string, std::shared_ptr<Engine>> engines_;
};

}  // namespace penstock::vfd
