// See faults.hpp.
#include "formats/faults.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace penstock::formats {
namespace {

constexpr std::size_t kMostShown = 100;  // characters
constexpr std::size_t kMostClose = 3;    // names
constexpr std::size_t kMostCompared = 20'000;

Error made(ErrorCode code, std::string operation, const std::string& file, std::pair<std::string, std::string> told) {
    ErrorInfo info;
    info.code = code;
    info.operation = std::move(operation);
    info.file = file;
    info.cause = std::move(told.first);
    info.advice = std::move(told.second);
    return Error(std::move(info));
}

std::string operation_on(const Subject& subject, const char* with, const char* without) {
    return subject.dataset.empty() ? without : std::string(with) + " dataset " + shown(subject.dataset) + " of";
}

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Stranger {
    std::string_view begin;
    const char* what;
    const char* advice;
};
constexpr Stranger kStrangers[] = {
    {"version https://git-lfs", "a pointer of Git LFS, not the file itself", "git lfs pull"},
    {"MATLAB 5.0 MAT-file", "a MATLAB 5 file, which Penstock does not read", "scipy.io.loadmat reads it"},
    {"\x89HDF\r\n\x1a\n", "an HDF5 file", "open it as the format \"hdf5\""},
    {"\x1f\x8b", "compressed by gzip", "gunzip it first"},
    {"PK\x03\x04", "a ZIP archive", "unpack it first"},
};

// `is_binary`: bytes from 0x80 on are of no character.
std::string quoted(std::string_view text, bool is_binary) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "'";
    for (const char one : text.substr(0, kMostShown)) {
        const auto code = static_cast<unsigned char>(one);
        if (code >= 0x20 && code != 0x7F && (code < 0x80 || !is_binary)) {
            out += one;
            continue;
        }
        out += "\\x";
        out += digits[code >> 4];
        out += digits[code & 15];
    }
    return out + (text.size() > kMostShown ? "...'" : "'");
}

// Edits that make one text of the other, at most so many.
std::size_t distance(std::string_view one, std::string_view other) {
    std::vector<std::size_t> row(other.size() + 1);
    for (std::size_t k = 0; k < row.size(); ++k) row[k] = k;
    for (std::size_t i = 0; i < one.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t k = 0; k < other.size(); ++k) {
            const std::size_t swapped = diagonal + (one[i] != other[k]);
            diagonal = row[k + 1];
            row[k + 1] = std::min({row[k] + 1, row[k + 1] + 1, swapped});
        }
    }
    return row.back();
}

}  // namespace

std::string shown(std::string_view text) { return quoted(text, false); }

std::string shown(std::span<const std::int64_t> shape) {
    std::string out = "(";
    for (const std::int64_t extent : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(extent);
    return out + ")";
}

Error damaged(const Subject& subject, std::string cause, std::string advice) {
    return made(ErrorCode::io_error, operation_on(subject, "read", "read the metadata of"), subject.file,
                {std::move(cause), std::move(advice)});
}

Error cut_short(const Subject& subject, std::string cause) {
    return made(ErrorCode::end_of_file, operation_on(subject, "read", "read the metadata of"), subject.file,
                {std::move(cause), "it was cut short: copy or download it again"});
}

Error unsupported(const Subject& subject, std::string cause, std::string advice) {
    return made(ErrorCode::unsupported, operation_on(subject, "use", "use"), subject.file,
                {std::move(cause), std::move(advice)});
}

Error foreign(const std::string& file, const std::string& format, std::span<const std::byte> begin) {
    const std::string text = text_of(begin);
    if (!text.empty() && text.find_first_not_of('\0') == std::string::npos) {
        return damaged({file},
                       "it begins with " + std::to_string(text.size()) + " zeros, as no " + format + " file does");
    }
    std::string cause =
        "it is no " + format + " file: it begins with " + quoted(std::string_view(text).substr(0, 8), true);
    std::string advice = "look whether it is the right file; the option format names another";
    for (const Stranger& one : kStrangers) {
        if (text.starts_with(one.begin)) cause = std::string("it is ") + one.what, advice = one.advice;
    }
    if (text.empty()) cause = "it is empty", advice = "copy or download it again";
    return made(ErrorCode::unsupported, "open", file, {std::move(cause), std::move(advice)});
}

Error not_created(const std::string& file, std::string cause, std::string advice) {
    return made(ErrorCode::invalid_argument, "create", file, {std::move(cause), std::move(advice)});
}

Error unknown(const std::string& file, const std::string& name, const std::vector<std::string>& names) {
    std::vector<std::pair<std::size_t, std::string_view>> close;
    const std::string_view wanted = std::string_view(name).substr(0, kMostShown);
    for (std::size_t i = 0; i < std::min(names.size(), kMostCompared); ++i) {
        const std::size_t edits = distance(wanted, std::string_view(names[i]).substr(0, kMostShown));
        if (edits <= std::max(wanted.size(), names[i].size()) / 2) close.emplace_back(edits, names[i]);
    }
    std::stable_sort(close.begin(), close.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string hint;
    for (std::size_t i = 0; i < std::min(close.size(), kMostClose); ++i)
        hint += (i != 0 ? ", " : "") + shown(close[i].second);
    return made(ErrorCode::not_found, "open dataset " + shown(name) + " of", file,
                {"it has no dataset of that name", hint.empty() ? "" : "close names: " + hint});
}

}  // namespace penstock::formats
