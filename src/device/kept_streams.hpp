// KeptStreams: streams of a device for calls that wait for their own work, kept from call to call. A GPU's stream takes
// 17 us to make, and the tables that it copies boxes by take much more: longer than most of that work.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "penstock/device.hpp"

namespace penstock::device {

class KeptStreams {
  public:
    static constexpr std::size_t kIdleStreams = 16;

    // A stream that no other caller uses. Without finish() it ends with this, after its work.
    class BorrowedStream {
      public:
        BorrowedStream(KeptStreams& from, std::unique_ptr<Stream> stream) : from_(&from), stream_(std::move(stream)) {}
        Stream& operator*() const noexcept { return *stream_; }
        Stream* operator->() const noexcept { return stream_.get(); }
        void finish();  // waits for its work, and gives it back

      private:
        KeptStreams* from_;
        std::unique_ptr<Stream> stream_;
    };

    explicit KeptStreams(Device& device) : device_(device) {}

    BorrowedStream borrow();  // Requires: the device is the thread's current one
    // Lets `work` queue on a stream, and waits for it.
    void run(const std::function<void(Stream&)>& work);

  private:
    Device& device_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Stream>> idle_;  // guarded by mutex_
};

}  // namespace penstock::device
