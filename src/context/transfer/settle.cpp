// See settle.hpp.
#include "context/transfer/settle.hpp"

#include <chrono>

namespace penstock::context {

void sync_files(const std::vector<std::shared_ptr<OpenFile>>& files, Outcome& outcome) {
    const auto start = Clock::now();
    for (const auto& file : files) {
        try {
            if (outcome.ok()) file->sync();
        } catch (const Error& error) {
            outcome.error = error.info();
        }
    }
    outcome.seconds += std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<NewBytes> bytes_of_new_files(const Announced::Files& files, const std::vector<FileRange>& ranges) {
    std::vector<NewBytes> found;
    for (const auto& file : files) {
        if (!file->is_new()) continue;
        NewBytes& one = found.emplace_back(NewBytes{file, {}});
        for (const FileRange& range : ranges) {
            if (range.file == file && range.bytes != 0) one.extents.push_back({range.offset_bytes, range.bytes});
        }
    }
    return found;
}

}  // namespace penstock::context
