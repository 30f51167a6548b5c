// See selection.hpp.
#include "vfd/hdf5/selection.hpp"

#include <algorithm>
#include <array>

#include "vfd/fault.hpp"

namespace penstock::vfd {
namespace {

constexpr unsigned kOfTheSpace = 0x2;  // a flag of an iterator: it makes no copy of the space
constexpr int kPoints = 1;              // a selection of single elements in any order, also more than once
constexpr std::size_t kSequences = 512, kAllElements = ~std::size_t{0};

Fault selection_fault() {
    return {"walk a selection of", "HDF5 gives no sequences of it", "", 0, 0, 0};
}

// The sequences of one selection, one after the other.
class Sequences {
  public:
    Sequences(const SelectionCalls& calls, Id space, std::size_t element_bytes)
        : calls_(calls), iterator_(calls.create(space, element_bytes, kOfTheSpace)) {
        if (iterator_ < 0) throw selection_fault();
    }
    ~Sequences() { calls_.close(iterator_); }
    Sequences(const Sequences&) = delete;
    Sequences& operator=(const Sequences&) = delete;

    // False: none is left.
    bool next(std::uint64_t& offset, std::size_t& bytes) {
        if (at_ == count_ && !more()) return false;
        offset = offsets_[at_];
        bytes = bytes_[at_++];
        return true;
    }

  private:
    bool more() {
        std::size_t elements = 0;
        at_ = count_ = 0;
        if (calls_.next(iterator_, kSequences, kAllElements, &count_, &elements, offsets_.data(), bytes_.data()) < 0) {
            throw selection_fault();
        }
        return count_ != 0;
    }

    const SelectionCalls& calls_;
    Id iterator_;
    std::size_t at_ = 0, count_ = 0;
    std::array<std::uint64_t, kSequences> offsets_;
    std::array<std::size_t, kSequences> bytes_;
};

// One buffer: where the file's part and the memory begin.
struct Buffer {
    Address offset;
    std::byte* memory;
    Place place;
};

// A sequence of one side may be several of the other.
Address add_pieces(PieceMover& moves, const Buffer& buffer, Sequences& file, Sequences& memory) {
    Address end = 0;
    std::uint64_t offset = 0, place = 0;
    std::size_t file_bytes = 0, memory_bytes = 0;
    for (;;) {
        if (file_bytes == 0 && !file.next(offset, file_bytes)) break;
        if (memory_bytes == 0 && !memory.next(place, memory_bytes)) break;
        const std::size_t bytes = std::min(file_bytes, memory_bytes);
        const Address at = buffer.offset + offset;
        if (at > kLastAddress || bytes > kLastAddress - at) {
            throw Fault{"move", "the range leaves those of file offsets", "", 0, at, bytes};
        }
        if (bytes != 0) moves.add({at, bytes, buffer.memory + place}, buffer.place);
        end = std::max(end, at + bytes);
        offset += bytes;
        place += bytes;
        file_bytes -= bytes;
        memory_bytes -= bytes;
    }
    return end;
}

}  // namespace

SelectionCalls::SelectionCalls(const Caller& caller) noexcept
    : create(reinterpret_cast<decltype(create)>(caller.function("H5Ssel_iter_create"))),
      next(reinterpret_cast<decltype(next)>(caller.function("H5Ssel_iter_get_seq_list"))),
      close(reinterpret_cast<decltype(close)>(caller.function("H5Ssel_iter_close"))),
      select_type(reinterpret_cast<decltype(select_type)>(caller.function("H5Sget_select_type"))) {}

Address move_selections(Mover& mover, SelectionMove move, const SelectionArrays& arrays, const SelectionCalls& calls) {
    PieceMover moves(mover, move.write);
    Address end = 0;
    std::size_t element_bytes = 0;
    bool same_bytes = false, same_memory = false;
    Buffer buffer{};
    for (std::uint32_t i = 0; i < arrays.count; ++i) {
        same_bytes = same_bytes || (i > 0 && arrays.element_bytes[i] == 0);
        same_memory = same_memory || (i > 0 && arrays.memory[i] == nullptr);
        if (!same_bytes) element_bytes = arrays.element_bytes[i];
        if (!same_memory && arrays.memory[i] != buffer.memory) {
            moves.flush();  // one copy is of one allocation
            buffer.memory = static_cast<std::byte*>(arrays.memory[i]);
            buffer.place = move.use == Use::raw ? mover.place_of(buffer.memory) : Place{};
        }
        buffer.offset = arrays.offsets[i];
        moves.may_repeat(calls.select_type(arrays.memory_spaces[i]) == kPoints);
        Sequences file(calls, arrays.file_spaces[i], element_bytes);
        Sequences memory(calls, arrays.memory_spaces[i], element_bytes);
        end = std::max(end, add_pieces(moves, buffer, file, memory));
    }
    moves.flush();
    return end;
}

}  // namespace penstock::vfd
