// See tally.hpp.
#include "vfd/tally.hpp"

#include <unistd.h>

#include <cstdio>

namespace penstock::vfd {
namespace {

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char letter : text) {
        const auto code = static_cast<unsigned char>(letter);
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", code);
        if (letter == '"' || letter == '\\') out += std::string("\\") + letter;
        else if (code < 0x20) out += escaped;
        else out += letter;
    }
    return out + "\"";
}

std::string entry(const char* name, std::uint64_t requests, std::uint64_t bytes) {
    const std::string counts = ": {\"requests\": " + std::to_string(requests) + ", \"bytes\": " + std::to_string(bytes);
    return quoted(name) + counts + "}";
}

std::string entry(const char* name, const Count& count) { return entry(name, count.requests, count.bytes); }

std::string json_of(const Moved& moved) {
    std::string text = "{" + entry("plain", moved.plain) + ", " + entry("staged", moved.staged) + ", " +
                       entry("windows", moved.windows) + ", \"pieces\": " + std::to_string(moved.pieces) + ", " +
                       entry("rows", moved.rows) + ", \"transfers\": {";
    const char* between = "";
    for (const auto& [path, share] : moved.transfers) {
        text += between + entry(path.c_str(), share.requests, share.bytes);
        between = ", ";
    }
    return text + "}}";
}

}  // namespace

void Tally::transfer(bool write, const std::string& path, std::uint64_t bytes, std::uint32_t fallbacks) {
    const std::lock_guard lock(mutex_);
    Moved::Share& share = moved(write).transfers[path];
    ++share.requests;
    share.bytes += bytes;
    fallbacks_ += fallbacks;
}

void Tally::refused(const std::string& why) {
    const std::lock_guard lock(mutex_);
    refusals_.insert(why);
}

std::string Tally::json(const std::string& file) const {
    const std::lock_guard lock(mutex_);
    std::string text = "{\"file\": " + quoted(file) + ", \"process\": " + std::to_string(::getpid()) +
                       ", \"read\": " + json_of(reads_) + ", \"write\": " + json_of(writes_) +
                       ", \"fallbacks\": " + std::to_string(fallbacks_) + ", \"refused\": [";
    const char* between = "";
    for (const std::string& why : refusals_) {
        text += between + quoted(why);
        between = ", ";
    }
    return text + "]}";
}

}  // namespace penstock::vfd
