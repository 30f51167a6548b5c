// See spare_descriptors.hpp.
#include "history/target/store/spare_descriptors.hpp"

#include <fcntl.h>

#include <cerrno>

#include "os/refusal.hpp"

namespace penstock::history {

SpareDescriptors::SpareDescriptors(const std::string& name) {
    for (os::UniqueFd& one : held_) {
        one = os::UniqueFd(::open("/", O_PATH | O_CLOEXEC));
        if (!one) os::refuse("open history", name, errno);
    }
}

}  // namespace penstock::history
