// Moves one request of HDF5 between the open file and memory, by the cheapest way for it:
//
//   plain     a system call, for metadata and for small requests of host memory
//   staged    system calls and pinned memory, for small requests of device memory
//   transfer  Penstock's engine, for large requests of any memory
//
// What must stay true: bytes behind the end of the file are read as zeros. A transfer of host memory that cannot be set
// up (no descriptor, no memory) is made by system calls and told in the evidence; nothing else is retried.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "vfd/engines.hpp"
#include "vfd/settings.hpp"
#include "vfd/tally.hpp"

namespace penstock::vfd {

// Consecutive bytes of the file and of memory.
struct Piece {
    std::uint64_t offset_bytes = 0;
    std::size_t bytes = 0;
    std::byte* memory = nullptr;  // a write only reads it
};

class Mover;

// Whose memory was asked for last. Device memory comes in pages, so that neighbours are of one kind. The answer holds
// while the program frees no memory: during one call of HDF5.
class Places {
  public:
    const Place& of(const Mover& mover, const void* memory);
    void forget() noexcept { unit_ = 0; }

  private:
    std::uintptr_t unit_ = 0;
    Place place_;
};

class Mover {
  public:
    struct Target {
        int fd = -1;
        bool writable = false;
    };
    Mover(Target target, const Settings& settings, Tally& tally);
    ~Mover();
    Mover(const Mover&) = delete;
    Mover& operator=(const Mover&) = delete;

    // Of metadata: memory of HDF5's own.
    void read_plain(const Piece& piece);
    void write_plain(const Piece& piece);
    // Of raw data: any memory.
    void move(bool write, const Piece& piece) { move(write, piece, place_of(piece.memory)); }
    void move(bool write, const Piece& piece, const Place& place);
    // Large pieces, all of one place. They move together where that is faster.
    void move_all(bool write, std::span<const Piece> pieces, const Place& place);

    // Whose memory it is. Free of charge where programs pass no device memory.
    Place place_of(const void* memory) const;
    std::shared_ptr<Engine> engine_of(const Place& place) const;
    // The same, when the default stream of the device has done what it was given: H5Dwrite and H5Dread then come after
    // a program's kernels and copies there.
    std::shared_ptr<Engine> settled_engine_of(const Place& place) const;
    // Between memories of any places. HDF5 asks for it row by row, so that answers are kept for a millisecond.
    void copy(void* to, const void* from, std::size_t bytes);
    // The size of the pages that device memory comes in, as a power of two: CUDA's are of 2 MiB, an emulated GPU's are
    // the host's.
    int page_bits() const noexcept { return settings_.device == "host" ? 12 : 21; }
    int fd() const noexcept { return target_.fd; }
    Tally& tally() noexcept { return tally_; }

    // Throws what the engine hears late of earlier writes.
    void close();

  private:
    // The file as one engine has it open.
    struct Handle {
        std::shared_ptr<Engine> engine;
        penstock_file* file = nullptr;
    };
    const penstock_file* handle_of(const std::shared_ptr<Engine>& engine);
    void forget_in_child();
    bool transferred(bool write, std::span<const Piece> pieces, const Place& place);
    void transfer(bool write, std::span<const Piece> pieces, const Place& place);
    void staged(bool write, const Piece& piece, Engine& engine);
    void zero(const Piece& piece, const Place& place);

    Target target_;
    Settings settings_;
    bool devices_;
    Tally& tally_;
    std::mutex mutex_;  // guards handles_
    pid_t process_;
    std::vector<Handle> handles_;
    // The thread that copies first keeps answers here. It takes no lock, because a lock waits until the bytes of the
    // last copy are stored. Other threads ask each time.
    struct Asked {
        Places targets, sources;
        std::chrono::steady_clock::time_point at;
    };
    bool is_asker() noexcept;
    std::atomic<const void*> asker_ = nullptr;
    Asked asked_;
};

}  // namespace penstock::vfd
