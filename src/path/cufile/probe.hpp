// Runs the probe program in its own process, under a time limit, and reads its output from a pipe.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace penstock::path {

struct ProbeRun {
    bool started = false;
    bool timed_out = false;  // the limit passed and the process group was killed
    int signal = 0;          // the signal that ended the program; 0: it exited
    int exit_code = 0;
    std::map<std::string, std::string> words;  // from key=value lines; of equal keys the last one counts
    std::string cause;                         // why the program did not start
};

ProbeRun run_probe(const std::string& program, const std::vector<std::string>& arguments,
                   std::chrono::milliseconds limit);

// Searches beside the running program or library, then in the folders where packages install it. Empty: not found.
std::string find_probe_program();

}  // namespace penstock::path
