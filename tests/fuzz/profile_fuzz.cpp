// parse_profile on any text: it returns a profile or an Error. An accepted profile is read back as it was written,
// except for line ends within facts, and gives predictions.
#include "input.hpp"
#include "penstock/error.hpp"
#include "penstock/profile.hpp"
#include "policy/costs.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    using penstock::fuzz::promise;
    const std::string text(reinterpret_cast<const char*>(data), bytes);
    try {
        const penstock::Profile profile = penstock::parse_profile(text, "fuzz");
        promise(!profile.rows.empty(), "a profile has measurements");
        const std::string written = penstock::profile_text(profile);
        const penstock::Profile again = penstock::parse_profile(written, "fuzz");
        promise(penstock::profile_text(again) == written, "what is written is read and written as it is");
        promise(again.rows == profile.rows, "no measurement changes");
        const penstock::policy::Costs costs(profile);
        for (const penstock::ProfileRow& row : profile.rows) {
            const penstock::policy::CostQuestion question{row.direction, row.cached, row.memory, row.first_touch,
                                                          row.aligned, false, row.bytes};
            const auto found = costs.predict(question);
            promise(found.count > 0, "what was measured is answered");
            for (const auto& one : found.all()) promise(one.seconds > 0, "a time is positive");
        }
    } catch (const penstock::Error& error) {
        promise(error.code() == penstock::ErrorCode::invalid_argument, "what is no profile is an invalid argument");
        promise(!error.info().cause.empty(), "with its cause");
    }
    return 0;
}
