// An open file: descriptors, facts, transfers under way, and how a new file gets its name.
//
// A file made with OpenMode::create has no name until publish(): it is an O_TMPFILE where the file system has them,
// else a hidden temporary beside the target, removed when the OpenFile goes. So a killed or failed writer leaves the
// old file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "os/direct.hpp"
#include "os/fd.hpp"
#include "os/file_facts.hpp"
#include "penstock/context.hpp"

namespace penstock::context {

class OpenFile {
  public:
    OpenFile(os::System& system, const std::string& name, const OpenOptions& options, std::uint64_t id);
    ~OpenFile();
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    const FileHandle& handle() const noexcept { return handle_; }
    const os::FileFacts& facts() const noexcept { return facts_; }
    const os::DirectFacts& direct() const noexcept { return direct_; }
    bool memory_backed() const noexcept;  // tmpfs, ramfs, hugetlbfs
    std::uint64_t size_bytes() const;     // asks the system; throws
    void sync() const;                    // fdatasync; throws
    void extend(std::uint64_t bytes);     // a larger size, no data; throws

    // Transfers announce themselves, so that close() can wait for them and hear of their errors.
    void transfer_began();
    // `seen`: somebody was told of the outcome. An error nobody was told of is thrown by close().
    void transfer_ended(const ErrorInfo& error, const std::shared_ptr<std::atomic<bool>>& seen);

    // Waits, reports late errors, publishes a new file. Idempotent; throws.
    void close();
    bool closed() const;

    // Run once, when no transfer needs the file any more: what others keep per file (mappings, registrations) goes.
    std::function<void()> on_let_go;
    std::atomic<std::uint64_t> bytes_read{0};  // by transfers so far: what a second read can be known from

  private:
    struct Late {
        ErrorInfo error;
        std::shared_ptr<std::atomic<bool>> seen;
    };
    void open_existing(const OpenOptions& options);
    void open_new(const OpenOptions& options);
    void reserve(std::uint64_t bytes);
    void throw_late_error();
    void publish();
    void name_unnamed_file();
    void sync_directory();
    [[noreturn]] void fail(const char* operation, int error_number, const char* advice = "") const;

    os::System& system_;
    OpenOptions options_;
    std::string directory_;
    std::string temporary_;  // named temporary; empty for O_TMPFILE and existing files
    os::UniqueFd buffered_;
    os::UniqueFd direct_fd_;
    FileHandle handle_;
    os::FileFacts facts_;
    os::DirectFacts direct_;

    mutable std::mutex mutex_;
    std::condition_variable quiet_;
    std::uint32_t transfers_ = 0;
    std::vector<Late> late_;
    bool closed_ = false;
};

}  // namespace penstock::context
