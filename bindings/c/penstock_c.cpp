// The functions of penstock.h for library, contexts, memory and files. Those for transfers are in transfers.cpp.
//
// No logic of its own: each function checks what C cannot express, calls one C++ function and returns its result.
#include "boundary.hpp"
#include "handles.hpp"
#include "penstock/device.hpp"
#include "values.hpp"

using penstock::c::checked_kind;
using penstock::c::copied;
using penstock::c::free_handle;
using penstock::c::give_handle;
using penstock::c::give_text;
using penstock::c::guarded;
using penstock::c::opened;
using penstock::c::path_named;
using penstock::c::refuse;
using penstock::c::required;

namespace {

penstock::ContextOptions context_options(const penstock_context_options* given) {
    const auto wanted = copied("penstock_context_options", given);
    if (!(wanted.emulated_bandwidth_bytes_per_s >= 0)) {
        refuse("create context", "emulated_bandwidth_bytes_per_s is negative or no number", "0 means unlimited");
    }
    penstock::ContextOptions options;
    if (wanted.device != nullptr) options.device = wanted.device;
    options.path = path_named(wanted.path);
    if (wanted.budget_bytes != 0) options.budget_bytes = wanted.budget_bytes;
    options.workers = wanted.workers;
    options.strict = wanted.strict != 0;
    options.host.bandwidth_bytes_per_s = wanted.emulated_bandwidth_bytes_per_s;
    options.host.latency_ns = wanted.emulated_latency_ns;
    if (wanted.profile != nullptr) options.profiles.emplace_back(wanted.profile);
    options.adaptive = wanted.adaptive != 0;
    return options;
}

penstock::OpenOptions open_options(const penstock_open_options* given) {
    const auto wanted = copied("penstock_open_options", given);
    if (wanted.mode < PENSTOCK_READ || wanted.mode > PENSTOCK_CREATE) {
        refuse("open", "penstock_open_options.mode is " + std::to_string(wanted.mode),
               "use PENSTOCK_READ, PENSTOCK_READ_WRITE or PENSTOCK_CREATE");
    }
    return {.mode = static_cast<penstock::OpenMode>(wanted.mode),
            .size_bytes = wanted.size_bytes,
            .durable = wanted.durable != 0,
            .replace = wanted.refuse_existing == 0};
}

penstock::FirstTouch checked_touch(std::int32_t touch) {
    if (touch < PENSTOCK_TOUCH_NONE || touch > PENSTOCK_TOUCH_GPU) {
        refuse("allocate", "first_touch is " + std::to_string(touch), "use one of PENSTOCK_TOUCH_*");
    }
    return static_cast<penstock::FirstTouch>(touch);
}

}  // namespace

extern "C" {

uint32_t penstock_abi_version(void) { return PENSTOCK_ABI_VERSION; }

const char* penstock_version(void) { return PENSTOCK_VERSION_TEXT; }

const char* penstock_code_name(int code) { return penstock::to_string(static_cast<penstock::ErrorCode>(code)); }

int penstock_path_names(penstock_text* names, penstock_error* error) {
    return guarded("path names", error, [&] { give_text(names, penstock::known_path_names()); });
}

int penstock_context_create(const penstock_context_options* options, penstock_context** context,
                            penstock_error* error) {
    return guarded("create context", error,
                   [&] { give_handle(context, [&] { return penstock::Context(context_options(options)); }); });
}

void penstock_context_destroy(penstock_context* context) { free_handle(context); }

int penstock_context_device(const penstock_context* context, penstock_text* name, penstock_error* error) {
    return guarded("device name", error, [&] { give_text(name, opened(context).device().name()); });
}

int penstock_local_device(uint32_t local_process, penstock_text* name, penstock_error* error) {
    return guarded("find device", error, [&] {
        std::string why;
        const int count = penstock::cuda_device_count(why);
        give_text(name, count == 0 ? "host" : "cuda:" + std::to_string(local_process % static_cast<uint32_t>(count)));
    });
}

int penstock_context_pinned(const penstock_context* context, uint64_t* now_bytes, uint64_t* peak_bytes,
                            penstock_error* error) {
    return guarded("pinned memory", error, [&] {
        const penstock::Context& value = opened(context);
        if (now_bytes != nullptr) *now_bytes = value.pinned_bytes();
        if (peak_bytes != nullptr) *peak_bytes = value.pinned_peak_bytes();
    });
}

int penstock_buffer_allocate(const penstock_context* context, const penstock_buffer_options* options,
                             penstock_buffer** buffer, penstock_error* error) {
    return guarded("allocate", error, [&] {
        give_handle(buffer, [&] {
            const auto wanted = copied("penstock_buffer_options", &required("penstock_buffer_options", options));
            return opened(context).allocate(wanted.bytes, checked_kind(wanted.kind), checked_touch(wanted.first_touch));
        });
    });
}

void penstock_buffer_free(penstock_buffer* buffer) { free_handle(buffer); }

void* penstock_buffer_pointer(const penstock_buffer* buffer) {
    return buffer == nullptr || buffer->tag != penstock_buffer::kTag ? nullptr : buffer->value.data();
}

int penstock_buffer_memory(const penstock_buffer* buffer, penstock_memory* memory, penstock_error* error) {
    return guarded("buffer memory", error, [&] {
        const penstock::MemoryView view = opened(buffer).view();
        required("penstock_memory", memory) = {view.data, view.bytes, static_cast<std::int32_t>(view.kind), 0};
    });
}

int penstock_wrap(const penstock_context* context, penstock_memory* memory, penstock_error* error) {
    return guarded("wrap memory", error, [&] {
        const auto wanted = penstock::c::memory_view(required("penstock_memory", memory));
        const auto found = opened(context).wrap(wanted.data, wanted.bytes, wanted.kind);
        memory->kind = static_cast<std::int32_t>(found.kind);
    });
}

int penstock_memory_kind(const penstock_context* context, const void* memory, penstock_pointer* found,
                         penstock_error* error) {
    return guarded("memory kind", error, [&] {
        copied("penstock_pointer", &required("penstock_pointer", found));
        const penstock::PointerInfo info =
            context == nullptr ? penstock::known_memory(memory) : opened(context).device().pointer_info(memory);
        found->base = info.known ? const_cast<void*>(info.base) : nullptr;
        found->bytes = info.known ? info.bytes : 0;
        found->kind = static_cast<std::int32_t>(info.known ? info.kind : penstock::MemoryKind::system);
        found->device_index = info.known ? info.device_index : -1;
    });
}

int penstock_copy_to_host(const penstock_context* context, void* host, const void* device, uint64_t bytes,
                          penstock_error* error) {
    return guarded("copy to host", error, [&] {
        const penstock::Context& value = opened(context);
        if (bytes == 0) return;
        value.copy_to_host(&required("the host pointer", static_cast<char*>(host)),
                           &required("the device pointer", static_cast<const char*>(device)), bytes);
    });
}

int penstock_copy_to_device(const penstock_context* context, void* device, const void* host, uint64_t bytes,
                            penstock_error* error) {
    return guarded("copy to device", error, [&] {
        const penstock::Context& value = opened(context);
        if (bytes == 0) return;
        value.copy_to_device(&required("the device pointer", static_cast<char*>(device)),
                             &required("the host pointer", static_cast<const char*>(host)), bytes);
    });
}

int penstock_synchronize_stream(const penstock_context* context, void* stream, penstock_error* error) {
    return guarded("synchronize a stream", error,
                   [&] { opened(context).synchronize_stream(reinterpret_cast<std::uintptr_t>(stream)); });
}

int penstock_copy_pieces(const penstock_context* context, int32_t direction, const penstock_copy* copies,
                         uint64_t count, penstock_error* error) {
    return guarded("copy pieces", error, [&] {
        const penstock::Context& value = opened(context);
        if (direction != PENSTOCK_TO_MEMORY && direction != PENSTOCK_TO_FILE) {
            refuse("copy pieces", "direction is " + std::to_string(direction),
                   "use PENSTOCK_TO_MEMORY or PENSTOCK_TO_FILE");
        }
        if (count == 0) return;
        static_assert(sizeof(penstock_copy) == sizeof(penstock::CopyPiece));
        const auto* pieces = reinterpret_cast<const penstock::CopyPiece*>(&required("penstock_copy", copies));
        value.copy_pieces(direction == PENSTOCK_TO_MEMORY ? penstock::CopyDirection::to_device
                                                          : penstock::CopyDirection::to_host,
                          {pieces, count});
    });
}

int penstock_file_open(const penstock_context* context, const char* name, const penstock_open_options* options,
                       penstock_file** file, penstock_error* error) {
    return guarded("open", error, [&] {
        give_handle(file, [&] {
            const std::string text(&required("the file name", name));
            const auto wanted = open_options(options);
            if (text.empty()) {
                refuse(wanted.mode == penstock::OpenMode::create ? "create" : "open", "the name is empty",
                       "give the name of a file");
            }
            return opened(context).open(text, wanted);
        });
    });
}

int penstock_file_close(penstock_file* file, penstock_error* error) {
    return guarded("close", error, [&] {
        if (file == nullptr) return;
        penstock::File value = opened(file);
        free_handle(file);
        value.close();
    });
}

void penstock_file_abandon(penstock_file* file) { free_handle(file); }

int penstock_file_size(const penstock_file* file, uint64_t* bytes, penstock_error* error) {
    return guarded("file size", error, [&] { required("the size", bytes) = opened(file).size_bytes(); });
}

int penstock_file_resize(const penstock_file* file, uint64_t bytes, penstock_error* error) {
    return guarded("set the size", error, [&] { opened(file).resize(bytes); });
}

int penstock_file_sync(const penstock_file* file, penstock_error* error) {
    return guarded("sync", error, [&] { opened(file).sync(); });
}

}  // extern "C"
