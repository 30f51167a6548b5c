// See file_set.hpp.
#include "ondevice/files/file_set.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace penstock::ondevice {
namespace {

constexpr const char* kOperation = "stripe an array over files";

[[noreturn]] void throw_refusal(const char* operation, const std::string& file, const std::string& cause,
                                const std::string& advice) {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = operation;
    info.file = file;
    info.cause = cause;
    info.advice = advice;
    throw Error(std::move(info));
}

[[noreturn]] void refuse(const std::string& file, const std::string& cause, const std::string& advice) {
    throw_refusal(kOperation, file, cause, advice);
}

struct stat status_of(const FileHandle& file) {
    struct stat status {};
    if (::fstat(file.buffered_fd, &status) != 0) throw Error(errno_info("size of", file.name, errno));
    return status;
}

u32 checked_shift(const FileSet& set, u64 page_bytes) {
    const u64 stripe = set.stripe_bytes;
    const std::string said = "stripes of " + std::to_string(stripe) + " bytes";
    if (stripe == 0 || (stripe & (stripe - 1)) != 0) refuse("", said, "give a power of two");
    if (stripe < page_bytes) {
        refuse("", said + " for pages of " + std::to_string(page_bytes),
               "give stripes of at least a page, or smaller pages");
    }
    u32 shift = 0;
    while (u64{1} << shift < stripe) ++shift;
    return shift;
}

void check_alike(const FileSet& set, const std::vector<struct stat>& statuses) {
    bool some_writable = false;
    for (const FileHandle* file : set.files) some_writable |= file->writable;
    std::map<std::pair<dev_t, ino_t>, const FileHandle*> seen;
    for (std::size_t i = 0; i < set.files.size(); ++i) {
        const FileHandle& file = *set.files[i];
        const auto [at, fresh] = seen.try_emplace({statuses[i].st_dev, statuses[i].st_ino}, &file);
        if (!fresh) refuse(file.name, "it is the same file as " + at->second->name, "name each file once");
        if (file.writable != some_writable) {
            refuse(file.name, "it was opened for reading, others of the array for writing", "open all of them alike");
        }
    }
}

bool fit(const Stripes& stripes, const std::vector<u64>& sizes) {
    const u64 all = std::accumulate(sizes.begin(), sizes.end(), u64{0});
    for (u32 i = 0; i < stripes.files; ++i) {
        if (sizes[i] != stripes.bytes_in(i, all)) return false;
    }
    return true;
}

// The size, in whole stripes, that file `i` should have beside the others; none if the others do not fit together
// either. If two sizes fit, the nearer one to what the file has.
std::optional<u64> size_beside(const Stripes& stripes, std::vector<u64> sizes, u32 i) {
    const u64 has = sizes[i];
    sizes.erase(sizes.begin() + i);
    const u64 least = *std::min_element(sizes.begin(), sizes.end()) >> stripes.shift;
    sizes.insert(sizes.begin() + i, 0);
    std::optional<u64> nearest;
    for (const u64 whole : {least, least + 1}) {
        const u64 size = sizes[i] = whole << stripes.shift;
        const auto away = [has](u64 from) { return from > has ? from - has : has - from; };
        if (fit(stripes, sizes) && (!nearest || away(size) < away(*nearest))) nearest = size;
    }
    return nearest;
}

// Throws if the sizes do not fit together. It blames the one file without which the others fit, or else the first whose
// size is not what the sum of all sizes says.
void check_sizes(const FileSet& set, const FileLayout& layout) {
    const Stripes& stripes = layout.stripes;
    if (fit(stripes, layout.sizes)) return;
    u32 wrong = 0, alone = 0;
    while (layout.sizes[wrong] == stripes.bytes_in(wrong, layout.bytes)) ++wrong;
    u64 fits = stripes.bytes_in(wrong, layout.bytes);
    for (u32 i = 0; i < stripes.files; ++i) {
        const auto size = size_beside(stripes, layout.sizes, i);
        if (!size || ++alone > 1) continue;
        wrong = i;
        fits = *size;
    }
    refuse(set.files[wrong]->name,
           "it has " + std::to_string(layout.sizes[wrong]) + " bytes; as number " + std::to_string(wrong) + " of " +
               std::to_string(stripes.files) + " files with stripes of " + std::to_string(set.stripe_bytes) +
               " it would have " + std::to_string(fits),
           "check that all files are there and whole, their order, and the size of a stripe");
}

}  // namespace

void check_apart(const std::vector<FileSet>& arrays) {
    struct Seen {
        std::size_t array;
        const FileHandle* file;
    };
    std::map<std::pair<dev_t, ino_t>, Seen> seen;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        for (const FileHandle* file : arrays[i].files) {
            const struct stat status = status_of(*file);
            const auto [at, fresh] = seen.try_emplace({status.st_dev, status.st_ino}, Seen{i, file});
            if (fresh || at->second.array == i || !(file->writable || at->second.file->writable)) continue;
            throw_refusal("make a page cache", file->name,
                          "it is in two arrays of the cache and written by one, which the other would not see",
                          "use one array for both, or open it for reading");
        }
    }
}

FileLayout layout_of(const FileSet& set, u64 page_bytes) {
    if (set.files.empty()) refuse("", "no files", "name at least one");
    FileLayout layout;
    std::vector<struct stat> statuses;
    for (const FileHandle* file : set.files) {
        statuses.push_back(status_of(*file));
        layout.sizes.push_back(static_cast<u64>(statuses.back().st_size));
        layout.bytes += layout.sizes.back();
    }
    if (set.files.size() == 1) return layout;
    layout.stripes = {static_cast<u32>(set.files.size()), checked_shift(set, page_bytes)};
    check_alike(set, statuses);
    check_sizes(set, layout);
    return layout;
}

}  // namespace penstock::ondevice
