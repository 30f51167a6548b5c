// The parts of a survey: one function a subject, each returning what it found as items.
//
// `root` is put before every /proc and /sys path that is read, so that tests can show a survey machines we do not have.
// It is empty for the real one. Real system calls are not redirected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/file/file_stat.hpp"
#include "os/limits.hpp"
#include "os/servers/stripes.hpp"
#include "penstock/device.hpp"

namespace penstock::path {
struct CuFileStatus;
}

namespace penstock::context {

enum class SurveyState : std::uint8_t { yes, partly, no };

struct SurveyItem {
    std::string name;    // snake case, stable
    SurveyState state = SurveyState::no;
    std::string detail;  // what was found
    std::string advice;  // what it would take; empty only for yes
};

struct SurveyPlace {
    std::string path;       // as the user gave it
    os::FileStat facts;
    bool nvme = false;      // its block device is an NVMe controller's
};

struct SurveyGpus {
    std::vector<DeviceInfo> found;
    std::string why;  // there is none
};

// Throws Error{not_found, not_a_regular_file, permission_denied}.
SurveyPlace survey_place(const std::string& path, const std::string& root);
SurveyGpus survey_gpus();

std::vector<SurveyItem> system_items(const os::Limits& limits, const std::string& root);
std::vector<SurveyItem> place_items(const SurveyPlace& place);
std::vector<SurveyItem> gpu_items(const SurveyGpus& gpus, const std::string& root);
std::vector<SurveyItem> direct_items(const SurveyGpus& gpus, const SurveyPlace& place, const std::string& root);

// Where servers have the files: in which pieces they have them. Empty elsewhere, and where nothing tells it.
std::vector<SurveyItem> server_items(const SurveyPlace& place);
// What Lustre said of the place, in the survey's words.
SurveyItem described(const os::ExtendedAttribute& layout, const SurveyPlace& place);

// What a probe of cuFile found, in the survey's words.
SurveyItem described(const path::CuFileStatus& status);

// Content of a small file; empty when it cannot be read.
std::string file_text(const std::string& name);
// "12.9 GB"
std::string decimal_bytes(std::uint64_t bytes);
// "4 MiB", "1536 KiB", "100 bytes": in the largest unit of which there is a whole number.
std::string exact_bytes(std::uint64_t bytes);

}  // namespace penstock::context
