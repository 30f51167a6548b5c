// See chunk_files.hpp.
#include "data/encode/chunk_files.hpp"

#include <fcntl.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "data/encode/gather.hpp"
#include "os/fd.hpp"
#include "os/file/dirty.hpp"
#include "os/file/file_stat.hpp"
#include "os/file/move_all.hpp"
#include "os/refusal.hpp"

namespace penstock::data {
namespace {

constexpr unsigned kMode = 0666;  // less the umask
constexpr std::uint64_t kRoomAsked = 1 * kMiB;  // fewer bytes are not worth 30 us of looking for room

// What the threads share.
struct FilesState {
    std::atomic<bool> ended{false};
    std::atomic<std::uint64_t> calls{0};
    std::mutex mutex{};
    ErrorInfo refused{};  // guarded by mutex
};

class FileWriter final : public ItemWorker {
  public:
    FileWriter(const EncodeWork& work, const FilesOfChunks& files, FilesState& shared)
        : work_(work), files_(files), shared_(shared), gatherer_(work) {}

    std::string take(std::size_t item) override {
        std::span<const std::byte> bytes = gatherer_.plain_of(work_.chunks[item]);
        if (!work_.encoder.is_plain()) {
            if (room_ == nullptr) room_ = std::make_unique_for_overwrite<std::byte[]>(work_.encoder.most_bytes());
            Encoded encoded = work_.encoder.encode(bytes, {room_.get(), work_.encoder.most_bytes()}, scratch_);
            if (!encoded.fault.empty()) return std::move(encoded.fault);
            bytes = {room_.get(), encoded.bytes};
        }
        work_.sizes[item] = bytes.size();
        write(files_.names[item], bytes);
        return {};
    }

  private:
    void write(const std::string& name, std::span<const std::byte> bytes) {
        const int empties = work_.encoder.is_plain() ? 0 : O_TRUNC;
        const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | empties;
        int descriptor = -1;
        os::again_if_interrupted([&] {
            descriptor = files_.system.open(name.c_str(), flags, kMode);
            return descriptor < 0 ? -1 : 0;
        });
        if (descriptor < 0) return refuse(os::refusal("create", name, errno));
        os::UniqueFd file(descriptor, files_.system);
        os::FileMove move;
        move.direction = Direction::write;
        move.fd = descriptor;
        move.memory = const_cast<std::byte*>(bytes.data());
        move.bytes = bytes.size();
        const os::FileMoved moved = os::move_all(files_.system, move);
        shared_.calls.fetch_add(moved.calls, std::memory_order_relaxed);
        if (moved.error_number != 0) {
            ErrorInfo info = os::refusal("write", name, moved.error_number);
            info.offset_bytes = moved.bytes;
            info.length_bytes = bytes.size() - moved.bytes;
            return refuse(std::move(info));
        }
        // Linux has let go of the descriptor when a signal ended the call.
        if (file.reset() != 0 && errno != EINTR) refuse(os::refusal("close", name, errno));
    }

    void refuse(ErrorInfo info) {
        const std::lock_guard lock(shared_.mutex);
        if (shared_.refused.ok()) shared_.refused = std::move(info);
        shared_.ended.store(true, std::memory_order_relaxed);
    }

    const EncodeWork& work_;
    const FilesOfChunks& files_;
    FilesState& shared_;
    Gatherer gatherer_;
    Scratch scratch_;
    std::unique_ptr<std::byte[]> room_;
};

}  // namespace

FilesWritten write_chunk_files(const EncodeWork& work, const FilesOfChunks& files, const CoreOptions& options) {
    FilesState shared;
    const Items items{work.chunks.size(), work.encoder.chunk_bytes(), work.encoder.bytes_of_thread(), &shared.ended};
    FilesWritten written;
    written.encoded =
        on_cores(items, [&] { return std::make_unique<FileWriter>(work, files, shared); }, options);
    written.refused = std::move(shared.refused);
    written.calls = shared.calls.load(std::memory_order_relaxed);
    return written;
}

bool takes_files(const std::string& folder, std::uint64_t bytes, os::System& system) {
    const os::UniqueFd held(system.open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0), system);
    if (!held) return false;
    std::string name;
    const os::CachedBy cached_by = os::cached_by(held.get(), name);
    if (cached_by == os::CachedBy::memory) return true;
    if (!os::answers_here(cached_by, name)) return false;
    return bytes < kRoomAsked || bytes <= os::dirty_room_bytes().value_or(bytes);
}

}  // namespace penstock::data
