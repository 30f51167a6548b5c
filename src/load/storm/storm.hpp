// Storms of raw requests that device code makes itself. They measure I/O that a GPU starts, on GPUs and on the emulated
// device, where a thread stands for a warp. Also times element loads through a page cache and from memory.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "load/storm/channel_storm.hpp"
#include "load/storm/loads_work.hpp"
#include "load/storm/rows_work.hpp"
#include "load/storm/storm_work.hpp"
#include "ondevice/device_memory.hpp"
#include "ondevice/files/file_mapping.hpp"
#include "ondevice/service/service.hpp"
#include "os/fd.hpp"
#include "os/file/direct.hpp"
#include "penstock/device.hpp"

namespace penstock::load {

// How the device reads the file.
enum class StormSource : std::uint8_t {
    service,  // host threads read each page and put it into the mailbox's slot
    mapping,  // the device reads a registered mapping; only for files in memory
    memory,   // page-locked memory of `window_bytes` with a part of the file: the ceiling of the link
    mailbox,  // the service, with one request in flight for each warp, as with any channel (channel_work.hpp)
    nvme,     // the same service and warps, through NVMe queues
};

struct StormSetup {
    StormSource source = StormSource::service;
    std::uint32_t slots = 4096;
    std::uint32_t slot_bytes = 4096;  // the largest request
    std::uint32_t service_threads = 4;
    std::uint32_t queues = 0;  // for source nvme, the queues that share the slots; 0: one for each service thread
    std::uint64_t window_bytes = 256 * kMiB;
    bool writable = false;
};

struct StormOptions {
    std::uint32_t blocks = 128;
    std::uint32_t threads = 32;    // of a block; on the emulated device each warp is a thread
    std::uint32_t in_flight = 1;   // requests of a warp
    std::uint32_t rings = 0;       // places where warps begin to look for a slot; 0: one for each warp
    std::uint32_t request_bytes = 4096;
    double seconds = 0.5;
    std::uint64_t requests = 0;    // of each warp, at most; 0: only the time ends it
    std::uint64_t seed = 0;        // of the file's stamps
    std::uint64_t turn = 0;        // storms with the same turn and shape ask for the same pages; 0: an unused turn
    bool writes = false;
    bool sequential = false;
    bool checked = true;
};

struct StormReport {
    double seconds = 0;
    std::uint64_t warps = 0, requests = 0, bad_words = 0, failures = 0, busy = 0;
    std::uint64_t turn = 0;
    double cycles_per_ns = 0;
    std::uint64_t cycles = 0;            // of all requests, each from its post until its page was taken
    std::vector<std::uint64_t> latency;  // counts for each cycle_bucket; empty for mapping and memory
    ondevice::ServiceEvidence served;    // in this run
};

class Storm {
  public:
    // Throws Error if the file cannot be opened, mapped or registered, or if memory is short.
    Storm(Device& device, const std::string& name, const StormSetup& setup);
    ~Storm();

    // Throws Error for sizes that do not fit. Failures of the storage are in the report.
    StormReport run(const StormOptions& options);
    // Returns how many warps, or threads of the emulated device, make requests in a run of this shape.
    std::uint64_t warps(const StormOptions& options) const;

  private:
    void open(const std::string& name);
    void fill_window(const std::string& name);
    StormWork work_for(const StormOptions& options, std::uint64_t warps);
    ondevice::ServiceEvidence evidence() const;

    Device& device_;
    const StormSetup setup_;
    ondevice::DeviceMemory own_, shared_;
    os::UniqueFd fd_;
    os::DirectFile direct_;
    FileHandle handle_;
    std::uint64_t bytes_ = 0;
    ondevice::DmaBlock window_, counts_, clocks_, memory_;
    std::unique_ptr<ondevice::FileMapping> mapping_;
    std::unique_ptr<ondevice::Mailbox> mailbox_;
    std::unique_ptr<ondevice::Service> service_;
    std::unique_ptr<ChannelStorm> channel_;
    std::unique_ptr<Stream> stream_;
    std::uint64_t turn_ = 0;
};

struct LoadsOptions {
    std::uint32_t blocks = 528;
    std::uint32_t threads = 512;  // of a block, at most
    // blocks on a multiprocessor at once, 2 to 4: with more blocks each has fewer registers
    std::uint32_t resident = 4;
    std::uint32_t rounds = 4;
    std::uint32_t tile = 1;  // elements that a thread (1) or a warp (more) asks for at once
    bool blocked = false;    // each warp has its own range; otherwise all warps go side by side
};

struct Loads {
    double seconds = 0;
    double sum = 0;  // over all threads, each in single precision
};

struct LoadsSource {
    const ondevice::StoredRef* ref = nullptr;  // in device memory; used if `plain` is nullptr
    const float* plain = nullptr;
    std::uint64_t items = 0;
};
// Runs element loads once, through the cache of source.ref or from source.plain, and measures the time. Throws Error if
// a load fails.
Loads time_loads(Device& device, const LoadsSource& source, const LoadsOptions& options);

// Returns how many words of rows, gathered from a stamped file, differ from the stamps of the requested rows. Requires:
// all memory is the device's, and the caller sets all fields of `work` but `wrong`.
std::uint64_t wrong_words(Device& device, const RowsWork& work);

}  // namespace penstock::load
