// The index of a store of raw files: what a reader needs to know of each file.
#include "formats/create/raw/raw_documents.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "formats/create/check_schema.hpp"
#include "penstock/error.hpp"

namespace penstock::formats {
namespace {

FileSchema raw_schema() {
    FileSchema made;
    made.dimensions = {{"time", 0, true}, {"y", 5, false}, {"x", 7, false}};
    made.variables.resize(3);
    const char* types[] = {"float64", "int16", "bool"};
    for (std::size_t i = 0; i < 3; ++i) type_named(types[i], made.variables[i].type);
    made.variables[0].name = "time";
    made.variables[0].dimensions = {0};
    made.variables[1].name = "T \"1\"";
    made.variables[1].dimensions = {0, 1, 2};
    made.variables[1].attributes = {text_attribute("units", "K"),
                                    number_attribute("limit", std::numeric_limits<double>::infinity())};
    made.variables[2].name = "mask";
    made.variables[2].dimensions = {2};
    made.attributes = {text_attribute("title", "a run")};
    return made;
}

TEST(RawDocuments, say_of_each_file_what_its_elements_are) {
    const RawDocuments documents(raw_schema(), "x");
    EXPECT_EQ(documents.root(12),
              R"({"format":"penstock raw history","version":1,"steps":12,
"attributes":{"title":"a run"},
"variables":{
"time":{"file":"time.raw","dtype":"<f8","grows":true,"shape":[],"dimensions":["time"],"attributes":{}},
"T \"1\"":{"file":"T \"1\".raw","dtype":"<i2","grows":true,"shape":[5,7],"dimensions":["time","y","x"],)"
              R"("attributes":{"units":"K","limit":"Infinity"}},
"mask":{"file":"mask.raw","dtype":"|b1","grows":false,"shape":[7],"dimensions":["x"],"attributes":{}}}}
)");
    EXPECT_EQ(documents.data_file({1}, 1000), "T \"1\".raw");
    EXPECT_EQ(documents.steps_in_file(1), 0u) << "all";
    EXPECT_EQ(documents.array_file(1), "") << "no other document";
}

TEST(RawDocuments, refuse_types_that_numpy_does_not_have) {
    FileSchema wrong = raw_schema();
    type_named("bfloat16", wrong.variables[1].type);
    EXPECT_THROW(RawDocuments(wrong, "x"), Error);
}

}  // namespace
}  // namespace penstock::formats
