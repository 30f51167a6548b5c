// How a Plan reads: one line a step, sizes in binary units.
#include "penstock/plan.hpp"

#include <cstdio>

namespace penstock {
namespace {

std::string size_text(std::uint64_t bytes) {
    // Whole numbers, the usual case, without the cost of formatting a fraction: this runs for every small transfer.
    if (bytes != 0 && bytes % kKiB == 0 && bytes < kMiB) return std::to_string(bytes / kKiB) + " KiB";
    if (bytes != 0 && bytes % kMiB == 0 && bytes < kGiB) return std::to_string(bytes / kMiB) + " MiB";
    char text[32];
    if (bytes >= kGiB) {
        std::snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / static_cast<double>(kGiB));
    } else if (bytes >= kMiB) {
        std::snprintf(text, sizeof text, "%.4g MiB", static_cast<double>(bytes) / static_cast<double>(kMiB));
    } else if (bytes >= kKiB) {
        std::snprintf(text, sizeof text, "%.4g KiB", static_cast<double>(bytes) / static_cast<double>(kKiB));
    } else {
        std::snprintf(text, sizeof text, "%llu B", static_cast<unsigned long long>(bytes));
    }
    return text;
}

std::string shape_text(const Shape& shape) {
    if (shape.run_inline) return "on the calling thread";
    if (shape.part_bytes != 0) {
        return "up to " + std::to_string(shape.workers) + " workers sharing " + std::to_string(shape.depth) +
               " slots of " + size_text(shape.chunk_bytes) + " in parts of " + size_text(shape.part_bytes);
    }
    return std::to_string(shape.workers) + (shape.workers == 1 ? " worker x " : " workers x ") +
           std::to_string(shape.depth) + (shape.staged ? " slots of " : " operations of ") +
           size_text(shape.chunk_bytes);
}

}  // namespace

std::string Plan::describe() const {
    std::string text;
    text.reserve(160);
    for (const Step& step : steps) {
        std::uint64_t bytes = 0;
        for (const PlanPiece& piece : step.pieces) bytes += piece.bytes;
        if (!text.empty()) text += '\n';
        text.append(to_string(step.shape.direction)).append(" ").append(size_text(bytes));
        if (step.pieces.size() > 1) text += " in " + std::to_string(step.pieces.size()) + " pieces";
        text.append(" by ").append(to_string(step.shape.path)).append(", ").append(shape_text(step.shape));
        text.append(": ").append(step.reason);
    }
    return text;
}

}  // namespace penstock
