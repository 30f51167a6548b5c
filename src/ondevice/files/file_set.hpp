// The files of one array: one file, or several that have it in stripes (penstock/ondevice/stripes.hpp).
//
// Nothing in the files says in which order they belong together, nor how large the stripes are; the user says so. The
// files' sizes must be those that the layout gives, which finds most mistakes.
#pragma once

#include <vector>

#include "penstock/ondevice/stripes.hpp"
#include "path/path.hpp"

namespace penstock::ondevice {

struct FileSet {
    FileSet(const FileHandle* one) : files{one} {}
    FileSet(std::vector<const FileHandle*> some, u64 stripe) : files(std::move(some)), stripe_bytes(stripe) {}

    std::vector<const FileHandle*> files;
    u64 stripe_bytes = 0;  // a power of two; not used with one file
    bool writable() const { return files.front()->writable; }
};

struct FileLayout {
    Stripes stripes;
    u64 bytes = 0;           // the array's
    std::vector<u64> sizes;  // each file's
};

// The layout, from the sizes that the files have now. Throws Error, with the file that does not belong, if the files do
// not fit together, if some are writable and some not, if one file comes twice, or if stripes are smaller than a page.
FileLayout layout_of(const FileSet& set, u64 page_bytes);

// Throws Error if a file is in two arrays of a cache and one of them can be written. Pages are written whole, so a row
// of one array would be lost when the other array's page is written back.
void check_apart(const std::vector<FileSet>& arrays);

}  // namespace penstock::ondevice
