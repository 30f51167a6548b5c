// How the lanes of a warp move boxes: the body of the kernel, as functions of one lane that use no CUDA.
//
// The GPU compiles this source, and so does box_plan_test, which runs the lanes one after the other on the CPU. So no
// lane may depend on another. A lane reads whole words before it writes them, and writes only what it has read itself,
// which makes swapping bytes in place safe.
//
// A box is cut into pieces. A warp moves units of 256 pieces, and each lane takes every 32nd piece. There are two kinds
// of pieces. By elements, a piece is 1 to 16 bytes, as wide as the alignment of all addresses and strides allows. By
// windows, for badly aligned rows, a piece is the part of a row in one aligned window of 16 bytes of the destination.
// Its source is assembled from aligned words, or from bytes where an aligned word would reach outside the row. All
// counts have 64 bits. Piece numbers become offsets by division once for each unit, and then by adding with carry.
#pragma once

#include <cstdint>
#include <cstring>

#include "penstock/stamp.hpp"

#if defined(__CUDACC__)
#define PENSTOCK_UNROLL _Pragma("unroll")
#else
#define PENSTOCK_UNROLL
#endif

namespace penstock::device {

constexpr unsigned kBoxLanes = 32;
constexpr unsigned kWorkDimensions = 7;  // those of a Box, and one for the pieces of its rows
constexpr unsigned kPiecesInFlight = 4;        // pieces that a lane loads at once, to hide the latency of memory
constexpr unsigned kPiecesPerUnit = 8 * kBoxLanes;
constexpr unsigned kWindow = 16;

// A box in the form that a kernel reads. The innermost dimension comes first, and there is at least one.
struct BoxWork {
    unsigned char* to;
    const unsigned char* from;
    std::uint64_t extents[kWorkDimensions];
    std::int64_t to_strides[kWorkDimensions];
    std::int64_t from_strides[kWorkDimensions];
    std::uint64_t pieces;     // the product of the extents
    std::uint64_t row_bytes;  // by windows: each row is one dimension of windows
    std::int64_t to_step;     // bytes from a lane's piece to its next piece
    std::int64_t from_step;
    std::uint8_t step[kWorkDimensions];  // the same step, as a number of places in each dimension
    std::uint8_t dimensions;
    std::uint8_t swap_bytes;     // 0 to 16
    std::uint8_t element_bytes;  // 0: by windows
    std::uint8_t access_bytes;   // bytes of one load or store, where elements are aligned to less than their size
};

// Returns the number of the box that a unit belongs to. first_units[0] is 0, and first_units has count + 1 entries.
PENSTOCK_HOST_DEVICE inline std::uint32_t find_box(const std::uint64_t* first_units, std::uint32_t count,
                                                   std::uint64_t unit) {
    std::uint32_t low = 0, high = count;  // first_units[low] <= unit < first_units[high]
    while (high - low > 1) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (first_units[middle] <= unit) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

// The position of a lane in a box.
struct BoxCursor {
    std::uint64_t index[kWorkDimensions];
    std::int64_t to;  // in bytes from the start of each side
    std::int64_t from;
};

PENSTOCK_HOST_DEVICE inline std::uint64_t divided(std::uint64_t number, std::uint64_t divisor) {
    if ((number | divisor) >> 32 == 0) {  // much faster than a division of 64 bits
        return static_cast<std::uint32_t>(number) / static_cast<std::uint32_t>(divisor);
    }
    return number / divisor;
}

PENSTOCK_HOST_DEVICE inline BoxCursor cursor_at(const BoxWork& work, std::uint64_t piece) {
    BoxCursor cursor;
    cursor.to = cursor.from = 0;
    PENSTOCK_UNROLL
    for (unsigned d = 0; d < kWorkDimensions; ++d) {
        cursor.index[d] = 0;
        if (d >= work.dimensions) continue;
        std::uint64_t above = 0;
        if (d + 1 < work.dimensions) {
            above = divided(piece, work.extents[d]);
            cursor.index[d] = piece - above * work.extents[d];
        } else {
            cursor.index[d] = piece;
        }
        cursor.to += static_cast<std::int64_t>(cursor.index[d]) * work.to_strides[d];
        cursor.from += static_cast<std::int64_t>(cursor.index[d]) * work.from_strides[d];
        piece = above;
    }
    return cursor;
}

// Moves the cursor one step. A dimension that passes its end carries one place into the next.
PENSTOCK_HOST_DEVICE inline void advance(const BoxWork& work, BoxCursor& cursor) {
    cursor.to += work.to_step;
    cursor.from += work.from_step;
    unsigned carry = 0;
    PENSTOCK_UNROLL
    for (unsigned d = 0; d < kWorkDimensions; ++d) {
        cursor.index[d] += work.step[d] + carry;
        if (d + 1 >= work.dimensions) return;  // the last dimension has no end, because pieces are counted
        carry = cursor.index[d] >= work.extents[d] ? 1 : 0;
        if (carry == 0) continue;
        cursor.index[d] -= work.extents[d];
        const auto extent = static_cast<std::int64_t>(work.extents[d]);
        cursor.to += work.to_strides[d + 1] - extent * work.to_strides[d];
        cursor.from += work.from_strides[d + 1] - extent * work.from_strides[d];
    }
}

template <unsigned kBytes>
struct alignas(kBytes) Element {
    static constexpr unsigned kParts = kBytes / 4;
    std::uint32_t parts[kParts];
};
template <>
struct alignas(1) Element<1> {
    std::uint8_t value;
};
template <>
struct alignas(2) Element<2> {
    std::uint16_t value;
};

template <unsigned kBytes>
PENSTOCK_HOST_DEVICE inline Element<kBytes> load_aligned(const unsigned char* from) {
    Element<kBytes> element;
    memcpy(&element, __builtin_assume_aligned(from, kBytes), kBytes);
    return element;
}

template <unsigned kBytes>
PENSTOCK_HOST_DEVICE inline void store_aligned(unsigned char* to, const Element<kBytes>& element) {
    memcpy(__builtin_assume_aligned(to, kBytes), &element, kBytes);
}

// Loads an element that is aligned to kAccess only.
template <unsigned kBytes, unsigned kAccess>
PENSTOCK_HOST_DEVICE inline Element<kBytes> load_in_parts(const unsigned char* from) {
    Element<kBytes> element;
    auto* bytes = reinterpret_cast<unsigned char*>(&element);
    PENSTOCK_UNROLL
    for (unsigned at = 0; at < kBytes; at += kAccess) {
        const Element<kAccess> part = load_aligned<kAccess>(from + at);
        memcpy(bytes + at, &part, kAccess);
    }
    return element;
}

template <unsigned kBytes, unsigned kAccess>
PENSTOCK_HOST_DEVICE inline void store_in_parts(unsigned char* to, const Element<kBytes>& element) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&element);
    PENSTOCK_UNROLL
    for (unsigned at = 0; at < kBytes; at += kAccess) {
        Element<kAccess> part;
        memcpy(&part, bytes + at, kAccess);
        store_aligned<kAccess>(to + at, part);
    }
}

template <unsigned kBytes>
PENSTOCK_HOST_DEVICE inline Element<kBytes> load(const unsigned char* from, unsigned access) {
    if (access >= kBytes) return load_aligned<kBytes>(from);
    if constexpr (kBytes > 8) {
        if (access == 8) return load_in_parts<kBytes, 8>(from);
    }
    if constexpr (kBytes > 4) {
        if (access == 4) return load_in_parts<kBytes, 4>(from);
    }
    if constexpr (kBytes > 2) {
        if (access == 2) return load_in_parts<kBytes, 2>(from);
    }
    return load_in_parts<kBytes, 1>(from);
}

template <unsigned kBytes>
PENSTOCK_HOST_DEVICE inline void store(unsigned char* to, const Element<kBytes>& element, unsigned access) {
    if (access >= kBytes) return store_aligned<kBytes>(to, element);
    if constexpr (kBytes > 8) {
        if (access == 8) return store_in_parts<kBytes, 8>(to, element);
    }
    if constexpr (kBytes > 4) {
        if (access == 4) return store_in_parts<kBytes, 4>(to, element);
    }
    if constexpr (kBytes > 2) {
        if (access == 2) return store_in_parts<kBytes, 2>(to, element);
    }
    store_in_parts<kBytes, 1>(to, element);
}

PENSTOCK_HOST_DEVICE inline std::uint32_t halves_reversed(std::uint32_t x) {
    return (x & 0x00FF00FFu) << 8 | (x >> 8 & 0x00FF00FFu);
}
PENSTOCK_HOST_DEVICE inline std::uint32_t word_reversed(std::uint32_t x) {
    return x << 24 | (x & 0xFF00u) << 8 | (x >> 8 & 0xFF00u) | x >> 24;
}

PENSTOCK_HOST_DEVICE inline Element<1> swapped(Element<1> element, unsigned) { return element; }
PENSTOCK_HOST_DEVICE inline Element<2> swapped(Element<2> element, unsigned word) {
    if (word != 0) element.value = static_cast<std::uint16_t>(element.value << 8 | element.value >> 8);
    return element;
}
template <unsigned kBytes>
PENSTOCK_HOST_DEVICE inline Element<kBytes> swapped(const Element<kBytes>& element, unsigned word) {
    constexpr unsigned kParts = Element<kBytes>::kParts;
    if (word == 0) return element;
    Element<kBytes> result;
    const unsigned mirror = word >= 4 ? word / 4 - 1 : 0;  // reverses the place of a part in its word
    PENSTOCK_UNROLL
    for (unsigned i = 0; i < kParts; ++i) {
        const std::uint32_t part = mirror == 0   ? element.parts[i]
                                   : mirror == 1 ? element.parts[(i ^ 1u) % kParts]
                                                 : element.parts[(i ^ 3u) % kParts];
        result.parts[i] = word == 2 ? halves_reversed(part) : word_reversed(part);
    }
    return result;
}

template <unsigned kBytes>
PENSTOCK_HOST_DEVICE inline void move_elements(const BoxWork& work, std::uint64_t unit, unsigned lane) {
    std::uint64_t piece = unit * kPiecesPerUnit + lane;
    BoxCursor cursor = cursor_at(work, piece);
    for (unsigned batch = 0; batch < kPiecesPerUnit; batch += kPiecesInFlight * kBoxLanes) {
        Element<kBytes> held[kPiecesInFlight];
        unsigned char* to[kPiecesInFlight];
        PENSTOCK_UNROLL
        for (unsigned i = 0; i < kPiecesInFlight; ++i) {
            to[i] = nullptr;
            if (piece < work.pieces) {
                to[i] = work.to + cursor.to;
                held[i] = load<kBytes>(work.from + cursor.from, work.access_bytes);
            }
            piece += kBoxLanes;
            advance(work, cursor);
        }
        PENSTOCK_UNROLL
        for (unsigned i = 0; i < kPiecesInFlight; ++i) {
            if (to[i] != nullptr) store<kBytes>(to[i], swapped(held[i], work.swap_bytes), work.access_bytes);
        }
    }
}

PENSTOCK_HOST_DEVICE inline std::uint64_t address_of(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
}

// A window of the destination, and the bytes [begin, end) of it that belong to a row, if any. In a row with swapped
// bytes no word crosses a window.
struct BoxWindow {
    unsigned char* to;          // the address of the window's first byte
    const unsigned char* from;  // the address of that byte's source
    unsigned begin, end;
    bool by_words;  // the whole window is copied from aligned words inside the row
};

PENSTOCK_HOST_DEVICE inline BoxWindow window_at(const BoxWork& work, const BoxCursor& cursor) {
    const auto passed = static_cast<std::int64_t>(cursor.index[0] * kWindow);
    unsigned char* row_to = work.to + (cursor.to - passed);
    const unsigned char* row_from = work.from + (cursor.from - passed);
    const auto skew = static_cast<unsigned>(address_of(row_to) % kWindow);
    const std::int64_t at = passed - skew;  // offset in the row; negative for some first windows
    const std::int64_t left = static_cast<std::int64_t>(work.row_bytes) - at;
    BoxWindow window;
    window.to = row_to + at;
    window.from = row_from + at;
    window.begin = at < 0 ? skew : 0;
    window.end = left >= kWindow ? kWindow : left > window.begin ? static_cast<unsigned>(left) : window.begin;
    const auto from_skew = static_cast<unsigned>(address_of(window.from) % 4);
    window.by_words = window.end - window.begin == kWindow &&
                      (from_skew == 0 || (at >= from_skew && left + from_skew >= kWindow + 4));
    return window;
}

PENSTOCK_HOST_DEVICE inline Element<16> load_words(const unsigned char* from) {
    const auto skew = static_cast<unsigned>(address_of(from) % kWindow);
    if (skew == 0) return load_aligned<16>(from);
    if (skew % 4 == 0) return load_in_parts<16, 4>(from);
    const unsigned shift = 8 * (skew % 4);
    const unsigned char* aligned = from - skew % 4;
    Element<16> element;
    std::uint32_t low = load_aligned<4>(aligned).parts[0];
    PENSTOCK_UNROLL
    for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t high = load_aligned<4>(aligned + 4 * i + 4).parts[0];
        element.parts[i] = low >> shift | high << (32 - shift);
        low = high;
    }
    return element;
}

PENSTOCK_HOST_DEVICE inline Element<16> load_bytes(const BoxWindow& window) {
    Element<16> element = {{0, 0, 0, 0}};
    PENSTOCK_UNROLL
    for (unsigned i = 0; i < kWindow; ++i) {
        if (i < window.begin || i >= window.end) continue;
        element.parts[i / 4] |= static_cast<std::uint32_t>(window.from[i]) << (8 * (i % 4));
    }
    return element;
}

PENSTOCK_HOST_DEVICE inline void store_window(const BoxWindow& window, const Element<16>& element) {
    if (window.end - window.begin == kWindow) return store_aligned<16>(window.to, element);
    PENSTOCK_UNROLL
    for (unsigned i = 0; i < kWindow; ++i) {
        if (i < window.begin || i >= window.end) continue;
        window.to[i] = static_cast<unsigned char>(element.parts[i / 4] >> (8 * (i % 4)));
    }
}

// Loads whole windows first. The cut windows use the same cache lines, which then arrive sooner.
PENSTOCK_HOST_DEVICE inline void move_windows(const BoxWork& work, std::uint64_t unit, unsigned lane) {
    std::uint64_t piece = unit * kPiecesPerUnit + lane;
    BoxCursor cursor = cursor_at(work, piece);
    for (unsigned batch = 0; batch < kPiecesPerUnit; batch += kPiecesInFlight * kBoxLanes) {
        Element<16> held[kPiecesInFlight];
        BoxWindow windows[kPiecesInFlight];
        PENSTOCK_UNROLL
        for (unsigned i = 0; i < kPiecesInFlight; ++i) {
            windows[i] = {nullptr, nullptr, 0, 0, false};
            if (piece < work.pieces) windows[i] = window_at(work, cursor);
            if (windows[i].by_words) held[i] = load_words(windows[i].from);
            piece += kBoxLanes;
            advance(work, cursor);
        }
        PENSTOCK_UNROLL
        for (unsigned i = 0; i < kPiecesInFlight; ++i) {
            if (!windows[i].by_words && windows[i].begin < windows[i].end) held[i] = load_bytes(windows[i]);
        }
        PENSTOCK_UNROLL
        for (unsigned i = 0; i < kPiecesInFlight; ++i) {
            if (windows[i].begin < windows[i].end) store_window(windows[i], swapped(held[i], work.swap_bytes));
        }
    }
}

// Moves one lane's pieces of one unit of a box.
PENSTOCK_HOST_DEVICE inline void move_unit(const BoxWork& work, std::uint64_t unit, unsigned lane) {
    switch (work.element_bytes) {
        case 16: return move_elements<16>(work, unit, lane);
        case 8: return move_elements<8>(work, unit, lane);
        case 4: return move_elements<4>(work, unit, lane);
        case 2: return move_elements<2>(work, unit, lane);
        case 1: return move_elements<1>(work, unit, lane);
        default: return move_windows(work, unit, lane);
    }
}

}  // namespace penstock::device
