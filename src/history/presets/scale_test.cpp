// The grid of SCALE-RM: which cells and faces each process writes, and what that says of fields.
#include "history/presets/scale.hpp"

#include <gtest/gtest.h>

#include "history/presets/cell_axis.hpp"
#include "history/presets/scale_names.hpp"
#include "penstock/error.hpp"

namespace penstock::history {
namespace {

// Eight cells of width 10 from 0 on, with a halo of two at each end.
HistoryGridAxis eight_cells(std::uint32_t processes, bool is_periodic) {
    HistoryGridAxis axis;
    for (int i = -2; i <= 10; ++i) axis.faces.push_back(10.0 * i);
    axis.halo = 2;
    axis.processes = processes;
    axis.is_periodic = is_periodic;
    return axis;
}

TEST(ScaleGrid, parts_of_processes_follow_each_other) {
    for (const bool is_periodic : {false, true}) {
        for (const bool has_boundary : {false, true}) {
            const HistoryGridAxis told = eight_cells(4, is_periodic);
            std::int64_t cells = 0, faces = 0;
            for (std::uint32_t place = 0; place < 4; ++place) {
                const CellAxis axis("x", told, place, has_boundary);
                EXPECT_EQ(axis.place_of_cells().start_global, cells + 1);
                EXPECT_EQ(axis.place_of_faces().start_global, faces + 1);
                cells += static_cast<std::int64_t>(axis.written_cells().count);
                faces += static_cast<std::int64_t>(axis.written_faces().count);
                EXPECT_EQ(axis.cell_bounds().size(), 2 * axis.written_cells().count);
                EXPECT_EQ(axis.face_bounds().size(), 2 * axis.written_faces().count);
            }
            const CellAxis last("x", told, 3, has_boundary);
            EXPECT_EQ(last.place_of_cells().size_global, cells);
            EXPECT_EQ(last.place_of_faces().size_global, faces);
            EXPECT_EQ(cells, has_boundary && !is_periodic ? 12 : 8);
            EXPECT_EQ(faces, is_periodic ? 8 : has_boundary ? 12 : 9);
        }
    }
}

TEST(ScaleGrid, faces_lie_between_the_centres_beside_them) {
    const HistoryGridAxis told = eight_cells(2, false);
    const CellAxis first("x", told, 0, false), edge("x", told, 1, true);
    EXPECT_EQ(part_of(told.faces, first.written_faces()), (std::vector<double>{0, 10, 20, 30, 40}));
    EXPECT_EQ(first.face_bounds(), (std::vector<double>{-5, 5, 5, 15, 15, 25, 25, 35, 35, 45}));
    EXPECT_EQ(first.cell_bounds(), (std::vector<double>{0, 10, 10, 20, 20, 30, 30, 40}));
    EXPECT_EQ(edge.face_bounds().back(), 100);  // where there is no cell behind it
}

TEST(ScaleGrid, a_field_has_its_grid_by_its_dimensions) {
    const ScaleStagger wind = stagger_of({"y", "xh", "z"}), corner = stagger_of({"zh", "yh", "xh"});
    EXPECT_EQ(wind.location(), std::string("edge1"));
    EXPECT_EQ(wind.height() + wind.volume(), "height_uyzcell_volume_uyz");
    EXPECT_EQ(corner.location(), std::string("node"));
    EXPECT_EQ(corner.height() + corner.suffix(), "height_uvw_uv");
    EXPECT_EQ(stagger_of({"y", "x", "uz"}).grid(), std::string("grid_urban"));
    EXPECT_EQ(stagger_of({"yh", "x"}).location(), std::string("edge2"));
    EXPECT_FALSE(stagger_of({"z"}).is_horizontal());
}

TEST(ScaleGrid, numbers_that_make_no_grid_are_refused) {
    HistoryGridAxis falls = eight_cells(1, false);
    falls.faces[3] = falls.faces[2];
    EXPECT_THROW(CellAxis("x", falls, 0, false), Error);
    EXPECT_THROW(CellAxis("x", eight_cells(3, false), 0, false), Error);
    HistoryGridAxis wide = eight_cells(1, false);
    wide.halo = 6;
    EXPECT_THROW(CellAxis("x", wide, 0, false), Error);
    Definitions all;
    HistoryPreset preset;
    EXPECT_THROW(add_scale(all, preset, {}), Error);  // no faces
    EXPECT_TRUE(all.attributes.empty());
}

}  // namespace
}  // namespace penstock::history
