// See penstock/history.hpp: what a program calls, passed on to the state of the history.
#include "penstock/history.hpp"

#include <utility>

#include "base/in_file.hpp"
#include "history/history_state.hpp"

namespace penstock {
namespace {

// What a history throws names its file.
template <class Call>
decltype(auto) of_history(const history::HistoryState& state, Call&& call) {
    return base::in_file(state.name(), std::forward<Call>(call));
}

}  // namespace

HistoryShare history_split(std::uint64_t length, std::uint32_t processes, std::uint32_t process) {
    if (process >= processes) {
        throw Error(ErrorCode::invalid_argument, "split history",
                    "this is process " + std::to_string(process) + " of " + std::to_string(processes),
                    "numbers go from 0 to one less than processes");
    }
    const std::uint64_t each = length / processes + (length % processes != 0 ? 1 : 0);
    const std::uint64_t start = each * process < length ? each * process : length;
    return {start, length - start < each ? length - start : each};
}

History::History(const Context& context, std::string name, const HistoryOptions& options)
    : state_(std::make_unique<history::HistoryState>(context, std::move(name), options)) {}
// A forked child has no thread of its parent to wait for: what it holds stays.
History::~History() {
    if (state_ && !state_->is_of_this_process()) static_cast<void>(state_.release());
}
History::History(History&&) noexcept = default;
History& History::operator=(History&& other) noexcept {
    const History gone(std::move(*this));
    state_ = std::move(other.state_);
    return *this;
}

void History::define(const HistoryVariable& variable) {
    of_history(*state_, [&] { state_->define(variable); });
}

void History::define_constant(const HistoryConstant& constant) {
    of_history(*state_, [&] { state_->define(constant); });
}

void History::set_attribute(const HistoryAttribute& attribute, const std::string& variable) {
    of_history(*state_, [&] { state_->set_attribute(attribute, variable); });
}

void History::use_preset(const HistoryPreset& preset) {
    of_history(*state_, [&] { state_->use_preset(preset); });
}

void History::begin() {
    of_history(*state_, [&] { state_->begin(); });
}
std::uint64_t History::digest() const {
    return of_history(*state_, [&] { return state_->digest(); });
}
std::span<std::uint64_t> History::cuts() {
    return of_history(*state_, [&] { return state_->cuts(); });
}
std::span<std::uint64_t> History::coverage() {
    return of_history(*state_, [&] { return state_->coverage(); });
}
void History::publish(std::uint64_t steps) {
    of_history(*state_, [&] { state_->publish(steps); });
}
void History::use_stream(std::uintptr_t stream) {
    of_history(*state_, [&] { state_->use_stream(stream); });
}
void History::put(const std::string& variable, const void* data, std::span<const std::int64_t> strides_bytes) {
    of_history(*state_, [&] { state_->put(variable, data, strides_bytes); });
}
bool History::wait_for_slot(Deadline deadline) {
    return of_history(*state_, [&] { return state_->wait_for_slot(deadline); });
}
void History::check_step(double time) {
    of_history(*state_, [&] { state_->check_step(time); });
}
void History::drop_step() {
    of_history(*state_, [&] { state_->drop_step(); });
}
void History::end_step(double time) {
    of_history(*state_, [&] { state_->end_step(time); });
}
bool History::wait(Deadline deadline) {
    return of_history(*state_, [&] { return state_->wait(deadline); });
}
HistoryFacts History::facts() const { return state_->facts(); }
void History::close() {
    of_history(*state_, [&] { state_->close(); });
}

}  // namespace penstock
