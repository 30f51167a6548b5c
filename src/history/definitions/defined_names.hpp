// DefinedNames: what the definitions of a history have in common, so that each is checked when it comes, by itself and
// against these: lengths of dimensions, and names that are taken. A check costs the same however many came before.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "history/layout.hpp"

namespace penstock::history {

// What is thrown where dimensions of one name have different lengths.
Error other_length(const std::string& owner, const formats::NewDimension& has, std::uint64_t others);

class DefinedNames {
  public:
    // Takes the names of one definition, whose file it names. Throws Error where it makes no sense by itself, has the
    // name of another one, or a dimension with another length; then nothing is taken.
    void add(const std::string& file, const Definitions& one, const HistoryOptions& options);

  private:
    std::map<std::string, std::uint64_t> lengths_;
    std::set<std::string> variables_;
    bool has_bounds_ = false;
};

// Throws Error where these attributes, of a variable or of the file where that is empty, make no sense.
void check_attributes(const std::string& file, const std::string& variable,
                      const std::vector<HistoryAttribute>& attributes, const HistoryOptions& options);

}  // namespace penstock::history
