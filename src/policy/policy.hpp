// The policy: turns facts about a request and a machine into a Plan with its reasons.
//
// Pure: no system call, no clock, no device, no globals, so that every choice can be tested, printed and replayed. The
// context gathers the facts. With a machine profile of the file's file system, the policy takes the path that is
// predicted to be fastest. Without one it follows rules: copying workers move cached bytes, a deep queue moves uncached
// bytes past the page cache, and the calling thread moves small requests at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "penstock/plan.hpp"
#include "penstock/types.hpp"
#include "policy/costs.hpp"

namespace penstock::policy {

// A waiting caller moves requests of at most this size on its own thread.
inline constexpr std::uint64_t kInlineBytes = 64 * kKiB;
// Smaller writes go through the page cache: there the round trip of O_DIRECT costs more than the copy that it saves.
inline constexpr std::uint64_t kDirectWriteMin = 1 * kMiB;
// Up to this size so does a write whose caller waits, but not for storage, while the page cache has room for it.
inline constexpr std::uint64_t kCachedWriteMax = 16 * kMiB;
// A waiting caller copies between memory of the host and the page cache itself up to this size. Workers copy faster
// together, but to wake the first of them takes as long as to copy one or two MiB.
constexpr std::uint64_t caller_cached_bytes(std::uint32_t cpus) { return cpus <= 2 ? 4 * kMiB : 1 * kMiB; }
// For a device it does so by two pieces of staging memory in turn.
inline constexpr std::uint64_t kStagedPiece = 256 * kKiB;
// A smaller cached read takes hardly longer than asking for its residency, so that is not asked.
inline constexpr std::uint64_t kAskedMin = 16 * kKiB;

enum class Residence : std::uint8_t {
    unknown,     // not asked for (small requests, writes)
    hidden,      // asked for, but the kernel does not say
    cold,
    hot,         // in the page cache
    registered,  // in a mapping that the device may read itself
};

// A part of the request with one residence. The segments cover the request in order.
struct Segment {
    PlanPiece piece;
    Residence residence = Residence::unknown;
};

// Where a range of the request lies in its file and in memory.
struct RangeFacts {
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t memory_address = 0;
};

struct RequestFacts {
    Direction direction = Direction::read;
    MemoryKind kind = MemoryKind::device;
    bool blocking = false;           // the caller waits
    std::vector<RangeFacts> ranges;
    std::vector<Segment> segments;
    bool direct = false;             // O_DIRECT works on every file of the request
    std::string direct_cause;        // why it does not
    std::string bypass_unknown;      // why the page cache cannot show whether a transfer bypassed it; empty: it can
    std::uint64_t offset_alignment = 1;   // for O_DIRECT, the largest of all files
    std::uint64_t memory_alignment = 1;
    bool memory_backed = false;      // tmpfs, hugetlbfs: there is no storage below the page cache
    bool answers_here = false;       // no server is asked for what the page cache has, or before it takes a write
    bool parallel_writes = false;    // several files, or a file system that allows several writers in one file
    bool mapping_registered = false;  // the caller named mmap, and all bytes are registered with the device
    int under_way = 0;               // other transfers of the context, which share threads and storage
    bool durable = false;            // writes: the caller waits for stable storage
    // Writes: bytes that the page cache accepts before writers wait for the storage. A larger write runs at the
    // storage's speed.
    std::optional<std::uint64_t> dirty_room_bytes{};
    FirstTouch first_touch = FirstTouch::none;  // of the memory; none: unknown
    std::string gds_cause = "not measured here, so not asked";  // why the path cannot be taken; empty: it can
    std::string gds_compat_cause = gds_cause;
    const Costs* costs = nullptr;               // for the file system of all ranges; null: no profile
    std::span<const double> factors;            // corrections of its curves
    // What the caller asked for. Zero and automatic leave the choice to the policy.
    PathKind path = PathKind::automatic;
    std::uint64_t chunk_bytes = 0;
    std::uint32_t workers = 0;
    std::uint32_t depth = 0;
    bool strict = false;

    std::uint64_t total_bytes() const noexcept;
};

struct MachineFacts {
    std::uint32_t cpus = 1;          // that this process may use
    bool emulated_device = true;
    std::uint64_t budget_bytes = 256 * kMiB;
    std::uint64_t page_bytes = 4096;
    bool uring = false;
    std::string uring_cause;         // why not
    bool cachestat = false;          // finding which pages are cached takes less than a microsecond
    std::uint64_t caller_direct_bytes = 0;  // largest read past the page cache by a waiting thread; 0: none
    std::uint64_t caller_cached_bytes = 0;  // the most that a waiting thread copies between host and page cache
    std::uint64_t caller_staged_bytes = 0;  // and from the page cache to a device
};

// Throws Error: unsupported if the path that the caller named cannot be taken, fallback_refused in strict requests,
// invalid_argument if the workers, depth and chunk that the caller named do not fit the budget.
Plan make_plan(const RequestFacts& request, const MachineFacts& machine);

// Returns whether to find out if a small request is in the page cache: the profile must say that a read past the cache
// is clearly faster for uncached bytes, and finding out must be cheap.
bool small_residence_matters(const RequestFacts& request, const MachineFacts& machine);

// Returns whether to find out how much the page cache takes before writers wait for the storage.
bool dirty_room_matters(const RequestFacts& request, const MachineFacts& machine);

// Returns whether a cuFile path is predicted to be the fastest. Only then does the context find out if cuFile can be
// used.
bool cufile_may_win(const RequestFacts& request, const MachineFacts& machine);

// One path as a candidate for a part of a request, for explanations.
struct Candidate {
    PathKind path = PathKind::automatic;
    double seconds = 0;   // predicted; 0: no prediction
    std::string refusal;  // why it is not taken; empty: it can be, as can the path that the caller named
};
// Returns all paths that a user can name: the fastest first, then those without a prediction, then those that are not
// taken. Requires: make_plan() takes the request.
std::vector<Candidate> candidates(const RequestFacts& request, const MachineFacts& machine, Residence residence,
                                  std::uint64_t bytes);

}  // namespace penstock::policy
