// What `penstock run` was asked for. It comes by the environment, because a preloaded library has no other caller.
#pragma once

#include <cstdint>

#include "preload/ask/sequence.hpp"

namespace preload {

struct Settings {
    Limits limits;
    const char* match = nullptr;    // globs, one a line; null: every file
    const char* report = nullptr;   // null: none
    const char* library = nullptr;  // libpenstock.so, for memory of a GPU; null: the one beside this library
    int first_process = 0;          // its report has the name that was given, those of others have their number behind
    bool durable = false;
};

// Reads PENSTOCK_RUN_MATCH, _REPORT, _LIBRARY, _PROCESS, _DURABLE and _LEAST_BYTES.
void read_settings(Settings& settings);
// Whether a file is one of those that were asked for: a glob with a slash is for whole names, others for the last part.
bool is_matched(const Settings& settings, const char* name);

}  // namespace preload
