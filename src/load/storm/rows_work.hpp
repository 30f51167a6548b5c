// Checks on the device that rows gathered from a stamped file are the requested rows.
#pragma once

#include "penstock/ondevice/lanes.hpp"
#include "penstock/stamp.hpp"

namespace penstock::load {

struct RowsWork {
    const ondevice::u64* rows;    // numbers of rows in the file
    const ondevice::u64* memory;  // the rows, one after another
    ondevice::u64 count;
    ondevice::u64 row_words;  // in words of 8 bytes
    ondevice::u64 seed;       // of the file's stamps
    ondevice::u64* wrong;     // number of wrong words
};

// A worker is a warp, or a thread of the emulated device.
PENSTOCK_ONDEVICE void rows_share(const RowsWork& work, ondevice::u64 worker, ondevice::u64 workers) {
    using P = ondevice::Native;
    const ondevice::Lanes all = P::active();
    const ondevice::u32 lanes = ondevice::count(all), lane = ondevice::rank<P>(all);
    ondevice::u64 wrong = 0;
    for (ondevice::u64 row = worker; row < work.count; row += workers) {
        const ondevice::u64 first = work.rows[row] * work.row_words;
        for (ondevice::u64 word = lane; word < work.row_words; word += lanes)
            wrong += work.memory[row * work.row_words + word] != stamp_word(work.seed, first + word);
    }
    if (wrong != 0) P::tick(work.wrong, wrong);
}

}  // namespace penstock::load
