// See service.hpp.
#include "ondevice/service/service.hpp"

#include <system_error>

#include "ondevice/service/service_worker.hpp"
#include "penstock/error.hpp"

namespace penstock::ondevice {
namespace {

[[noreturn]] void refuse_service(const std::string& cause, const std::string& advice) {
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
    const Shares shares{mailbox.ref().depth(), "slot"};
    employ(shares, options, [&](u32 first, u32 last) { return ServiceInbox(mailbox, first, last); });
}

Service::Service(NvmeQueues& queues, const std::vector<FileSet>& arrays, const ServiceOptions& options)
    : arrays_(arrays) {
    const Shares shares{queues.count(), "queue"};
    employ(shares, options, [&](u32 first, u32 last) { return ServiceInbox(queues.server(first, last)); });
}

template <class Inbox>
void Service::employ(const Shares& shares, const ServiceOptions& options, const Inbox& inbox) {
    if (options.threads == 0) refuse_service("no threads", "give at least one");
    if (options.threads > shares.count) {
        const std::string what = shares.what;
        const std::string there = std::to_string(shares.count) + " " + what + (shares.count == 1 ? "" : "s");
        refuse_service(std::to_string(options.threads) + " threads for " + there,
                       "give at most a thread for each " + what);
    }
    if (arrays_.files() == 0) refuse_service("no files", "name at least one");
    for (u32 i = 0; i < options.threads; ++i) {
        const u32 first = static_cast<u32>(u64{shares.count} * i / options.threads);
        const u32 last = static_cast<u32>(u64{shares.count} * (i + 1) / options.threads);
        workers_.push_back(std::make_unique<ServiceWorker>(arrays_, options, inbox(first, last)));
    }
    start();
}

void Service::start() {
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
