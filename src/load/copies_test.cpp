// Copies by threads and by streams: counts, latencies if measured, limits, and detection of wrong bytes.
#include "load/copies.hpp"

#include <gtest/gtest.h>

#include "context/seams.hpp"
#include "device/forwarding_device.hpp"

namespace penstock::load {
namespace {

// A stream that reports copies and makes none.
class IdleStream : public Stream {
  public:
    explicit IdleStream(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
    void copy(CopyDirection, void*, const void*, std::uint64_t) override {}
    void copy_batch(CopyDirection, std::span<const CopyPiece>) override {}
    void copy_boxes(std::span<const Box> boxes) override { stream_->copy_boxes(boxes); }
    void fill_boxes(std::span<const Box> boxes, std::span<const std::byte> item) override {
        stream_->fill_boxes(boxes, item);
    }
    void pack(std::span<const Pack> packs) override { stream_->pack(packs); }
    CellsFound sort_cells(const CellSort& sort) override { return stream_->sort_cells(sort); }
    void gather(const RowGather& gather) override { stream_->gather(gather); }
    void record(Event& event) override { stream_->record(event); }
    void wait(Event& event) override { stream_->wait(event); }
    void follow(std::uintptr_t native) override { stream_->follow(native); }
    void lead(std::uintptr_t native) override { stream_->lead(native); }
    void synchronize() override { stream_->synchronize(); }
    void stamp(void* memory, std::uint64_t bytes, std::uint64_t offset, std::uint64_t seed) override {
        stream_->stamp(memory, bytes, offset, seed);
    }
    StampCheck verify_stamp(const void* memory, std::uint64_t bytes, std::uint64_t offset,
                            std::uint64_t seed) override {
        return stream_->verify_stamp(memory, bytes, offset, seed);
    }
    std::vector<std::uint32_t> checksums(ChecksumKind kind, std::span<const ChecksumRange> ranges) override {
        return stream_->checksums(kind, ranges);
    }
    void fill(void* memory, std::uint64_t bytes, int value) override { stream_->fill(memory, bytes, value); }
    void* native_handle() noexcept override { return stream_->native_handle(); }

  private:
    std::unique_ptr<Stream> stream_;
};

class IdleDevice : public device::test::ForwardingDevice {
  public:
    std::unique_ptr<Stream> make_stream() override {
        return std::make_unique<IdleStream>(ForwardingDevice::make_stream());
    }
};

class CopyRuns : public testing::Test {
  protected:
    static ContextOptions on_host() {
        ContextOptions options;
        options.device = "host";
        return options;
    }
    CopyReport run(const CopyOptions& options, MemoryKind host = MemoryKind::pinned) {
        const std::uint64_t bytes = options.bytes * options.multiplicity;
        const Buffer device = context_.allocate(bytes), memory = context_.allocate(bytes, host);
        return run_copies(context_, device.view(), memory.view(), options);
    }
    Context context_{on_host()};
};

TEST_F(CopyRuns, every_way_moves_what_was_asked_and_the_right_bytes_arrive) {
    for (const bool to_device : {true, false}) {
        for (const bool threads : {true, false}) {
            for (const CopyWait wait : {CopyWait::each, CopyWait::at_end}) {
                for (const MemoryKind host : {MemoryKind::pinned, MemoryKind::system}) {
                    CopyOptions options;
                    options.to_device = to_device;
                    options.threads = threads;
                    options.wait = wait;
                    options.bytes = 128 * kKiB;  // too large for the calling thread to copy, so it is queued
                    options.multiplicity = 5;
                    options.copies = 52;
                    options.seconds = 1000;
                    const CopyReport report = run(options, host);
                    EXPECT_EQ(report.copies, 55u);  // whole waves
                    EXPECT_EQ(report.bytes, 55 * options.bytes);
                    EXPECT_EQ(report.each.count(), threads && wait == CopyWait::each ? 55u : 0u);
                    EXPECT_GT(report.seconds, 0);
                }
            }
        }
    }
}

TEST_F(CopyRuns, the_time_limit_ends_them_after_the_first_wave_at_the_earliest) {
    CopyOptions options;
    options.multiplicity = 3;
    options.copies = std::uint64_t{1} << 60;
    options.seconds = 0.02;
    EXPECT_GT(run(options).copies, 3u);
    options.seconds = 0;
    EXPECT_EQ(run(options).copies, 3u);
    options.threads = false;
    EXPECT_EQ(run(options).copies, 3u);
}

TEST_F(CopyRuns, bytes_that_do_not_arrive_fail_the_run) {
    const Context context = context::make_context({}, {.device = std::make_shared<IdleDevice>()});
    const Buffer device = context.allocate(8192), host = context.allocate(8192, MemoryKind::pinned);
    for (const bool to_device : {true, false}) {
        CopyOptions copies;
        copies.to_device = to_device;
        copies.multiplicity = 2;
        try {
            run_copies(context, device.view(), host.view(), copies);
            ADD_FAILURE() << "nothing was copied, and the count says it was";
        } catch (const Error& error) {
            EXPECT_EQ(error.info().operation, "verify");
            EXPECT_EQ(error.info().length_bytes, 8192u);
        }
    }
}

TEST_F(CopyRuns, memory_that_is_too_small_is_refused) {
    CopyOptions options;
    options.multiplicity = 2;
    const Buffer small = context_.allocate(4096), large = context_.allocate(8192, MemoryKind::pinned);
    EXPECT_THROW(run_copies(context_, small.view(), large.view(), options), Error);
    options.multiplicity = 0;
    EXPECT_THROW(run_copies(context_, small.view(), large.view(), options), Error);
}

}  // namespace
}  // namespace penstock::load
