// See readers.hpp. This file walks through a file's bytes, and converts words to numbers.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "hmatrix/geometry/read/readers.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr const char* kOperation = "read mesh";
constexpr const char* kCutOff = "the file is cut off, or its counts are wrong";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }

[[noreturn]] void fail(const std::string& name, std::size_t offset, const std::string& cause,
                       const std::string& advice) {
    ErrorInfo info;
    info.code = ErrorCode::invalid_argument;
    info.operation = kOperation;
    info.file = name;
    info.offset_bytes = offset;
    info.cause = cause;
    info.advice = advice;
    throw Error(std::move(info));
}

}  // namespace

std::string shown(std::string_view word) {
    std::string text;
    for (const char c : word.substr(0, 40)) text += c >= ' ' && c <= '~' ? c : '?';
    return word.size() > 40 ? text + "..." : text;
}

std::string_view first_word(std::string_view& line) {
    while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    std::size_t end = 0;
    while (end < line.size() && !is_space(line[end])) ++end;
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(end);
    return word;
}

void Scanner::refuse(const std::string& cause, const std::string& advice) const { fail(name_, at_, cause, advice); }

void Scanner::refuse_line(const std::string& cause, const std::string& advice) const {
    fail(name_, at_, "line " + std::to_string(line_) + ": " + cause, advice);
}

void Scanner::refuse_here(const std::string& cause, const std::string& advice) const {
    if (binary_) refuse_offset(at_, cause, advice);
    refuse_line(cause, advice);
}

void Scanner::refuse_offset(std::size_t offset, const std::string& cause, const std::string& advice) const {
    fail(name_, offset, "at byte " + std::to_string(offset) + ": " + cause, advice);
}

void Scanner::skip_line_end() {
    if (left() > 0 && bytes_[at_] == '\r') ++at_;
    if (left() > 0 && bytes_[at_] == '\n') ++at_;
    ++next_line_;
}

bool Scanner::next_line(std::string_view& line) {
    if (left() == 0) return false;
    const std::size_t end = std::min(bytes_.find_first_of("\r\n", at_), bytes_.size());
    line = bytes_.substr(at_, end - at_);
    at_ = end;
    line_ = next_line_;
    skip_line_end();
    return true;
}

std::optional<std::string_view> Scanner::next_word(char comment) {
    while (left() > 0) {
        const char c = bytes_[at_];
        if (comment != 0 && c == comment) {
            at_ = std::min(bytes_.find_first_of("\r\n", at_), bytes_.size());
        } else if (c == '\n' || c == '\r') {
            skip_line_end();
        } else if (is_space(c)) {
            ++at_;
        } else {
            break;
        }
    }
    line_ = next_line_;
    if (left() == 0) return std::nullopt;
    const std::size_t from = at_;
    while (left() > 0 && !is_space(bytes_[at_]) && (comment == 0 || bytes_[at_] != comment)) ++at_;
    return bytes_.substr(from, at_ - from);
}

std::string_view Scanner::word(const char* what, char comment) {
    const auto found = next_word(comment);
    if (!found) refuse_line(std::string("the file ends before ") + what, kCutOff);
    return *found;
}

double Scanner::to_number(std::string_view text, const char* what) const {
    std::array<char, 64> plain{};  // a copy in which 'e' replaces 'D', as in 1.0D+00 from Fortran
    const std::size_t size = std::min(text.size(), plain.size());
    std::copy_n(text.begin(), size, plain.begin());
    std::replace_if(plain.begin(), plain.end(), [](char c) { return c == 'D' || c == 'd'; }, 'e');
    const char* first = plain.data() + (size > 1 && plain[0] == '+' && plain[1] != '-' ? 1 : 0);
    double value = 0;
    const auto [end, failure] = std::from_chars(first, plain.data() + size, value);
    if (failure == std::errc::result_out_of_range) {
        refuse_line("'" + shown(text) + "' for " + what + " is outside the range of double precision");
    }
    if (failure != std::errc() || end != plain.data() + size || size != text.size()) {
        refuse_line("'" + shown(text) + "' where a number for " + what + " should stand");
    }
    if (!std::isfinite(value)) refuse_line("'" + shown(text) + "' for " + what + " is not a finite number");
    return value;
}

std::int64_t Scanner::to_integer(std::string_view text, const char* what) const {
    std::int64_t value = 0;
    const std::size_t sign = text.size() > 1 && text[0] == '+' && text[1] != '-' ? 1 : 0;
    const auto [end, failure] = std::from_chars(text.data() + sign, text.data() + text.size(), value);
    if (failure != std::errc() || end != text.data() + text.size()) {
        refuse_line("'" + shown(text) + "' where a whole number for " + what + " should stand");
    }
    return value;
}

double Scanner::number(const char* what, char comment) { return to_number(word(what, comment), what); }
std::int64_t Scanner::integer(const char* what, char comment) { return to_integer(word(what, comment), what); }

void Scanner::check_count(std::int64_t count, const char* what, std::size_t least_bytes) const {
    if (count < 0) refuse_line(std::to_string(count) + " " + what, "a count cannot be negative");
    if (static_cast<std::uint64_t>(count) <= (left() + 1) / least_bytes) return;
    refuse_line(std::to_string(count) + " " + what + " cannot be in the " + std::to_string(left()) +
                    " bytes that are left",
                "the file is cut off, or the count is wrong");
}

std::int64_t Scanner::count(const char* what, std::size_t least_bytes, char comment) {
    const std::int64_t found = integer(what, comment);
    check_count(found, what, least_bytes);
    return found;
}

std::string_view Scanner::take(std::size_t bytes, const char* what) {
    if (left() < bytes) {
        refuse_offset(at_, std::string("the file ends within ") + what, kCutOff);
    }
    at_ += bytes;
    return bytes_.substr(at_ - bytes, bytes);
}

}  // namespace penstock::hmatrix
