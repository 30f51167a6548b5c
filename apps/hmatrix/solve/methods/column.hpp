// One right-hand side during a solve: its vectors, the product that its method waits for, and how it ended.
//
// A method is a coroutine over a Column. It starts with r = b - A x, improves x, and reports the residual after each
// iteration. `iteration_done` and `stop` decide when it ends. Requires: whenever the method waits, x is finite and
// belongs to a finished iteration. A product that returns false means that the caller stopped the solve; the method
// then leaves x unchanged and ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hmatrix/solve/methods/task.hpp"
#include "hmatrix/solve/solve.hpp"

namespace penstock::hmatrix {

enum class Operator : std::uint8_t { matrix, surrogate, preconditioner };

struct Product {
    Operator by = Operator::matrix;
    const double* x = nullptr;
    double* y = nullptr;
    double accuracy = 0;
    double* exact_x = nullptr;  // receives the operand of a recalled product, if the log kept it
    bool check = false;         // a check of the true residual: not a sweep of the method, and made even after a stop
};

// Implemented by methods whose current iterate is not in x. Checkpoints ask for it, between products.
class HiddenIterate {
  public:
    virtual ~HiddenIterate() = default;
    // out += iterate - x. The task may wait for the preconditioner only.
    virtual Task add_to(double* out) = 0;
};

// The larger of two residuals. NaN counts as larger than any number.
double larger_residual(double a, double b) noexcept;

// State that all columns share.
struct SolveContext {
    VectorSpace& space;
    const SolveOptions& options;
    std::shared_ptr<double> shadow{};  // idr: an orthonormal basis of the shadow space
    std::int64_t shadow_size = 0;
    bool check_unpaid = false;  // the last check made a product that `sweeps` does not include
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
    double* r;  // the residual when a method starts, and its workspace afterwards
    double b_norm = 0;
    double residual = 1;       // relative, believed by the method
    double true_residual = 1;  // relative, from the last check
    double caution = 1;        // factor on the accuracy of relaxed products; it falls if the relaxation rule fails
    std::int64_t iterations = 0;
    std::string stopped;  // the reason for stopping; empty while the method runs
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
    // co_await returns false if the caller has stopped the solve.
    Served multiply(const double* from, double* to, double accuracy = 0) {
        return {*this, {.by = Operator::matrix, .x = from, .y = to, .accuracy = accuracy}};
    }
    // Multiplies a direction that the method may replace: any direction will do if `to` is its image.
    Served multiply_direction(double* direction, double* to, double accuracy) {
        return {*this,
                {.by = Operator::matrix, .x = direction, .y = to, .accuracy = accuracy, .exact_x = direction}};
    }
    Served apply(Operator by, const double* from, double* to) {
        return {*this, {.by = by, .x = from, .y = to}};
    }
    Served check() { return {*this, {.by = Operator::matrix, .x = x, .y = r, .check = true}}; }

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
    // The vector to multiply next: the preconditioned copy of `from` if there is a preconditioner, otherwise `from`.
    const double* right(const double* from, const double* preconditioned_copy) const noexcept {
        return preconditioned() ? preconditioned_copy : from;
    }

    // Counts an iteration that left a residual of this norm. Returns true if the method must end.
    bool iteration_done(double residual_norm);
    void stop(std::string why);
    // Returns true if it stopped the column. `what` names the number in the reason.
    bool stop_unless_finite(double number, const char* what);

    // For the scheduler. start() sets the column's own task. begin() puts a task on top of the stack. advance() runs
    // the topmost task until it waits for a product or no task remains.
    void start(Task task);
    void begin(const Task& task) { stack_.push_back(task.handle()); }
    void advance();  // rethrows an exception of the column's own task
    bool waiting() const noexcept { return waiting_; }
    const Product& wanted() const noexcept { return wanted_; }
    void grant(bool granted) noexcept {
        granted_ = granted;
        waiting_ = false;
    }
    // Runs `task` to its end while the column itself waits. Calls `serve` for each product that the task wants.
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
    std::vector<std::coroutine_handle<>> stack_;  // the innermost task is last
    Product wanted_;
    bool waiting_ = false;
    bool granted_ = true;
};

}  // namespace penstock::hmatrix
