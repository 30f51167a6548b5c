// See storm.hpp.
#include "load/storm/storm.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <vector>

#include "load/storm/storm_launch.hpp"
#include "os/file/move_all.hpp"
#include "os/refusal.hpp"

namespace penstock::load {
namespace {

constexpr u32 kCountStripes = 256;

[[noreturn]] void refuse(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "measure requests of the device", cause, advice);
}

void check(const StormSetup& setup, const StormOptions& options, std::uint64_t file_bytes) {
    if (options.blocks == 0 || options.threads == 0 || options.threads > 1024) {
        refuse(std::to_string(options.blocks) + " blocks of " + std::to_string(options.threads) + " threads",
               "give at least one block, of 1 to 1024 threads");
    }
    if (options.in_flight == 0 || options.in_flight > kStormInFlight) {
        refuse(std::to_string(options.in_flight) + " under way", "give 1 to " + std::to_string(kStormInFlight));
    }
    if (options.request_bytes == 0 || options.request_bytes % 16 != 0 || options.request_bytes > setup.slot_bytes) {
        refuse("requests of " + std::to_string(options.request_bytes) + " bytes",
               "give a multiple of 16 up to the slot's " + std::to_string(setup.slot_bytes));
    }
    if (file_bytes < options.request_bytes) refuse("the file is smaller than a request", "give a larger file");
    if (options.writes && setup.source != StormSource::service) refuse("writes", "only the service writes");
}

ondevice::ServiceEvidence difference(ondevice::ServiceEvidence after, const ondevice::ServiceEvidence& before) {
    for (std::size_t i = 0; i < ondevice::kSources; ++i) {
        after.by_source[i].requests -= before.by_source[i].requests;
        after.by_source[i].bytes -= before.by_source[i].bytes;
    }
    after.failed -= before.failed;
    return after;
}

}  // namespace

Storm::Storm(Device& device, const std::string& name, const StormSetup& setup)
    : device_(device),
      setup_(setup),
      own_(device, MemoryKind::device),
      shared_(device, MemoryKind::pinned),
      stream_(device.make_stream()) {
    open(name);
    counts_ = own_.allocate(kCountStripes * sizeof(StormCounts));
    clocks_ = own_.allocate(2 * sizeof(u64));
    if (setup.source == StormSource::memory) {
        fill_window(name);
        return;
    }
    if (setup.source == StormSource::mapping) {
        mapping_ = std::make_unique<ondevice::FileMapping>(device, &handle_, ondevice::layout_of(&handle_, 1));
        if (mapping_->data() == nullptr) {
            throw Error(ErrorCode::unsupported, "map for the device", mapping_->refusal(), "measure with the service");
        }
        return;
    }
    if (setup.source == StormSource::mailbox || setup.source == StormSource::nvme) {
        const auto kind = setup.source == StormSource::nvme ? ChannelKind::nvme : ChannelKind::mailbox;
        channel_ = std::make_unique<ChannelStorm>(
            device, handle_, bytes_,
            ChannelSetup{kind, setup.slots, setup.slot_bytes, setup.service_threads, setup.queues});
        return;
    }
    mailbox_ = std::make_unique<ondevice::Mailbox>(shared_, own_,
                                                   ondevice::MailboxSizes{setup.slots, setup.slot_bytes});
    service_ = std::make_unique<ondevice::Service>(*mailbox_, std::vector<ondevice::FileSet>{&handle_},
                                                   ondevice::ServiceOptions{.threads = setup.service_threads});
}

Storm::~Storm() = default;

void Storm::open(const std::string& name) {
    fd_ = os::UniqueFd(::open(name.c_str(), (setup_.writable ? O_RDWR : O_RDONLY) | O_CLOEXEC));
    struct stat status {};
    if (fd_.get() < 0 || ::fstat(fd_.get(), &status) != 0) os::refuse("open", name, errno);
    bytes_ = static_cast<std::uint64_t>(status.st_size);
    direct_ = os::open_direct(os::real_system(), fd_.get());
    handle_.name = name;
    handle_.buffered_fd = fd_.get();
    handle_.direct_fd = direct_.fd.get();
    handle_.writable = setup_.writable;
    if (direct_.facts.usable) {
        handle_.offset_alignment = direct_.facts.offset_alignment;
        handle_.memory_alignment = direct_.facts.memory_alignment;
    }
}

void Storm::fill_window(const std::string& name) {
    bytes_ = std::min(bytes_, setup_.window_bytes);
    window_ = shared_.allocate(bytes_);
    const os::FileMoved moved = os::move_all(
        os::real_system(),
        {.fd = fd_.get(), .memory = reinterpret_cast<std::byte*>(window_.data), .bytes = bytes_, .offset_bytes = 0});
    if (moved.bytes == bytes_) return;
    os::refuse("read", name, moved.error_number != 0 ? moved.error_number : ENODATA);
}

StormWork Storm::work_for(const StormOptions& options, std::uint64_t warps) {
    if (memory_.bytes < warps * options.request_bytes) {
        memory_ = {};
        memory_ = own_.allocate(warps * options.request_bytes);
    }
    StormWork work{};
    if (mailbox_) work.mailbox = mailbox_->ref();
    if (setup_.source == StormSource::mapping) work.mapping = reinterpret_cast<const u8*>(mapping_->data());
    if (setup_.source == StormSource::memory) work.mapping = window_.data;
    work.memory = memory_.data;
    work.counts = reinterpret_cast<StormCounts*>(counts_.data);
    work.clocks = reinterpret_cast<u64*>(clocks_.data);
    work.stripes = kCountStripes;
    work.request_bytes = options.request_bytes;
    work.file_bytes = bytes_;
    work.seed = options.seed;
    work.turn = options.turn != 0 ? options.turn : ++turn_;
    work.nanoseconds = static_cast<u64>(options.seconds * 1e9);
    work.requests = options.requests;
    work.in_flight = options.in_flight;
    work.rings = options.rings != 0 ? options.rings : static_cast<u32>(warps);
    work.writes = options.writes ? 1 : 0;
    work.sequential = options.sequential ? 1 : 0;
    work.checked = options.checked ? 1 : 0;
    return work;
}

std::uint64_t Storm::warps(const StormOptions& options) const {
    return storm_workers(device_, {options.blocks, options.threads});
}

ondevice::ServiceEvidence Storm::evidence() const {
    if (channel_) return channel_->evidence();
    return service_ ? service_->evidence() : ondevice::ServiceEvidence{};
}

StormReport Storm::run(const StormOptions& options) {
    check(setup_, options, bytes_);
    const StormWork work = work_for(options, warps(options));
    stream_->fill(counts_.data, counts_.bytes, 0);
    stream_->synchronize();
    const ondevice::ServiceEvidence before = evidence();
    const auto began = Clock::now();
    const Grid grid{options.blocks, options.threads};
    if (channel_) channel_->run(*stream_, work, grid);
    else run_storm(device_, *stream_, work, grid);
    stream_->synchronize();
    StormReport report;
    report.seconds = seconds_since(began);
    report.warps = warps(options);
    report.turn = work.turn;
    report.served = difference(evidence(), before);
    std::vector<StormCounts> counts(kCountStripes);
    std::array<u64, 2> clocks{};
    stream_->copy(CopyDirection::to_host, counts.data(), counts_.data, counts_.bytes);
    stream_->copy(CopyDirection::to_host, clocks.data(), clocks_.data, clocks_.bytes);
    stream_->synchronize();
    report.latency.resize(kCycleBuckets);
    for (const StormCounts& one : counts) {
        report.requests += one.requests;
        report.bad_words += one.bad_words;
        report.failures += one.failures;
        report.busy += one.busy;
        report.cycles += one.cycles;
        for (u32 bucket = 0; bucket < kCycleBuckets; ++bucket) report.latency[bucket] += one.latency[bucket];
    }
    if (clocks[1] != 0) report.cycles_per_ns = static_cast<double>(clocks[0]) / static_cast<double>(clocks[1]);
    return report;
}

Loads time_loads(Device& device, const LoadsSource& source, const LoadsOptions& options) {
    if (options.threads == 0 || options.threads > 512 || options.resident < 2 || options.resident > 4) {
        refuse("blocks of " + std::to_string(options.threads) + " threads, " + std::to_string(options.resident) +
                   " at once", "give 1 to 512 threads and 2 to 4 blocks at once");
    }
    ondevice::DeviceMemory own(device, MemoryKind::device), shared(device, MemoryKind::pinned);
    const Grid grid{options.blocks, options.threads};
    const ondevice::DmaBlock sums = own.allocate(std::uint64_t{grid.blocks} * grid.threads * sizeof(float));
    const ondevice::DmaBlock failed = shared.allocate(sizeof(int));
    if (options.tile > 1 && options.tile % 4 != 0) refuse("tiles of no whole 16 bytes", "give a multiple of 4");
    const std::uint64_t step = std::max<std::uint64_t>(kStormWarp, options.tile);
    const auto stream = device.make_stream();
    LoadsWork work{};
    if (source.plain == nullptr) {
        stream->copy(CopyDirection::to_host, &work.ref, source.ref, sizeof work.ref);
        stream->synchronize();
    }
    work.plain = source.plain;
    work.items = source.items / step * step;
    work.rounds = options.rounds;
    work.resident = options.resident;
    work.tile = options.tile;
    work.blocked = options.blocked ? 1 : 0;
    work.sums = reinterpret_cast<float*>(sums.data);
    work.failed = reinterpret_cast<int*>(failed.data);
    const auto began = Clock::now();
    run_loads(device, *stream, work, grid);
    stream->synchronize();
    const double seconds = seconds_since(began);
    const auto status = static_cast<Status>(*reinterpret_cast<const int*>(failed.data));
    if (status != Status::ok) throw Error(ErrorCode::io_error, "load elements", ondevice::words(status), "");
    std::vector<float> parts(std::uint64_t{grid.blocks} * grid.threads);
    stream->copy(CopyDirection::to_host, parts.data(), sums.data, parts.size() * sizeof(float));
    stream->synchronize();
    return {seconds, std::accumulate(parts.begin(), parts.end(), 0.0)};
}

std::uint64_t wrong_words(Device& device, const RowsWork& work) {
    ondevice::DeviceMemory own(device, MemoryKind::device);
    const ondevice::DmaBlock wrong = own.allocate(sizeof(u64));
    RowsWork whole = work;
    whole.wrong = reinterpret_cast<u64*>(wrong.data);
    const auto stream = device.make_stream();
    run_rows(device, *stream, whole);
    u64 found = 0;
    stream->copy(CopyDirection::to_host, &found, wrong.data, sizeof found);
    stream->synchronize();
    return found;
}

}  // namespace penstock::load
