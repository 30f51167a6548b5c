// A Plan: what the engine will do for one transfer, as data that prints, compares and explains itself.
//
// The policy (pure) makes it from facts about the request and the machine; the engine executes it and adds nothing of
// its own. A Plan is a list of steps; each step moves some pieces of the request by one path with one shape of
// concurrency.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/types.hpp"

namespace penstock {

// Staging memory comes in multiples of this for each worker.
inline constexpr std::uint64_t kStagingStep = 2 * kMiB;

// How pieces of one step move. Two steps of equal shape may share workers and slots.
struct Shape {
    PathKind path = PathKind::buffered;
    Direction direction = Direction::read;
    bool staged = true;                // through pinned slots; false: the path reaches the memory by itself
    bool run_inline = false;           // on the calling thread
    std::uint64_t chunk_bytes = 4 * kMiB;  // bytes of one slot (staged) or one operation
    // Not 0: the workers share the slots. Each fills parts of this size, and whoever fills a slot's last part starts
    // the copy of the whole slot, so that copies to the device are large while what a worker waits for is small.
    std::uint64_t part_bytes = 0;
    std::uint32_t workers = 1;
    std::uint32_t depth = 2;           // slots (staged) or operations in flight: of each worker, or shared by all
    friend bool operator==(const Shape&, const Shape&) = default;
};

// Bytes [offset, offset + bytes) of range number `range` of the request, counted from that range's start.
struct PlanPiece {
    std::uint64_t range = 0;
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
    friend bool operator==(const PlanPiece&, const PlanPiece&) = default;
};

struct Step {
    Shape shape;
    std::vector<PlanPiece> pieces;
    std::string reason;  // in words, with the facts that decided
    // Not automatic: these pieces were asked to go by that path and cannot; evidence lists them as a fallback.
    PathKind fallback_from = PathKind::automatic;
    // By the machine profile, where there is one for this file system: what the step should take, the next best path
    // and what that would. 0: not known.
    double predicted_seconds = 0;
    PathKind next_path = PathKind::automatic;
    double next_seconds = 0;
    std::uint32_t cost_curve = 0;  // which of the profile's curves predicted it, from 1
    friend bool operator==(const Step&, const Step&) = default;

    std::uint64_t bytes() const noexcept;
};

struct Plan {
    std::vector<Step> steps;
    std::uint64_t pinned_bytes = 0;  // staging memory it needs at most
    // What all of it should take: steps run beside each other, so the longest. 0 when more than 1/16 of the bytes, more
    // than the edges of an O_DIRECT write, was not predicted.
    double predicted_seconds() const noexcept;
    // Why, in one sentence: the steps' reasons, each with its bytes where there are several.
    std::string reason() const;
    // One line a step: "read 4.00 GiB by buffered, 8 workers x 3 slots of 4 MiB: all of the range is in the page
    // cache".
    std::string describe() const;
    friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace penstock
