// See service.hpp.
#include "ondevice/service.hpp"

#include <system_error>

#include "ondevice/service_worker.hpp"
#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

[[noreturn]] void refuse(const std::string& cause, const std::string& advice) {
    throw Error(ErrorCode::invalid_argument, "start an I/O service", cause, advice);
}

}  // namespace

const char* to_string(Source source) noexcept {
    switch (source) {
        case Source::mapping: return "mapping";
        case Source::buffered: return "buffered";
        case Source::direct: return "direct";
    }
    return "unknown";
}

Service::Service(Mailbox& mailbox, const std::vector<FileSet>& arrays, const ServiceOptions& options)
    : arrays_(arrays) {
    const std::uint32_t slots = mailbox.ref().depth();
    if (options.threads == 0) refuse("no threads", "give at least one");
    if (options.threads > slots) {
        refuse(std::to_string(options.threads) + " threads for " + std::to_string(slots) + " slots",
               "give at most a thread for each slot");
    }
    if (arrays.empty()) refuse("no files", "name at least one");
    for (std::uint32_t i = 0; i < options.threads; ++i) {
        const std::uint32_t first = static_cast<std::uint32_t>(std::uint64_t{slots} * i / options.threads);
        const std::uint32_t last = static_cast<std::uint32_t>(std::uint64_t{slots} * (i + 1) / options.threads);
        const ServiceWorker::Shared shared{mailbox, arrays_};
        workers_.push_back(std::make_unique<ServiceWorker>(shared, options, mailbox.server(first, last)));
    }
    try {
        for (const auto& worker : workers_) {
            threads_.emplace_back([this, one = worker.get()] { one->run(stop_); });
        }
    } catch (const std::system_error& error) {
        stop_.store(true, std::memory_order_release);
        for (std::thread& thread : threads_) thread.join();
        throw Error(ErrorCode::out_of_memory, "start an I/O service", error.code().message(),
                    "raise the limit of processes and threads, or ask for fewer threads");
    }
}

Service::~Service() {
    stop_.store(true, std::memory_order_release);
    for (std::thread& thread : threads_) thread.join();
}

ServiceEvidence Service::evidence() const {
    ServiceEvidence evidence;
    evidence.files.resize(arrays_.files());
    for (const auto& worker : workers_) worker->add_to(evidence);
    return evidence;
}

}  // namespace penstock::ondevice
