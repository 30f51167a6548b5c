// The model on the host: what it must conserve, a solution that is known, and bits that depend on no number of threads;
// and on a GPU, where there is one, the same numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "flow/model.hpp"
#include "support/sanitized.hpp"

namespace penstock::flow {
namespace {

class FlowModel : public ::testing::Test {
  protected:
    std::vector<double> field(Model& model, int number) {
        std::vector<double> values(static_cast<std::size_t>(model.grid().cells()));
        model.copy_field(number, values.data());
        return values;
    }
    template <class Function>
    static void each_cell(const Grid& grid, Function function) {
        for (int y = 0; y < grid.ny; ++y) {
            for (int x = 0; x < grid.nx; ++x) {
                for (int z = 0; z < grid.nz; ++z) function(x, y, z, static_cast<std::size_t>(grid.at(x, y, z)));
            }
        }
    }
    double sum(Model& model, int number) {
        const std::vector<double> values = field(model, number);
        double total = 0;
        each_cell(model.grid(), [&](int, int, int, std::size_t at) { total += values[at]; });
        return total;
    }
    Context context{ContextOptions{.device = "host"}};
};

TEST_F(FlowModel, conserves_mass_heat_and_tracer_while_the_bubble_rises) {
    Model model(context, {.nx = 20, .ny = 16, .nz = 16});
    const double mass = sum(model, kOutDensity);
    const double heat = sum(model, kOutHeat);
    const auto tracer = [&] {
        const std::vector<double> share = field(model, kOutTracer);
        const std::vector<double> density = field(model, kOutDensity);
        double total = 0;
        each_cell(model.grid(), [&](int, int, int, std::size_t at) { total += share[at] * density[at]; });
        return total;
    };
    const double traced = tracer();
    model.advance(test::kSanitized ? 50 : 150);
    EXPECT_NEAR(sum(model, kOutDensity) / mass, 1, 1e-12);
    EXPECT_NEAR(sum(model, kOutHeat) / heat, 1, 1e-12);
    EXPECT_NEAR(tracer() / traced, 1, 1e-11);
    const std::vector<double> upward = field(model, kOutW);
    double fastest = 0;
    each_cell(model.grid(), [&](int, int, int, std::size_t at) { fastest = std::max(fastest, upward[at]); });
    EXPECT_GT(fastest, test::kSanitized ? 0.4 : 1) << "m/s: the bubble rises";
    EXPECT_LT(fastest, 30);
}

TEST_F(FlowModel, air_without_a_bubble_blows_on_as_it_was) {
    Model model(context, {.nx = 8, .ny = 8, .nz = 12, .bubble_kelvin = 0});
    model.advance(50);
    const std::vector<double> along = field(model, kOutU);
    const std::vector<double> upward = field(model, kOutW);
    each_cell(model.grid(), [&](int, int, int, std::size_t at) {
        EXPECT_NEAR(along[at], 10, 1e-9);
        EXPECT_NEAR(upward[at], 0, 1e-9);
    });
}

// Wind carries a tracer without changing it. The error falls with the third power of the spacing, for the damping of a
// step does not fall with it and there are more steps.
TEST_F(FlowModel, a_tracer_moves_with_the_wind_and_the_error_falls_with_the_spacing) {
    const auto error = [&](int n) {
        Model model(context, {.nx = n, .ny = n, .nz = n, .wind = 100, .bubble_kelvin = 0, .bubble_radius = 0.5});
        model.advance(n);
        const std::vector<double> found = field(model, kOutTracer);
        const double moved = 100 * model.time() / model.grid().spacing_m;
        double most = 0;
        each_cell(model.grid(), [&](int x, int y, int z, std::size_t at) {
            const double along = std::remainder(x + 0.5 - 0.5 * n - moved, n);
            const double away = std::hypot(along, y + 0.5 - 0.5 * n, z + 0.5 - 0.5 * n) / (0.5 * n);
            const double exact = away < 1 ? std::pow(std::cos(0.5 * std::numbers::pi * away), 4) : 0;
            most = std::max(most, std::abs(found[at] - exact));
        });
        return most;
    };
    const double coarse = error(test::kSanitized ? 12 : 16);
    const double fine = error(test::kSanitized ? 24 : 32);
    RecordProperty("coarse", std::to_string(coarse));
    EXPECT_LT(coarse, 0.05);
    EXPECT_LT(fine, coarse / 4) << coarse << " and " << fine;
}

TEST_F(FlowModel, without_wind_x_and_y_are_alike) {
    Model model(context, {.nx = 12, .ny = 12, .nz = 10, .wind = 0});
    model.advance(40);
    const std::vector<double> u = field(model, kOutU);
    const std::vector<double> v = field(model, kOutV);
    double fastest = 0;
    each_cell(model.grid(), [&](int x, int y, int z, std::size_t at) {
        fastest = std::max(fastest, u[at]);
        EXPECT_NEAR(u[at], v[static_cast<std::size_t>(model.grid().at(y, x, z))], 1e-10);
    });
    EXPECT_GT(fastest, 0.1);
}

TEST_F(FlowModel, bits_do_not_depend_on_threads_or_on_a_restart) {
    Model one(context, {.nx = 12, .ny = 10, .nz = 9, .threads = 1});
    Model four(context, {.nx = 12, .ny = 10, .nz = 9, .threads = 4});
    four.advance(7);
    four.restart();
    EXPECT_EQ(four.time(), 0);
    one.advance(10);
    four.advance(4);
    four.advance(6);
    for (int number = 0; number < kOutputs; ++number) EXPECT_EQ(field(one, number), field(four, number)) << number;
}

TEST_F(FlowModel, a_box_that_makes_no_sense_is_refused) {
    EXPECT_THROW(Model(context, {.nx = 3}), Error);
    EXPECT_THROW(Model(context, {.height_m = -1}), Error);
    EXPECT_THROW(Model(context, {.wind = std::nan("")}), Error);
    EXPECT_THROW(Model(context, {}).advance(0), Error);
}

TEST_F(FlowModel, a_gpu_computes_what_the_host_does) {
    std::string why;
    if (!built_with_cuda() || cuda_device_count(why) == 0) GTEST_SKIP() << "no GPU: " << why;
    const Context gpu{ContextOptions{.device = "cuda:0"}};
    Model there(gpu, {.nx = 20, .ny = 18, .nz = 33});
    Model here(context, {.nx = 20, .ny = 18, .nz = 33});
    there.advance(20);
    here.advance(20);
    for (int number = 0; number < kOutputs; ++number) {
        const std::vector<double> ours = field(there, number);
        const std::vector<double> expected = field(here, number);
        double scale = 0;
        double most = 0;
        each_cell(here.grid(), [&](int, int, int, std::size_t at) {
            scale = std::max(scale, std::abs(expected[at]));
            most = std::max(most, std::abs(ours[at] - expected[at]));
        });
        EXPECT_LE(most, 1e-9 * scale) << Model::fields()[number].name;
    }
}

TEST_F(FlowModel, the_default_stream_gives_the_same_bits) {
    std::string why;
    if (!built_with_cuda() || cuda_device_count(why) == 0) GTEST_SKIP() << "no GPU: " << why;
    const Context gpu{ContextOptions{.device = "cuda:0"}};
    Model own(gpu, {.nx = 20, .ny = 18, .nz = 33});
    Model common(gpu, {.nx = 20, .ny = 18, .nz = 33});
    common.use_default_stream(true);
    EXPECT_EQ(common.stream(), 0U);
    EXPECT_NE(own.stream(), 0U);
    own.advance(20);
    common.advance(20);
    for (int number = 0; number < kOutputs; ++number) EXPECT_EQ(field(own, number), field(common, number)) << number;
    common.use_default_stream(false);
    EXPECT_NE(common.stream(), 0U);
}

}  // namespace
}  // namespace penstock::flow
