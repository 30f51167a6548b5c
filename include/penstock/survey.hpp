// Survey: what this machine can do for transfers at a place, and for each thing it cannot, what it would take.
//
// Looks and tries; changes nothing and leaves nothing behind. Where there is a GPU it times a short pinned copy each
// way (about 0.1 s); everything else takes less. Every item that is not "yes" carries advice.
#pragma once

#include <string>

namespace penstock {

// One JSON object:
//   {"path": ..., "machine": {"cpu_model", "cores", "memory_bytes", "kernel", "os", "architecture", "page_bytes",
//                             "numa_nodes", "gpus": [{"name", "model", "total_bytes", ...}]},
//    "items": [{"name": "io_uring", "state": "yes" | "partly" | "no", "detail": ..., "advice": ...}, ...]}
// `path` is a file or a directory; throws Error{not_found} when there is none, Error{not_a_regular_file} for a FIFO or
// a device.
std::string survey_json(const std::string& path);

}  // namespace penstock
