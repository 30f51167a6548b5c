// See history_store.hpp. Everything that a step takes is there before a new store takes its name: an older one stays
// where anything fails.
#include "history/target/store/history_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <utility>

#include "formats/create/check_schema.hpp"
#include "formats/create/file_sink.hpp"
#include "history/target/store/new_folder.hpp"

namespace penstock::history {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kMostUnsettled{1};  // where steps follow each other without a pause

formats::FileSchema without_values(formats::FileSchema schema) {
    for (formats::NewVariable& one : schema.variables) one.values.clear();
    return schema;
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
                           const formats::FileSchema& schema, formats::StoreDocumentsPtr documents)
    : context_(context),
      name_(without_slash(options.name)),
      durable_(options.durable),
      is_first_(options.is_first),
      schema_(without_values(schema)),
      documents_(std::move(documents)),
      texts_(name_, documents_->unfinished_file(), options.durable),
      root_(documents_->root(0)) {
    formats::check_schema(schema, name_);
    for (const formats::StoreBlock& one : options.blocks.value_or(std::vector<formats::StoreBlock>{})) {
        data_.push_back({one});
    }
    if (is_first_) {
        make_folder(schema, options.replace);
    } else {
        find_folder();
    }
    place_ = from_root(name_);
    open_all();  // one by one by their names for good, with the descriptors that they have
}

void HistoryStore::make_folder(const formats::FileSchema& schema, bool may_replace) {
    const os::UniqueFd older = locked_older(name_, may_replace);
    NewFolder made(name_);
    fill_folder(made.path(), schema);
    folder_ = locked_folder(made.path());
    place_ = from_root(made.path());
    try {
        open_all();
    } catch (const Error&) {
        data_.clear();  // the folder goes, which takes descriptors
        throw;
    }
    if (durable_) sync_folder(made.path());
    if (older) {
        made.replace(name_);
    } else {
        made.take_free_name(name_);
    }
    const fs::path parent = fs::path(name_).parent_path();
    if (durable_) sync_folder(parent.empty() ? "." : parent.string());
}

// That of the first process: it is there, and of the same definitions.
void HistoryStore::find_folder() {
    folder_ = os::UniqueFd(::open(name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder_) throw Error(errno_info("open history", name_, errno));
    std::ifstream file(name_ + "/" + documents_->root_file(), std::ios::binary);
    const std::string found(std::istreambuf_iterator<char>(file), {});
    if (found == root_) return;
    refuse_target(name_, "the store that is there is not the one of the first process",
                  "give all processes one name on one file system, and begin the first one first");
}

HistoryStore::~HistoryStore() {
    if (is_first_) unlock_folder(folder_);
}

std::uint64_t HistoryStore::block_bytes(const GrowingData& data) const {
    return formats::block_bytes(schema_, schema_.variables[data.block.variable]);
}

void HistoryStore::fill_folder(const std::string& folder, const formats::FileSchema& schema) const {
    const auto write_text = [&](const std::string& file, const std::string& text) {
        write_file(folder + "/" + file, std::as_bytes(std::span(text)));
    };
    for (std::size_t i = 0; i < schema.variables.size(); ++i) {
        const formats::NewVariable& one = schema.variables[i];
        if (const std::string document = documents_->array_file(i); !document.empty()) {
            const std::string array = folder + "/" + one.name;
            if (::mkdir(array.c_str(), 0777) != 0) throw Error(errno_info("open history", array, errno));
            write_text(document, documents_->array(i, 0));
        }
        if (!one.values.empty()) write_file(folder + "/" + documents_->data_file({i}, 0), one.values);
    }
    write_text(documents_->root_file(), root_);
}

void HistoryStore::write_file(const std::string& path, std::span<const std::byte> bytes) const {
    File made = context_.open(path, {.mode = OpenMode::create, .durable = durable_});
    formats::FileSink sink(path, durable_);
    sink.use(made);
    if (!bytes.empty()) sink.write(0, bytes);
    made.close();
}

void HistoryStore::open_all() {
    for (GrowingData& data : data_) {
        if (block_bytes(data) == 0) continue;
        data.file.reset();
        data.file = opened(data.block, 0);
    }
}

// Of several steps: a file is found under its name before one of them is in it; where nothing is compressed, with the
// room of all.
File HistoryStore::opened(const formats::StoreBlock& block, std::uint64_t step) const {
    const std::string path = place_ + "/" + documents_->data_file(block, step);
    const std::uint64_t steps = documents_->steps_in_file(block.variable);
    const OpenOptions wanted{.mode = OpenMode::create, .durable = durable_};
    if (steps == 1) return context_.open(path, wanted);
    const bool is_made_here = is_first_ || has_own_files();
    if (std::error_code ignored; is_made_here && !fs::exists(path, ignored)) {
        if (const auto head = documents_->file_head(block.variable); !head.empty()) {
            write_file(path, head);
        } else {
            File made = context_.open(path, wanted);
            made.resize(steps * formats::block_bytes(schema_, schema_.variables[block.variable]));
            made.close();
        }
    }
    return context_.open(path, {.mode = OpenMode::read_write});
}

// Where the next step begins: compressed ones follow each other, others have places of one size.
std::uint64_t HistoryStore::next_offset(const GrowingData& data, bool is_compressed) const {
    const std::uint64_t steps = documents_->steps_in_file(data.block.variable);
    const std::uint64_t number = steps == 0 ? reserved_ : reserved_ % steps;
    if (!is_compressed) return number * block_bytes(data);
    const formats::DataPlace& last = data.step.place;
    return number == 0 ? documents_->file_head(data.block.variable).size() : last.offset_bytes + last.bytes;
}

std::vector<formats::DataPlace> HistoryStore::reserve(std::span<const formats::StoredChunks> stored) {
    std::vector<formats::DataPlace> places(data_.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
        GrowingData& data = data_[i];
        data.step.chunks = stored.empty() ? formats::StoredChunks{} : stored[i];
        const std::vector<std::uint64_t>& chunks = data.step.chunks;
        const std::uint64_t bytes =
            chunks.empty() ? block_bytes(data) : std::accumulate(chunks.begin(), chunks.end(), std::uint64_t{0});
        data.step.place = {next_offset(data, !chunks.empty()), bytes};
        places[i] = data.step.place;
        if (bytes != 0 && !data.file) data.file = opened(data.block, reserved_);
    }
    ++reserved_;
    return places;
}

void HistoryStore::write_numbers(std::size_t index, const formats::DataPlace& place, std::span<const double> numbers) {
    formats::FileSink sink(data_[index].file->name(), durable_);
    sink.use(*data_[index].file);
    sink.write(place.offset_bytes, stored_numbers(numbers, false));
}

void HistoryStore::hold(std::span<const formats::DataPlace> places) {
    const std::byte last{0};
    for (std::size_t i = 0; i < data_.size(); ++i) {
        const std::uint64_t end = places[i].offset_bytes + places[i].bytes;
        const std::optional<File>& file = data_[i].file;
        if (!file || file->size_bytes() >= end) continue;
        formats::FileSink sink(file->name(), durable_);
        sink.use(*file);
        sink.write(end - 1, {&last, 1});
    }
}

// So that the disk gets the data of all files before the first sync waits for it. What fails here fails there too.
void HistoryStore::begin_writeback(std::uint64_t step) const {
    for (const GrowingData& data : data_) {
        if (!data.file || documents_->steps_in_file(data.block.variable) == 1) continue;
        const std::string file = documents_->data_file(data.block, step);
        const os::UniqueFd opened(::openat(folder_.get(), file.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
        if (opened) static_cast<void>(::sync_file_range(opened.get(), 0, 0, SYNC_FILE_RANGE_WRITE));
    }
}

// Requires: files have all steps. Another thread may write the next one.
void HistoryStore::sync() {
    begin_writeback(0);
    for (const GrowingData& data : data_) {
        if (data.file) data.file->sync();
    }
}

void HistoryStore::finish() {
    if (!has_own_files()) {
        if (durable_) sync();
        return;
    }
    if (durable_) begin_writeback(reserved_ - 1);
    for (GrowingData& data : data_) {
        if (!data.file) continue;
        const std::uint64_t steps = documents_->steps_in_file(data.block.variable);
        if (!data.step.chunks.empty()) {
            const formats::StepIndex index = documents_->step_index(data.block, reserved_ - 1, data.step);
            formats::FileSink sink(data.file->name(), durable_);
            sink.use(*data.file);
            sink.write(index.offset_bytes, index.bytes);
        }
        if (durable_ && steps != 1) data.file->sync();
        if (steps != 0 && reserved_ % steps == 0) std::exchange(data.file, std::nullopt)->close();
    }
}

// The root last: what it counts, the documents of the arrays have too.
void HistoryStore::show(std::uint64_t steps) {
    std::vector<StoreText> arrays;
    for (std::size_t i = 0; i < schema_.variables.size(); ++i) {
        std::string file = documents_->array_file(i);
        if (file.empty() || !formats::grows(schema_, schema_.variables[i])) continue;
        arrays.push_back({std::move(file), documents_->array(i, shown_), documents_->array(i, steps)});
    }
    texts_.change(folder_, arrays);
    StoreText root{documents_->root_file(), root_, documents_->root(steps)};
    texts_.change(folder_, {&root, 1});
    root_ = std::move(root.text);
    shown_ = steps;
}

void HistoryStore::publish(std::uint64_t steps) {
    if (!is_first_) return;
    const std::lock_guard lock(mutex_);
    show(steps);
    if (std::chrono::steady_clock::now() - settled_ >= kMostUnsettled) settle_texts();
}

void HistoryStore::settle() {
    const std::lock_guard lock(mutex_);
    settle_texts();
}

void HistoryStore::settle_texts() {
    if (!is_first_ || !folder_) return;
    texts_.settle(folder_);
    settled_ = std::chrono::steady_clock::now();
}

void HistoryStore::close() {
    settle();
    data_.assign(data_.size(), {});
    if (is_first_) unlock_folder(folder_);
    folder_.reset();
}

}  // namespace penstock::history
