// Prints a Plan: one line for each step, sizes in binary units.
#include "penstock/plan.hpp"

#include <algorithm>
#include <cstdio>

namespace penstock {
namespace {

std::string size_text(std::uint64_t bytes) {
    // Every small transfer runs this, so whole numbers, the usual case, avoid the cost of formatting a fraction.
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

std::string rate_text(std::uint64_t bytes, double seconds) {
    char text[48];
    std::snprintf(text, sizeof text, "%.3g GB/s", static_cast<double>(bytes) / seconds / 1e9);
    return text;
}

}  // namespace

std::uint64_t Step::bytes() const noexcept {
    std::uint64_t total = 0;
    for (const PlanPiece& piece : pieces) total += piece.bytes;
    return total;
}

double Plan::predicted_seconds() const noexcept {
    double longest = 0;
    std::uint64_t predicted = 0;
    std::uint64_t total = 0;
    for (const Step& step : steps) {
        total += step.bytes();
        if (step.predicted_seconds > 0) predicted += step.bytes();
        longest = std::max(longest, step.predicted_seconds);
    }
    return predicted < total - total / 16 ? 0 : longest;
}

std::string Plan::reason() const {
    if (steps.size() == 1) return to_string(steps.front().shape.path) + (", " + steps.front().reason);
    std::string text;
    for (const Step& step : steps) {
        if (!text.empty()) text += "; ";
        text.append(size_text(step.bytes())).append(" by ").append(to_string(step.shape.path));
        text.append(", ").append(step.reason);
    }
    return text;
}

std::string Plan::describe() const {
    std::string text;
    text.reserve(160);
    for (const Step& step : steps) {
        const std::uint64_t bytes = step.bytes();
        if (!text.empty()) text += '\n';
        text.append(to_string(step.shape.direction)).append(" ").append(size_text(bytes));
        if (step.pieces.size() > 1) text += " in " + std::to_string(step.pieces.size()) + " pieces";
        text.append(" by ").append(to_string(step.shape.path)).append(", ").append(shape_text(step.shape));
        text.append(": ").append(step.reason);
        if (step.predicted_seconds > 0) text += "; predicted " + rate_text(bytes, step.predicted_seconds);
        if (step.next_seconds > 0) {
            text.append(", next best ").append(to_string(step.next_path)).append(" ");
            text += rate_text(bytes, step.next_seconds);
        }
    }
    return text;
}

}  // namespace penstock
