// What tests of histories share: a context on the emulated device, memory of the kind that a history takes, and the
// file read back by the native reader.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "context/test_files.hpp"
#include "formats/data_file.hpp"
#include "formats/move/move_dataset.hpp"
#include "penstock/context.hpp"
#include "penstock/history.hpp"

namespace penstock {

// Where fields lie, and whether the history keeps a step in memory or writes each field as it is put.
struct HistoryKind {
    HistoryKind(MemoryKind of, std::uint32_t of_slots = 2) : memory(of), slots(of_slots) {}
    operator MemoryKind() const noexcept { return memory; }
    std::string name() const { return to_string(memory) + std::string(slots == 0 ? "_slotless" : ""); }

    MemoryKind memory;
    std::uint32_t slots;
};

inline auto with_and_without_slots() {
    return testing::Values(HistoryKind(MemoryKind::device), HistoryKind(MemoryKind::system),
                           HistoryKind(MemoryKind::device, 0), HistoryKind(MemoryKind::system, 0));
}

class HistoryTest : public testing::TestWithParam<HistoryKind> {
  protected:
    HistoryTest() : context_({.device = "host"}), name_(folder_.file("history.nc")) {}

    HistoryOptions options() const {
        HistoryOptions made;
        made.memory = GetParam();
        made.slots = GetParam().slots;
        made.time_units = "seconds since 2000-01-01 00:00:00";
        return made;
    }

    // Memory of the kind that the histories of this test take, with these numbers.
    template <typename Number>
    Buffer field(const std::vector<Number>& numbers) const {
        Buffer made = context_.allocate(numbers.size() * sizeof(Number), GetParam());
        std::memcpy(made.data(), numbers.data(), made.bytes());
        return made;
    }

    template <typename Number>
    std::vector<Number> read(const std::string& variable) const {
        const formats::DataFile file(context_, name_, {});
        const formats::StoredDataset stored = file.container().dataset(variable);
        std::uint64_t count = 1;
        data::Selection all;
        for (std::size_t axis = stored.grid.shape.size(); axis-- > 0;) {
            all.box.count[axis] = stored.grid.shape[axis];
            all.box.step[axis] = 1;
            all.memory_strides[axis] = static_cast<std::int64_t>(count * sizeof(Number));
            count *= static_cast<std::uint64_t>(stored.grid.shape[axis]);
        }
        std::vector<Number> found(count);
        if (count == 0) return found;
        const MemoryView memory{found.data(), count * sizeof(Number), MemoryKind::system};
        formats::read_dataset(file, stored, {all, memory, {}}).outcome.or_throw();
        return found;
    }

    std::vector<std::int64_t> shape(const std::string& variable) const {
        return formats::DataFile(context_, name_, {}).container().dataset(variable).grid.shape;
    }

    template <typename Call>
    void expect_refusal(const std::string& words, Call&& call) const {
        try {
            call();
            ADD_FAILURE() << "not refused: " << words;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
            EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
        }
    }

    test::TempDirectory folder_;
    Context context_;
    std::string name_;
};

}  // namespace penstock
