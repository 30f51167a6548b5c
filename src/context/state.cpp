// ContextState: the join of device, paths, policy and engine.
#include "context/state.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/path_traits.hpp"
#include "context/crew.hpp"
#include "os/limits.hpp"

namespace penstock::context {
namespace {

constexpr std::uint64_t kRegisterStep = 64 * kMiB;
static_assert(2 * policy::kStagedPiece == engine::InlineLanes::kLargeSlotBytes);  // plans tell of the halves
constexpr auto kQuiet = std::chrono::milliseconds(5);

std::shared_ptr<Device> device_of(const ContextOptions& options, const Seams& seams) {
    if (seams.device) return seams.device;
    return options.device == "host" ? make_host_device(options.host) : make_device(options.device);
}

policy::MachineFacts machine_facts(const ContextOptions& options, const Seams& seams, Device& device) {
    const os::Limits limits = os::limits();
    policy::MachineFacts facts;
    facts.cpus = limits.cpus;
    facts.emulated_device = device.info().emulated;
    facts.budget_bytes = engine::Engine::staging_budget(options.budget_bytes);
    facts.page_bytes = limits.page_bytes;
    facts.uring = limits.io_uring.usable;
    facts.uring_cause = limits.io_uring.cause;
    facts.cachestat = limits.cachestat.usable;
    // A lane of the calling thread moves bytes by itself, and a decorator of paths is to see all operations.
    if (!seams.wrap_path) facts.caller_cached_bytes = policy::caller_cached_bytes(facts.cpus);
    const bool lanes = engine::Engine::large_lanes(options.budget_bytes) != 0 && !seams.wrap_path;
    facts.caller_direct_bytes = lanes ? engine::InlineLanes::kLargeSlotBytes : 0;
    facts.caller_staged_bytes = lanes ? policy::caller_cached_bytes(facts.cpus) : 0;
    return facts;
}

const ContextOptions& checked(const ContextOptions& options) {
    if (options.budget_bytes < engine::Engine::kBudgetMin) {
        throw Error(ErrorCode::invalid_argument, "make context",
                    "a budget of " + std::to_string(options.budget_bytes) + " bytes is too small",
                    "give at least " + std::to_string(engine::Engine::kBudgetMin));
    }
    return options;
}

}  // namespace

Registrar::~Registrar() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
}

bool Registrar::wait_for_quiet(const OpenFile& file) const {
    while (!stop_ && !file.closed() && running_ != 0) std::this_thread::sleep_for(kQuiet);
    return !stop_ && !file.closed();
}

void Registrar::start(const std::shared_ptr<OpenFile>& file) {
    const std::lock_guard lock(mutex_);
    if (busy_.exchange(true)) return;
    if (thread_.joinable()) thread_.join();
    try {
        thread_ = std::thread([this, file] {
            std::string why;
            while (wait_for_quiet(*file) && mappings_->register_some(file->handle(), kRegisterStep, why) != 0) {
            }
            busy_ = false;
        });
    } catch (const std::system_error&) {  // registration spares copies; without a thread for it reads go on as before
        busy_ = false;
    }
}

ContextState::ContextState(const ContextOptions& given, Seams given_seams)
    : options(checked(given)),
      seams(std::move(given_seams)),
      device(device_of(given, seams)),
      system(seams.system != nullptr ? *seams.system : os::real_system()),
      mappings(std::make_shared<path::Mappings>(path::MappingsOptions{device.get()})),
      cufile(std::make_shared<CuFileSlot>(device->info())),
      profiles(given, device->info()),
      machine_(machine_facts(given, seams, *device)),
      registrar(mappings, *running),
      engine({device.get(), &system, given.budget_bytes, device->info().numa_node,
              [this](PathKind kind, PathOptions path_options) { return make_path(kind, std::move(path_options)); }}) {}

os::Crew& crew_of(const Context& context) noexcept { return ContextState::of(context).crew; }
device::KeptStreams& streams_of(const Context& context) noexcept { return ContextState::of(context).streams; }

void ContextState::check_process() const {
    if (process_.here()) return;
    throw Error(ErrorCode::unsupported, "use context", "this process was forked from the one that made the context",
                "make a Context in the child");
}

std::shared_ptr<OpenFile> ContextState::open(const std::string& name, const OpenOptions& open_options) {
    check_process();
    auto file = std::make_shared<OpenFile>(system, name, open_options);
    file->place = profiles.place_of(file->handle().buffered_fd, name);
    const std::uint64_t id = file->handle().id;
    file->on_let_go = [id, maps = mappings, registrations = cufile] {
        maps->forget(id);
        registrations->forget(id);
    };
    return file;
}

void ContextState::remember(const std::shared_ptr<Memory>& memory) {
    const std::lock_guard lock(memories_mutex_);
    memories_.insert_or_assign(static_cast<const std::byte*>(memory->view().data), memory);
    if (memories_.size() < forget_at_) return;
    std::erase_if(memories_, [](const auto& known) { return known.second.expired(); });
    forget_at_ = std::max<std::size_t>(64, 2 * memories_.size());
}

std::shared_ptr<Memory> ContextState::memory_at(const void* data) {
    const auto* byte = static_cast<const std::byte*>(data);
    const std::lock_guard lock(memories_mutex_);
    // Those that are gone may begin within one that came after them.
    for (auto next = memories_.upper_bound(byte); next != memories_.begin();) {
        --next;
        const std::shared_ptr<Memory> memory = next->second.lock();
        if (!memory) continue;
        const MemoryView view = memory->view();
        return byte < static_cast<const std::byte*>(view.data) + view.bytes ? memory : nullptr;
    }
    return nullptr;
}

std::unique_ptr<Path> ContextState::make_path(PathKind kind, PathOptions path_options) {
    path_options.device = device.get();
    path_options.system = &system;
    path_options.mappings = mappings;
    if (is_cufile(kind)) path_options.cufile = cufile->get(kind);
    std::unique_ptr<Path> path = penstock::make_path(kind, path_options);
    return seams.wrap_path ? seams.wrap_path(std::move(path)) : std::move(path);
}

}  // namespace penstock::context
