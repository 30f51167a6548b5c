// Ends of a process that run no destructor: what the library owes is done first.
#include <stdlib.h>
#include <unistd.h>

#include "preload/symbols/next.hpp"
#include "preload/watch.hpp"

PENSTOCK_SHOWN void _exit(int code) {
    preload::watch.end();
    PENSTOCK_NEXT(_exit)(code);
    __builtin_unreachable();
}

PENSTOCK_SHOWN void _Exit(int code) noexcept {
    preload::watch.end();
    PENSTOCK_NEXT(_Exit)(code);
    __builtin_unreachable();
}
