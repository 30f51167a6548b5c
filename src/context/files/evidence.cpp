// How evidence reads: the name of the path, and JSON.
#include "penstock/evidence.hpp"

#include <cstdio>

#include "base/json.hpp"

namespace penstock {
namespace {

using base::Json;

void write_residency(Json& json, const char* name, const std::optional<Residency>& residency) {
    json.key(name);
    if (!residency) {
        json.null();
        return;
    }
    json.begin_object()
        .field("pages", residency->pages)
        .field("sampled_pages", residency->sampled_pages)
        .field("resident_pages", residency->resident_pages)
        .key("dirty_pages");
    residency->dirty_pages ? json.value(*residency->dirty_pages) : json.null();
    json.key("resident_fraction");
    residency->sampled_pages != 0 ? json.value(residency->fraction()) : json.null();
    json.field("source", residency->source).end_object();
}

void write_paths(Json& json, const std::vector<PathShare>& paths) {
    json.key("paths").begin_array();
    for (const PathShare& share : paths) {
        json.begin_object()
            .field("path", to_string(share.path))
            .field("bytes", share.bytes)
            .field("operations", share.operations)
            .field("host_copies_bytes", share.host_copies_bytes)
            .field("from_pinned_mapping", share.from_pinned_mapping)
            .key("past_page_cache");
        share.past_page_cache ? json.value(*share.past_page_cache) : json.null();
        json.end_object();
    }
    json.end_array();
}

void write_process_io(Json& json, const std::optional<ProcessIo>& io) {
    json.key("process_io");
    if (!io) {
        json.null();
        return;
    }
    json.begin_object()
        .field("read_chars", io->read_chars)
        .field("write_chars", io->write_chars)
        .field("read_bytes", io->read_bytes)
        .field("write_bytes", io->write_bytes)
        .field("read_calls", io->read_calls)
        .field("write_calls", io->write_calls)
        .end_object();
}

void write_cufile(Json& json, const std::optional<CuFileCounters>& counters) {
    json.key("cufile");
    if (!counters) {
        json.null();
        return;
    }
    json.begin_object()
        .field("library", counters->library)
        .field("nvfs_reads", counters->nvfs_reads)
        .field("nvfs_writes", counters->nvfs_writes)
        .field("p2p_reads", counters->p2p_reads)
        .field("p2p_writes", counters->p2p_writes)
        .field("posix_reads", counters->posix_reads)
        .field("posix_writes", counters->posix_writes)
        .end_object();
}

}  // namespace

std::string Evidence::path_name() const {
    std::string name = "none";
    for (const PathShare& share : paths) {
        if (share.bytes == 0) continue;
        if (name != "none") return "mixed";
        name = to_string(share.path);
    }
    return name;
}

std::string Evidence::reason() const {
    std::uint64_t bytes = 0;
    for (const PathShare& share : paths) bytes += share.bytes;
    const auto rate = [bytes](double time) {
        char text[48];
        std::snprintf(text, sizeof text, "%.3g GB/s", static_cast<double>(bytes) / time / 1e9);
        return std::string(text);
    };
    std::string text = why;
    if (bytes == 0 || seconds <= 0) return text;
    text += predicted_seconds > 0 ? "; predicted " + rate(predicted_seconds) : "; no machine profile to predict it";
    return text + ", measured " + rate(seconds);
}

std::string Evidence::to_json() const {
    Json json;
    json.begin_object().field("path", path_name());
    write_paths(json, paths);
    write_residency(json, "residency_before", before);
    write_residency(json, "residency_after", after);
    write_process_io(json, process_io);
    write_cufile(json, cufile);
    json.key("fallbacks").begin_array();
    for (const Fallback& fallback : fallbacks) {
        json.begin_object()
            .field("wanted", to_string(fallback.wanted))
            .field("took", to_string(fallback.took))
            .field("bytes", fallback.bytes)
            .field("cause", fallback.cause)
            .end_object();
    }
    json.end_array().key("notes").begin_array();
    for (const std::string& note : notes) json.value(note);
    json.end_array()
        .field("pinned_peak_bytes", pinned_peak_bytes)
        .field("cpu_user_s", cpu_user_s)
        .field("cpu_system_s", cpu_system_s)
        .field("plan", plan)
        .field("reason", reason())
        .field("predicted_seconds", predicted_seconds)
        .end_object();
    return std::move(json).text();
}

}  // namespace penstock
