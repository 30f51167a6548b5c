// See kept_streams.hpp.
#include "device/kept_streams.hpp"

#include <utility>

namespace penstock::device {

void KeptStreams::BorrowedStream::finish() {
    stream_->synchronize();
    const std::lock_guard lock(from_->mutex_);
    if (from_->idle_.size() < kIdleStreams) from_->idle_.push_back(std::move(stream_));
}

KeptStreams::BorrowedStream KeptStreams::borrow() {
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            std::unique_ptr<Stream> stream = std::move(idle_.back());
            idle_.pop_back();
            return {*this, std::move(stream)};
        }
    }
    return {*this, device_.make_stream()};
}

void KeptStreams::run(const std::function<void(Stream&)>& work) {
    const DeviceScope current(device_);
    BorrowedStream stream = borrow();
    work(*stream);
    stream.finish();
}

}  // namespace penstock::device
