// SnapshotState: the tree of a snapshot that is being told, and how it is written.
//
// The order of a write: all fields are checked; the tree is laid out; the file gets its room, under another name; the
// data; the metadata; the name.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "context/files/process_mark.hpp"
#include "formats/create/hdf5/layout.hpp"
#include "formats/create/hdf5/tree.hpp"
#include "penstock/snapshot.hpp"
#include "snapshot/presets/presets.hpp"

namespace penstock::snapshot {

class SnapshotState {
  public:
    SnapshotState(const Context& context, std::string name, const SnapshotOptions& options);

    void add_group(const std::string& path);
    void add_link(const std::string& path, const std::string& target);
    void add_dataset(const SnapshotDataset& dataset);
    void set_attribute(const std::string& path, const SnapshotAttribute& attribute);
    void use_preset(const SnapshotPreset& preset);
    void use_stream(std::uintptr_t stream) noexcept { stream_ = stream; }
    SnapshotFacts write(std::span<const SnapshotField> fields);

  private:
    // A field that was checked.
    struct CheckedField {
        const SnapshotField* field;
        formats::ObjectNumber object;
    };
    void check_open(const char* operation) const;
    Error refused(const char* operation, std::string cause, std::string advice) const;
    formats::ObjectNumber object_at(const std::string& path) const;
    std::vector<ParticleGroup> particle_groups() const;
    std::vector<CheckedField> checked(std::span<const SnapshotField> fields) const;
    void check_memory(const SnapshotField& field) const;
    Evidence move(const File& file, const formats::Hdf5Image& image, std::span<const CheckedField> parts) const;

    Context context_;
    std::string name_;
    SnapshotOptions options_;
    formats::Hdf5Tree tree_;
    std::map<std::string, formats::ObjectNumber> datasets_;  // by path
    std::uintptr_t stream_ = 0;
    bool is_written_ = false;
    context::ProcessMark process_;
};

}  // namespace penstock::snapshot
