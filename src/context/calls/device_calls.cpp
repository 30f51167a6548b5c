// See device_calls.hpp. The threads are those of ondevice::CallService.
#include "penstock/device_calls.hpp"

#include <mutex>
#include <shared_mutex>
#include <utility>

#include "context/state.hpp"
#include "ondevice/calls/call_service.hpp"
#include "ondevice/device_memory.hpp"

namespace penstock {
namespace {

constexpr const char* kAnswerCalls = "answer calls of a device";

ondevice::CallServiceOptions service_options(const DeviceCallsOptions& options, os::System& system) {
    if (options.timeout <= std::chrono::nanoseconds::zero()) {
        throw Error(ErrorCode::invalid_argument, kAnswerCalls, "a timeout of no time",
                    "give the longest a call may take");
    }
    ondevice::CallServiceOptions made;
    made.threads = options.threads;
    made.files = options.files;
    made.system = &system;
    return made;
}

}  // namespace

namespace context {

// What the copies of a DeviceCalls share. A call holds `closing_` shared while it uses what is open.
class DeviceCallsState {
  public:
    DeviceCallsState(const Context& owner, const DeviceCallsOptions& options)
        : owner_(owner), context_(ContextState::of(owner)) {
        context_.check_process();
        const DeviceScope current(*context_.device);
        open_ = std::make_unique<Opened>(*context_.device, options, service_options(options, context_.system));
    }
    ~DeviceCallsState() {
        if (context_.in_child()) {  // the threads are in the parent
            static_cast<void>(open_.release());
            return;
        }
        close();
    }
    DeviceCallsState(const DeviceCallsState&) = delete;
    DeviceCallsState& operator=(const DeviceCallsState&) = delete;

    template <class Use>
    auto with_open(const char* operation, const Use& use) const {
        context_.check_process();
        const std::shared_lock lock(closing_);
        if (open_ == nullptr) {
            throw Error(ErrorCode::invalid_argument, operation, "the calls are closed", "make new ones");
        }
        return use(*open_);
    }
    const ondevice::CallsRef* ref(const char* operation) const {
        return with_open(operation, [](const Opened& open) {
            return reinterpret_cast<const ondevice::CallsRef*>(open.ref.data);
        });
    }
    template <class Use>
    auto with_functions(const char* operation, const Use& use) const {
        return with_open(operation, [&](Opened& open) { return use(open.service.functions()); });
    }
    std::vector<FailedCall> errors() const {
        const std::shared_lock lock(closing_);
        return open_ == nullptr ? errors_ : open_->service.failed();
    }
    DeviceCallsStatistics statistics() const {
        const std::shared_lock lock(closing_);
        return open_ == nullptr ? counts_ : counts_of(open_->service);
    }

    // Ends the threads without the lock, since functions that still run may ask for it.
    void close() {
        const std::scoped_lock one(ending_);
        if (open_ == nullptr) return;
        const DeviceScope current(*context_.device);
        open_->service.end();
        const std::unique_lock lock(closing_);
        errors_ = open_->service.failed();
        counts_ = counts_of(open_->service);
        open_.reset();
    }
    void check_process() const { context_.check_process(); }

  private:
    // Members go in the reverse of this order: the service before the memory it reads.
    struct Opened {
        ondevice::DeviceMemory pinned, own;
        ondevice::Mailbox mailbox;
        ondevice::DmaBlock ref;
        ondevice::CallService service;

        Opened(Device& device, const DeviceCallsOptions& options, const ondevice::CallServiceOptions& threads)
            : pinned(device, MemoryKind::pinned),
              own(device, MemoryKind::device),
              mailbox(pinned, own, {options.slots, options.slot_bytes, true}),
              ref(own.allocate(sizeof(ondevice::CallsRef))),
              service(mailbox, threads) {
            ondevice::CallsRef calls{};
            calls.channel = mailbox.answering_ref();
            calls.timeout_ns = static_cast<std::uint64_t>(options.timeout.count());
            own.write(ref, &calls, sizeof calls);
        }
    };
    static DeviceCallsStatistics counts_of(const ondevice::CallService& service) {
        return {service.calls(), service.failures()};
    }

    const Context owner_;
    ContextState& context_;
    std::mutex ending_;
    mutable std::shared_mutex closing_;
    std::unique_ptr<Opened> open_;  // null: closed
    std::vector<FailedCall> errors_;  // of what was closed, as counts_
    DeviceCallsStatistics counts_;
};

}  // namespace context

DeviceCalls::DeviceCalls(const Context& context, const DeviceCallsOptions& options)
    : state_(std::make_shared<context::DeviceCallsState>(context, options)) {}

std::uint32_t DeviceCalls::add(const std::string& name, HostFunction function) const {
    return state_->with_functions("register a function", [&](ondevice::FunctionTable& functions) {
        return functions.add(name, std::move(function));
    });
}

void DeviceCalls::install(const std::string& library) const {
    state_->with_functions("install functions",
                           [&](ondevice::FunctionTable& functions) { functions.install(library); });
}

std::uint32_t DeviceCalls::number(const std::string& name) const {
    const auto found = state_->with_functions(
        "find a function", [&](ondevice::FunctionTable& functions) { return functions.find(name); });
    if (found) return *found;
    throw Error(ErrorCode::not_found, "find a function", "there is no function '" + name + "'",
                "add it, or install the shared object that has it");
}

const ondevice::CallsRef* DeviceCalls::ref() const { return state_->ref("give kernels the calls"); }
std::vector<FailedCall> DeviceCalls::errors() const { return state_->errors(); }
DeviceCallsStatistics DeviceCalls::statistics() const { return state_->statistics(); }

void DeviceCalls::close() const {
    state_->check_process();
    state_->close();
}

}  // namespace penstock
