// See read_descriptors.hpp.
#include "context/files/read_descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>

#include <string>
#include <utility>

namespace penstock::context {
namespace {

constexpr rlim_t kFewest = 256;  // descriptors of a process, which are all left to it
constexpr rlim_t kShare = 4;  // while less than this part is in use, another one is opened

}  // namespace

ReadDescriptors::Lent::Lent(ReadDescriptors& owner) : owner_(owner) {
    const bool is_alone = owner_.readers_.fetch_add(1, std::memory_order_relaxed) == 0;
    if (!is_alone && owner_.may_open_) own_ = owner_.take();
}

ReadDescriptors::Lent::~Lent() {
    owner_.readers_.fetch_sub(1, std::memory_order_relaxed);
    if (!own_) return;
    const std::lock_guard lock(owner_.mutex_);
    owner_.free_.push_back(std::move(own_));
}

os::UniqueFd ReadDescriptors::take() {
    {
        const std::lock_guard lock(mutex_);
        if (!free_.empty()) {
            os::UniqueFd found = std::move(free_.back());
            free_.pop_back();
            return found;
        }
        free_.reserve(++opened_);  // so that giving it back needs no memory
    }
    if (!is_plenty()) return {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd_);
    return os::UniqueFd(system_.open(link.c_str(), O_RDONLY | O_CLOEXEC, 0), system_);
}

// The kernel gives the lowest number that is free, so a high one says that many are in use. The number is asked of
// another file: that one is closed at once.
bool ReadDescriptors::is_plenty() const {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < kFewest) return false;
    const os::UniqueFd next(system_.open("/", O_PATH | O_CLOEXEC, 0), system_);
    if (!next) return false;
    return limit.rlim_cur == RLIM_INFINITY || static_cast<rlim_t>(next.get()) < limit.rlim_cur / kShare;
}

void ReadDescriptors::close() {
    const std::lock_guard lock(mutex_);
    free_.clear();
}

}  // namespace penstock::context
