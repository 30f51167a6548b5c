// Where the bytes of an array lie in its files. They are dealt out in stripes, one file after the other, as by RAID 0.
//
// Byte b is in file (b / stripe) % files, at (b / (stripe * files)) * stripe + b % stripe. A page is never larger than
// a stripe and both are powers of two, so a page lies in one file. One file is the array itself.
#pragma once

#include "penstock/ondevice/platform.hpp"

namespace penstock::ondevice {

struct FilePlace {
    u32 file;
    u64 offset_bytes;
};

struct Stripes {
    u32 files = 1;
    u32 shift = 0;  // log2 of the bytes of a stripe; not used with one file

    PENSTOCK_ONDEVICE u64 stripe_bytes() const { return u64{1} << shift; }
    PENSTOCK_ONDEVICE u32 file_of(u64 offset_bytes) const {
        return files == 1 ? 0 : static_cast<u32>((offset_bytes >> shift) % files);
    }
    PENSTOCK_ONDEVICE FilePlace place(u64 offset_bytes) const {
        if (files == 1) return {0, offset_bytes};
        const u64 stripe = offset_bytes >> shift, inside = offset_bytes & (stripe_bytes() - 1);
        return {static_cast<u32>(stripe % files), (stripe / files << shift) + inside};
    }
    // The byte of the array that has this place.
    PENSTOCK_ONDEVICE u64 offset_of(const FilePlace& place) const {
        if (files == 1) return place.offset_bytes;
        const u64 stripe = (place.offset_bytes >> shift) * files + place.file;
        return (stripe << shift) + (place.offset_bytes & (stripe_bytes() - 1));
    }
    // How many bytes from here on lie in one file, one after another.
    PENSTOCK_ONDEVICE u64 together(u64 offset_bytes) const {
        return files == 1 ? ~u64{0} - offset_bytes : stripe_bytes() - (offset_bytes & (stripe_bytes() - 1));
    }
    // How many bytes of an array of `bytes` are in this file.
    PENSTOCK_ONDEVICE u64 bytes_in(u32 file, u64 bytes) const {
        if (files == 1) return bytes;
        const u64 whole = bytes >> shift, last = whole % files;
        const u64 rest = file == last ? bytes & (stripe_bytes() - 1) : 0;
        return ((whole / files + (file < last ? 1 : 0)) << shift) + rest;
    }
};

}  // namespace penstock::ondevice
