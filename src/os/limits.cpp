// See limits.hpp. Limits come from sysconf, getrlimit and uname. Abilities are tried by raw system calls, so that the
// answer does not depend on the libraries that the build found.
#include "os/limits.hpp"

#include <linux/aio_abi.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "os/fd.hpp"
#include "os/memory/numa.hpp"

namespace penstock::os {
namespace {

constexpr long kIoUringSetup = 425;  // the same numbers on all architectures
constexpr std::size_t kIoUringParamsBytes = 120;

Ability refused(const std::string& call, int error, const std::string& advice) {
    return {false, error, call + ": " + std::strerror(error) + (advice.empty() ? "" : "; " + advice)};
}

std::string io_uring_advice(int error) {
    int disabled = 0;
    std::ifstream("/proc/sys/kernel/io_uring_disabled") >> disabled;
    if (disabled != 0) return "kernel.io_uring_disabled is " + std::to_string(disabled) + ": set it to 0 with sysctl";
    if (error == EPERM) return "a seccomp filter forbids it, as containers often do; allow io_uring_setup";
    if (error == ENOSYS) return "the kernel is older than 5.1 or built without it";
    if (error == ENOMEM) return "raise the memlock limit (ulimit -l)";
    return {};
}

std::uint64_t soft_limit(__rlimit_resource_t resource) noexcept {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) return 0;
    return limit.rlim_cur == RLIM_INFINITY ? kUnlimited : static_cast<std::uint64_t>(limit.rlim_cur);
}

}  // namespace

unsigned allowed_cpus() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(CPU_COUNT(&set));
    return static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN));  // the machine has more than 1024 CPUs
}

Ability probe_io_uring() {
    alignas(8) unsigned char params[kIoUringParamsBytes] = {};
    const UniqueFd ring(static_cast<int>(::syscall(kIoUringSetup, 1u, params)));
    if (ring) return {true, 0, {}};
    const int error = errno;
    return refused("io_uring_setup", error, io_uring_advice(error));
}

Ability probe_native_aio() {
    aio_context_t context = 0;
    if (::syscall(SYS_io_setup, 1u, &context) == 0) {
        ::syscall(SYS_io_destroy, context);
        return {true, 0, {}};
    }
    const int error = errno;
    return refused("io_setup", error, error == EAGAIN ? "raise fs.aio-max-nr with sysctl" : "");
}

Ability probe_cachestat() {
    // A kernel that knows the call refuses the bad descriptor with EBADF, an older one with ENOSYS.
    std::uint64_t range[2] = {}, answer[5] = {};
    if (::syscall(kCachestat, -1, range, answer, 0u) == 0 || errno == EBADF) return {true, 0, {}};
    return refused("cachestat", errno, "mincore is used instead");
}

std::uint64_t page_bytes() noexcept { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

std::uint64_t memlock_bytes() noexcept { return soft_limit(RLIMIT_MEMLOCK); }

Limits limits() {
    Limits found;
    utsname system{};
    if (::uname(&system) == 0) {
        found.kernel = system.release;
        found.machine = system.machine;
    }
    found.page_bytes = page_bytes();
    found.memlock_bytes = memlock_bytes();
    found.open_files = soft_limit(RLIMIT_NOFILE);
    found.memory_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * found.page_bytes;
    found.cpus = allowed_cpus();
    found.numa_nodes = numa_nodes();
    found.io_uring = probe_io_uring();
    found.cachestat = probe_cachestat();
    return found;
}

}  // namespace penstock::os
