// survey_json: joins the parts and describes the machine.
//
// The machine's description is also what benchmark results carry, so its keys are stable.
#include "penstock/survey.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/json.hpp"
#include "context/survey/item.hpp"

namespace penstock {
namespace context {
namespace {

// The value of the first "key<spaces>: value" line.
std::string field_of(const std::string& text, const std::string& key) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const auto colon = line.find(':');
        if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
        if (line.find_first_not_of(" \t", key.size()) != colon) continue;
        const auto start = line.find_first_not_of(" \t", colon + 1);
        return start == std::string::npos ? "" : line.substr(start);
    }
    return {};
}

std::string cpu_model() {
    const std::string text = file_text("/proc/cpuinfo");
    if (const auto model = field_of(text, "model name"); !model.empty()) return model;
    // aarch64 names no model, only codes of Arm's and the maker's lists.
    const auto maker = field_of(text, "CPU implementer");
    return maker.empty() ? "unknown" : "implementer " + maker + " part " + field_of(text, "CPU part");
}

std::string os_name() {
    std::istringstream lines(file_text("/etc/os-release"));
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("PRETTY_NAME=", 0) != 0) continue;
        const auto first = line.find('"'), last = line.rfind('"');
        return last > first ? line.substr(first + 1, last - first - 1) : line.substr(12);
    }
    return "Linux";
}

const char* to_string(SurveyState state) {
    constexpr std::array<const char*, 3> names{"yes", "partly", "no"};
    return names[static_cast<std::size_t>(state)];
}

void write_gpu(base::Json& json, const DeviceInfo& gpu) {
    json.begin_object().field("name", gpu.name).field("model", gpu.model).field("total_bytes", gpu.total_bytes);
    json.field("free_bytes", gpu.free_bytes).field("bus", gpu.bus).field("numa_node", gpu.numa_node);
    json.field("coherent_with_host", gpu.coherent_with_host).field("driver_version", gpu.driver_version);
    json.field("runtime_version", gpu.runtime_version).end_object();
}

void write_machine(base::Json& json, const os::Limits& limits, const SurveyGpus& gpus) {
    json.key("machine").begin_object().field("cpu_model", cpu_model()).field("cores", limits.cpus);
    json.field("memory_bytes", limits.memory_bytes).field("kernel", limits.kernel).field("os", os_name());
    json.field("architecture", limits.machine).field("page_bytes", limits.page_bytes);
    json.field("numa_nodes", limits.numa_nodes.empty() ? std::size_t{1} : limits.numa_nodes.size());
    json.key("gpus").begin_array();
    for (const DeviceInfo& gpu : gpus.found) write_gpu(json, gpu);
    json.end_array().end_object();
}

void write_items(base::Json& json, const std::vector<SurveyItem>& items) {
    for (const SurveyItem& item : items) {
        json.begin_object().field("name", item.name).field("state", to_string(item.state));
        json.field("detail", item.detail).field("advice", item.advice).end_object();
    }
}

}  // namespace

std::string file_text(const std::string& name) {
    std::ifstream stream(name);
    std::ostringstream text;
    if (stream) text << stream.rdbuf();
    return text.str();
}

std::string decimal_bytes(std::uint64_t bytes) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f GB", static_cast<double>(bytes) / 1e9);
    return text.data();
}

}  // namespace context

std::string survey_json(const std::string& path) {
    const std::string root;
    const auto place = context::survey_place(path, root);
    const auto gpus = context::survey_gpus();
    const auto limits = os::limits();
    base::Json json;
    json.begin_object().field("path", path);
    context::write_machine(json, limits, gpus);
    json.key("items").begin_array();
    context::write_items(json, context::gpu_items(gpus, root));
    context::write_items(json, context::direct_items(gpus, place, root));
    context::write_items(json, context::system_items(limits, root));
    context::write_items(json, context::place_items(place));
    json.end_array().end_object();
    return std::move(json).text();
}

}  // namespace penstock
