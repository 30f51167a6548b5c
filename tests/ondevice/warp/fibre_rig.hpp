// Fibres for tests: many lanes of warps in one host thread. A fibre goes on only when the test resumes it.
//
// The rig reports each change of fibre to the sanitizers. To the thread sanitizer fibres are threads that a change does
// not order, so it judges the order of their accesses by the platform's own synchronisation. The rig hides its own
// accesses from it.
#pragma once

#include <ucontext.h>

#include <functional>
#include <vector>

#include "ondevice/model/stack_rig.hpp"
#include "penstock/ondevice/platform.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}
#endif

// Marks a function of the rig, which the thread sanitizer does not watch.
#if defined(__SANITIZE_THREAD__)
#define PENSTOCK_UNSEEN __attribute__((no_sanitize_thread))
#else
#define PENSTOCK_UNSEEN
#endif

namespace penstock::ondevice {

// While an object of this lives, the thread sanitizer does not watch the calling fibre.
struct Unseen {
#if defined(__SANITIZE_THREAD__)
    Unseen() {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    }
    ~Unseen() {
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
#else
    Unseen() {}
    ~Unseen() {}
#endif
    Unseen(const Unseen&) = delete;
    Unseen& operator=(const Unseen&) = delete;
};

// What a fibre does before `hands_on` is ordered before what another does after `takes_over` of the same address.
inline void hands_on([[maybe_unused]] void* at) {
#if defined(__SANITIZE_THREAD__)
    __tsan_release(at);
#endif
}
inline void takes_over([[maybe_unused]] void* at) {
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(at);
#endif
}

class Fibre {
  public:
    explicit Fibre(std::function<void()> body) : body_(std::move(body)), stack_(kStack) {
        getcontext(&context_);
        context_.uc_stack.ss_sp = stack_.data();
        context_.uc_stack.ss_size = stack_.size();
        context_.uc_link = nullptr;
        const u64 self = reinterpret_cast<u64>(this);
        auto* const enters = reinterpret_cast<void (*)()>(reinterpret_cast<void*>(&Fibre::enter));
        makecontext(&context_, enters, 2, static_cast<unsigned>(self), static_cast<unsigned>(self >> 32));
#if defined(__SANITIZE_THREAD__)
        sanitized_ = __tsan_create_fiber(0);
        hands_on(this);
#endif
    }
    ~Fibre() {
#if defined(__SANITIZE_THREAD__)
        __tsan_destroy_fiber(sanitized_);
#endif
    }
    Fibre(const Fibre&) = delete;
    Fibre& operator=(const Fibre&) = delete;

    bool over() const { return over_; }
    // The place of the program where the calling fibre is: one number made of all the calls that it is in.
    PENSTOCK_UNSEEN u64 place() const {
        u64 place = 0;
        auto at = reinterpret_cast<u64>(__builtin_frame_address(0));
        const u64 end = reinterpret_cast<u64>(stack_.data() + kStack) - 2 * sizeof(u64);
        for (u64 before = 0; at > before && at <= end;) {
            const u64* const frame = reinterpret_cast<const u64*>(at);  // the caller's frame and the return address
            place = place * 0x9e3779b97f4a7c15ull + frame[1];
            before = at;
            at = frame[0];
        }
        return place;
    }

    // Runs the fibre until it rests or its body is over. Called from outside the fibre.
    void resume() {
        void* kept = nullptr;
        model::leaving(&kept, {stack_.data(), stack_.size()});
#if defined(__SANITIZE_THREAD__)
        outside_sanitized_ = __tsan_get_current_fiber();
        __tsan_switch_to_fiber(sanitized_, __tsan_switch_to_fiber_no_sync);
#endif
        swapcontext(&outside_, &context_);
        model::arrived(kept, nullptr);
        if (over_) takes_over(this);
    }
    // Returns to the caller of `resume`. Called from within the fibre.
    PENSTOCK_UNSEEN void rest() {
        void* kept = nullptr;
        model::leaving(over_ ? nullptr : &kept, outside_place_);
#if defined(__SANITIZE_THREAD__)
        __tsan_switch_to_fiber(outside_sanitized_, __tsan_switch_to_fiber_no_sync);
#endif
        swapcontext(&context_, &outside_);
        model::arrived(kept, &outside_place_);
    }

  private:
    static constexpr std::size_t kStack = 256 * 1024;

    PENSTOCK_UNSEEN static void enter(unsigned low, unsigned high) {
        auto* const self = reinterpret_cast<Fibre*>(u64{high} << 32 | low);
        model::arrived(nullptr, &self->outside_place_);
        takes_over(self);
        self->body_();
        self->over_ = true;
        hands_on(self);
        self->rest();
    }

    std::function<void()> body_;
    std::vector<char> stack_;
    ucontext_t context_{};
    ucontext_t outside_{};
    model::Place outside_place_;
    bool over_ = false;
#if defined(__SANITIZE_THREAD__)
    void* sanitized_ = nullptr;
    void* outside_sanitized_ = nullptr;
#endif
};

}  // namespace penstock::ondevice
