// A service thread: it takes requests of its range of slots, and answers each exactly once.
#pragma once

#include <memory>
#include <vector>

#include "ondevice/service/service.hpp"
#include "ondevice/service/service_inbox.hpp"
#include "path/path.hpp"

namespace penstock::ondevice {

class ServiceWorker {
  public:
    // Requires: the arrays, which all workers of a service share, outlive them.
    ServiceWorker(ServedArrays& arrays, const ServiceOptions& options, ServiceInbox inbox);
    ~ServiceWorker();

    void run(const std::atomic<bool>& stop);
    // Any thread may call this. The numbers of a running worker are a moment old.
    void add_to(ServiceEvidence& evidence) const;

  private:
    void make_direct();
    struct Counted {
        std::atomic<std::uint64_t> requests{0}, bytes{0};
    };
    struct CountedFile {
        std::array<Counted, kSources> by_source;
        std::atomic<std::uint64_t> failed{0};
    };
    // How a call on a descriptor ended.
    struct Answer {
        Status status = Status::ok;
        int system_code = 0;
    };
    bool take_some(os::GuardedCopies& copies, const std::atomic<bool>& stop);
    bool reap(bool wait);
    void sort(std::uint32_t slot, const Request& request, bool guarded, std::uint64_t now_ns);
    bool goes_direct(const ServedFile& file, const Request& request) const noexcept;
    void plan_direct(std::uint32_t slot, const Request& request);
    void copy_mapped(os::GuardedCopies& copies);
    void copied(std::size_t piece) noexcept;
    void settle_doubtful();
    void serve_by_descriptor(std::uint32_t slot);
    void start_direct();
    Answer by_descriptor(const ServedFile& file, const Request& request, std::byte* memory);
    void flush(std::uint32_t slot, std::uint32_t array);
    Answer sync(ServedFile& file);
    void refuse(std::uint32_t slot, Status status);
    void note(std::uint32_t file, const Request& request, const Answer& answer);
    void count(std::uint32_t file, Source source, std::uint64_t bytes);
    void done(std::uint32_t slot, Source source);
    Request& under_way(std::uint32_t slot) { return under_way_[slot - inbox_.first()]; }

    ServedArrays& arrays_;
    const ServiceOptions options_;
    os::System& system_;
    ServiceInbox inbox_;
    std::unique_ptr<Path> direct_;
    std::string direct_by_;  // the worker writes it before it takes the first request
    std::vector<Request> under_way_;  // by slot, from the first slot on; as ServedArrays located them
    std::size_t count_under_way_ = 0;
    // Requests that were taken and are not begun: copies from mappings with their slots, and those past the page cache.
    std::vector<os::GuardedCopies::Piece> pieces_;
    std::vector<std::uint32_t> piece_slots_;
    std::vector<std::uint32_t> doubtful_;  // copies that end in a zero
    std::vector<Operation> operations_;
    std::vector<CountedFile> counted_;        // by file
    std::atomic<std::uint64_t> refused_{0};  // requests for no file that there is
};

}  // namespace penstock::ondevice
