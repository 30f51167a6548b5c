// The rules of the Path contract as functions. Each returns an empty string if the rule holds, and otherwise what
// broke.
//
// They use no test framework, so that a negative control can require that one of them fails. The contract allows short
// counts, EINTR and EAGAIN: the checks continue after them, as the engine does. Each check declares its path last, so
// that the path is destroyed before the files and memory that its operations may still use.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <sstream>
#include <thread>

#include "base/path_traits.hpp"
#include "conformance/path_rig.hpp"

namespace penstock::conformance {

constexpr std::byte kCanary{0xC5};

template <typename... Words>
std::string broken(const Words&... words) {
    std::ostringstream text;
    (text << ... << words);
    return text.str();
}

inline bool again(const Completion& done) {
    return done.status != ErrorCode::ok && (done.system_code == EINTR || done.system_code == EAGAIN);
}

// Reaps one completion. Returns false if none arrived in time.
inline bool reap_one(Rig& rig, Path& path, Completion& done) {
    return path.reap({&done, 1}, Deadline::after(rig.traits.patience)) == 1;
}

// Runs one operation until it completes with any status. Repeats it after EINTR and EAGAIN.
inline std::string finish(Rig& rig, Path& path, const Operation& operation, Completion& done) {
    for (int tries = 0; tries < 100; ++tries) {
        if (path.submit({&operation, 1}) != 1) return "an idle path took no operation";
        if (!reap_one(rig, path, done)) return "a completion never came";
        if (done.tag != operation.tag) return broken("tag ", operation.tag, " came back as ", done.tag);
        if (!again(done)) return {};
    }
    return "nothing but EINTR and EAGAIN";
}

// Moves all bytes of the operation, with as many operations as short counts require. `moved` < bytes: end of file.
inline std::string move_all(Rig& rig, Path& path, const Operation& operation, std::uint64_t& moved) {
    const std::uint32_t step = rig.traits.offset_step;
    for (moved = 0; moved < operation.bytes;) {
        Operation rest = operation;
        rest.offset_bytes += moved;
        rest.bytes -= moved;
        rest.memory = static_cast<std::byte*>(operation.memory) + moved;
        Completion done;
        if (std::string why = finish(rig, path, rest, done); !why.empty()) return why;
        if (done.status != ErrorCode::ok) {
            return broken("offset ", rest.offset_bytes, " length ", rest.bytes, ": ", to_string(done.status),
                          ", errno ", done.system_code);
        }
        if (done.bytes > rest.bytes) return broken("moved ", done.bytes, " of ", rest.bytes);
        moved += done.bytes;
        if (done.bytes == 0 || done.bytes % step != 0) break;
    }
    return {};
}

inline std::string compare(std::span<const std::byte> found, std::span<const std::byte> wanted, const char* what) {
    if (found.size() != wanted.size()) return broken(what, ": ", found.size(), " bytes, not ", wanted.size());
    // At once where they agree: one by one takes long in a test that is not optimised.
    if (found.empty() || std::memcmp(found.data(), wanted.data(), found.size()) == 0) return {};
    const auto [at, other] = std::mismatch(found.begin(), found.end(), wanted.begin());
    return at == found.end() ? std::string() : broken(what, ": first wrong byte is ", at - found.begin());
}

// Offsets and lengths at which mistakes are likely, in steps of the rig.
inline std::vector<std::pair<std::uint64_t, std::uint64_t>> spans_of(const Rig& rig) {
    const std::uint64_t step = rig.traits.offset_step;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> spans{
        {0, step}, {0, 3 * step}, {step, step}, {5 * step, 7 * step}, {0, align_up(200'000, step)}};
    if (step == 1) spans.insert(spans.end(), {{1, 4095}, {4095, 2}, {4096, 4096}, {65'535, 65'537}, {3, 100'001}});
    return spans;
}

inline std::uint64_t longest(const Rig& rig) {
    std::uint64_t length = 0;
    for (const auto& span : spans_of(rig)) length = std::max(length, span.second);
    return length;
}

inline std::string reads_what_is_there(Rig& rig) {
    const std::uint32_t guard = std::max(rig.traits.memory_step, 64u);
    const auto memory = rig.allocate(longest(rig) + 2 * guard);
    std::list<FileHandle> files;
    const auto path = rig.path(4);
    for (const std::uint64_t size : {std::uint64_t{1}, std::uint64_t{4096}, std::uint64_t{70'003}, kMiB + 13}) {
        const Bytes original = pattern(size, size);
        const FileHandle& file = files.emplace_back(rig.make_file(original, false));
        for (const auto& [offset, length] : spans_of(rig)) {
            rig.store(memory.get(), Bytes(length + 2 * guard, kCanary));
            std::uint64_t moved = 0;
            const Operation read{Direction::read, &file, offset, memory.get() + guard, length, 7};
            if (std::string why = move_all(rig, *path, read, moved); !why.empty()) return why;
            const std::uint64_t there = offset >= size ? 0 : std::min(length, size - offset);
            if (moved != there) return broken("size ", size, ": read ", moved, " at ", offset, ", not ", there);
            const Bytes found = rig.load(memory.get(), length + 2 * guard);
            const auto wanted = std::span(original).subspan(there == 0 ? 0 : offset, there);
            if (std::string why = compare(std::span(found).subspan(guard, there), wanted, "read"); !why.empty())
                return why;
            const Bytes canary(guard, kCanary);
            if (std::string why = compare(std::span(found).first(guard), canary, "before"); !why.empty()) return why;
            if (std::string why = compare(std::span(found).last(guard), canary, "after"); !why.empty()) return why;
        }
    }
    return {};
}

inline std::string writes_the_range_and_nothing_else(Rig& rig) {
    const auto memory = rig.allocate(longest(rig));
    std::list<FileHandle> files;
    const auto path = rig.path(4);
    for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{70'003}, kMiB + 13}) {
        for (const auto& [offset, length] : spans_of(rig)) {
            if (!rig.traits.extends && offset + length > size) continue;
            Bytes wanted = pattern(size, 1);
            const FileHandle& file = files.emplace_back(rig.make_file(wanted, true));
            const Bytes written = pattern(length, 2 + offset);
            rig.store(memory.get(), written);
            std::uint64_t moved = 0;
            const Operation write{Direction::write, &file, offset, memory.get(), length, 9};
            if (std::string why = move_all(rig, *path, write, moved); !why.empty()) return why;
            if (moved != length) return broken("wrote ", moved, " of ", length, " at ", offset);
            wanted.resize(std::max<std::uint64_t>(size, offset + length));
            std::copy(written.begin(), written.end(), wanted.begin() + static_cast<std::ptrdiff_t>(offset));
            if (std::string why = compare(rig.contents(file), wanted, "file after write"); !why.empty()) return why;
            if (std::string why = compare(rig.load(memory.get(), length), written, "source"); !why.empty()) return why;
        }
    }
    return {};
}

inline std::string reads_short_at_the_end_and_then_nothing(Rig& rig) {
    const std::uint64_t step = rig.traits.offset_step;
    const std::uint64_t size = 4 * step + step / 2 + 1;
    const FileHandle file = rig.make_file(pattern(size, 3), false);
    const auto memory = rig.allocate(16 * step);
    const auto path = rig.path(1);
    const auto reads = [&](std::uint64_t offset, std::uint64_t wanted) -> std::string {
        std::uint64_t moved = 0;
        const Operation read{Direction::read, &file, offset, memory.get(), 8 * step, 1};
        if (std::string why = move_all(rig, *path, read, moved); !why.empty()) return why;
        return moved == wanted ? std::string() : broken("at ", offset, " of ", size, ": ", moved, ", not ", wanted);
    };
    const std::uint64_t inside = 4 * step;
    for (const auto& [offset, wanted] : {std::pair{inside, size - inside},
                                         {align_up(size, step), std::uint64_t{0}},
                                         {align_up(size, step) + 100 * step, std::uint64_t{0}}}) {
        if (std::string why = reads(offset, wanted); !why.empty()) return why;
    }
    return {};
}

// Keeps the queue full until all is read. Each operation must complete once, with its own tag and its own bytes. An
// operation that came short or must be repeated goes to the end of the line as a whole.
inline std::string answers_each_operation_once_with_its_own_bytes(Rig& rig) {
    const std::uint64_t block = align_up(4096, rig.traits.offset_step);
    const std::size_t limit = rig.path(16)->capabilities().max_in_flight, count = limit + 5;
    const Bytes original = pattern(count * block, 4);
    const FileHandle file = rig.make_file(original, false);
    const auto memory = rig.allocate(count * block);
    const auto path = rig.path(16);
    std::vector<std::uint64_t> line;  // blocks to read, not in file order
    for (std::uint64_t at = 1; at < count; at += 2) line.push_back(at);
    for (std::uint64_t at = 0; at < count; at += 2) line.push_back(at);
    std::map<std::uint64_t, int> open;
    std::size_t next = 0, in_flight = 0;
    while (next < line.size() || in_flight > 0) {
        std::vector<Operation> offered;
        for (std::size_t i = next; i < line.size(); ++i) {
            const std::uint64_t at = line[i] * block;
            offered.push_back({Direction::read, &file, at, memory.get() + at, block, 1000 + line[i]});
        }
        const std::size_t taken = path->submit(offered);
        if (in_flight + taken > limit) return broken("took ", in_flight + taken, " with max_in_flight ", limit);
        for (std::size_t i = 0; i < taken; ++i) ++open[offered[i].tag];
        next += taken;
        in_flight += taken;
        Completion done;
        if (!reap_one(rig, *path, done)) return broken("a completion never came, ", in_flight, " in flight");
        if (open[done.tag]-- != 1) return broken("tag ", done.tag, " came twice or from nowhere");
        --in_flight;
        if (done.status != ErrorCode::ok && !again(done)) return broken("tag ", done.tag, ": errno ", done.system_code);
        if (done.status != ErrorCode::ok || done.bytes < block) line.push_back(done.tag - 1000);
        if (line.size() > 100 * count) return "nothing but short counts";
    }
    return compare(rig.load(memory.get(), count * block), original, "read in any order");
}

inline std::string takes_no_more_when_full(Rig& rig) {
    const std::uint64_t block = align_up(4096, rig.traits.offset_step);
    const std::size_t limit = rig.path(4)->capabilities().max_in_flight;
    const FileHandle file = rig.make_file(pattern(block, 5), false);
    const auto memory = rig.allocate((limit + 2) * block);
    const auto path = rig.path(4);
    std::vector<Operation> operations;
    for (std::size_t i = 0; i < limit + 2; ++i) {
        operations.push_back({Direction::read, &file, 0, memory.get() + i * block, block, i});
    }
    std::size_t taken = 0;
    for (std::size_t more = 1; more > 0; taken += more) more = path->submit(std::span(operations).subspan(taken));
    if (taken != limit) return broken("took ", taken, " without a reap, max_in_flight is ", limit);
    Completion done;
    if (!reap_one(rig, *path, done)) return "a completion never came";
    if (path->submit(std::span(operations).last(1)) != 1) return "no room after a reap";
    return {};
}

inline std::string reaps_without_waiting_longer_than_asked(Rig& rig) {
    const std::uint64_t block = align_up(4096, rig.traits.offset_step);
    const FileHandle file = rig.make_file(pattern(block, 6), false);
    const auto memory = rig.allocate(block);
    const auto path = rig.path(4);
    Completion done;
    const auto start = Clock::now();
    if (path->reap({&done, 1}, Deadline::never()) != 0) return "a completion of nothing";
    if (path->reap({}, Deadline::never()) != 0) return "a completion into no room";
    if (path->submit({}) != 0) return "took an operation that was not offered";
    if (Clock::now() - start > std::chrono::seconds(2)) return "waited with nothing in flight";
    const Operation read{Direction::read, &file, 0, memory.get(), block, 3};
    if (path->submit({&read, 1}) != 1) return "an idle path took no operation";
    const auto give_up = Clock::now() + rig.traits.patience;
    while (path->reap({&done, 1}, Deadline::now()) == 0) {
        if (Clock::now() > give_up) return "polling with a passed deadline never gave the completion";
        std::this_thread::yield();
    }
    return done.tag == 3 ? std::string() : "another tag came back";
}

inline std::string leaves_memory_alone_once_destroyed(Rig& rig) {
    const std::uint64_t block = align_up(256 * kKiB, rig.traits.offset_step);
    constexpr std::size_t kBlocks = 8;
    const FileHandle file = rig.make_file(pattern(kBlocks * block, 7), false);
    const auto memory = rig.allocate(kBlocks * block);
    auto path = rig.path(kBlocks);
    std::vector<Operation> operations;
    for (std::size_t i = 0; i < kBlocks; ++i) {
        operations.push_back({Direction::read, &file, i * block, memory.get() + i * block, block, i});
    }
    if (path->submit(operations) == 0) return "an idle path took no operation";
    path.reset();
    const Bytes canary(kBlocks * block, kCanary);
    rig.store(memory.get(), canary);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    return compare(rig.load(memory.get(), kBlocks * block), canary, "memory after the path was destroyed");
}

inline std::string reports_mistakes_as_completions(Rig& rig) {
    const std::uint64_t block = align_up(4096, rig.traits.offset_step);
    const auto memory = rig.allocate(2 * block + rig.traits.memory_step);
    const FileHandle file = rig.make_file(pattern(2 * block, 8), false), closed = rig.closed_file();
    const auto path = rig.path(4);
    struct Mistake {
        const char* name;
        Operation operation;
    };
    std::vector<Mistake> mistakes{
        {"no file", {Direction::read, nullptr, 0, memory.get(), block, 1}},
        {"no bytes", {Direction::read, &file, 0, memory.get(), 0, 2}},
        {"write to a read-only file", {Direction::write, &file, 0, memory.get(), block, 3}},
        {"write from nowhere", {Direction::write, &file, 0, nullptr, block, 4}},
        {"read of a closed file", {Direction::read, &closed, 0, memory.get(), block, 5}},
        {"write to a closed file", {Direction::write, &closed, 0, memory.get(), block, 6}},
    };
    if (rig.traits.offset_step > 1) {
        mistakes.push_back({"unaligned offset", {Direction::read, &file, 1, memory.get(), block, 7}});
        mistakes.push_back({"unaligned length", {Direction::read, &file, 0, memory.get(), block - 1, 8}});
    }
    if (rig.traits.memory_step > 1) {
        mistakes.push_back({"unaligned memory", {Direction::read, &file, 0, memory.get() + 1, block, 9}});
    }
    for (const Mistake& mistake : mistakes) {
        Completion done;
        if (std::string why = finish(rig, *path, mistake.operation, done); !why.empty()) {
            return broken(mistake.name, ": ", why);
        }
        if (done.status == ErrorCode::ok) return broken(mistake.name, ": completed ok");
        if (done.bytes != 0) return broken(mistake.name, ": moved ", done.bytes);
    }
    Completion done;
    const Operation good{Direction::read, &file, 0, memory.get(), block, 10};
    if (std::string why = finish(rig, *path, good, done); !why.empty()) return broken("after mistakes: ", why);
    return done.status == ErrorCode::ok ? std::string() : "no longer works after mistakes";
}

inline std::string is_what_its_row_says(Rig& rig) {
    const auto path = rig.path(1);
    const Capabilities& found = path->capabilities();
    if (found.bypasses_cache == bypasses_cache(found.kind)) return {};
    return broken(to_string(found.kind), ": bypasses_cache is ", found.bypasses_cache, ", kPathTraits says otherwise");
}

// All checks above, by name.
struct PathCheck {
    const char* name;
    std::string (*holds)(Rig&);
};
inline constexpr PathCheck kPathChecks[]{
    {"is_what_its_row_says", is_what_its_row_says},
    {"reads_what_is_there", reads_what_is_there},
    {"writes_the_range_and_nothing_else", writes_the_range_and_nothing_else},
    {"reads_short_at_the_end_and_then_nothing", reads_short_at_the_end_and_then_nothing},
    {"answers_each_operation_once_with_its_own_bytes", answers_each_operation_once_with_its_own_bytes},
    {"takes_no_more_when_full", takes_no_more_when_full},
    {"reaps_without_waiting_longer_than_asked", reaps_without_waiting_longer_than_asked},
    {"leaves_memory_alone_once_destroyed", leaves_memory_alone_once_destroyed},
    {"reports_mistakes_as_completions", reports_mistakes_as_completions},
};

}  // namespace penstock::conformance
