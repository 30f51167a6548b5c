// The trace decorator records every operation and its completion with their times, for measurement and replay.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "path/path.hpp"

namespace penstock::path {

struct TraceRecord {
    std::uint64_t submit_ns = 0;  // since the log was created
    std::uint64_t done_ns = 0;    // when it was reaped
    PathKind path = PathKind::null;
    Direction direction = Direction::read;
    std::uint64_t file = 0;  // FileHandle::id
    std::uint64_t offset_bytes = 0;
    std::uint64_t asked_bytes = 0;
    std::uint64_t moved_bytes = 0;
    ErrorCode status = ErrorCode::ok;
    int system_code = 0;
    std::uint64_t tag = 0;
};

// Thread-safe, and several paths may share one log. Records are in the order of reaping. Operations that were never
// reaped have no record.
class TraceLog {
  public:
    TraceLog() : start_(Clock::now()) {}
    std::uint64_t now_ns() const noexcept {
        return static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - start_).count());
    }
    void add(const TraceRecord& record);
    std::vector<TraceRecord> records() const;
    // Returns a header line, then one line for each record, with the columns of TraceRecord.
    std::string csv() const;

  private:
    const Clock::time_point start_;
    mutable std::mutex mutex_;
    std::vector<TraceRecord> records_;  // guarded by mutex_
};

std::unique_ptr<Path> traced(std::unique_ptr<Path> inner, std::shared_ptr<TraceLog> log);

}  // namespace penstock::path
