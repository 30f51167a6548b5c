// A folder of raw files, as a history leaves it, as a container: a file for each variable, and penstock.json.
//
// What must stay true: a variable has the steps that the index counted when it was opened; its file is in the folder,
// under a name without a path, and holds them. A folder that took the name since is not taken for the first.
#pragma once

#include <string>

#include "formats/container.hpp"

namespace penstock::formats {

// Whether the folder has the index of one.
bool is_raw_history(const std::string& folder);
// Throws Error of a folder that is none.
ContainerPtr open_raw_history(const std::string& folder);

}  // namespace penstock::formats
