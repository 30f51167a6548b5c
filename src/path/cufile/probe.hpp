// Running the probe program: in its own process, under a time limit, its words read from a pipe.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace penstock::path {

struct ProbeRun {
    bool started = false;
    bool timed_out = false;  // and killed
    int signal = 0;          // that ended it; 0: it ended by itself
    int exit_code = 0;
    std::map<std::string, std::string> words;  // key=value lines; the last of equal keys
    std::string cause;                         // why it did not start
};

ProbeRun run_probe(const std::string& program, const std::vector<std::string>& arguments,
                   std::chrono::milliseconds limit);

// The probe program beside our own program or library, or in the folders where packages put it; empty: not found.
std::string find_probe_program();

}  // namespace penstock::path
