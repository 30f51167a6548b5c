// The policy: facts about a request and a machine in, a Plan with its reasons out.
//
// Pure: no system call, no clock, no device, no globals, so that every choice can be tested, printed and replayed.
// Facts are gathered by the context. With a machine profile of the file's file system the path that is predicted to be
// fastest is taken. Without one, rules hold: what is in the page cache goes by copying workers, what is not goes past
// it with a deep queue, what is small goes at once on the calling thread.
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

// Up to here a request that somebody waits for moves on the thread that waits.
inline constexpr std::uint64_t kInlineBytes = 64 * kKiB;

enum class Residence : std::uint8_t {
    unknown,     // not asked (small requests, writes)
    hidden,      // asked, and the kernel does not tell
    cold,
    hot,         // in the page cache
    registered,  // in a mapping the device may read by itself
};

// Part of the request with one residence. Segments cover the request in order.
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
    std::string direct_cause;        // why not
    std::string bypass_unknown;      // why nothing would tell whether it went past the page cache; or empty
    std::uint64_t offset_alignment = 1;   // of O_DIRECT, the largest of the files
    std::uint64_t memory_alignment = 1;
    bool memory_backed = false;      // tmpfs, hugetlbfs: no storage below the page cache
    bool parallel_writes = false;    // several files, or a file system that lets several writers into one
    bool mapping_registered = false; // explicit mmap: all of it is registered with the device
    int under_way = 0;               // other transfers of the context, which share the threads and the storage
    bool durable = false;            // writes: the caller waits until it is on stable storage
    // Writes: what the page cache takes before writers wait for the storage. More than that goes at its speed.
    std::optional<std::uint64_t> dirty_room_bytes{};
    FirstTouch first_touch = FirstTouch::none;  // of the memory; none: not known
    std::string gds_cause = "not measured here, so not asked";  // why that path cannot be taken here; empty: it can
    std::string gds_compat_cause = gds_cause;
    const Costs* costs = nullptr;               // of the file system all ranges lie on; null: no profile
    std::span<const double> factors;            // corrections of its curves
    // What the caller asked for; zero and automatic leave it to the policy.
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
    bool cachestat = false;          // asking which pages are in the page cache costs under a microsecond
    std::uint64_t caller_direct_bytes = 0;  // what a waiting thread can itself read past the page cache; 0: nothing
};

// Throws Error: unsupported when an asked-for path cannot be taken, fallback_refused in strict requests,
// invalid_argument when asked-for workers, depth and chunk do not fit the budget.
Plan make_plan(const RequestFacts& request, const MachineFacts& machine);

// Whether it is worth asking if a small request is in the page cache: the profile says that a read past it is clearly
// faster where it is not, and asking is cheap.
bool small_residence_matters(const RequestFacts& request, const MachineFacts& machine);

// Whether a path of cuFile is predicted to be the fastest, if cuFile can be used, which is then worth asking.
bool cufile_may_win(const RequestFacts& request, const MachineFacts& machine);

// One path as a candidate for a part of a request, for those who ask why.
struct Candidate {
    PathKind path = PathKind::automatic;
    double seconds = 0;   // predicted; 0: the profile does not say
    std::string refusal;  // why it cannot be taken; empty: it can
};
// All paths a user can name, fastest first, then those without a prediction, then those that cannot be taken.
std::vector<Candidate> candidates(const RequestFacts& request, const MachineFacts& machine, Residence residence,
                                  std::uint64_t bytes);

}  // namespace penstock::policy
