// Announced: the files of one transfer, told that it begins; told that it is off unless the transfer takes them over.
#pragma once

#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "context/files/open_file.hpp"

namespace penstock::context {

class Announced {
  public:
    using Files = std::vector<std::shared_ptr<OpenFile>>;

    // Throws when a file is closed; the others then know of nothing.
    explicit Announced(const std::vector<Extent>& extents) {
        std::unordered_set<const OpenFile*> seen;
        const OpenFile* last = nullptr;
        for (const Extent& extent : extents) {
            if (extent.file.get() == last) continue;
            last = extent.file.get();
            // Most transfers are of one file: they are spared the set.
            if (wanted_.size() == 1) seen.insert(wanted_.front().get());
            if (wanted_.empty() || seen.insert(last).second) wanted_.push_back(extent.file);
        }
        try {
            for (const auto& file : wanted_) {
                file->transfer_began();
                begun_.push_back(file);
            }
        } catch (...) {
            take_back();
            throw;
        }
    }
    ~Announced() { take_back(); }
    Announced(const Announced&) = delete;
    Announced& operator=(const Announced&) = delete;

    // Whoever takes them tells each of its transfer's end.
    Files take() noexcept { return std::exchange(begun_, {}); }

  private:
    void take_back() noexcept {
        for (const auto& file : take()) file->transfer_ended({}, nullptr);
    }
    Files wanted_;
    Files begun_;
};

}  // namespace penstock::context
