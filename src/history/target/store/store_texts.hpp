// StoreTexts: changes the documents of a store. Readers find the old text or the new one, whole, at any moment; so they
// do after a kill and, of durable stores, after a power cut.
//
// A text that differs from the old one in one byte is changed in place: no reader and no power cut finds a part of a
// byte. Any other takes the place of the old one by a rename. Nine counts of ten differ from the next in one byte, and
// a file that is made and one that goes are most of what a small step costs.
//
// Where a new file takes the name of an old one, ext4 hands its data to the disk in that call, and the next change
// waits for the disk. That takes longer than all else of a small step. So two files of stores that are not durable
// exchange their names, and the old one goes; settle() hands the new one to the disk, when the model pauses.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>

#include "os/fd.hpp"

namespace penstock::history {

struct StoreText {
    std::string file;  // its name in the store
    std::string old_text{};
    std::string text{};
};

class StoreTexts {
  public:
    // `unfinished`: the name in the store under which a text lies until it is whole.
    StoreTexts(std::string store, std::string unfinished, bool is_durable)
        : store_(std::move(store)), unfinished_(std::move(unfinished)), is_durable_(is_durable) {}

    // All of them; of durable stores they are on stable storage then. Requires: the files have their old texts, and
    // no other process writes them. `folder` is the store, open. Throws Error.
    void change(const os::UniqueFd& folder, std::span<const StoreText> texts);
    // The disk gets what was changed; does not wait for it. Without it, a power cut soon afterwards may leave an empty
    // document of a store that is not durable.
    void settle(const os::UniqueFd& folder);
    std::size_t unsettled() const noexcept { return unsettled_.size(); }

  private:
    bool change_byte(const os::UniqueFd& folder, const StoreText& one) const;
    os::UniqueFd opened(const os::UniqueFd& folder, const std::string& file) const;
    void replace(const os::UniqueFd& folder, const StoreText& one);
    os::UniqueFd made(const os::UniqueFd& folder, const std::string& file) const;
    bool take_name(const os::UniqueFd& folder, const std::string& file) const;
    void sync_folder_of(const os::UniqueFd& folder, const std::string& file) const;
    [[noreturn]] void fail(const char* operation, const std::string& file) const;

    std::string store_;  // for errors
    std::string unfinished_;
    bool is_durable_;
    std::set<std::string> unsettled_;
};

}  // namespace penstock::history
