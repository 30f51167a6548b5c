// The files of one array: one, or several that it is dealt out over in stripes (penstock/ondevice/stripes.hpp).
//
// Nothing in the files says in which order they belong together, nor how large the stripes are: whoever names them
// knows. Their sizes must be those that the layout gives, so most mistakes are found.
#pragma once

#include <vector>

#include "penstock/ondevice/stripes.hpp"
#include "penstock/path.hpp"

namespace penstock::ondevice {

struct FileSet {
    FileSet(const FileHandle* one) : files{one} {}
    FileSet(std::vector<const FileHandle*> some, u64 stripe) : files(std::move(some)), stripe_bytes(stripe) {}

    std::vector<const FileHandle*> files;
    u64 stripe_bytes = 0;  // a power of two; of one file: not used
    bool writable() const { return files.front()->writable; }
};

struct FileLayout {
    Stripes stripes;
    u64 bytes = 0;           // of the array
    std::vector<u64> sizes;  // of each file
};

// The layout by what the sizes of the files are now. Throws Error, with the file that does not belong, where they do
// not fit together, are not all writable or all not, are one file twice, or the stripes are smaller than a page.
FileLayout layout_of(const FileSet& set, u64 page_bytes);

// Throws Error where a file is in two arrays of a cache and one of them is written: pages are whole, so that a row of
// one array would be lost in a page that the other writes back.
void check_apart(const std::vector<FileSet>& arrays);

}  // namespace penstock::ondevice
