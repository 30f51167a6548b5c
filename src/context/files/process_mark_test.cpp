// ProcessMark: whoever made the object is here, forked children are not, what they make themselves is theirs.
#include "context/files/process_mark.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace penstock::context {
namespace {

// The exit status of a forked child that runs `action`.
template <typename Action>
int in_child(const Action& action) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(action());
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ProcessMark, each_process_knows_its_own) {
    const ProcessMark parents;
    EXPECT_TRUE(parents.here());
    const int seen = in_child([&] {
        const ProcessMark childs;
        const int grandchild = in_child([&] { return 4 * parents.here() + 2 * childs.here() + ProcessMark().here(); });
        return 16 * parents.here() + 8 * childs.here() + grandchild;
    });
    EXPECT_EQ(seen, 8 + 1);
    EXPECT_TRUE(parents.here());
}

TEST(ProcessMark, a_child_that_asks_before_it_makes_one_of_its_own_is_told_the_truth) {
    const ProcessMark parents;
    EXPECT_EQ(in_child([&] { return parents.here() ? 1 : 0; }), 0);
}

}  // namespace
}  // namespace penstock::context
