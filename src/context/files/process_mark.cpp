// See process_mark.hpp. One page holds the number of the process; a forked child finds it zero and writes its own.
#include "context/files/process_mark.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace penstock::context {
namespace {

constexpr int kWipeOnFork = 18;  // MADV_WIPEONFORK, Linux 4.14; missing in older libc headers

pid_t* make_page() noexcept {
    const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return nullptr;
    if (::madvise(page, bytes, kWipeOnFork) != 0) {
        ::munmap(page, bytes);
        return nullptr;
    }
    return static_cast<pid_t*>(page);
}

}  // namespace

pid_t ProcessMark::current() noexcept {
    static pid_t* const page = make_page();
    if (page == nullptr) return ::getpid();
    const pid_t known = __atomic_load_n(page, __ATOMIC_RELAXED);
    if (known != 0) return known;
    const pid_t found = ::getpid();
    __atomic_store_n(page, found, __ATOMIC_RELAXED);  // threads that meet here write the same
    return found;
}

}  // namespace penstock::context
