// See chunks.hpp.
#include "python/core/small/chunks.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

#include "python/core/small/kept.hpp"

namespace penstock::python {
namespace {

constexpr std::uint64_t kMostChunkBytes = 4 * kMiB;    // decoded: about 10 ms
constexpr std::uint64_t kMostTogether = 256 * kKiB;    // of several chunks: more are worth the other cores
constexpr std::uint64_t kMostStream = 4 * kSmallReadBytes;
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

using Table = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

data::EncodedPlace place_of(std::int64_t offset, std::int64_t bytes, std::int64_t skipped) {
    return {static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(bytes), static_cast<std::uint32_t>(skipped),
            true, true};
}

// None is known where each is looked for, else all are.
std::vector<data::EncodedPlace> places_of(const nb::dict& coded) {
    std::vector<data::EncodedPlace> found(nb::cast<std::size_t>(coded["chunks"]));
    if (nb::object(coded["table"]).is_none()) return found;
    const auto table = nb::cast<Table>(coded["table"]);
    const std::int64_t* row = table.data();
    for (data::EncodedPlace& place : found) {
        place = place_of(row[0], row[1], row[2]);
        row += table.shape(1);
    }
    return found;
}

}  // namespace

bool ChunkSource::is_settled() const noexcept {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::nanoseconds(now).count() >= settles_ns;
}

ChunkSource::ChunkSource(const nb::dict& coded)
    : places(places_of(coded)),
      where(coded["where"]),
      kept(nb::cast<const PythonKeptChunks&>(coded["kept"]).chunks),
      kind(nb::cast<std::uint64_t>(coded["kind"])),
      settles_ns(nb::cast<std::int64_t>(coded["settles_ns"])),
      pipeline(coded["pipeline"]),
      steps(nb::cast<const data::Pipeline&>(pipeline)),
      decoder(nb::cast<std::string>(coded["decoder"])),
      chunk_bytes(nb::cast<std::uint64_t>(coded["chunk_bytes"])),
      is_staged(nb::cast<bool>(coded["is_staged"])),
      lately(chunk_bytes, kept->limits()) {}

// Each chunk is looked for once.
data::EncodedPlace ChunkReads::place_of(std::uint64_t number) {
    data::EncodedPlace place = source_.places.at(number);
    if (place.is_known) return place;
    const GilHeld held;
    const nb::object told = in_python([&] { return source_.where(number); });  // the interpreter may end in it
    place.is_known = true;
    if (!told.is_none()) {
        const auto [offset, bytes, skipped] = nb::cast<std::tuple<std::int64_t, std::int64_t, std::int64_t>>(told);
        place = python::place_of(offset, bytes, skipped);
    }
    source_.places.put(number, place);
    return place;
}

data::ChunkKey ChunkReads::key_of(const data::EncodedPlace& place) const noexcept {
    return {source_.kind, place.offset, place.bytes, place.skipped};
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
    std::vector<data::EncodedPlace> places;
    std::vector<data::ChunkKey> keys;
    for (const std::uint64_t number : numbers) {
        const data::EncodedPlace place = place_of(number);
        if (!place.is_stored) return Found::absent;  // to look for others may take long
        places.push_back(place);
        keys.push_back(key_of(place));
    }
    std::vector<data::DecodedChunk> found = source_.kept->find_all(keys);
    std::size_t at = 0;
    for (const std::uint64_t number : numbers) {
        const data::EncodedPlace& place = places[at];
        data::DecodedChunk& chunk = found[at++];
        if (chunk.data != nullptr) {
            if (borrow(number, std::move(chunk)) == Found::absent) return Found::absent;
            continue;
        }
        if (place.bytes == 0 || place.bytes > kMostAhead) return Found::absent;
        wanted.numbers.push_back(number);
        wanted.places.push_back({place.offset, place.bytes});
        wanted.skipped.push_back(place.skipped);
    }
    return Found::here;
}

ChunkReads::Found ChunkReads::prepare(std::span<const data::FileRun> runs, std::byte* to) {
    Wanted wanted;
    if (look_for(runs, wanted) == Found::absent) return Found::absent;
    std::uint64_t bytes = 0;
    for (const data::FileRun& run : runs) bytes += run.bytes;
    if (wanted.numbers.size() * source_.chunk_bytes <= kMostTogether) return Found::here;
    if (file_ == nullptr) return Found::not_open;
    const bool takes_all = bytes == wanted.met_bytes;
    std::vector<std::uint64_t> wholes;
    for (const std::uint64_t number : wanted.numbers) {
        if (takes_all || wanted.wholes.contains(number)) wholes.push_back(number);
    }
    ask_again(wholes);
    return decode_ahead(wanted, to) ? Found::here : Found::absent;
}

ChunkReads::Found ChunkReads::put(const ChunkPieces& pieces, const MemoryView& memory, const Watched& watched) {
    const auto lent = context::ContextState::of(context_).engine.lend(source_.is_staged ? memory.bytes : 0);
    if (source_.is_staged && lent.memory().empty()) return Found::absent;
    auto* const data = source_.is_staged ? lent.memory().data() : static_cast<std::byte*>(memory.data);
    if (const Found ready = take(pieces, data); ready != Found::here) return ready;
    if (decoded_any() && !watched.holds()) return Found::absent;
    if (source_.is_staged) context_.copy_to_device(memory.data, data, memory.bytes);
    if (decoded_any()) keep();
    return Found::here;
}

ChunkReads::Found ChunkReads::take(const ChunkPieces& pieces, std::byte* to) {
    if (const Found ready = prepare(pieces.runs, to); ready != Found::here) return ready;
    for (const data::FileRun& run : pieces.runs) {
        const Found found = copy(run.file_offset, run.bytes, to + run.memory_offset);
        if (found != Found::here) return found;
    }
    for (const data::RowCopy& one : pieces.copies) std::memcpy(to + one.to, to + one.from, one.bytes);
    return Found::here;
}

// Memory for a chunk of which a part is wanted.
std::byte* ChunkReads::new_chunk(std::uint64_t number) {
    auto chunk = std::make_unique_for_overwrite<std::byte[]>(source_.chunk_bytes);
    std::byte* const data = chunk.get();
    made_.push_back({number, std::move(chunk)});
    return data;
}

// Of chunks that will be decoded whole. Those that are not read again soon would take others' place.
void ChunkReads::ask_again(const std::vector<std::uint64_t>& numbers) {
    wholes_.insert(numbers.begin(), numbers.end());
    if (!source_.decodes_slowly.load(std::memory_order_relaxed) || numbers.empty() || !may_keep_) return;
    const std::vector<std::uint64_t> found = source_.lately.again(numbers);
    again_.insert(found.begin(), found.end());
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
    const Timed timed(decoding_);
    data::ChunksRead read = data::read_and_decode({*file_, wanted.places},
                                                  data::ChunkWork{source_.steps, chunks, boxes}, share_.options());
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
    const data::EncodedPlace place = place_of(number);
    if (!place.is_stored) return Found::absent;
    data::DecodedChunk chunk = source_.kept->find(key_of(place));
    return chunk.data != nullptr ? borrow(number, std::move(chunk)) : decode(number, place, whole);
}

// A chunk that an earlier read has left.
ChunkReads::Found ChunkReads::borrow(std::uint64_t number, data::DecodedChunk&& chunk) {
    if (chunk.bytes != source_.chunk_bytes) return Found::absent;
    borrowed_.push_back(std::move(chunk));
    now_ = here_[number] = {borrowed_.back().data.get(), false};
    number_ = number;
    return Found::here;
}

ChunkReads::Found ChunkReads::decode(std::uint64_t number, const data::EncodedPlace& place, std::byte* whole) {
    const std::uint64_t bytes = place.bytes, size = source_.chunk_bytes;
    if (bytes == 0 || bytes > kMostStream || size > kMostChunkBytes) return Found::absent;
    if (!streams_.empty() && (streams_.size() + 1) * size > kMostTogether) return Found::absent;
    if (file_ == nullptr) return Found::not_open;
    if (whole != nullptr) ask_again({number});
    const bool is_straight = whole != nullptr && !again_.contains(number);
    std::byte* const into = is_straight ? whole : new_chunk(number);
    {
        const Timed timed(decoding_);
        const auto stream = std::make_unique_for_overwrite<std::byte[]>(bytes + data::kStreamPadding);
        data::Scratch scratch;
        if (!read_stream(place.offset, {stream.get(), bytes})) return Found::absent;
        const data::StoredStream stored{{stream.get(), bytes}, place.skipped, true};
        if (!source_.steps.decode(stored, {into, size}, scratch).empty()) return Found::absent;
    }
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
    const bool slowly = decoding_ >= std::chrono::nanoseconds(decoded_bytes_ / kCopiedBytesPerNs);
    source_.decodes_slowly.store(slowly, std::memory_order_relaxed);
    if (!may_keep_) return;
    for (const Made& one : made_) {
        const bool is_wanted = again_.contains(one.number) ? slowly : !wholes_.contains(one.number);
        if (!is_wanted) continue;
        source_.kept->keep(key_of(source_.places.at(one.number)), {one.chunk, source_.chunk_bytes});
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
