// Names of the shared enums, sizes parsed from text, and deadlines.
#include "penstock/types.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/path_traits.hpp"
#include "penstock/error.hpp"

namespace penstock {
namespace {

struct Unit {
    const char* name;
    double factor;
};
constexpr std::array<Unit, 17> kUnits{{{"", 1}, {"b", 1}, {"k", 1024}, {"kib", 1024}, {"kb", 1e3}, {"m", 1048576},
    {"mib", 1048576}, {"mb", 1e6}, {"g", 1073741824}, {"gib", 1073741824}, {"gb", 1e9}, {"t", 1099511627776.0},
    {"tib", 1099511627776.0}, {"tb", 1e12}, {"ki", 1024}, {"mi", 1048576}, {"gi", 1073741824}}};

[[noreturn]] void refuse_size(std::string_view text) {
    throw Error(ErrorCode::invalid_argument, "parse size", "'" + std::string(text) + "' is not a number of bytes",
                "write a whole number of bytes, 64KiB, 4MiB, 1GiB or 1.5GB");
}

}  // namespace

const char* to_string(Direction value) noexcept { return value == Direction::read ? "read" : "write"; }

const char* to_string(MemoryKind value) noexcept {
    constexpr std::array<const char*, 4> names{"device", "pinned", "managed", "system"};
    return names[static_cast<std::size_t>(value)];
}

const char* to_string(FirstTouch value) noexcept {
    constexpr std::array<const char*, 3> names{"none", "cpu", "gpu"};
    return names[static_cast<std::size_t>(value)];
}

const char* to_string(PathKind value) noexcept { return traits_of(value).name; }

std::optional<PathKind> path_from_string(std::string_view name) noexcept {
    for (const PathTraits& path : kPathTraits) {
        if (name == path.name) return path.kind;
    }
    return std::nullopt;
}

std::optional<MemoryKind> memory_kind_from_string(std::string_view name) noexcept {
    for (auto kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::managed, MemoryKind::system}) {
        if (name == to_string(kind)) return kind;
    }
    return std::nullopt;
}

std::optional<FirstTouch> first_touch_from_string(std::string_view name) noexcept {
    for (auto touch : {FirstTouch::none, FirstTouch::cpu, FirstTouch::gpu}) {
        if (name == to_string(touch)) return touch;
    }
    return std::nullopt;
}

std::string known_path_names() {
    std::string names;
    for (const PathTraits& path : kPathTraits) {
        if (path.kind == PathKind::null || path.kind == PathKind::memory) continue;
        names += (names.empty() ? "" : ", ") + std::string(path.name);
    }
    return names;
}

std::uint64_t parse_bytes(std::string_view text) {
    double number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, failure] = std::from_chars(text.data(), end, number);
    if (failure != std::errc{} || !(number >= 0)) refuse_size(text);
    std::string unit;
    for (const char* c = rest; c != end; ++c) {
        if (*c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
    }
    for (const auto& [name, factor] : kUnits) {
        if (unit != name) continue;
        // An integer without unit keeps all its digits. A double holds whole bytes up to 2^53 only.
        std::uint64_t exact = 0;
        const auto whole = std::from_chars(text.data(), rest, exact);
        if (factor == 1 && whole.ptr == rest && whole.ec == std::errc{}) return exact;
        const double bytes = number * factor;
        if (bytes > 9.0e18 || bytes != std::floor(bytes)) refuse_size(text);
        return static_cast<std::uint64_t>(bytes);
    }
    refuse_size(text);
}

Deadline Deadline::after(Clock::duration wait) noexcept {
    const auto now = Clock::now();
    if (wait >= Clock::time_point::max() - now) return never();
    return Deadline{now + wait};
}

std::chrono::nanoseconds Deadline::left() const noexcept {
    if (is_never()) return std::chrono::hours(24 * 365 * 100);
    const auto now = Clock::now();
    return when_ <= now ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(when_ - now);
}

}  // namespace penstock
