// See history_store.hpp. A new store is made in a folder beside, which takes its name when all is in it.
#include "history/target/history_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <utility>

#include "formats/create/check_schema.hpp"
#include "formats/create/file_sink.hpp"
#include "formats/faults.hpp"

namespace penstock::history {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNumbersInChunk = 256;  // times in a file: small enough to be written anew with each step
constexpr std::size_t kNameBytes = 200;         // of a store's name in that of the folder beside: names have 255

std::vector<std::uint64_t> steps_in_chunks(const formats::FileSchema& schema, std::size_t numbers) {
    std::vector<std::uint64_t> steps(schema.variables.size(), 1);
    std::fill_n(steps.begin(), numbers, kNumbersInChunk);
    return steps;
}

formats::FileSchema without_values(formats::FileSchema schema) {
    for (formats::NewVariable& one : schema.variables) one.values.clear();
    return schema;
}

// An open folder, locked; no lock where the file system has none.
os::UniqueFd locked_folder(const std::string& name) {
    os::UniqueFd folder(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) throw Error(errno_info("open history", name, errno));
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) refuse_second_writer(name);
    return folder;
}

void sync_folder(const std::string& name) {
    const os::UniqueFd folder(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder || ::fsync(folder.get()) != 0) throw Error(errno_info("sync folder", name, errno));
}

// The folder beside, with a name that is free. It goes unless it took the name of the store.
class NewFolder {
  public:
    explicit NewFolder(const fs::path& name) {
        for (unsigned number = 0;; ++number) {
            path_ = name.parent_path() / ("." + name.filename().string().substr(0, kNameBytes) + ".penstock-" +
                                          std::to_string(::getpid()) + "-" + std::to_string(number));
            if (::mkdir(path_.c_str(), 0777) == 0) return;
            if (errno != EEXIST) throw Error(errno_info("open history", name.string(), errno));
        }
    }
    ~NewFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    NewFolder(const NewFolder&) = delete;
    NewFolder& operator=(const NewFolder&) = delete;
    std::string path() const { return path_.string(); }

    // Nothing has the name: of two histories that begin at once, one finds that the other took it.
    void take_free_name(const std::string& name) {
        if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, name.c_str(), RENAME_NOREPLACE) == 0) return;
        const bool has_no_such_rename = errno == EINVAL || errno == ENOSYS;
        if (has_no_such_rename && ::rename(path_.c_str(), name.c_str()) == 0) return;
        if (errno == EEXIST || errno == ENOTEMPTY) refuse_second_writer(name);
        throw Error(errno_info("open history", name, errno));
    }

    // In place of an older store, which the caller has locked: in one step where the file system can.
    void replace(const std::string& name) {
        if (::rename(path_.c_str(), name.c_str()) == 0) return;  // an empty folder was there
        if (errno != ENOTEMPTY && errno != EEXIST) throw Error(errno_info("open history", name, errno));
        if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, name.c_str(), RENAME_EXCHANGE) == 0) return;
        const std::string old = path() + "-old";
        if (::rename(name.c_str(), old.c_str()) != 0) throw Error(errno_info("open history", name, errno));
        if (::rename(path_.c_str(), name.c_str()) != 0) {
            const int failure = errno;
            static_cast<void>(::rename(old.c_str(), name.c_str()));  // the older store has its name again
            throw Error(errno_info("open history", name, failure));
        }
        path_ = old;
    }

  private:
    fs::path path_;
};

bool is_store(const fs::path& name) {
    std::error_code ignored;
    return fs::exists(name / "zarr.json", ignored) || fs::exists(name / ".zgroup", ignored) ||
           fs::exists(name / ".zarray", ignored) || fs::is_empty(name, ignored);
}

// The store that has the name, locked; none where nothing has it.
os::UniqueFd locked_older(const std::string& name, bool may_replace) {
    struct stat named {
    }, opened{};
    if (::lstat(name.c_str(), &named) != 0) {
        if (errno == ENOENT) return {};
        throw Error(errno_info("open history", name, errno));
    }
    if (!may_replace) throw Error(errno_info("open history", name, EEXIST));
    if (!S_ISDIR(named.st_mode) || !is_store(name)) {
        refuse_target(name, "it is there, and no Zarr store", "give a store a name that nothing has, or remove it");
    }
    os::UniqueFd folder = locked_folder(name);
    const bool has_name = ::fstat(folder.get(), &opened) == 0 && ::lstat(name.c_str(), &named) == 0 &&
                          named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
    if (!has_name) refuse_second_writer(name);  // another history replaced it since
    return folder;
}

std::string without_slash(std::string name) {
    while (name.size() > 1 && name.back() == '/') name.pop_back();
    return name;
}

std::string from_root(const std::string& name) {
    std::error_code failed;
    const fs::path whole = fs::absolute(name, failed);
    return failed ? name : whole.string();
}

}  // namespace

HistoryStore::HistoryStore(const Context& context, const HistoryTargetOptions& options,
                           const formats::FileSchema& schema)
    : context_(context), name_(without_slash(options.name)), place_(from_root(name_)), durable_(options.durable),
      schema_(without_values(schema)),
      documents_(schema, steps_in_chunks(schema, options.numbers), name_),
      chunks_(schema.variables.size()), numbers_(options.numbers) {
    formats::check_schema(schema, name_);
    const os::UniqueFd older = locked_older(name_, options.replace);
    NewFolder made(name_);
    fill_folder(made.path(), schema);
    lock_ = locked_folder(made.path());
    if (durable_) sync_folder(made.path());
    if (older) {
        made.replace(name_);
    } else {
        made.take_free_name(name_);
    }
    const fs::path parent = fs::path(name_).parent_path();
    if (durable_) sync_folder(parent.empty() ? "." : parent.string());
}

// A child that was forked has the lock too: it goes for both.
HistoryStore::~HistoryStore() {
    if (lock_) ::flock(lock_.get(), LOCK_UN);
}

void HistoryStore::fill_folder(const std::string& folder, const formats::FileSchema& schema) const {
    for (std::size_t i = 0; i < schema.variables.size(); ++i) {
        const formats::NewVariable& one = schema.variables[i];
        const std::string array = folder + "/" + one.name;
        if (::mkdir(array.c_str(), 0777) != 0) throw Error(errno_info("open history", array, errno));
        write_text(folder + "/" + documents_.array_file(i), documents_.array(i, 0));
        if (!one.values.empty()) write_file(folder + "/" + documents_.chunk_file(i, 0), one.values);
    }
    write_text(folder + "/zarr.json", documents_.root(0));
}

void HistoryStore::write_file(const std::string& path, std::span<const std::byte> bytes) const {
    File made = context_.open(path, {.mode = OpenMode::create, .durable = durable_});
    formats::FileSink sink(path, durable_);
    sink.use(made);
    if (!bytes.empty()) sink.write(0, bytes);
    made.close();
}

void HistoryStore::write_text(const std::string& path, const std::string& text) const {
    write_file(path, std::as_bytes(std::span(text)));
}

std::vector<formats::DataPlace> HistoryStore::reserve(std::span<const formats::StoredChunks> stored) {
    std::vector<formats::DataPlace> places(schema_.variables.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        const formats::NewVariable& one = schema_.variables[i];
        if (!formats::grows(schema_, one)) continue;
        places[i].bytes = formats::step_bytes(schema_, one);
        if (i < numbers_.size()) continue;
        GrowingChunk& chunk = chunks_[i];
        chunk.stored = stored.empty() ? formats::StoredChunks{} : stored[i];
        if (!chunk.stored.empty()) {
            places[i].bytes = 0;
            for (const std::uint64_t bytes : chunk.stored) places[i].bytes += bytes;
        }
        chunk.bytes = places[i].bytes;
        if (chunk.bytes == 0) continue;
        chunk.file = context_.open(place_ + "/" + documents_.chunk_file(i, reserved_),
                                   {.mode = OpenMode::create, .durable = durable_});
    }
    ++reserved_;
    return places;
}

void HistoryStore::write_numbers(std::size_t variable, const formats::DataPlace& place,
                                 std::span<const double> numbers) {
    const std::uint64_t row = place.bytes / sizeof(double), step = reserved_ - 1;
    std::vector<double>& chunk = numbers_[variable];
    if (step % kNumbersInChunk == 0) chunk.assign(kNumbersInChunk * row, std::numeric_limits<double>::quiet_NaN());
    const auto place_in_chunk = static_cast<std::ptrdiff_t>(step % kNumbersInChunk * row);
    std::copy(numbers.begin(), numbers.end(), chunk.begin() + place_in_chunk);
    write_file(place_ + "/" + documents_.chunk_file(variable, step), std::as_bytes(std::span(chunk)));
}

void HistoryStore::hold(std::span<const formats::DataPlace>) {
    const std::byte last{0};
    for (const GrowingChunk& chunk : chunks_) {
        if (!chunk.file || chunk.file->size_bytes() >= chunk.bytes) continue;
        formats::FileSink sink(chunk.file->name(), durable_);
        sink.use(*chunk.file);
        sink.write(chunk.bytes - 1, {&last, 1});
    }
}

void HistoryStore::publish(std::uint64_t steps) {
    for (GrowingChunk& chunk : chunks_) {
        if (!chunk.file) continue;
        File file = *std::exchange(chunk.file, std::nullopt);
        if (!chunk.stored.empty()) {
            formats::FileSink sink(file.name(), durable_);
            sink.use(file);
            sink.write(chunk.bytes, documents_.shard_index(chunk.stored));
        }
        file.close();
    }
    for (std::size_t i = 0; i < schema_.variables.size(); ++i) {
        if (formats::grows(schema_, schema_.variables[i]))
            write_text(place_ + "/" + documents_.array_file(i), documents_.array(i, steps));
    }
    write_text(place_ + "/zarr.json", documents_.root(steps));
}

void HistoryStore::close() {
    chunks_.assign(chunks_.size(), {});
    if (lock_) ::flock(lock_.get(), LOCK_UN);
    lock_.reset();
}

}  // namespace penstock::history
