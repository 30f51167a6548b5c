// SnapshotFile: the new file of a snapshot, of one process or of several, until it has its name.
//
// A file of one process is one that its context creates. The file of several is made by process 0 under a hidden name,
// which the others open. Ensures: a file that has the name stays as it was until publish(); nothing is left of a file
// that was let go before, and what a killed process left goes when the next one makes a file of that name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "os/new_file/name_lock.hpp"
#include "os/new_file/new_file.hpp"
#include "penstock/context.hpp"

namespace penstock::snapshot {

struct SnapshotFileOptions {
    std::string name;
    std::uint64_t bytes = 0;
    bool durable = false;
    bool replace = true;
    bool is_shared = false;  // other processes write to it too
};

class SnapshotFile {
  public:
    // Makes the file, with room for all its bytes. Throws Error, also where another snapshot of that name is written.
    SnapshotFile(const Context& context, const SnapshotFileOptions& options);
    // Opens the file that another process has made.
    SnapshotFile(const Context& context, const std::string& place, bool durable);

    const File& file() const { return file_; }
    const std::string& place() const { return place_; }  // of a shared file: its name until it has its own
    // All that this process wrote is in the file, on stable storage where that is asked for. A shared file that another
    // process made is closed.
    void settle();
    void publish();  // of the process that made the file

  private:
    bool durable_;
    std::string name_{};  // of the file that this process makes
    os::NameLock lock_{};
    std::string place_{};
    std::unique_ptr<os::NewFile> made_{};  // of a shared file
    File file_;
};

}  // namespace penstock::snapshot
