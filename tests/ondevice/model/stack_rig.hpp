// Reports each change of stack that the explorer's fibres make to the address sanitizer, if the build has it.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#include <cstddef>

namespace penstock::ondevice::model {

        struct Place {
        const void* bottom = nullptr;
        std::size_t bytes = 0;
    };
    inline void leaving([[maybe_unused]] void** kept, [[maybe_unused]] const Place& to) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(kept, to.bottom, to.bytes);
#endif
    }
    inline void arrived([[maybe_unused]] void* kept, [[maybe_unused]] Place* from) {
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(kept, from == nullptr ? nullptr : &from->bottom,
                                        from == nullptr ? nullptr : &from->bytes);
#endif
    }

}  // namespace penstock::ondevice::model
