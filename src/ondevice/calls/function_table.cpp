// See function_table.hpp.
#include "ondevice/calls/function_table.hpp"

#include <mutex>
#include <utility>

#include "penstock/error.hpp"
#include "penstock/ondevice/calls.hpp"

namespace penstock::ondevice {
namespace {

[[noreturn]] void refuse_function(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "register a function", cause, advice);
}

// The function of a shared object as one of C++. It keeps the object loaded.
HostFunction wrapped(std::shared_ptr<const SharedObject> owner, penstock_host_function function) {
    return [owner = std::move(owner), function](const HostCall& call) {
        penstock_host_call given{call.value,          call.argument.data(), call.argument.size(),
                                 call.answer.data(), call.answer.size(),   0};
        const std::int64_t value = function(&given);
        return HostAnswer{value, given.answer_bytes};
    };
}

}  // namespace

std::uint32_t FunctionTable::add(std::string name, HostFunction function) {
    if (name.empty()) refuse_function("a function without a name", "give it one");
    if (!function) refuse_function("'" + name + "' is no function", "give one that can be called");
    const std::unique_lock lock(mutex_);
    if (find_added(name)) refuse_function("there is a function '" + name + "'", "give each a name of its own");
    return append(std::move(name), std::move(function));
}

void FunctionTable::install(const std::string& library) {
    auto loaded = std::make_shared<const SharedObject>(library);
    const std::unique_lock lock(mutex_);
    libraries_.push_back(std::move(loaded));
}

std::optional<std::uint32_t> FunctionTable::find(std::string_view name) {
    {
        const std::shared_lock lock(mutex_);
        if (const auto found = find_added(name)) return found;
    }
    const std::unique_lock lock(mutex_);
    if (const auto found = find_added(name)) return found;
    for (const auto& library : libraries_) {
        const penstock_host_function function = library->find(std::string(name));
        if (function != nullptr) return append(std::string(name), wrapped(library, function));
    }
    return std::nullopt;
}

std::shared_ptr<const FunctionTable::Registered> FunctionTable::at(std::uint32_t number) const {
    const std::shared_lock lock(mutex_);
    const std::size_t place = std::size_t{number} - first_registered;
    return number >= first_registered && place < entries_.size() ? entries_[place] : nullptr;
}

std::optional<std::uint32_t> FunctionTable::find_added(std::string_view name) const {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i]->name == name) return static_cast<std::uint32_t>(first_registered + i);
    }
    return std::nullopt;
}

std::uint32_t FunctionTable::append(std::string name, HostFunction function) {
    if (entries_.size() == most_functions - first_registered) {
        refuse_function("there are " + std::to_string(entries_.size()) + " functions", "register fewer");
    }
    entries_.push_back(std::make_shared<const Registered>(Registered{std::move(name), std::move(function)}));
    return static_cast<std::uint32_t>(first_registered + entries_.size() - 1);
}

}  // namespace penstock::ondevice
