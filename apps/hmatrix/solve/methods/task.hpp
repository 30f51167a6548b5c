// A step of a Krylov method that can wait: a coroutine that its owner runs.
//
// A method is written as if it alone used the operators. It waits where it needs a product, and lockstep.hpp serves all
// waiting methods at once. A Task owns its frame, starts suspended, and keeps an exception for the code that waits for
// it.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace penstock::hmatrix {

class Task {
  public:
    struct promise_type {
        std::exception_ptr error;
        Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        std::suspend_always final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() noexcept { error = std::current_exception(); }
    };

    Task() = default;
    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
    Task& operator=(Task&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Task() {
        if (handle_) handle_.destroy();
    }

    std::coroutine_handle<> handle() const noexcept { return handle_; }
    // Rethrows the exception of the coroutine, if any.
    void rethrow() const {
        if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    }

  private:
    explicit Task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
    std::coroutine_handle<promise_type> handle_;
};

}  // namespace penstock::hmatrix
