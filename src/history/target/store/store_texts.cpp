// See store_texts.hpp.
#include "history/target/store/store_texts.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <vector>

#include "os/file/move_all.hpp"
#include "os/refusal.hpp"

namespace penstock::history {
namespace {

// The only byte in which they differ; none where they differ in more, or in length.
std::optional<std::size_t> only_change(const std::string& old_text, const std::string& text) {
    if (old_text.size() != text.size()) return std::nullopt;
    const auto first = std::mismatch(text.begin(), text.end(), old_text.begin());
    if (first.first == text.end()) return std::nullopt;
    if (!std::equal(first.first + 1, text.end(), first.second + 1)) return std::nullopt;
    return static_cast<std::size_t>(first.first - text.begin());
}

os::FileMoved write_part(const os::UniqueFd& file, const std::string& text, std::size_t at, std::size_t bytes) {
    auto* memory = reinterpret_cast<std::byte*>(const_cast<char*>(text.data() + at));
    return os::move_all(os::real_system(), {Direction::write, file.get(), memory, bytes, at});
}

}  // namespace

void StoreTexts::fail(const char* operation, const std::string& file) const {
    throw Error(errno_info(operation, store_ + "/" + file, errno));
}

// The disk gets all bytes before the first sync waits for it.
void StoreTexts::change(const os::UniqueFd& folder, std::span<const StoreText> texts) {
    std::vector<const StoreText*> changed;
    for (const StoreText& one : texts) {
        if (change_byte(folder, one)) {
            changed.push_back(&one);
        } else {
            replace(folder, one);
        }
    }
    if (!is_durable_) return;
    for (const StoreText* one : changed) {
        const os::UniqueFd file = opened(folder, one->file);
        if (os::again_if_interrupted([&] { return ::fdatasync(file.get()); }) != 0) fail("sync", one->file);
    }
}

os::UniqueFd StoreTexts::opened(const os::UniqueFd& folder, const std::string& file) const {
    os::UniqueFd found(::openat(folder.get(), file.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!found) fail("open", file);
    return found;
}

// False where more than a byte differs.
bool StoreTexts::change_byte(const os::UniqueFd& folder, const StoreText& one) const {
    const std::optional<std::size_t> at = only_change(one.old_text, one.text);
    if (!at) return false;
    os::UniqueFd file = opened(folder, one.file);
    if (const int failed = write_part(file, one.text, *at, 1).error_number; failed != 0) {
        errno = failed;
        fail("write", one.file);
    }
    if (is_durable_) static_cast<void>(::sync_file_range(file.get(), 0, 0, SYNC_FILE_RANGE_WRITE));
    if (file.reset() != 0) fail("close", one.file);
    return true;
}

// A new file, never one that is there: its old name may be that of a document which a reader has open.
os::UniqueFd StoreTexts::made(const os::UniqueFd& folder, const std::string& file) const {
    constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    os::UniqueFd found(::openat(folder.get(), unfinished_.c_str(), flags, 0666));
    if (!found && errno == EEXIST && ::unlinkat(folder.get(), unfinished_.c_str(), 0) == 0) {
        found = os::UniqueFd(::openat(folder.get(), unfinished_.c_str(), flags, 0666));
    }
    if (!found) fail("create", file);
    return found;
}

bool StoreTexts::take_name(const os::UniqueFd& folder, const std::string& file) const {
    const char* const unfinished = unfinished_.c_str();
    if (!is_durable_ &&
        ::renameat2(folder.get(), unfinished, folder.get(), file.c_str(), RENAME_EXCHANGE) == 0) {
        ::unlinkat(folder.get(), unfinished, 0);  // where it stays, the next one goes around it
        return true;
    }
    return ::renameat(folder.get(), unfinished, folder.get(), file.c_str()) == 0;
}

void StoreTexts::replace(const os::UniqueFd& folder, const StoreText& one) {
    os::UniqueFd file = made(folder, one.file);
    const int failed = write_part(file, one.text, 0, one.text.size()).error_number;
    if (failed != 0) errno = failed;
    if (failed != 0 ||
        (is_durable_ && os::again_if_interrupted([&] { return ::fdatasync(file.get()); }) != 0) ||
        file.reset() != 0 || !take_name(folder, one.file)) {
        const int why = errno;
        ::unlinkat(folder.get(), unfinished_.c_str(), 0);
        errno = why;
        fail("write", one.file);
    }
    if (is_durable_) {
        sync_folder_of(folder, one.file);
    } else {
        unsettled_.insert(one.file);
    }
}

void StoreTexts::settle(const os::UniqueFd& folder) {
    for (const std::string& file : unsettled_) {
        const os::UniqueFd opened(::openat(folder.get(), file.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
        if (opened) static_cast<void>(::sync_file_range(opened.get(), 0, 0, SYNC_FILE_RANGE_WRITE));
    }
    unsettled_.clear();
}

void StoreTexts::sync_folder_of(const os::UniqueFd& folder, const std::string& file) const {
    const std::size_t slash = file.rfind('/');
    const std::string inner = slash == std::string::npos ? "." : file.substr(0, slash);
    const os::UniqueFd opened(::openat(folder.get(), inner.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened || os::again_if_interrupted([&] { return ::fsync(opened.get()); }) != 0) fail("sync folder of", file);
}

}  // namespace penstock::history
