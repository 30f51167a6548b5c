// The stamped pattern on the device. `penstock write` sends it, and every benchmark trial is checked against it.
#include "core.hpp"

namespace penstock::python {
namespace {

using Use = BorrowedMemory::Use;
constexpr auto kStagingPatience = std::chrono::seconds(10);

void need_device_access(const Context& context, const MemoryView& view) {
    if (view.kind == MemoryKind::system) {
        throw Error(ErrorCode::invalid_argument, "use memory", "a device cannot address ordinary host memory",
                    "use a buffer of kind device, pinned or managed");
    }
    need_known(context, view);
}

// Queues work on a new stream and waits for it. A signal ends the wait only after the work is done, because the work
// uses the memory.
template <class Work>
void run_on_stream(const Context& context, Work work) {
    need_own_process(context);
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> event;
    {
        const GilReleased release;
        const DeviceScope current(context.device());
        stream = context.device().make_stream();
        event = context.device().make_event();
        work(*stream);
        stream->record(*event);
    }
    wait_in_slices(Deadline::never(), [&](Deadline next) { return event->wait(next); });
    const GilReleased release;
    stream.reset();
}

void stamp(const Context& context, nb::handle memory, nb::handle file_offset, nb::handle seed) {
    const std::uint64_t offset = byte_count("file_offset", file_offset);
    const auto mixed = option<std::uint64_t>("seed", seed);
    const BorrowedMemory target(context, memory, Use::write_into);
    need_device_access(context, target.view());
    run_on_stream(context,
                  [&](Stream& stream) { stream.stamp(target.view().data, target.view().bytes, offset, mixed); });
}

void fill(const Context& context, nb::handle memory, nb::handle byte_value) {
    const auto value = static_cast<int>(option<std::uint8_t>("byte_value", byte_value));
    const BorrowedMemory target(context, memory, Use::write_into);
    need_device_access(context, target.view());
    run_on_stream(context, [&](Stream& stream) { stream.fill(target.view().data, target.view().bytes, value); });
}

// Returns false if a transfer uses part of the staging memory for a long time.
bool fill_staging(const Context& context, nb::handle byte_value) {
    const auto value = static_cast<int>(option<std::uint8_t>("byte_value", byte_value));
    need_own_process(context);
    const GilReleased release;
    return context.fill_staging(value, Deadline::after(kStagingPatience));
}

nb::tuple verify(const Context& context, nb::handle memory, nb::handle file_offset, nb::handle seed) {
    const std::uint64_t offset = byte_count("file_offset", file_offset);
    const auto mixed = option<std::uint64_t>("seed", seed);
    const BorrowedMemory source(context, memory, Use::read_from);
    need_device_access(context, source.view());
    need_own_process(context);
    StampCheck check;
    {
        const GilReleased release;
        const DeviceScope current(context.device());
        check = context.device().make_stream()->verify_stamp(source.view().data, source.view().bytes, offset, mixed);
    }
    return nb::make_tuple(check.bad_bytes, check.first_bad_offset);
}

}  // namespace

void bind_stamp(nb::module_& module) {
    using nb::arg;
    module.def("stamp", &stamp, arg("context"), any("memory"), any("file_offset"), any("seed"));
    module.def("fill", &fill, arg("context"), any("memory"), any("byte_value"));
    module.def("fill_staging", &fill_staging, arg("context"), any("byte_value"));
    module.def("verify", &verify, arg("context"), any("memory"), any("file_offset"), any("seed"));
}

}  // namespace penstock::python
