// See settings.hpp.
#include "preload/settings.hpp"

#include <fnmatch.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace preload {
namespace {

constexpr std::size_t kMostGlob = 1024;

const char* given(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && value[0] != '\0' ? value : nullptr;
}

// A copy that stays: a program that names itself in `ps` writes over its environment. The program's allocator may not
// have begun when the environment is read.
const char* kept(const char* value) {
    if (value == nullptr) return nullptr;
    const std::size_t bytes = std::strlen(value) + 1;
    void* copy = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return copy == MAP_FAILED ? value : static_cast<const char*>(std::memcpy(copy, value, bytes));
}

}  // namespace

void read_settings(Settings& settings) {
    settings.match = kept(given("PENSTOCK_RUN_MATCH"));
    settings.report = kept(given("PENSTOCK_RUN_REPORT"));
    settings.library = kept(given("PENSTOCK_RUN_LIBRARY"));
    settings.durable = given("PENSTOCK_RUN_DURABLE") != nullptr;
    if (const char* process = given("PENSTOCK_RUN_PROCESS")) settings.first_process = std::atoi(process);
    if (const char* least = given("PENSTOCK_RUN_LEAST_BYTES")) {
        settings.limits.least_bytes = std::max<std::int64_t>(std::atoll(least), kPlacedBytes);
    }
}

bool is_matched(const Settings& settings, const char* name) {
    if (settings.match == nullptr) return true;
    const char* slash = std::strrchr(name, '/');
    for (const char* at = settings.match; *at != '\0';) {
        const std::size_t length = std::strcspn(at, "\n");
        char glob[kMostGlob];
        if (length < sizeof glob) {
            std::memcpy(glob, at, length);
            glob[length] = '\0';
            const bool whole = std::strchr(glob, '/') != nullptr || slash == nullptr;
            if (::fnmatch(glob, whole ? name : slash + 1, 0) == 0) return true;
        }
        at += length + (at[length] == '\n');
    }
    return false;
}

}  // namespace preload
