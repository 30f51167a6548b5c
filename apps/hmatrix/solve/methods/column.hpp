// One right-hand side while it is solved for: its vectors, what its method waits for, and how it ended.
//
// A method is a coroutine over a Column. It is given r = b - A x, improves x, and says after each iteration how large
// the residual is; `iteration_done` and `stop` decide when it ends, and x must be finite and of a finished iteration
// whenever it waits. A false product means that the solve was told to stop: the method then leaves x as it is and ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hmatrix/solve/methods/task.hpp"
#include "hmatrix/solve/solve.hpp"

namespace penstock::hmatrix {

enum class Source : std::uint8_t { matrix, surrogate, preconditioner };

struct Product {
    Source source = Source::matrix;
    const double* x = nullptr;
    double* y = nullptr;
    double accuracy = 0;
    double* exact_x = nullptr;  // takes what a recalled product was made of, where that was kept
    bool check = false;  // of the true residual: no sweep of the method, and done even after a call to stop
};

// Where a method keeps its iterate when that is not in x: asked for by checkpoints, between products.
class HiddenIterate {
  public:
    virtual ~HiddenIterate() = default;
    // out += what x still lacks. May wait for the preconditioner only.
    virtual Task add_to(double* out) = 0;
};

// The larger of two residuals; one that is not a number is larger than any that is.
double larger_residual(double a, double b) noexcept;

// What all columns share.
struct SolveContext {
    VectorSpace& space;
    const SolveOptions& options;
    std::shared_ptr<double> shadow{};  // idr: an orthonormal basis of its shadow space
    std::int64_t shadow_size = 0;
    bool check_unpaid = false;       // the last check cost a sweep that nobody counted
    std::int64_t sweeps = 0;
    std::int64_t inner_products = 0;

    double norm(const double* x) const;
    std::shared_ptr<double> vectors(std::int64_t count) const { return space.allocate(count); }
};

class Column {
  public:
    Column(SolveContext& owner, const double* b_memory, double* x_memory, double* r_memory)
        : context(owner), b(b_memory), x(x_memory), r(r_memory) {}

    SolveContext& context;
    const double* b;
    double* x;
    double* r;  // the residual when a method starts; its workspace from then on
    double b_norm = 0;
    double residual = 1;       // relative, as the method believes
    double true_residual = 1;  // relative, of the last check
    double caution = 1;        // relaxed products: times this as exact as the rule says; falls where the rule fails
    std::int64_t iterations = 0;
    std::string stopped;       // why; empty while it runs
    bool converged = false;
    HiddenIterate* hidden = nullptr;

    VectorSpace& space() const noexcept { return context.space; }
    const SolveOptions& options() const noexcept { return context.options; }

    class Served {
      public:
        Served(Column& column, const Product& product) : column_(column), product_(product) {}
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<>) noexcept { column_.wait_for(product_); }
        bool await_resume() const noexcept { return column_.granted_; }

      private:
        Column& column_;
        Product product_;
    };
    // co_await: false when the solve was told to stop instead.
    Served multiply(const double* from, double* to, double accuracy = 0) {
        return {*this, {.source = Source::matrix, .x = from, .y = to, .accuracy = accuracy}};
    }
    // Of a direction that need not be what the method chose, as long as `to` is its image.
    Served multiply_direction(double* direction, double* to, double accuracy) {
        return {*this,
                {.source = Source::matrix, .x = direction, .y = to, .accuracy = accuracy, .exact_x = direction}};
    }
    Served apply(Source source, const double* from, double* to) {
        return {*this, {.source = source, .x = from, .y = to}};
    }
    Served check() { return {*this, {.source = Source::matrix, .x = x, .y = r, .check = true}}; }

    class Nested {
      public:
        Nested(Column& column, Task& task) : column_(column), task_(task) {}
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<>) { column_.begin(task_); }
        void await_resume() const { task_.rethrow(); }

      private:
        Column& column_;
        Task& task_;
    };
    Nested run(Task& task) { return {*this, task}; }

    bool preconditioned() const noexcept { return options().preconditioner != nullptr; }
    // M from where there is an M, else `from` itself: what a method multiplies next.
    const double* right(const double* from, const double* preconditioned_copy) const noexcept {
        return preconditioned() ? preconditioned_copy : from;
    }

    // Counts an iteration that left a residual of this norm; true when the method must end.
    bool iteration_done(double residual_norm);
    void stop(std::string why);
    // True, and the column is stopped, when a number the method goes on with is not finite.
    bool lost(double number, const char* what);

    // For whoever runs it. start: the task it is there for; begin: puts one on top; advance: runs until a product is
    // waited for or nothing is left.
    void start(Task task);
    void begin(const Task& task) { stack_.push_back(task.handle()); }
    void advance();  // throws what the task it was started with threw
    bool waiting() const noexcept { return waiting_; }
    const Product& wanted() const noexcept { return wanted_; }
    void grant(bool granted) noexcept {
        granted_ = granted;
        waiting_ = false;
    }
    // Runs `task` to its end while the column waits; `serve` is called for each product the task wants.
    template <class Serve>
    void interrupt(const Task& task, Serve&& serve) {
        const Product wanted = wanted_;
        std::vector<std::coroutine_handle<>> stack;
        stack.swap(stack_);
        waiting_ = false;
        begin(task);
        for (advance(); waiting_; advance()) serve(*this);
        stack_.swap(stack);
        wait_for(wanted);
        task.rethrow();
    }

  private:
    void wait_for(const Product& product) noexcept {
        wanted_ = product;
        waiting_ = true;
    }

    Task task_;
    std::vector<std::coroutine_handle<>> stack_;  // the innermost last
    Product wanted_;
    bool waiting_ = false;
    bool granted_ = true;
};

}  // namespace penstock::hmatrix
