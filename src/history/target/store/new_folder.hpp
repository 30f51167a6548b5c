// NewFolder: a store in the making. It lies in a hidden folder beside, and takes its name when all is in it: that of an
// older store in one step, where the file system can. Until then the older one is as it was.
#pragma once

#include <filesystem>
#include <string>

#include "history/target/store/spare_descriptors.hpp"
#include "os/fd.hpp"

namespace penstock::history {

class NewFolder {
  public:
    // Throws Error of the system.
    explicit NewFolder(const std::filesystem::path& name);
    ~NewFolder();  // goes, unless it took the name of the store; then what was replaced goes
    NewFolder(const NewFolder&) = delete;
    NewFolder& operator=(const NewFolder&) = delete;
    std::string path() const { return path_.string(); }

    // Nothing has the name: of two histories that begin at once, one finds that the other took it.
    void take_free_name(const std::string& name);
    // In place of an older store, which the caller has locked.
    void replace(const std::string& name);

  private:
    std::filesystem::path path_;
    // For what a store takes besides its data files, documents and files that get their names, and to remove the folder
    // where there are no others.
    SpareDescriptors spare_;
};

// The store that has the name, locked; none where nothing has it. Throws Error of what is no store, and where another
// history writes it.
os::UniqueFd locked_older(const std::string& name, bool may_replace);
// An open folder, locked; no lock where the file system has none.
os::UniqueFd locked_folder(const std::string& name);
void unlock_folder(const os::UniqueFd& folder);
void sync_folder(const std::string& name);

}  // namespace penstock::history
