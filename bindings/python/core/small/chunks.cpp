// See chunks.hpp.
#include "python/core/small/chunks.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace penstock::python {
namespace {

constexpr std::uint64_t kMostChunkBytes = 4 * kMiB;    // decoded: about 10 ms
constexpr std::uint64_t kMostTogether = 256 * kKiB;    // of several chunks: more are worth the other cores
constexpr std::uint64_t kMostStream = 4 * kSmallReadBytes;
constexpr std::uint64_t kLeastAlone = 64 * kKiB;       // some us of copies: worth to let go of the GIL
constexpr std::uint64_t kCopiedBytesPerNs = 12;  // by one thread, of some MiB that lie in its cache

// Adds the time of its scope.
class Timed {
  public:
    explicit Timed(std::chrono::steady_clock::duration& total) : total_(total) {}
    ~Timed() { total_ += std::chrono::steady_clock::now() - from_; }
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

  private:
    std::chrono::steady_clock::duration& total_;
    std::chrono::steady_clock::time_point from_ = std::chrono::steady_clock::now();
};

}  // namespace

engine::EnginePool::LentStaging lend_staging(context::ContextState& state, std::uint64_t bytes) {
    if (bytes == 0) return state.engine.lend(0);
    const GilReleased release;
    return state.engine.lend(bytes);
}

// Finds the chunks that an earlier read has left, and where the others lie. absent: one is not stored, or they are too
// many.
ChunkReads::Found ChunkReads::look_for(std::span<const data::FileRun> runs, Wanted& wanted) {
    const std::uint64_t size = source_.chunk_bytes;
    std::set<std::uint64_t> numbers;
    for (const data::FileRun& run : runs) {
        const std::uint64_t end = run.file_offset + run.bytes;
        for (std::uint64_t number = run.file_offset / size; number * size < end; ++number) {
            numbers.insert(number);
            if (number * size < run.file_offset || (number + 1) * size > end) continue;
            wanted.wholes[number] = run.memory_offset + number * size - run.file_offset;
        }
        if (numbers.size() * size > kMostAhead) return Found::absent;
    }
    if (numbers.size() == 1) return Found::here;
    wanted.met_bytes = numbers.size() * size;
    nb::list asked;
    for (const std::uint64_t number : numbers) asked.append(number);
    const nb::object all = source_.find_all(asked);
    if (!PyList_CheckExact(all.ptr()) || !std::cmp_equal(PyList_GET_SIZE(all.ptr()), numbers.size())) {
        return Found::absent;
    }
    const auto each = nb::borrow<nb::list>(all);
    std::size_t at = 0;
    for (const std::uint64_t number : numbers) {
        const nb::object found = each[at++];
        if (!PyTuple_CheckExact(found.ptr())) {
            if (borrow(number, found) == Found::absent) return Found::absent;
            continue;
        }
        wanted.numbers.push_back(number);
        wanted.places.push_back({nb::cast<std::uint64_t>(found[0]), nb::cast<std::uint64_t>(found[1])});
        wanted.skipped.push_back(nb::cast<std::uint32_t>(found[2]));
        if (wanted.places.back().bytes == 0 || wanted.places.back().bytes > kMostAhead) return Found::absent;
    }
    return Found::here;
}

ChunkReads::Found ChunkReads::prepare(std::span<const data::FileRun> runs, std::byte* to) {
    Wanted wanted;
    if (look_for(runs, wanted) == Found::absent) return Found::absent;
    std::uint64_t bytes = 0;
    for (const data::FileRun& run : runs) bytes += run.bytes;
    copies_alone_ = wanted.met_bytes != 0 && wanted.numbers.empty() && bytes >= kLeastAlone;
    if (wanted.numbers.size() * source_.chunk_bytes <= kMostTogether) return Found::here;
    if (file_ == nullptr) return Found::not_open;
    const bool takes_all = bytes == wanted.met_bytes;
    std::vector<std::uint64_t> wholes;
    for (const std::uint64_t number : wanted.numbers) {
        if (takes_all || wanted.wholes.contains(number)) wholes.push_back(number);
    }
    ask_again(wholes);
    if (!decode_ahead(wanted, to)) return Found::absent;
    copies_alone_ = bytes >= kLeastAlone;
    return Found::here;
}

ChunkReads::Found ChunkReads::take(const ChunkPieces& pieces, std::byte* to) {
    if (const Found ready = prepare(pieces.runs, to); ready != Found::here) return ready;
    if (!copies_alone_) return copy_all(pieces, to);
    const GilReleased release;
    return copy_all(pieces, to);
}

ChunkReads::Found ChunkReads::copy_all(const ChunkPieces& pieces, std::byte* to) {
    for (const data::FileRun& run : pieces.runs) {
        const Found found = copy(run.file_offset, run.bytes, to + run.memory_offset);
        if (found != Found::here) return found;
    }
    for (const data::RowCopy& one : pieces.copies) std::memcpy(to + one.to, to + one.from, one.bytes);
    return Found::here;
}

// Memory for a chunk of which a part is wanted.
std::byte* ChunkReads::new_chunk(std::uint64_t number) {
    PyObject* const chunk = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(source_.chunk_bytes));
    if (chunk == nullptr) throw nb::python_error();
    made_.push_back({number, nb::steal(chunk)});
    return reinterpret_cast<std::byte*>(PyBytes_AS_STRING(chunk));
}

// Of chunks that will be decoded whole. Those that are not read again soon would take others' place.
void ChunkReads::ask_again(const std::vector<std::uint64_t>& numbers) {
    wholes_.insert(numbers.begin(), numbers.end());
    if (!source_.decodes_slowly || numbers.empty()) return;
    nb::list asked;
    for (const std::uint64_t number : numbers) asked.append(number);
    for (const nb::handle one : nb::cast<nb::list>(source_.again(asked))) again_.insert(nb::cast<std::uint64_t>(one));
}

bool ChunkReads::decode_ahead(const Wanted& wanted, std::byte* to) {
    std::vector<data::StoredChunk> chunks;
    std::vector<data::PlacedBox> boxes;
    std::vector<Here> made;
    for (std::size_t at = 0; at < wanted.numbers.size(); ++at) {
        const auto whole = wanted.wholes.find(wanted.numbers[at]);
        const bool is_straight = whole != wanted.wholes.end() && !again_.contains(wanted.numbers[at]);
        Box box;
        box.destination = is_straight ? to + whole->second : new_chunk(wanted.numbers[at]);
        box.item_bytes = source_.chunk_bytes;
        chunks.push_back({{}, wanted.skipped[at], at, 1});
        boxes.push_back({box, 0});
        made.push_back({is_straight ? nullptr : static_cast<const std::byte*>(box.destination), true});
    }
    const auto& pipeline = nb::cast<const data::Pipeline&>(source_.pipeline);
    const GilReleased release;
    const Timed timed(decoding_);
    data::ChunksRead read =
        data::read_and_decode({*file_, wanted.places}, data::ChunkWork{pipeline, chunks, boxes}, share_.options());
    if (read.left || read.decoded.done != chunks.size()) return false;
    moved_ = std::move(read.reads);
    decoded_ahead_ = true;
    decoded_bytes_ += chunks.size() * source_.chunk_bytes;
    for (std::size_t at = 0; at < chunks.size(); ++at) here_[wanted.numbers[at]] = made[at];
    return true;
}

ChunkReads::Found ChunkReads::copy(std::uint64_t from, std::uint64_t bytes, std::byte* to) {
    while (bytes != 0) {
        const std::uint64_t inside = from % source_.chunk_bytes;
        const std::uint64_t part = std::min(bytes, source_.chunk_bytes - inside);
        const Found found = find(from / source_.chunk_bytes, part == source_.chunk_bytes ? to : nullptr);
        if (found != Found::here) return found;
        if (now_.data != nullptr) std::memcpy(to, now_.data + inside, part);
        (now_.is_fresh ? fresh_bytes_ : kept_bytes_) += part;
        from += part;
        to += part;
        bytes -= part;
    }
    return Found::here;
}

ChunkReads::Found ChunkReads::find(std::uint64_t number, std::byte* whole) {
    if (now_.data != nullptr && number == number_) return Found::here;
    if (const auto known = here_.find(number); known != here_.end()) {
        now_ = known->second;
        number_ = number;
        return Found::here;
    }
    const nb::object found = source_.find(number);
    if (found.is_none()) return Found::absent;
    if (PyTuple_CheckExact(found.ptr())) return decode(number, found, whole);
    return borrow(number, found);
}

// A chunk that an earlier read has left.
ChunkReads::Found ChunkReads::borrow(std::uint64_t number, const nb::object& chunk) {
    Py_buffer view;
    if (PyObject_GetBuffer(chunk.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    borrowed_.push_back(view);
    if (static_cast<std::uint64_t>(view.len) != source_.chunk_bytes) return Found::absent;
    now_ = here_[number] = {static_cast<const std::byte*>(view.buf), false};
    number_ = number;
    return Found::here;
}

ChunkReads::Found ChunkReads::decode(std::uint64_t number, nb::handle place, std::byte* whole) {
    const auto bytes = nb::cast<std::uint64_t>(place[1]), size = source_.chunk_bytes;
    if (bytes == 0 || bytes > kMostStream || size > kMostChunkBytes) return Found::absent;
    if (!streams_.empty() && (streams_.size() + 1) * size > kMostTogether) return Found::absent;
    if (file_ == nullptr) return Found::not_open;
    const auto offset = nb::cast<std::uint64_t>(place[0]);
    const auto skipped = nb::cast<std::uint32_t>(place[2]);
    const auto& pipeline = nb::cast<const data::Pipeline&>(source_.pipeline);
    if (whole != nullptr) ask_again({number});
    const bool is_straight = whole != nullptr && !again_.contains(number);
    std::byte* const into = is_straight ? whole : new_chunk(number);
    bool is_whole = false;
    {
        const GilReleased release;
        const Timed timed(decoding_);
        const auto stream = std::make_unique<std::byte[]>(bytes + data::kStreamPadding);
        data::Scratch scratch;
        is_whole = read_stream(offset, {stream.get(), bytes}) &&
                   pipeline.decode({{stream.get(), bytes}, skipped, true}, {into, size}, scratch).empty();
    }
    if (!is_whole) return Found::absent;
    streams_.push_back(bytes);
    decoded_bytes_ += size;
    now_ = {is_straight ? nullptr : into, true};
    number_ = number;
    if (!is_straight) here_[number] = now_;
    return Found::here;
}

bool ChunkReads::read_stream(std::uint64_t offset, std::span<std::byte> stream) {
    for (std::uint64_t at = 0; at < stream.size(); at += kSmallReadBytes) {
        const std::uint64_t some = std::min<std::uint64_t>(kSmallReadBytes, stream.size() - at);
        auto done = file_->try_small_read({stream.data() + at, some, MemoryKind::system}, offset + at);
        if (!done) return false;
        reads_.push_back(std::move(*done));
    }
    return true;
}

void ChunkReads::keep() const {
    source_.decodes_slowly = decoding_ >= std::chrono::nanoseconds(decoded_bytes_ / kCopiedBytesPerNs);
    for (const Made& one : made_) {
        const bool is_wanted = again_.contains(one.number) ? source_.decodes_slowly : !wholes_.contains(one.number);
        if (is_wanted) source_.keep(one.number, one.chunk);
    }
}

void ChunkReads::count(SmallTally& tally) const {
    tally.kept_bytes += kept_bytes_;
    for (const std::uint64_t stream : streams_) tally.add_stream(stream);
    for (const SmallRead& read : reads_) tally.add(read);
    tally.add_moved(moved_);
    if (fresh_bytes_ != 0) tally.decoded[source_.decoder] += fresh_bytes_;
}

}  // namespace penstock::python
