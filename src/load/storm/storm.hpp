// Storms of raw requests that device code makes itself: the measuring end of GPU-initiated I/O, on GPUs and, with
// threads for warps, on the emulated device. And element loads through a page cache, beside loads from memory.
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
#include "penstock/path.hpp"

namespace penstock::load {

// How the device gets at the file.
enum class StormSource : std::uint8_t {
    service,  // host threads, from where they find each page
    mapping,  // the device reads a registered mapping; files in memory only
    memory,   // page-locked memory of `window_bytes` that a part of the file was read into: the link's ceiling
    mailbox,  // the service, asked for one page at a time of each warp, as any channel can be (channel_work.hpp)
    nvme,     // the same service and the same warps, through NVMe queues
};

struct StormSetup {
    StormSource source = StormSource::service;
    std::uint32_t slots = 4096;
    std::uint32_t slot_bytes = 4096;  // the largest request
    std::uint32_t service_threads = 4;
    std::uint32_t queues = 0;  // of source nvme, which slots are shared out among; 0: one for each thread
    std::uint64_t window_bytes = 256 * kMiB;
    bool writable = false;
};

struct StormOptions {
    std::uint32_t blocks = 128;
    std::uint32_t threads = 32;    // of a block; on the emulated device each warp is a thread
    std::uint32_t in_flight = 1;   // of a warp
    std::uint32_t rings = 0;       // places where warps begin to look for a slot; 0: one for each warp
    std::uint32_t request_bytes = 4096;
    double seconds = 0.5;
    std::uint64_t requests = 0;    // of each warp, at most; 0: time alone ends it
    std::uint64_t seed = 0;        // of the file's stamps
    std::uint64_t turn = 0;        // storms of one turn and shape ask for the same pages; 0: one that was not yet
    bool writes = false;
    bool sequential = false;
    bool checked = true;
};

struct StormReport {
    double seconds = 0;
    std::uint64_t warps = 0, requests = 0, bad_words = 0, failures = 0, busy = 0;
    std::uint64_t turn = 0;
    double cycles_per_ns = 0;
    std::uint64_t cycles = 0;            // of all requests, each from the post until its page was taken
    std::vector<std::uint64_t> latency;  // counts; see cycle_bucket. Of a mapping or memory there are none
    ondevice::ServiceEvidence served;    // of this run
};

class Storm {
  public:
    // Throws Error: the file cannot be opened, mapped or registered, or memory is short.
    Storm(Device& device, const std::string& name, const StormSetup& setup);
    ~Storm();

    // Throws Error for sizes that do not fit; what storage did is in the report.
    StormReport run(const StormOptions& options);
    // How many make requests in a run of this shape: warps, or threads of the emulated device.
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
    std::uint32_t resident = 4;   // blocks of a multiprocessor at once, 2 to 4: the more, the fewer registers each has
    std::uint32_t rounds = 4;
    std::uint32_t tile = 1;  // elements that a thread (1) or a warp (more) asks for at once
    bool blocked = false;    // each warp goes through a range of its own; else all go side by side
};

struct Loads {
    double seconds = 0;
    double sum = 0;  // of what all threads added up, each in single precision
};

// One run of element loads through the cache of `ref`, or from `plain` memory of `items` floats. Throws Error when a
// load fails.
Loads time_loads(Device& device, const ondevice::StoredRef* ref, const float* plain, std::uint64_t items,
                 const LoadsOptions& options);

// Words of rows, gathered from a stamped file, that are not the stamps of the rows asked for. Memory is the device's;
// `work` without `wrong`.
std::uint64_t wrong_words(Device& device, const RowsWork& work);

}  // namespace penstock::load
