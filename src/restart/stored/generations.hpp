// Generations: the two files of a restart, as they are found: which is the newest that is whole, and which of the two a
// new generation replaces.
//
// A file is looked at by the record at its end and by the table of checksums, and its data when they are read. What is
// found to be damaged then is passed over, and is the first to be replaced.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/context.hpp"
#include "restart/stored/record.hpp"

namespace penstock::restart {

// A file with a whole record, which stays open: it may be replaced while it is read.
struct StoredGeneration {
    std::size_t candidate = 0;  // which of the two files
    std::uint64_t number = 0;
    File file;
    RestartRecord record{};
    std::vector<std::uint32_t> sums{};  // of all blocks

    const RecordedField* field(const std::string& name) const noexcept;
};

// Where a new generation goes.
struct NextGeneration {
    std::string file;
    std::uint64_t number = 0;
};

class Generations {
  public:
    Generations(const Context& context, std::string name) : context_(context), name_(std::move(name)) {}

    // None: there are no files. Throws Error where files are there and none is whole.
    std::optional<StoredGeneration> newest();
    // That generation is not taken any more.
    void pass_over(const StoredGeneration& generation, const std::string& cause);
    // Throws Error where something else has the name of the file.
    NextGeneration next();
    // Why files were not taken; empty: all are whole.
    std::string passed_over() const;

  private:
    static constexpr std::size_t kGenerations = 2;
    struct FoundFile {
        bool is_there = false;
        bool may_be_replaced = true;  // it is a restart, or was to become one
        std::optional<StoredGeneration> whole{};
        std::string cause{};  // why it is not whole
    };
    struct Refused {
        std::uint64_t number = 0;
        std::string cause{};
    };
    std::string file_of(std::size_t candidate) const { return name_ + "." + std::to_string(candidate); }
    std::array<FoundFile, kGenerations> look();
    void note_missing(const std::array<FoundFile, kGenerations>& found, std::uint64_t newest);
    FoundFile look_at(std::size_t candidate) const;
    void read_record(StoredGeneration& generation, FoundFile& candidate) const;

    Context context_;
    std::string name_;
    std::array<Refused, kGenerations> refused_{};
    std::array<std::string, kGenerations> causes_{};  // of the last look
};

}  // namespace penstock::restart
