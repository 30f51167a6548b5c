// The survey of a place whose files lie on servers: in which pieces these have them. A process whose box of a file is
// made of whole pieces shares the lock of none with another process.
#include <array>
#include <cerrno>
#include <cstring>

#include "context/survey/item.hpp"
#include "penstock/types.hpp"

namespace penstock::context {
namespace {

constexpr const char* kAsk = "lfs getstripe tells it";

std::string servers_of(const os::ServerStripes& stripes) {
    if (stripes.on_all_servers) return "all OSTs";
    if (stripes.servers == 0) return "as many OSTs as the file system chooses";
    return std::to_string(stripes.servers) + (stripes.servers == 1 ? " OST" : " OSTs");
}

std::string text_of(const os::ServerStripes& stripes) {
    const std::string size = stripes.bytes == 0 ? "the file system's size" : exact_bytes(stripes.bytes);
    const std::string text = "stripes of " + size + " over " + servers_of(stripes);
    if (stripes.parts == 1) return text;
    return text + " at the end of a file, whose layout has " + std::to_string(stripes.parts) + " parts";
}

}  // namespace

std::string exact_bytes(std::uint64_t bytes) {
    if (bytes != 0 && bytes % kGiB == 0) return std::to_string(bytes / kGiB) + " GiB";
    if (bytes != 0 && bytes % kMiB == 0) return std::to_string(bytes / kMiB) + " MiB";
    if (bytes != 0 && bytes % kKiB == 0) return std::to_string(bytes / kKiB) + " KiB";
    return std::to_string(bytes) + " bytes";
}

SurveyItem described(const os::ExtendedAttribute& layout, const SurveyPlace& place) {
    const bool is_folder = place.facts.type == os::FileType::directory;
    if (layout.error == ENODATA && is_folder) {
        return {"stripes", SurveyState::partly, "no layout of its own: new files have that of the file system",
                "before a run: lfs setstripe -c 8 -S 4M " + place.path};
    }
    if (layout.error != 0) {
        return {"stripes", SurveyState::partly, std::string("not told: ") + std::strerror(layout.error), kAsk};
    }
    const std::optional<os::ServerStripes> found = os::parse_lustre_layout(layout.value);
    if (!found) return {"stripes", SurveyState::partly, "a layout that Penstock does not know", kAsk};
    return {"stripes", SurveyState::yes, text_of(*found), ""};
}

std::vector<SurveyItem> server_items(const SurveyPlace& place) {
    static constexpr std::array kTellUnits{"nfs", "gpfs", "beegfs"};
    const std::string& kind = place.facts.kind;
    if (kind == "lustre") return {described(os::extended_attribute(place.path, os::kLustreLayout), place)};
    for (const char* one : kTellUnits) {
        if (kind != one || place.facts.unit_bytes == 0) continue;
        return {{"stripes", SurveyState::yes, "units of " + exact_bytes(place.facts.unit_bytes), ""}};
    }
    return {};
}

}  // namespace penstock::context
