// The platform that tries every order finds the faults of small programs, and tries each order that matters once.
#include "ondevice/model/model_rig.hpp"

#include <gtest/gtest.h>

namespace penstock::ondevice {
namespace {

using model::Explorer;
using model::Program;
using model::Report;

constexpr Scope scope = Scope::device;
constexpr u64 plenty = 100'000;

struct Words {
    u32 flag = 0;
    u32 other = 0;
    u32 payload = 0;
    u32 sum = 0;
};

TEST(ModelTest, independent_steps_have_one_order) {
    const Report report = Explorer().run([] {
        auto words = std::make_shared<Words>();
        return Program{{[=] { for (int i = 0; i < 5; ++i) Model::add<scope>(&words->flag, 1u); },
                        [=] { for (int i = 0; i < 5; ++i) Model::add<scope>(&words->other, 1u); }},
                       {}};
    }, plenty);
    EXPECT_TRUE(report.complete);
    EXPECT_EQ(report.failure, "");
    EXPECT_EQ(report.schedules, 1u);
}

TEST(ModelTest, dependent_steps_have_every_order) {
    // Three steps each on one word: 6 choose 3 orders.
    const Report report = Explorer().run([] {
        auto words = std::make_shared<Words>();
        const auto thrice = [=] { for (int i = 0; i < 3; ++i) Model::add<scope>(&words->flag, 1u); };
        return Program{{thrice, thrice}, [=] { model::check(words->flag == 6, "a sum"); }};
    }, plenty);
    EXPECT_TRUE(report.complete);
    EXPECT_EQ(report.failure, "");
    EXPECT_EQ(report.schedules, 20u);
}

TEST(ModelTest, finds_a_lost_update) {
    const Report report = Explorer().run([] {
        auto words = std::make_shared<Words>();
        const auto once = [=] { Model::store<scope>(&words->flag, Model::load<scope>(&words->flag) + 1); };
        return Program{{once, once}, [=] { model::check(words->flag == 2, "an update was lost"); }};
    }, plenty);
    EXPECT_NE(report.failure.find("an update was lost"), std::string::npos);
    EXPECT_NE(report.failure.find("thread 1 loads word 0"), std::string::npos) << report.failure;
}

TEST(ModelTest, finds_an_order_that_needs_three_threads_and_three_switches) {
    const Report report = Explorer().run([] {
        auto words = std::make_shared<Words>();
        return Program{{[=] { Model::store<scope>(&words->flag, 1u);
                              if (Model::load<scope>(&words->other) == 2) Model::store<scope>(&words->sum, 3u); },
                        [=] { if (Model::load<scope>(&words->flag) == 1) Model::store<scope>(&words->other, 2u); },
                        [=] { model::check(Model::load<scope>(&words->sum) != 3, "reached"); }},
                       {}};
    }, plenty);
    EXPECT_NE(report.failure.find("reached"), std::string::npos);
}

template <class P>
Report publish_once() {
    return Explorer().run([] {
        auto words = std::make_shared<Words>();
        return Program{{[=] { Watch<P>::writes(&words->payload, 4);
                              words->payload = 7;
                              P::template store<scope>(&words->flag, 1u); },
                        [=] { while (P::template load<scope>(&words->flag) == 0) P::pause(0);
                              Watch<P>::reads(&words->payload, 4);
                              model::check(words->payload == 7, "the payload"); }},
                       {}};
    }, plenty);
}

TEST(ModelTest, a_polling_loop_ends_and_a_publication_is_ordered) {
    const Report report = publish_once<Model>();
    EXPECT_TRUE(report.complete);
    EXPECT_EQ(report.failure, "");
    EXPECT_EQ(report.schedules, 2u);
}

TEST(ModelTest, finds_a_publication_without_release_or_without_acquire) {
    EXPECT_NE(publish_once<ModelOf<Broken::release_of_stores>>().failure.find("without order"), std::string::npos);
    EXPECT_NE(publish_once<ModelOf<Broken::acquire_of_loads>>().failure.find("without order"), std::string::npos);
}

TEST(ModelTest, finds_that_nobody_can_go_on) {
    const Report report = Explorer().run([] {
        auto words = std::make_shared<Words>();
        return Program{{[=] { while (Model::load<scope>(&words->flag) == 0) Model::pause(0); }}, {}};
    }, plenty);
    EXPECT_NE(report.failure.find("no thread can go on"), std::string::npos);
}

}  // namespace
}  // namespace penstock::ondevice
