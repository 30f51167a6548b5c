// The conformance kit of the Path contract: every path and every decorator passes the same tests.
//
// Include it in one source file of a test program, then
//     INSTANTIATE_TEST_SUITE_P(Paths, PathSuite, path_values({{"buffered", make_rig}, ...}), path_test_name);
// A case is skipped if its `make` returns nullptr and sets `why`.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/path_checks.hpp"

namespace penstock::conformance {

struct PathCase {
    std::string name;  // letters, digits and underscores
    std::function<std::unique_ptr<Rig>(std::string& why)> make;
    friend std::ostream& operator<<(std::ostream& out, const PathCase& path_case) { return out << path_case.name; }
};
inline std::ostream& operator<<(std::ostream& out, const PathCheck& check) { return out << check.name; }

using PathTest = std::tuple<PathCase, PathCheck>;

class PathSuite : public testing::TestWithParam<PathTest> {};

inline auto path_values(const std::vector<PathCase>& cases) {
    return testing::Combine(testing::ValuesIn(cases), testing::ValuesIn(kPathChecks));
}

inline std::string path_test_name(const testing::TestParamInfo<PathTest>& info) {
    return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name;
}

TEST_P(PathSuite, holds) {
    const auto& [path_case, check] = GetParam();
    std::string why = "no reason given";
    const std::unique_ptr<Rig> rig = path_case.make(why);
    if (!rig) GTEST_SKIP() << path_case.name << ": " << why;
    EXPECT_EQ(check.holds(*rig), "");
}

}  // namespace penstock::conformance
