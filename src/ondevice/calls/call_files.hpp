// The files that device code opened by name, each under a number.
//
// A number is a place in the table and how often the place was used, so that the number of a file that was closed does
// not name the next one there. Any thread may call at any time; a file that is closed while others use it goes with the
// last of them. What stays open is closed in the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ondevice/calls/call_outcome.hpp"
#include "os/system.hpp"
#include "penstock/ondevice/calls.hpp"

namespace penstock::ondevice {

class CallFile;

class CallFiles {
  public:
    CallFiles(os::System& system, std::size_t most) : system_(system), most_(most) {}

    // The flags are those of calls.hpp. The value is the number. What opens is a regular file.
    CallOutcome open(const std::string& name, std::uint64_t flags);
    // Bytes at an offset, or at the file's position, which then moves behind them. A read is short only at the end.
    CallOutcome read(std::uint32_t file, std::uint64_t offset, std::span<std::byte> to);
    CallOutcome write(std::uint32_t file, std::uint64_t offset, std::span<const std::byte> from);
    CallOutcome seek(std::uint32_t file, std::int64_t by, SeekFrom from);
    CallOutcome sync(std::uint32_t file);
    CallOutcome close(std::uint32_t file);
    void close_all();

  private:
    struct NumberedFile {
        std::shared_ptr<CallFile> file;
        std::uint32_t uses = 0;
    };
    static constexpr std::uint32_t kPlaceBits = 16;

    std::shared_ptr<CallFile> at(std::uint32_t file);

    os::System& system_;
    const std::size_t most_;
    std::mutex mutex_;  // guards the places
    std::vector<NumberedFile> places_;
};

}  // namespace penstock::ondevice
