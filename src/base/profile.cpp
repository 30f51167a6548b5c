// Reads and writes machine profiles. Anybody may have edited a profile's file. So every number is checked, every key
// and column must be known, and the error names the first wrong line.
#include "penstock/profile.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "penstock/error.hpp"

namespace penstock {
namespace {

constexpr std::string_view kTitle = "# Penstock machine profile, version 1";
constexpr std::string_view kColumns =
    "direction,cached,path,memory,first_touch,aligned,workers,depth,chunk_bytes,bytes,seconds,synced_seconds,samples";
constexpr std::size_t kColumnCount = 13;
constexpr std::size_t kRowsMax = 100'000;
constexpr std::uint64_t kBytesMax = 1ULL << 50;
constexpr double kSecondsMax = 1e6;
constexpr std::uint32_t kSmallMax = 1'000'000;  // for workers, depth and samples

// Returns one line after another, and adds the line number to messages.
class Lines {
  public:
    Lines(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

    bool next(std::string_view& line) {
        if (rest_.empty()) return false;
        ++number_;
        const std::size_t end = rest_.find('\n');
        line = rest_.substr(0, end);
        rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        return true;
    }

    [[noreturn]] void refuse(const std::string& cause) const {
        ErrorInfo info;
        info.code = ErrorCode::invalid_argument;
        info.operation = "read machine profile";
        info.file = name_;
        info.cause = number_ == 0 ? "it is empty" : "line " + std::to_string(number_) + ": " + cause;
        info.advice = "use a file that `penstock calibrate` wrote, or make a new one with it";
        throw Error(std::move(info));
    }

  private:
    std::string_view rest_;
    const std::string& name_;
    std::size_t number_ = 0;
};

std::string quoted(std::string_view text) { return "'" + std::string(text.substr(0, 60)) + "'"; }

template <typename Number>
struct Bounds {
    Number least, most;
};

template <typename Number>
Number number(const Lines& lines, std::string_view text, const Bounds<Number>& bounds, const char* what) {
    Number value{};
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size() || !(value >= bounds.least) ||
        !(value <= bounds.most)) {
        lines.refuse(std::string(what) + " is " + quoted(text));
    }
    return value;
}

bool truth(const Lines& lines, std::string_view text, const char* what) {
    if (text != "yes" && text != "no") lines.refuse(std::string(what) + " is " + quoted(text) + ", neither yes nor no");
    return text == "yes";
}

template <typename Value>
Value named(const Lines& lines, std::optional<Value> value, std::string_view text, const char* what) {
    if (!value) lines.refuse(std::string("there is no ") + what + " " + quoted(text));
    return *value;
}

std::array<std::string_view, kColumnCount> cells_of(const Lines& lines, std::string_view line) {
    std::array<std::string_view, kColumnCount> cells;
    for (std::size_t i = 0; i < kColumnCount; ++i) {
        const std::size_t comma = line.find(',');
        const bool last = i + 1 == kColumnCount;
        if (last != (comma == std::string_view::npos)) {
            lines.refuse("a row has " + std::to_string(kColumnCount) + " cells");
        }
        cells[i] = line.substr(0, comma);
        line.remove_prefix(last ? line.size() : comma + 1);
    }
    return cells;
}

Direction direction_of(const Lines& lines, std::string_view text) {
    if (text == "read") return Direction::read;
    if (text == "write") return Direction::write;
    lines.refuse("there is no direction " + quoted(text));
}

ProfileRow row_of(const Lines& lines, std::string_view line) {
    const auto cells = cells_of(lines, line);
    ProfileRow row;
    row.direction = direction_of(lines, cells[0]);
    row.cached = truth(lines, cells[1], "cached");
    row.path = named(lines, path_from_string(cells[2]), cells[2], "path");
    if (row.path == PathKind::automatic || row.path == PathKind::null || row.path == PathKind::memory) {
        lines.refuse("path " + quoted(cells[2]) + " is none that is measured");
    }
    row.memory = named(lines, memory_kind_from_string(cells[3]), cells[3], "kind of memory");
    row.first_touch = named(lines, first_touch_from_string(cells[4]), cells[4], "first touch");
    row.aligned = truth(lines, cells[5], "aligned");
    row.workers = number<std::uint32_t>(lines, cells[6], {0, 512}, "workers");
    row.depth = number<std::uint32_t>(lines, cells[7], {0, 4096}, "depth");
    row.chunk_bytes = number<std::uint64_t>(lines, cells[8], {0, kGiB}, "chunk_bytes");
    row.bytes = number<std::uint64_t>(lines, cells[9], {1, kBytesMax}, "bytes");
    row.seconds = number<double>(lines, cells[10], {1e-9, kSecondsMax}, "seconds");
    row.synced_seconds = number<double>(lines, cells[11], {0, kSecondsMax}, "synced_seconds");
    row.samples = number<std::uint32_t>(lines, cells[12], {1, kSmallMax}, "samples");
    return row;
}

// Takes a "# key: value" line. Ignores notes, which are lines of the head with an unknown key: they are for people.
void take_fact(const Lines& lines, std::string_view line, Profile& profile) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) return;
    const std::string_view key = line.substr(2, colon - 2);
    const std::string_view value = line.substr(colon + 2);
    const auto count = [&](const char* what) { return number<std::uint64_t>(lines, value, {0, ~0ULL}, what); };
    if (key == "measured") profile.measured = value;
    else if (key == "cpu") profile.machine.cpu = value;
    else if (key == "cores") profile.machine.cores = count("cores");
    else if (key == "memory_bytes") profile.machine.memory_bytes = count("memory_bytes");
    else if (key == "page_bytes") profile.machine.page_bytes = count("page_bytes");
    else if (key == "architecture") profile.machine.architecture = value;
    else if (key == "kernel") profile.machine.kernel = value;
    else if (key == "device") profile.machine.device = value;
    else if (key == "driver") profile.machine.driver = count("driver");
    else if (key == "file_system") profile.place.file_system = value;
    else if (key == "mount_options") profile.place.mount_options = public_mount_options(value);
    else if (key == "disk") profile.place.disk = value;
}

std::string number_text(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    char shorter[40];  // the shortest text of the same number, because people read these files
    for (int digits = 1; digits < 17; ++digits) {
        std::snprintf(shorter, sizeof shorter, "%.*g", digits, value);
        double back = 0;
        std::from_chars(shorter, shorter + std::char_traits<char>::length(shorter), back);
        if (back == value) return shorter;
    }
    return text;
}

std::string row_text(const ProfileRow& row) {
    std::string text = to_string(row.direction);
    const auto add = [&text](const std::string& cell) { text.append(",").append(cell); };
    add(row.cached ? "yes" : "no");
    add(to_string(row.path));
    add(to_string(row.memory));
    add(to_string(row.first_touch));
    add(row.aligned ? "yes" : "no");
    add(std::to_string(row.workers));
    add(std::to_string(row.depth));
    add(std::to_string(row.chunk_bytes));
    add(std::to_string(row.bytes));
    add(number_text(row.seconds));
    add(number_text(row.synced_seconds));
    add(std::to_string(row.samples));
    return text;
}

// A value must fit one line of the head, so line breaks in names become spaces.
std::string one_line(std::string text) {
    for (char& c : text) {
        if (c == '\n' || c == '\r') c = ' ';
    }
    return text;
}

// Mount options that name machines, users or folders.
constexpr std::array<std::string_view, 17> kPrivateOptions{
    "addr", "clientaddr", "mountaddr", "srcaddr", "mon_addr", "username", "domain", "name", "secret", "unc",
    "prefixpath", "source", "fsname", "lowerdir", "datadir", "upperdir", "workdir"};

class Differences {
  public:
    void compare(const char* what, const std::string& there, const std::string& here) {
        if (there == here) return;
        if (!text_.empty()) text_ += "; ";
        text_.append(what).append(" ").append(shown(there)).append(" there, ").append(shown(here)).append(" here");
    }
    void compare(const char* what, std::uint64_t there, std::uint64_t here) {
        compare(what, std::to_string(there), std::to_string(here));
    }
    std::string text() && { return std::move(text_); }

  private:
    static std::string shown(const std::string& text) { return text.empty() ? "none" : text; }
    std::string text_;
};

bool about_equal(std::uint64_t one, std::uint64_t other) {
    const auto a = static_cast<double>(one);
    const auto b = static_cast<double>(other);
    return std::abs(a - b) <= 0.02 * std::max(a, b);
}

}  // namespace

std::string public_mount_options(std::string_view options) {
    std::vector<std::string_view> kept;
    std::string text;
    while (!options.empty()) {
        const std::size_t end = std::min(options.find(','), options.size());
        const std::string_view one = options.substr(0, end);
        options.remove_prefix(std::min(end + 1, options.size()));
        std::string_view key = one.substr(0, one.find('='));
        if (key.ends_with('+')) key.remove_suffix(1);  // "lowerdir+=/a" adds one more
        const bool hidden = std::find(kPrivateOptions.begin(), kPrivateOptions.end(), key) != kPrivateOptions.end();
        if (hidden || one.empty() || std::find(kept.begin(), kept.end(), one) != kept.end()) continue;
        kept.push_back(one);
        text.append(text.empty() ? "" : ",").append(one);
    }
    return text;
}

Profile parse_profile(std::string_view text, const std::string& name) {
    Lines lines(text, name);
    std::string_view line;
    if (!lines.next(line) || line != kTitle) lines.refuse("it does not begin with " + quoted(kTitle));
    Profile profile;
    profile.name = name;
    bool columns = false;
    while (lines.next(line)) {
        if (line.empty()) continue;
        if (line.front() == '#') {
            if (!columns && line.starts_with("# ")) take_fact(lines, line, profile);
        } else if (!columns) {
            if (line != kColumns) lines.refuse("the columns are not " + std::string(kColumns));
            columns = true;
        } else {
            if (profile.rows.size() == kRowsMax) lines.refuse("more than " + std::to_string(kRowsMax) + " rows");
            profile.rows.push_back(row_of(lines, line));
        }
    }
    if (!columns || profile.rows.empty()) lines.refuse("no measurements in it");
    return profile;
}

std::string profile_text(const Profile& profile) {
    std::string text = std::string(kTitle) + "\n";
    const auto fact = [&text](const char* key, const std::string& value) {
        text.append("# ").append(key).append(": ").append(one_line(value)).append("\n");
    };
    fact("measured", profile.measured);
    fact("cpu", profile.machine.cpu);
    fact("cores", std::to_string(profile.machine.cores));
    fact("memory_bytes", std::to_string(profile.machine.memory_bytes));
    fact("page_bytes", std::to_string(profile.machine.page_bytes));
    fact("architecture", profile.machine.architecture);
    fact("kernel", profile.machine.kernel);
    fact("device", profile.machine.device);
    fact("driver", std::to_string(profile.machine.driver));
    fact("file_system", profile.place.file_system);
    fact("mount_options", profile.place.mount_options);
    fact("disk", profile.place.disk);
    text.append(kColumns).append("\n");
    for (const ProfileRow& row : profile.rows) text.append(row_text(row)).append("\n");
    return text;
}

std::string difference(const MachineIdentity& there, const MachineIdentity& here) {
    Differences found;
    found.compare("cpu", there.cpu, here.cpu);
    found.compare("cores", there.cores, here.cores);
    if (!about_equal(there.memory_bytes, here.memory_bytes)) {
        found.compare("memory bytes", there.memory_bytes, here.memory_bytes);
    }
    found.compare("page bytes", there.page_bytes, here.page_bytes);
    found.compare("architecture", there.architecture, here.architecture);
    found.compare("kernel", there.kernel, here.kernel);
    found.compare("device", there.device, here.device);
    found.compare("driver", there.driver, here.driver);
    return std::move(found).text();
}

std::string difference(const PlaceIdentity& there, const PlaceIdentity& here) {
    Differences found;
    found.compare("file system", there.file_system, here.file_system);
    found.compare("mount options", there.mount_options, here.mount_options);
    found.compare("disk", there.disk, here.disk);
    return std::move(found).text();
}

}  // namespace penstock
