// An open file: descriptors, facts, transfers under way, and errors that come late.
//
// A file made with OpenMode::create is an os::NewFile: it has its name from close() on, or never. What must stay true:
// once data may be lost, because a sync failed or the kernel told a write's error late, every later sync and close says
// so, though the kernel tells it once only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "context/files/extent.hpp"
#include "context/files/process_mark.hpp"
#include "context/files/read_descriptors.hpp"
#include "os/fd.hpp"
#include "os/file/direct.hpp"
#include "os/file/file_stat.hpp"
#include "os/new_file/new_file.hpp"
#include "path/path.hpp"
#include "penstock/context.hpp"

namespace penstock::context {

struct Place;

class OpenFile {
  public:
    OpenFile(os::System& system, const std::string& name, const OpenOptions& options);
    ~OpenFile();
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    const FileHandle& handle() const noexcept { return handle_; }
    ReadDescriptors& readers() noexcept { return *readers_; }  // for reads that threads make by themselves
    os::FileStat facts() const { return os::file_stat(handle_.buffered_fd, handle_.name); }
    const os::DirectFacts& direct() const noexcept { return direct_; }
    os::CachedBy cached_by() const noexcept { return facts_.cached_by; }
    // Whether this machine alone answers for bytes of the page cache. A server that is asked first may never answer.
    bool answers_here() const noexcept;
    bool memory_backed() const noexcept { return facts_.cached_by == os::CachedBy::memory; }
    bool parallel_writes() const noexcept;  // the file system locks ranges, not the file
    std::uint64_t size_bytes() const;     // asks the system; throws
    void sync();                          // fdatasync; throws, and from the first failure on always
    void extend(std::uint64_t bytes);     // a larger size, no data; throws
    void resize(std::uint64_t bytes);     // exactly this size; throws

    // Transfers announce themselves, so that close() can wait for them and hear of their errors.
    void transfer_began();
    // `seen`: the caller has been told of the outcome. close() throws an error that no caller was told of.
    void transfer_ended(const ErrorInfo& error, const std::shared_ptr<std::atomic<bool>>& seen);

    // What a write moved, or failed to: a new file takes note of those extents that are of it. The engine calls this
    // before the writer's caller learns of the end, so that a repair comes after.
    void write_ended(const ErrorInfo& error, std::span<const Extent> extents);
    bool is_new() const noexcept { return options_.mode == OpenMode::create; }

    // Waits, reports late errors, publishes a new file unless a write into it failed and was not repaired. Idempotent
    // unless data may be lost; throws.
    void close();
    bool closed() const;

    // Run once, when no transfer needs the file any more: what others keep per file (mappings, registrations) goes.
    std::function<void()> on_let_go;
    std::shared_ptr<const Place> place;  // what is known of its file system; null without machine profiles
    std::atomic<bool> reads_by_cache{false};  // an O_DIRECT read of it went by the page cache, though it was taken
    std::atomic<std::uint64_t> bytes_read{0};  // by transfers so far: what a second read can be known from

  private:
    struct Late {
        ErrorInfo error;
        std::shared_ptr<std::atomic<bool>> seen;
    };
    struct Hole {
        std::uint64_t start = 0;
        std::uint64_t end = 0;
    };
    void fill_holes(std::uint64_t start, std::uint64_t end);
    void open_existing(const OpenOptions& options);
    void open_new(const OpenOptions& options);
    void reserve(std::uint64_t bytes);
    void throw_late_error();
    void need_sound() const;
    void settle();
    [[noreturn]] void lose(ErrorInfo error);
    [[noreturn]] void fail(const char* operation, int error_number, const char* advice = "") const;

    os::System& system_;
    OpenOptions options_;
    std::unique_ptr<os::NewFile> new_;  // of OpenMode::create
    os::UniqueFd buffered_;             // of the others
    os::UniqueFd direct_fd_;
    FileHandle handle_;
    os::FileStat facts_;
    os::DirectFacts direct_;
    std::optional<ReadDescriptors> readers_;  // there is one

    ProcessMark process_;
    std::mutex closing_;  // one close() at a time; taken before mutex_
    mutable std::mutex mutex_;
    std::condition_variable quiet_;
    std::uint32_t transfers_ = 0;
    std::vector<Late> late_;
    std::vector<Hole> holes_;      // of a new file: where writes failed
    ErrorInfo damage_;             // why, the first time
    ErrorInfo lost_;               // the first error of a sync, or of a write that the kernel told late
    bool closed_ = false;
};

}  // namespace penstock::context
