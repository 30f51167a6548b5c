// Parsers of formats on any bytes: datasets whose grids make sense, or an Error; never more. The first byte chooses the
// format, the rest is the file.
#include "data/selection/selection.hpp"
#include "formats/hdf5/hdf5_samples_rig.hpp"
#include "formats/json/json_reader.hpp"
#include "formats/parsers.hpp"
#include "formats/samples_rig.hpp"
#include "input.hpp"
#include "penstock/error.hpp"

namespace {

using penstock::fuzz::promise;

void try_json(const std::string& text) {
    try {
        penstock::formats::read_json(text, {.names_of_numbers = text.size() % 2 == 0});
    } catch (const penstock::formats::BadDocument& bad) {
        promise(!bad.cause.empty(), "what is no JSON has a cause");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    namespace formats = penstock::formats;
    constexpr decltype(&formats::parse_npy) parsers[] = {&formats::parse_npy, &formats::parse_netcdf3,
                                                         &formats::parse_safetensors, nullptr,
                                                         &formats::testing::parse_hdf5};
    penstock::fuzz::Input input(data, bytes);
    const auto choice = input.number<std::uint8_t>() % 5;
    const std::string rest = input.rest();
    if (choice == 3) {
        try_json(rest);
        return 0;
    }
    try {
        for (const formats::StoredDataset& one : parsers[choice](formats::testing::MemorySource(rest))) {
            penstock::data::check_grid(one.grid);
            promise(one.grid.item_bytes == one.type.item_bytes, "an element is as long as its type");
            // Of HDF5 the parser looks up the first chunk, which lies inside or is an Error.
            const bool is_inside =
                choice == 1 || choice == 4 || one.offset_bytes + formats::extent_bytes(one) <= rest.size();
            promise(is_inside || !one.refusal.empty(), "a dataset lies in its file");
        }
    } catch (const penstock::Error& error) {
        promise(error.code() != penstock::ErrorCode::internal && !error.info().cause.empty(), "with its cause");
        promise(error.info().operation != "describe a dataset", "a grid that makes no sense is damage of the file");
    }
    return 0;
}
