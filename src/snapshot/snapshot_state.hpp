// SnapshotState: a snapshot that is being told, and how it is written.
//
// The order of a write: all fields are checked; the tree is laid out; the file gets its room, under another name; the
// data; the metadata; the name. Several processes wait for each other between begin(), write() and commit().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "context/files/process_mark.hpp"
#include "formats/create/hdf5/layout.hpp"
#include "penstock/snapshot.hpp"
#include "snapshot/cells.hpp"
#include "snapshot/sorted/move_sorted.hpp"
#include "snapshot/sorted/particle_orders.hpp"
#include "snapshot/target_file.hpp"
#include "snapshot/told_tree.hpp"

namespace penstock::snapshot {

class SnapshotState {
  public:
    SnapshotState(const Context& context, std::string name, const SnapshotOptions& options);
    const std::string& name() const noexcept { return name_; }

    void add_group(const std::string& path);
    void add_link(const std::string& path, const std::string& target, const std::string& file);
    void add_dataset(const SnapshotDataset& dataset);
    void add_values(const SnapshotDataset& dataset, std::span<const std::byte> values);
    void add_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types);
    SnapshotCellSums count_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types);
    void add_counted_cells();
    void sort_by_cells(const SnapshotCells& cells, std::span<const SnapshotPositions> types);
    SnapshotCellSums sort_and_count(const SnapshotCells& cells, std::span<const SnapshotPositions> types);
    void set_attribute(const std::string& path, const SnapshotAttribute& attribute);
    void use_preset(const SnapshotPreset& preset);
    void use_stream(std::uintptr_t stream) noexcept { stream_ = stream; }
    void check_memory(const SnapshotField& field) const;

    SnapshotFacts write(std::span<const SnapshotField> fields, const SnapshotWatch& goes_on);
    std::uint64_t digest() const { return tree_.digest(); }
    void begin(const std::string& place);
    const std::string& place() const;
    void commit();
    void abandon() noexcept;

  private:
    // A field that was checked, and where its bytes lie.
    struct CheckedField {
        const SnapshotField* field;
        StoredField stored;
    };
    // The elements of a dataset that write() is not given.
    struct KeptValues {
        void keep(const std::string& path, std::span<const std::byte> values);
        std::vector<std::byte> bytes;
        SnapshotField field;
    };
    enum class WriteStage : std::uint8_t { told, begun, moved, done };

    template <typename Call>
    void tell(const char* operation, Call&& call);
    template <typename Call>
    void tell_whole(const char* operation, Call&& call);
    template <typename Call>
    auto of_cells(Call&& call) const;
    SnapshotCellSums count_by(const SnapshotCells& cells, std::span<const SnapshotPositions> types,
                              const FindCells& find);
    void check_alone(const char* other_call) const;
    // Null where the rows of the dataset are written as they lie.
    const ParticleOrder* order_of(const std::string& path, const StoredField& stored) const;
    std::uint64_t row_bytes(const StoredField& stored) const;
    void write_virtual_file();
    Error refused(const char* operation, std::string cause, std::string advice) const;
    void check_stage(const char* operation, WriteStage wanted) const;
    std::vector<CheckedField> checked(std::span<const SnapshotField> fields) const;
    void open_file(const std::string& place);
    SnapshotFacts move(std::span<const CheckedField> parts, const SnapshotWatch& goes_on);
    void give_names();
    void let_go() noexcept { file_.reset(), shown_file_.reset(); }  // nothing is left of one that has no name
    void end() noexcept;
    bool is_maker() const noexcept { return options_.file_each || options_.process == 0; }

    Context context_;
    std::string name_;
    SnapshotOptions options_;
    SnapshotTree tree_;                           // of the file that this process writes
    std::optional<SnapshotTree> virtual_;         // of the file that shows all as one
    std::map<std::string, KeptValues> values_{};  // by path
    std::map<std::string, KeptValues> shown_{};   // those that the virtual file has itself
    std::optional<CellCounts> counted_;           // until the sums of all processes are added
    ParticleOrders found_{};                      // with them
    ParticleOrders orders_{};                     // by which write() gathers
    formats::Hdf5Image image_{};
    std::optional<SnapshotFile> file_;
    formats::Hdf5Image shown_image_{};
    std::optional<SnapshotFile> shown_file_;      // the virtual file, whose name is tried before any data move
    double layout_seconds_ = 0;
    std::uintptr_t stream_ = 0;
    WriteStage stage_ = WriteStage::told;
    context::ProcessMark process_;
};

}  // namespace penstock::snapshot
