// RestartState: the fields that are set, and how they are written and read.
//
// The order of a write: the file gets its room, under another name; each process writes its boxes; process 0 the table
// of checksums, the record and the metadata; all of it is made durable; the file takes the place of the older one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "context/files/process_mark.hpp"
#include "os/new_file/name_lock.hpp"
#include "os/new_file/new_file.hpp"
#include "penstock/restart.hpp"
#include "restart/layout.hpp"
#include "restart/stored/box_reader.hpp"
#include "restart/stored/generations.hpp"

namespace penstock::restart {

class RestartState {
  public:
    RestartState(const Context& context, const std::string& name, const RestartOptions& options);

    void set_field(const RestartField& field);
    void set_attribute(const SnapshotAttribute& attribute);
    void clear();
    void use_stream(std::uintptr_t stream) noexcept { stream_ = stream; }

    RestartFacts write();
    std::uint64_t digest() const;
    std::string begin(const std::string& part);
    RestartPart move();
    RestartFacts commit(const RestartPart& whole);
    void abandon() noexcept;
    void release() noexcept;

    bool find();
    const StoredGeneration& found(const char* operation) const;
    RestartFacts read();
    std::string read_found(RestartFacts& facts);
    bool pass_over(const std::string& cause);

    Error refused(const char* operation, std::string cause, std::string advice) const;

  private:
    struct Writing {
        RestartLayout layout{};
        std::uint64_t generation = 0;       // of process 0
        os::NameLock lock{};                // of process 0, where no write before has left it
        std::optional<os::NewFile> made{};  // of process 0
        std::optional<File> file{};
        RestartFacts facts{};
        bool has_moved = false;
        Clock::time_point began = Clock::now();
    };
    void check_process(const char* operation) const;
    Writing& writing(const char* operation) const;
    WantedBox box_of(const RestartField& field, const RecordedField& stored) const;
    void check_memory(const RestartField& field, std::uint64_t bytes) const;
    std::vector<WantedBox> boxes_to_write(const RestartLayout& layout) const;
    std::vector<WantedBox> boxes_to_read() const;
    void take_name(Writing& to) const;
    void make_file(Writing& to);
    [[noreturn]] void fail(const Writing& to, const Error& error) const;
    static void reserve(const os::NewFile& made, std::uint64_t bytes);
    RestartPart move_boxes(Writing& to) const;
    void check_whole(const RestartLayout& layout, const RestartPart& whole) const;
    void write_metadata(Writing& to, const RestartPart& whole) const;

    Context context_;
    std::string name_;
    RestartOptions options_;
    std::vector<RestartField> fields_;
    std::vector<SnapshotAttribute> attributes_;
    std::uintptr_t stream_ = 0;
    Generations generations_;
    std::optional<StoredGeneration> found_;
    os::NameLock lock_;  // from the first generation that was written on: of process 0
    std::unique_ptr<Writing> writing_;
    context::ProcessMark process_;
};

}  // namespace penstock::restart
