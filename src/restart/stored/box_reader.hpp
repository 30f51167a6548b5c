// Reading boxes of a generation: the data go where they belong, and each block that a box touches is summed and
// compared with its checksum.
//
// What a process has not read of such a block is read for the sum alone: at most two blocks of a field where its box is
// whole rows.
#pragma once

#include <string>
#include <vector>

#include "penstock/restart.hpp"
#include "restart/boxes.hpp"
#include "restart/stored/generations.hpp"

namespace penstock::restart {

// A box of a field of the generation, and memory for it.
struct WantedBox {
    const RecordedField* field = nullptr;
    std::vector<RunOfField> runs{};
    MemoryView memory{};
};

class BoxReader {
  public:
    BoxReader(const Context& context, const StoredGeneration& generation, const RestartOptions& options)
        : context_(context), generation_(generation), options_(options) {}

    // Empty: all is right. Else which field is damaged, or cannot be read, and how. Throws Error of what is not the
    // fault of the file.
    std::string read(const std::vector<WantedBox>& boxes, Evidence& evidence) const;

  private:
    std::string read_data(const std::vector<WantedBox>& boxes, Evidence& evidence) const;
    std::string compare(const WantedBox& box) const;
    void add_gaps(const WantedBox& box, std::vector<std::uint32_t>& sums) const;

    const Context& context_;
    const StoredGeneration& generation_;
    const RestartOptions& options_;
};

// Transfers of runs of a field, into memory or out of it.
void add_ranges(const WantedBox& box, const File& file, std::vector<Range>& ranges);

}  // namespace penstock::restart
