// Streams for calls that wait for their own work, kept from call to call: a GPU's stream, with the tables it copies
// boxes by, takes longer to make than most of that work.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "penstock/device.hpp"

namespace penstock::context {

class StreamPool {
  public:
    explicit StreamPool(Device& device) : device_(device) {}

    // Lets `work` queue on a stream that no other thread uses, and waits for it. Where `work` throws, that stream ends.
    void run(const std::function<void(Stream&)>& work) {
        const DeviceScope current(device_);
        std::unique_ptr<Stream> stream = take();
        if (!stream) stream = device_.make_stream();
        work(*stream);
        stream->synchronize();
        const std::lock_guard lock(mutex_);
        if (idle_.size() < kKept) idle_.push_back(std::move(stream));
    }

  private:
    static constexpr std::size_t kKept = 4;

    std::unique_ptr<Stream> take() {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) return nullptr;
        std::unique_ptr<Stream> stream = std::move(idle_.back());
        idle_.pop_back();
        return stream;
    }

    Device& device_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Stream>> idle_;  // guarded by mutex_
};

}  // namespace penstock::context
