// SnapshotTree: what a program tells of a snapshot, as the tree of HDF5 of one of its files.
//
// A snapshot of several processes has several trees: that of the file that a process writes, and that of the file that
// shows the others as one. Both are told the same.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "formats/create/hdf5/tree.hpp"
#include "penstock/error.hpp"
#include "penstock/snapshot.hpp"
#include "snapshot/presets/presets.hpp"

namespace penstock::snapshot {

enum class TreeRows : std::uint8_t {
    of_all,           // of all processes, one behind the other
    of_this_process,  // a file each
    linked,           // of all processes, in the files that each of them has
};

enum class TreeData : std::uint8_t {
    of_process,  // in the file of each process
    of_tree,     // in the file of the tree, also where that links others
};

struct TreeScope {
    TreeRows rows = TreeRows::of_all;
    std::uint32_t process = 0;
    std::uint32_t processes = 1;
};

// A dataset of a tree, and which part of it this process writes.
struct StoredField {
    formats::ObjectNumber object = 0;
    std::uint64_t first_byte = 0;
    std::uint64_t bytes = 0;
    bool is_others = false;  // process 0 writes all of it
};

class SnapshotTree {
  public:
    // `name`: of the snapshot.
    SnapshotTree(std::string name, const TreeScope& scope);

    void add_group(const std::string& path);
    void add_link(const std::string& path, const std::string& target, const std::string& file);
    void add_dataset(const SnapshotDataset& dataset, TreeData data = TreeData::of_process);
    void set_attribute(const std::string& path, const SnapshotAttribute& attribute);
    void use_preset(const SnapshotPreset& preset);

    const formats::Hdf5Tree& tree() const { return tree_; }
    const std::map<std::string, StoredField>& fields() const { return fields_; }  // by path
    // The rows of each process: none of a dataset that was not added, and no numbers of one without process_rows.
    std::vector<std::uint64_t> process_rows(const std::string& path) const;
    // Whether the dataset has a row for each row of the other one, in every process: one that sorts rows where another
    // process writes its own as they lie would tear it.
    bool has_rows_of(const std::string& path, const std::string& other) const;
    // A sum of what all processes must have told alike.
    std::uint64_t digest() const;

  private:
    void add_second_name(const std::string& path, const std::string& target);
    formats::ObjectNumber object_at(const std::string& path) const;
    ParticleGroups particle_groups() const;
    void check_rows(const SnapshotDataset& dataset, const std::string& path) const;
    StoredField placed(const SnapshotDataset& dataset, formats::Hdf5Dataset& made, TreeData data) const;
    Error refused(const char* operation, std::string cause, std::string advice) const;

    std::string name_;
    TreeScope scope_;
    formats::Hdf5Tree tree_;
    std::map<std::string, StoredField> fields_;
    std::map<std::string, SnapshotDataset> told_;  // by path
};

// An error of a snapshot that names its file.
Error snapshot_error(const std::string& name, const char* operation, std::string cause, std::string advice);
std::string without_slash(const std::string& path);
// NAME.N.hdf5 of NAME.hdf5.
std::string name_of_process(const std::string& name, std::uint32_t process);
std::string told_type(const formats::Hdf5Dataset& dataset);  // as "float32 (10, 3)"

}  // namespace penstock::snapshot
