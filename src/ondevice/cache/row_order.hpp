// The order in which a gather takes its rows: those of one region of the file after each other.
//
// A GPU reaches memory of the host by translations, of which it keeps those of about 1 GiB. Rows at random in a larger
// file miss them, and then 50 million rows a second come, however few bytes they have. Where the rows that are under
// way lie in few regions, the link is what bounds them. So the list is put into regions before, in three steps:
//   1. count: each region's rows.
//   2. begin: each region takes as many places as it has rows. The order of regions is whichever takes first.
//   3. place: each row takes the next place of its region.
// The steps need an atomic addition for each row, and no sort: within a region any order will do.
#pragma once

#include "penstock/ondevice/platform.hpp"

namespace penstock::ondevice {

template <class P>
struct RowOrder {
    static constexpr u64 region_bytes = 16u << 20;  // about; few are under way at once, and far fewer than 1 GiB
    static constexpr u32 most_regions = 1u << 14;   // of a file; then regions are larger

    u32* places = nullptr;  // numbers of the list's rows, in their new order; null: the list's order
    u32* ends = nullptr;    // of each region: its rows, then the next place; and after them the places that were taken
    u32 regions = 0;
    u32 shift = 0;  // a region has 1 << shift rows

    // Which of the list's rows is taken as number `turn`.
    PENSTOCK_ONDEVICE u64 row(u64 turn) const { return places == nullptr ? turn : places[turn]; }

    // A row that is not there is of the last region: whoever moves it tells.
    PENSTOCK_ONDEVICE u32 region_of(u64 row) const {
        const u64 region = row >> shift;
        return region < regions ? static_cast<u32>(region) : regions - 1;
    }

    // Each caller is one of `threads`. Requires: all of a step are done before the next begins; `ends` are zero at
    // first.
    PENSTOCK_ONDEVICE void count(const u64* rows, u64 all, u64 thread, u64 threads) const {
        for (u64 at = thread; at < all; at += threads) P::tick(ends + region_of(rows[at]), 1u);
    }

    PENSTOCK_ONDEVICE void begin(u64 thread, u64 threads) const {
        for (u64 at = thread; at < regions; at += threads) {
            const u32 rows = P::template load<Scope::device, Order::relaxed>(ends + at);
            const u32 first = P::template add<Scope::device, Order::relaxed>(ends + regions, rows);
            P::template store<Scope::device, Order::relaxed>(ends + at, first);
        }
    }

    PENSTOCK_ONDEVICE void place(const u64* rows, u64 all, u64 thread, u64 threads) const {
        for (u64 at = thread; at < all; at += threads) {
            const u32 turn = P::template add<Scope::device, Order::relaxed>(ends + region_of(rows[at]), 1u);
            places[turn] = static_cast<u32>(at);
        }
    }
};

}  // namespace penstock::ondevice
