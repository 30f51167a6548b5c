// See mover.hpp.
#include "vfd/mover.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "vfd/fault.hpp"
#include "vfd/plain.hpp"

namespace penstock::vfd {
namespace {

// Managed memory from this size on is moved as memory of its device: a system call would bring its pages to the host.
constexpr std::size_t kManagedBytes = std::size_t{64} << 10;
// Pieces that are smaller on average do not repay a range of a transfer.
constexpr std::size_t kRangeBytes = std::size_t{256} << 10;

std::size_t total_of(std::span<const Piece> pieces) {
    std::size_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.bytes;
    return bytes;
}

bool by_device(const Place& place, std::size_t bytes) {
    return place.on_device() || (place.kind == PENSTOCK_MANAGED && bytes >= kManagedBytes);
}

// Moves the ranges, and waits. One range needs no transfer where it is small.
penstock_result moved(const Engine& engine, const penstock_ranges& ranges, const char* path) {
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_request request = PENSTOCK_REQUEST_INIT;
    penstock_result result = PENSTOCK_RESULT_INIT;
    request.path = path;
    int code = PENSTOCK_OK;
    if (ranges.count == 1) {
        const penstock_range& item = ranges.items[0];
        request.memory = {item.data, item.bytes, ranges.kind, 0};
        request.offset_bytes = item.offset_bytes;
        const auto run = ranges.direction == PENSTOCK_TO_FILE ? penstock_write : penstock_read;
        code = run(item.file, &request, &result, &error);
    } else {
        penstock_transfer* transfer = nullptr;
        code = penstock_start_ranges(engine.context(), &ranges, &request, &transfer, &error);
        if (code == PENSTOCK_OK) code = penstock_transfer_result(transfer, &result, &error);
        penstock_transfer_free(transfer);
    }
    if (code != PENSTOCK_OK) throw library_fault(error);
    return result;
}

// The part of a piece that lies behind the end of the file.
Piece behind(const Piece& piece, std::uint64_t file_bytes) {
    const std::uint64_t inside =
        piece.offset_bytes >= file_bytes ? 0 : std::min<std::uint64_t>(piece.bytes, file_bytes - piece.offset_bytes);
    return {piece.offset_bytes + inside, piece.bytes - inside, piece.memory + inside};
}

}  // namespace

Mover::Mover(Target target, const Settings& settings, Tally& tally)
    : target_(target), settings_(settings), devices_(may_be_device(settings)), tally_(tally), process_(::getpid()) {}

Mover::~Mover() {
    forget_in_child();
    for (const Handle& handle : handles_) penstock_file_abandon(handle.file);
}

void Mover::forget_in_child() {
    if (process_ == ::getpid()) return;
    // The handles are the parent's, and so is what they hold.
    static_cast<void>(std::make_unique<std::vector<Handle>>(std::exchange(handles_, {})).release());
    process_ = ::getpid();
}

void Mover::close() {
    const std::lock_guard lock(mutex_);
    forget_in_child();
    penstock_error error = PENSTOCK_ERROR_INIT, first = PENSTOCK_ERROR_INIT;
    for (const Handle& handle : std::exchange(handles_, {})) {
        if (penstock_file_close(handle.file, &error) != PENSTOCK_OK && first.code == PENSTOCK_OK) first = error;
    }
    if (first.code != PENSTOCK_OK) throw library_fault(first);
}

// By its descriptor, so that a name which leads elsewhere by now does no harm.
const penstock_file* Mover::handle_of(const std::shared_ptr<Engine>& engine) {
    const std::lock_guard lock(mutex_);
    forget_in_child();
    for (const Handle& handle : handles_) {
        if (handle.engine == engine) return handle.file;
    }
    const std::string name = "/proc/self/fd/" + std::to_string(target_.fd);
    penstock_open_options options = PENSTOCK_OPEN_OPTIONS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_file* file = nullptr;
    options.mode = target_.writable ? PENSTOCK_READ_WRITE : PENSTOCK_READ;
    if (penstock_file_open(engine->context(), name.c_str(), &options, &file, &error) != PENSTOCK_OK) {
        throw library_fault(error);
    }
    handles_.push_back({engine, file});
    return file;
}

Place Mover::place_of(const void* memory) const {
    return devices_ ? Engines::here().place_of(memory, settings_.device) : Place{};
}

std::shared_ptr<Engine> Mover::engine_of(const Place& place) const {
    if (settings_.device != "auto") return Engines::here().get(settings_.device);
    const bool on_gpu = place.on_device() || place.kind == PENSTOCK_MANAGED;
    return Engines::here().get(on_gpu ? "cuda:" + std::to_string(std::max(place.device_index, 0)) : "host");
}

// Not for managed memory, which any system call reads at once.
std::shared_ptr<Engine> Mover::settled_engine_of(const Place& place) const {
    std::shared_ptr<Engine> engine = engine_of(place);
    if (place.on_device()) engine->synchronize();
    return engine;
}

void Mover::read_plain(const Piece& piece) {
    read_or_zero(fd(), piece.memory, piece.bytes, piece.offset_bytes);
    tally_.moved(false).plain.add(piece.bytes);
}

void Mover::write_plain(const Piece& piece) {
    vfd::write_plain(fd(), piece.memory, piece.bytes, piece.offset_bytes);
    tally_.moved(true).plain.add(piece.bytes);
}

void Mover::move(bool write, const Piece& piece, const Place& place) {
    if (piece.bytes >= settings_.large_bytes && transferred(write, {&piece, 1}, place)) return;
    if (by_device(place, piece.bytes)) return staged(write, piece, *settled_engine_of(place));
    if (write) write_plain(piece);
    else read_plain(piece);
}

void Mover::move_all(bool write, std::span<const Piece> pieces, const Place& place) {
    const std::size_t bytes = total_of(pieces);
    const bool together = pieces.size() > 1 && bytes >= settings_.large_bytes && bytes / pieces.size() >= kRangeBytes;
    if (together && transferred(write, pieces, place)) return;
    for (const Piece& piece : pieces) move(write, piece, place);
}

// False where host memory goes by system calls: where it has to, and where it is written, because a program that asks
// for nothing else expects its writes in the page cache, at that speed.
bool Mover::transferred(bool write, std::span<const Piece> pieces, const Place& place) {
    if (write && settings_.path == "auto" && !by_device(place, total_of(pieces))) return false;
    try {
        handle_of(engine_of(place));
    } catch (const Fault& fault) {
        if (by_device(place, pieces.front().bytes)) throw;
        tally_.refused(fault.operation + ": " + fault.cause);
        return false;
    }
    transfer(write, pieces, place);
    return true;
}

void Mover::transfer(bool write, std::span<const Piece> pieces, const Place& place) {
    const std::shared_ptr<Engine> engine = settled_engine_of(place);
    const penstock_file* file = handle_of(engine);
    const std::uint64_t file_bytes = write ? ~std::uint64_t{0} : size_of(fd());
    std::vector<penstock_range> items;
    items.reserve(pieces.size());
    for (const Piece& piece : pieces) {
        const Piece rest = write ? Piece{} : behind(piece, file_bytes);
        if (rest.bytes != 0) zero(rest, place);
        const std::size_t inside = piece.bytes - rest.bytes;
        if (inside != 0) items.push_back({file, piece.offset_bytes, piece.memory, inside});
    }
    if (items.empty()) return;
    penstock_ranges ranges = PENSTOCK_RANGES_INIT;
    ranges.items = items.data();
    ranges.count = items.size();
    ranges.direction = write ? PENSTOCK_TO_FILE : PENSTOCK_TO_MEMORY;
    ranges.kind = by_device(place, total_of(pieces)) ? place.kind : PENSTOCK_SYSTEM;
    const penstock_result result = moved(*engine, ranges, settings_.path == "auto" ? nullptr : settings_.path.c_str());
    if (result.reached_end != 0) throw Fault{"read", "the file became shorter during the read", "", 0, 0, 0};
    tally_.transfer(write, result.path, result.bytes, result.fallbacks);
}

void Mover::staged(bool write, const Piece& piece, Engine& engine) {
    engine.with_staging([&](std::byte* staging) {
        for (std::size_t done = 0; done < piece.bytes; done += Engine::kStagingBytes) {
            const std::size_t bytes = std::min(piece.bytes - done, Engine::kStagingBytes);
            if (write) {
                engine.copy_to_host(staging, piece.memory + done, bytes);
                vfd::write_plain(fd(), staging, bytes, piece.offset_bytes + done);
            } else {
                read_or_zero(fd(), staging, bytes, piece.offset_bytes + done);
                engine.copy_to_device(piece.memory + done, staging, bytes);
            }
        }
    });
    tally_.moved(write).staged.add(piece.bytes);
}

void Mover::zero(const Piece& piece, const Place& place) {
    if (!by_device(place, piece.bytes)) {
        std::memset(piece.memory, 0, piece.bytes);
        return;
    }
    const std::shared_ptr<Engine> engine = engine_of(place);
    engine->with_staging([&](std::byte* staging) {
        std::memset(staging, 0, std::min(piece.bytes, Engine::kStagingBytes));
        for (std::size_t done = 0; done < piece.bytes; done += Engine::kStagingBytes) {
            engine->copy_to_device(piece.memory + done, staging, std::min(piece.bytes - done, Engine::kStagingBytes));
        }
    });
}

const Place& Places::of(const Mover& mover, const void* memory) {
    const std::uintptr_t unit = reinterpret_cast<std::uintptr_t>(memory) >> mover.page_bits();
    if (unit != unit_) place_ = mover.place_of(memory);
    unit_ = unit;
    return place_;
}

bool Mover::is_asker() noexcept {
    static thread_local const char self = 0;  // its address stands for the thread
    const void* none = nullptr;
    if (asker_.load(std::memory_order_relaxed) == &self) return true;
    return asker_.compare_exchange_strong(none, &self, std::memory_order_relaxed);
}

void Mover::copy(void* to, const void* from, std::size_t bytes) {
    Asked now;
    Asked& asked = is_asker() ? asked_ : now;
    now.at = std::chrono::steady_clock::now();
    if (now.at - asked.at > std::chrono::milliseconds(1)) asked = now;
    const Place target = asked.targets.of(*this, to), source = asked.sources.of(*this, from);
    if (!target.on_device() && !source.on_device()) {
        std::memcpy(to, from, bytes);
    } else if (!source.on_device()) {
        settled_engine_of(target)->copy_to_device(to, from, bytes);
        tally_.moved(false).rows.add(bytes);
    } else if (!target.on_device()) {
        settled_engine_of(source)->copy_to_host(to, from, bytes);
        tally_.moved(true).rows.add(bytes);
    } else {
        throw Fault{"copy memory", "both sides are device memory", "read into memory of the host first", 0, 0, 0};
    }
}

}  // namespace penstock::vfd
