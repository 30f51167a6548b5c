// The function that stands behind one of ours: libc's, or that of the next preloaded library.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cerrno>

namespace preload {

template <typename Function>
class Next {
public:
    constexpr explicit Next(const char* name) : name_(name) {}

    // Null where this libc has none: a program that calls it was not built for this libc.
    Function* get() {
        Function* known = found_.load(std::memory_order_relaxed);
        return known != nullptr ? known : find();
    }

private:
    Function* find() {
        const int saved = errno;
        auto* found = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name_));
        found_.store(found, std::memory_order_relaxed);
        errno = saved;
        return found;
    }

    const char* name_;
    std::atomic<Function*> found_{nullptr};
};

}  // namespace preload

// `PENSTOCK_NEXT(read)` is the read behind ours.
#define PENSTOCK_NEXT(name)                                  \
    ([]() -> auto* {                                         \
        static constinit ::preload::Next<decltype(::name)> next(#name); \
        return next.get();                                   \
    }())
#define PENSTOCK_SHOWN extern "C" __attribute__((visibility("default")))
