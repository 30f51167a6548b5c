// What tests of restarts share: a context on the emulated device, memory of the kind that a restart takes, and boxes of
// a field whose elements tell where they are.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "context/test_files.hpp"
#include "penstock/context.hpp"
#include "penstock/restart.hpp"

namespace penstock {

class RestartTest : public testing::TestWithParam<MemoryKind> {
  protected:
    RestartTest() : context_({.device = "host"}), name_(folder_.file("restart")) {}

    Restart open(std::uint32_t process = 0, std::uint32_t processes = 1, const std::string& name = {}) const {
        RestartOptions options;
        options.memory = GetParam();
        options.process = process;
        options.processes = processes;
        options.durable = false;
        return {context_, name.empty() ? name_ : name, options};
    }

    Buffer memory(std::uint64_t bytes) const {
        Buffer made = context_.allocate(std::max<std::uint64_t>(bytes, 8), GetParam());
        std::memset(made.data(), 0xEE, made.bytes());
        return made;
    }

    // Numbers from `first` on.
    Buffer counting(std::uint64_t count, double first) const {
        Buffer made = memory(count * sizeof(double));
        for (std::uint64_t i = 0; i < count; ++i) static_cast<double*>(made.data())[i] = first + static_cast<double>(i);
        return made;
    }

    static bool counts_from(const Buffer& buffer, std::uint64_t count, double first) {
        const auto* values = static_cast<const double*>(buffer.data());
        for (std::uint64_t i = 0; i < count; ++i)
            if (values[i] != first + static_cast<double>(i)) return false;
        return true;
    }

    std::string slot(int number) const { return name_ + "." + std::to_string(number); }

    // One line that names the restart, and all of `words`.
    template <typename Call>
    void expect_error(const std::vector<std::string>& words, Call&& call,
                      ErrorCode code = ErrorCode::invalid_argument) const {
        try {
            call();
            ADD_FAILURE() << "not refused: " << words[0];
        } catch (const Error& error) {
            const std::string told = error.what();
            for (const std::string& word : words) EXPECT_NE(told.find(word), std::string::npos) << told;
            EXPECT_NE(told.find("restart"), std::string::npos) << told;
            EXPECT_EQ(told.find('\n'), std::string::npos) << told;
            EXPECT_EQ(error.code(), code) << told;
        }
    }

    test::TempDirectory folder_;
    Context context_;
    std::string name_;
};

}  // namespace penstock
