// DataFile: an open file of named datasets: its format, and what its bytes are read and written through.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "formats/chunk_files.hpp"
#include "formats/container.hpp"
#include "formats/parsers.hpp"
#include "penstock/context.hpp"

namespace penstock::formats {

struct DataFileOptions {
    std::string format{};  // empty: found by the file's first bytes, and then by its name
    bool writable = false;
    std::optional<RawShape> raw{};  // of a file without metadata: format is "raw"
};

class DataFile {
  public:
    // Throws Error.
    DataFile(const Context& context, const std::string& name, const DataFileOptions& options);

    const Context& context() const noexcept { return context_; }
    const Container& container() const noexcept { return *container_; }
    const std::string& name() const noexcept { return name_; }
    bool writable() const noexcept { return writable_; }
    // The file that a chunk lies in.
    File file_of(const ChunkPlace& place) const;

  private:
    Context context_;
    std::string name_;
    bool writable_;
    std::optional<File> file_;  // none: a folder
    std::unique_ptr<ChunkFiles> chunk_files_;
    ContainerPtr container_;
};

}  // namespace penstock::formats
