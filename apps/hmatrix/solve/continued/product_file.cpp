// See product_file.hpp.
//
// Header, all little-endian: 0 magic, 8 version (u32), 12 checksum of the first guess (u32), 16 unknowns (i64), 24
// columns (i64), 32 id (u64, random, equal to the id in the checkpoint), 40 iterations before (i64), 48 sweeps before
// (i64), 56 zeros (4 bytes), 60 checksum of bytes 0 to 59 (u32). From 64: the first guess. An entry: columns (i64),
// accuracy (f64), number of doubles of the operand (i64: 0, or as many as of the image), marks of each column, the
// operand, the image, the checksum of all of these (u32), zeros (4 bytes). Marks, operand and image are doubles.
#include "hmatrix/solve/continued/product_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <utility>

#include "hmatrix/solve/continued/state_bytes.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::array<char, 8> kMagic{'P', 'S', 'H', 'M', 'P', 'R', 'O', 'D'};
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kHeaderBytes = 64, kHeaderSum = 60, kEntryHead = 24, kEntryTail = 8;

constexpr std::size_t kPendingMost = 64 << 20;  // bytes kept in memory at most, even if checkpoints are rare

using Header = std::array<std::byte, kHeaderBytes>;

constexpr const char* kOperation = "read the products of a checkpoint";

[[noreturn]] void refuse(const std::string& file, const std::string& cause, const std::string& advice = {}) {
    refuse(StateFile{kOperation, file}, cause, advice);
}

void require_whole(const Outcome& outcome, std::uint64_t bytes, const std::string& file) {
    require_whole(outcome, bytes, StateFile{kOperation, file});
}

std::uint64_t numbers_of(const Problem& problem) {
    return static_cast<std::uint64_t>(problem.unknowns) * static_cast<std::uint64_t>(problem.columns);
}

std::uint64_t new_id() {
    std::random_device random;
    return static_cast<std::uint64_t>(random()) << 32 | random() | 1;  // never 0, which means no log
}

// Refuses a file of that name that is not a log of products, so that the log cannot overwrite the user's data.
void require_replaceable(const Context& context, const std::string& file) {
    std::optional<File> there;
    try {
        there = context.open(file);
    } catch (const Error& error) {
        if (error.code() == ErrorCode::not_found) return;
        throw;
    }
    std::array<char, 8> magic{};
    const std::uint64_t bytes = std::min<std::uint64_t>(there->size_bytes(), magic.size());
    if (bytes == magic.size()) require_whole(there->read(view_of(magic.data(), bytes)), bytes, file);
    if (magic == kMagic) return;
    refuse(file, "this name is for the products of the checkpoint, and the file holds none",
           "move it, or name another checkpoint");
}

}  // namespace

ProductFile::ProductFile(const Context& context, std::string file, const Problem& problem, FirstGuess first)
    : context_(context), file_(std::move(file)), problem_(problem), first_(std::move(first)), id_(new_id()) {
    require_replaceable(context_, file_);
}

ProductFile::ProductFile(const Context& context, std::string file, const Problem& problem, const ProductsMark& mark)
    : context_(context), file_(std::move(file)), problem_(problem), id_(mark.id), settled_(mark.bytes) {
    open_ = context.open(file_, {.mode = OpenMode::read_write});
    const std::uint32_t checksum = read_header(mark);
    first_.x.resize(numbers_of(problem));
    const std::uint64_t bytes = first_.x.size() * sizeof(double);
    next_ = kHeaderBytes + bytes;
    if (settled_ < next_ || open_->size_bytes() < settled_) refuse(file_, "it is shorter than its checkpoint says");
    require_whole(open_->read(view_of(first_.x.data(), bytes), kHeaderBytes), bytes, file_);
    if (checksum_of(first_.x) != checksum) refuse(file_, "its first guess is corrupted");
}

// Reads and checks the header. Returns the checksum of the first guess.
std::uint32_t ProductFile::read_header(const ProductsMark& mark) {
    if (open_->size_bytes() < kHeaderBytes) refuse(file_, "it is shorter than its header");
    Header header;
    require_whole(open_->read(view_of(header.data(), kHeaderBytes)), kHeaderBytes, file_);
    if (get<std::array<char, 8>>(header, 0) != kMagic) refuse(file_, "it does not hold products of a solve");
    if (get<std::uint32_t>(header, kHeaderSum) != sum_of(std::span(header).first(kHeaderSum))) {
        refuse(file_, "its header is corrupted");
    }
    if (get<std::uint32_t>(header, 8) != kVersion) refuse(file_, "it is of another version");
    const bool ours = get<std::uint64_t>(header, 32) == mark.id &&
                      get<std::int64_t>(header, 16) == problem_.unknowns &&
                      get<std::int64_t>(header, 24) == problem_.columns;
    if (!ours) refuse(file_, "it belongs to another solve than the checkpoint");
    first_.iterations = get<std::int64_t>(header, 40);
    first_.sweeps = get<std::int64_t>(header, 48);
    return get<std::uint32_t>(header, 12);
}

// Makes the file complete under its name or not at all, like a checkpoint.
void ProductFile::make() {
    Header header{};
    put(header, 0, kMagic);
    put(header, 8, kVersion);
    put(header, 12, checksum_of(first_.x));
    put(header, 16, problem_.unknowns);
    put(header, 24, problem_.columns);
    put(header, 32, id_);
    put(header, 40, first_.iterations);
    put(header, 48, first_.sweeps);
    put(header, kHeaderSum, sum_of(std::span(header).first(kHeaderSum)));
    const std::uint64_t bytes = first_.x.size() * sizeof(double);
    File made = context_.open(
        file_, {.mode = OpenMode::create, .size_bytes = kHeaderBytes + bytes, .durable = true});
    require_whole(made.write(view_of(header.data(), kHeaderBytes)), kHeaderBytes, file_);
    require_whole(made.write(view_of(first_.x.data(), bytes), kHeaderBytes), bytes, file_);
    made.close();
    settled_ = next_ = kHeaderBytes + bytes;
    open_ = context_.open(file_, {.mode = OpenMode::read_write});
}

ProductsMark ProductFile::settle() {
    if (settled_ == 0) make();
    if (!pending_.empty()) {
        require_whole(open_->write(view_of(pending_.data(), pending_.size()), settled_), pending_.size(), file_);
        open_->sync();
        settled_ += pending_.size();
        next_ = settled_;
        pending_.clear();
    }
    return {.id = id_, .bytes = settled_};
}

std::vector<std::byte> ProductFile::entry_at(std::uint64_t offset, std::size_t bytes) const {
    std::vector<std::byte> entry(bytes);
    try {
        require_whole(open_->read(view_of(entry.data(), bytes), offset), bytes, file_);
    } catch (const Error& error) {
        throw ReplayDiverged(error.what());
    }
    return entry;
}

void ProductFile::recall(const ProductKey& key, double part, std::span<double> image) {
    const std::size_t marks = key.marks.size() * sizeof(double), numbers = image.size_bytes();
    if (settled_ - next_ < kEntryHead) throw ReplayDiverged("the file ends in the middle of a product");
    const std::vector<std::byte> head = entry_at(next_, kEntryHead);
    const auto operands = get<std::int64_t>(head, 16);
    if (operands != 0 && operands != static_cast<std::int64_t>(image.size()))
        throw ReplayDiverged("the solve asks for a product with other right-hand sides");
    const std::size_t of_operand = static_cast<std::size_t>(operands) * sizeof(double);
    const std::size_t bytes = kEntryHead + marks + of_operand + numbers + kEntryTail;
    if (settled_ - next_ < bytes) throw ReplayDiverged("the solve asks for a product with more right-hand sides");
    const std::vector<std::byte> entry = entry_at(next_, bytes);
    ProductKey kept{.columns = get<std::int64_t>(entry, 0), .accuracy = get<double>(entry, 8), .marks = key.marks};
    if (kept.columns != key.columns) throw ReplayDiverged("the solve asks for a product with other right-hand sides");
    if (get<std::uint32_t>(entry, bytes - kEntryTail) != sum_of(std::span(entry).first(bytes - kEntryTail))) {
        throw ReplayDiverged(file_ + ": the product at byte " + std::to_string(next_) + " is corrupted");
    }
    std::memcpy(kept.marks.data(), entry.data() + kEntryHead, marks);
    if (!same(kept, key, part)) throw ReplayDiverged("the solve takes other steps than the one that was kept");
    operand_.resize(static_cast<std::size_t>(operands));
    // An operand that was not kept has no memory, and memcpy must not receive a null pointer.
    std::copy_n(entry.data() + kEntryHead + marks, of_operand, reinterpret_cast<std::byte*>(operand_.data()));
    std::memcpy(image.data(), entry.data() + kEntryHead + marks + of_operand, numbers);
    next_ += bytes;
}

void ProductFile::keep(const ProductKey& key, std::span<const double> operand, std::span<const double> image) {
    const std::size_t marks = key.marks.size() * sizeof(double), numbers = image.size_bytes();
    std::vector<std::byte> entry(kEntryHead + marks + operand.size_bytes() + numbers + kEntryTail);
    put(entry, 0, key.columns);
    put(entry, 8, key.accuracy);
    put(entry, 16, static_cast<std::int64_t>(operand.size()));
    std::byte* const at = entry.data() + kEntryHead;
    std::memcpy(at, key.marks.data(), marks);
    std::copy_n(reinterpret_cast<const std::byte*>(operand.data()), operand.size_bytes(), at + marks);
    std::memcpy(at + marks + operand.size_bytes(), image.data(), numbers);
    const std::size_t tail = entry.size() - kEntryTail;
    put(entry, tail, sum_of(std::span(entry).first(tail)));
    pending_.insert(pending_.end(), entry.begin(), entry.end());
    if (pending_.size() >= kPendingMost) settle();
}

}  // namespace penstock::hmatrix
