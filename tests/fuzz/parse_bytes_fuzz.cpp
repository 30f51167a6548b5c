// parse_bytes on any text: it returns a number or an Error, and an accepted number means the same when written plainly.
#include "input.hpp"
#include "penstock/error.hpp"
#include "penstock/types.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    using penstock::fuzz::promise;
    const std::string text(reinterpret_cast<const char*>(data), bytes);
    try {
        const std::uint64_t value = penstock::parse_bytes(text);
        promise(penstock::parse_bytes(std::to_string(value)) == value, "a plain number is read back as itself");
        promise(value == 0 || text.front() != '-', "no negative size is accepted");
    } catch (const penstock::Error& error) {
        promise(error.code() == penstock::ErrorCode::invalid_argument, "what is no size is an invalid argument");
    }
    return 0;
}
