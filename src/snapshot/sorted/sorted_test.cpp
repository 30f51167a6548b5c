// Particles in any order: the file is, byte for byte, the one of fields that were put into the order of cells by hand.
// Tried with it: particle_orders, move_sorted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "context/test_files.hpp"
#include "penstock/context.hpp"
#include "penstock/snapshot.hpp"
#include "snapshot/sorted/cell_sums_rig.hpp"
#include "snapshot/sorted/move_sorted.hpp"

namespace penstock {
namespace {

const SnapshotCells kOblong{{4, 3, 5}, {1, 1, 1}};

// One dataset of the particles of a process.
struct Field {
    std::string path;
    std::string dtype;
    std::vector<std::uint64_t> row;  // its shape
    std::uint64_t row_bytes;
    std::uint64_t chunk_rows = 0;
    std::vector<unsigned char> bytes{};
};

// The particles of one process: fields of type 0 and of type 3, whose positions are float64 and float32.
struct Particles {
    std::uint64_t counts[2];
    std::vector<Field> fields{{"PartType0/Coordinates", "float64", {3}, 24},
                              {"PartType0/Velocities", "float32", {3}, 12, 64},
                              {"PartType0/ParticleIDs", "uint64", {}, 8},
                              {"PartType0/Flags", "uint8", {}, 1},
                              {"PartType3/Coordinates", "float32", {3}, 12},
                              {"PartType3/Tensors", "float64", {3, 3}, 72}};

    static constexpr std::uint32_t kTypes[2] = {0, 3};
    std::uint64_t count_of(const Field& field) const { return counts[field.path[8] == '0' ? 0 : 1]; }
    SnapshotPositions positions(std::size_t type) const {
        const Field& field = fields[type == 0 ? 0 : 4];
        return {kTypes[type], field.dtype, field.bytes.data(), counts[type]};
    }
};

// Positions lie between `low` and `high` along the first dimension.
Particles random_particles(std::uint64_t first, std::uint64_t second, double low, double high) {
    std::mt19937_64 random(first);
    std::uniform_real_distribution<double> uniform(0, 1);
    Particles made{{first, second}};
    for (Field& field : made.fields) {
        field.bytes.resize(made.count_of(field) * field.row_bytes);
        for (unsigned char& one : field.bytes) one = static_cast<unsigned char>(random());
        if (!field.path.ends_with("Coordinates")) continue;
        for (std::size_t i = 0; i < 3 * made.count_of(field); ++i) {
            const double at = i % 3 == 0 ? low + (high - low) * uniform(random) : uniform(random);
            const float narrow = static_cast<float>(at);
            if (field.dtype == "float64") std::memcpy(&field.bytes[8 * i], &at, 8);
            if (field.dtype == "float32") std::memcpy(&field.bytes[4 * i], &narrow, 4);
        }
    }
    return made;
}

Particles sorted_by_hand(const Particles& particles) {
    Particles made = particles;
    for (std::size_t type = 0; type < 2; ++type) {
        const std::vector<std::uint64_t> order = snapshot_cell_order(kOblong, particles.positions(type));
        for (std::size_t f = 0; f < made.fields.size(); ++f) {
            Field& field = made.fields[f];
            if ((field.path[8] == '0' ? 0U : 1U) != type) continue;
            for (std::size_t i = 0; i < order.size(); ++i) {
                std::memcpy(&field.bytes[i * field.row_bytes], &particles.fields[f].bytes[order[i] * field.row_bytes],
                            field.row_bytes);
            }
        }
    }
    return made;
}

class SortedSnapshotTest : public testing::TestWithParam<MemoryKind> {
  protected:
    SortedSnapshotTest() : context_({.device = "host"}) {}

    // Copies of the fields in the memory of the test, and views of them by which a snapshot is told.
    struct Held {
        std::vector<Buffer> buffers{};
        std::vector<SnapshotField> fields{};
        std::vector<SnapshotPositions> types{};
    };
    Held held(const Particles& particles) const {
        Held made;
        for (const Field& field : particles.fields) {
            made.buffers.push_back(context_.allocate(field.bytes.size() + 1, GetParam()));
            if (!field.bytes.empty()) std::memcpy(made.buffers.back().data(), field.bytes.data(), field.bytes.size());
            made.fields.push_back({field.path, made.buffers.back().data(), field.bytes.size()});
        }
        for (std::size_t type = 0; type < 2; ++type) {
            made.types.push_back(particles.positions(type));
            made.types.back().data = made.buffers[type == 0 ? 0 : 4].data();
        }
        return made;
    }

    static void tell(Snapshot& snapshot, const std::vector<Particles>& all, std::size_t process) {
        snapshot.add_group("Header");
        for (std::size_t f = 0; f < all[0].fields.size(); ++f) {
            const Field& field = all[process].fields[f];
            SnapshotDataset dataset{field.path, field.dtype, {all[process].count_of(field)}};
            dataset.shape.insert(dataset.shape.end(), field.row.begin(), field.row.end());
            for (const Particles& one : all) dataset.process_rows.push_back(one.count_of(field));
            if (all.size() == 1) {
                dataset.process_rows.clear();
                dataset.chunk_rows = field.chunk_rows;
                dataset.has_checksums = field.chunk_rows != 0;
            }
            snapshot.add_dataset(dataset);
        }
    }

    std::vector<unsigned char> written(const std::string& name, const Particles& particles, bool sorts) const {
        Snapshot snapshot(context_, folder_.file(name), {.memory = GetParam()});
        tell(snapshot, {particles}, 0);
        const Held own = held(particles);
        if (sorts) snapshot.sort_by_cells(kOblong, own.types);
        if (!sorts) snapshot.add_cells(kOblong, own.types);
        const SnapshotFacts facts = snapshot.write(own.fields);
        std::uint64_t moved = 0, given = 0;
        for (const PathShare& one : facts.evidence.paths) moved += one.bytes;
        for (const SnapshotField& one : own.fields) given += one.bytes;
        EXPECT_EQ(moved, given);
        return test::read_file(folder_.file(name));
    }

    // Writes a snapshot of several processes, each a Snapshot of its own.
    void write_together(const std::string& name, const std::vector<Particles>& parts, bool sorts,
                        bool file_each) const {
        std::vector<Snapshot> all;
        std::vector<Held> own;
        std::vector<SnapshotCellSums> sums;
        for (std::uint32_t i = 0; i < parts.size(); ++i) {
            all.emplace_back(context_, folder_.file(name),
                             SnapshotOptions{.memory = GetParam(),
                                             .process = i,
                                             .processes = static_cast<std::uint32_t>(parts.size()),
                                             .file_each = file_each,
                                             .virtual_file = file_each});
            tell(all.back(), parts, i);
            own.push_back(held(parts[i]));
            sums.push_back(sorts ? all[i].sort_and_count(kOblong, own[i].types)
                                 : all[i].count_cells(kOblong, own[i].types));
        }
        test::put_together(sums);
        for (Snapshot& one : all) one.add_counted_cells();
        for (Snapshot& one : all) one.begin(file_each || &one == &all[0] ? "" : all[0].place());
        for (std::size_t i = 0; i < all.size(); ++i) all[i].write(own[i].fields);
        if (file_each)
            for (std::size_t i = all.size(); i-- > 0;) all[i].commit();
        else
            for (Snapshot& one : all) one.commit();
    }

    template <typename Call>
    static void expect_words(const std::string& words, Call&& call) {
        try {
            call();
            ADD_FAILURE() << "not refused: " << words;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        }
    }

    test::TempDirectory folder_;
    Context context_;
};

INSTANTIATE_TEST_SUITE_P(memory, SortedSnapshotTest, testing::Values(MemoryKind::device, MemoryKind::system),
                         [](const auto& one) { return std::string(to_string(one.param)); });

TEST_P(SortedSnapshotTest, the_file_is_that_of_fields_sorted_by_hand) {
    for (const auto& [first, second] : {std::pair{5000U, 777U}, {1U, 0U}, {0U, 65U}, {0U, 0U}}) {
        const Particles particles = random_particles(first, second, -0.1, 1.1);
        EXPECT_EQ(written("s.hdf5", particles, true), written("s.hdf5", sorted_by_hand(particles), false)) << first;
    }
}

TEST_P(SortedSnapshotTest, processes_sort_their_own_particles) {
    const std::vector<Particles> parts{random_particles(900, 70, 0, 0.24), random_particles(0, 30, 0.26, 0.49),
                                       random_particles(1200, 0, 0.51, 0.99)};
    std::vector<Particles> sorted;
    for (const Particles& one : parts) sorted.push_back(sorted_by_hand(one));
    write_together("one.hdf5", parts, true, false);
    write_together("one_by_hand.hdf5", sorted, false, false);
    EXPECT_EQ(test::read_file(folder_.file("one.hdf5")), test::read_file(folder_.file("one_by_hand.hdf5")));
    write_together("each.hdf5", parts, true, true);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file("."))) {
        const std::string name = entry.path().filename();
        if (name.starts_with("each")) std::filesystem::rename(entry.path(), folder_.file("kept_" + name));
    }
    write_together("each.hdf5", sorted, false, true);
    for (const std::string name : {"each.hdf5", "each.0.hdf5", "each.1.hdf5", "each.2.hdf5"}) {
        EXPECT_EQ(test::read_file(folder_.file(name)), test::read_file(folder_.file("kept_" + name))) << name;
    }
}

TEST_P(SortedSnapshotTest, fields_of_the_caller_stay_as_they_are) {
    const Particles particles = random_particles(300, 20, 0, 1);
    Snapshot snapshot(context_, folder_.file("s.hdf5"), {.memory = GetParam()});
    tell(snapshot, {particles}, 0);
    const Held own = held(particles);
    snapshot.sort_by_cells(kOblong, own.types);
    snapshot.write(own.fields);
    for (std::size_t f = 0; f < own.fields.size(); ++f) {
        const Field& field = particles.fields[f];
        EXPECT_EQ(std::memcmp(own.fields[f].data, field.bytes.data(), field.bytes.size()), 0) << field.path;
    }
}

TEST_P(SortedSnapshotTest, a_second_write_follows_one_that_failed) {
    const Particles particles = random_particles(400, 40, 0, 1);
    const std::string name = folder_.file("s.hdf5");
    bool fails = true;
    SnapshotOptions options{.memory = GetParam()};
    options.transfer.progress = [&](std::uint64_t, std::uint64_t) {
        if (fails) throw std::runtime_error("stopped while data move");
    };
    Snapshot snapshot(context_, name, options);
    tell(snapshot, {particles}, 0);
    const Held own = held(particles);
    snapshot.sort_by_cells(kOblong, own.types);
    expect_words("stopped while data move", [&] { snapshot.write(own.fields); });
    fails = false;
    snapshot.write(own.fields);
    EXPECT_EQ(test::read_file(name), written("by_hand.hdf5", sorted_by_hand(particles), false));
}

TEST_P(SortedSnapshotTest, particles_at_fault_are_named) {
    Particles particles = random_particles(100, 10, 0, 1);
    const double nowhere = std::numeric_limits<double>::quiet_NaN();
    Snapshot snapshot(context_, folder_.file("s.hdf5"), {.memory = GetParam()});
    tell(snapshot, {particles}, 0);
    expect_words("particle 1 of PartType0 lies in cell ", [&] {
        Particles backwards = particles;
        const double places[6] = {0.9, 0.9, 0.9, 0.1, 0.1, 0.1};
        std::memcpy(backwards.fields[0].bytes.data(), places, sizeof places);
        snapshot.add_cells(kOblong, held(backwards).types);
    });
    std::memcpy(&particles.fields[0].bytes[24 * 42 + 8], &nowhere, 8);
    const Held own = held(particles);
    expect_words("particle 42 of PartType0 lies at (", [&] { snapshot.sort_by_cells(kOblong, own.types); });
    expect_words("particle 42 of PartType0 lies at (", [&] {
        Particles sorted = particles;
        for (std::size_t i = 0; i < 24 * 42; i += 8) std::memset(&sorted.fields[0].bytes[i], 0, 8);
        snapshot.add_cells(kOblong, held(sorted).types);
    });
}

TEST_P(SortedSnapshotTest, values_that_were_given_before_are_refused) {
    const Particles particles = random_particles(50, 5, 0, 1);
    Snapshot snapshot(context_, folder_.file("s.hdf5"), {.memory = GetParam()});
    tell(snapshot, {particles}, 0);
    const std::vector<std::byte> masses(50 * 4);
    snapshot.add_values({"PartType0/Masses", "float32", {50}}, masses);
    const Held own = held(particles);
    snapshot.sort_by_cells(kOblong, own.types);
    expect_words("'PartType0/Masses' has its values, and its particles are sorted",
                 [&] { snapshot.write(own.fields); });
}

TEST_P(SortedSnapshotTest, fields_pass_through_a_room_of_any_size) {
    constexpr std::uint64_t kRows = 3000, kRowBytes = 12;
    std::vector<std::uint32_t> numbers(kRows);
    for (std::uint32_t i = 0; i < kRows; ++i) numbers[i] = (i * 7U + 5U) % kRows;
    snapshot::ParticleOrder order{context_.allocate(kRows * 4, GetParam()), kRows};
    std::memcpy(order.memory->data(), numbers.data(), kRows * 4);
    const Buffer rows = context_.allocate(kRows * kRowBytes, GetParam());
    auto* bytes = static_cast<unsigned char*>(rows.data());
    std::vector<unsigned char> expected;
    for (std::uint64_t i = 0; i < kRows * kRowBytes; ++i) bytes[i] = static_cast<unsigned char>(i * 131 >> 3);
    for (const std::uint32_t row : numbers)
        expected.insert(expected.end(), bytes + row * kRowBytes, bytes + (row + 1) * kRowBytes);
    const SnapshotField field{"rows", rows.data(), rows.bytes()};
    const snapshot::SortedPiece piece{{&field, 0, field.bytes, 0}, &order, kRowBytes};
    for (const std::uint64_t room : {0U, 9000U, 20'000U, 1U << 20}) {
        const std::string name = folder_.file("rows");
        File file = context_.open(name, {.mode = OpenMode::create, .size_bytes = rows.bytes()});
        snapshot::move_sorted(context_, {&file, name, GetParam(), {}}, {{&piece, 1}, room}, {});
        file.close();
        EXPECT_EQ(test::read_file(name), expected) << room;
    }
}

}  // namespace
}  // namespace penstock
