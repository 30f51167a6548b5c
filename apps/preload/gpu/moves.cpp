// See moves.hpp. The C ABI of libpenstock.so and four functions of CUDA's driver are found by name at the first pointer
// of a GPU, under one lock; calls then go side by side.
#include "preload/gpu/moves.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <penstock.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "preload/gpu/loaded.hpp"
#include "preload/watch.hpp"

namespace preload {
namespace {

constexpr int kMostDevices = 64;
constexpr int kNumbersEnd = 134;  // errno's are lower; those of CUDA's libraries for files begin at 5000
constexpr std::int64_t kMostCall = 0x7ffff000;  // what read() and write() move at most
constexpr std::int64_t kBounceBytes = 8 * kMiB;
constexpr unsigned kMemoryType = 2, kIsManaged = 8, kDeviceOrdinal = 9;  // CU_POINTER_ATTRIBUTE_*
constexpr unsigned kTypeDevice = 2;                                      // CU_MEMORYTYPE_DEVICE
constexpr int kHostPageTables = 100;  // CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES

enum class Found : std::uint8_t { unknown, yes, no };

// The driver's own interface, as stable as its library's name.
struct Cuda {
    int (*pointer_attributes)(unsigned, const unsigned*, void**, unsigned long long);
    int (*device_attribute)(int*, int, int);
    int (*current)(void**);
    int (*set_current)(void*);
};

struct Engine {
    decltype(&penstock_context_create) context_create;
    decltype(&penstock_file_open) file_open;
    decltype(&penstock_file_close) file_close;
    decltype(&penstock_wrap) wrap;
    decltype(&penstock_read) read;
    decltype(&penstock_write) write;
    decltype(&penstock_copy_to_host) copy_to_host;
    decltype(&penstock_copy_to_device) copy_to_device;
    decltype(&penstock_synchronize_stream) synchronize_stream;
};

pthread_mutex_t finding = PTHREAD_MUTEX_INITIALIZER;  // guards what follows until its Found is set
Cuda cuda;
Engine engine;
std::atomic<Found> cuda_found{Found::unknown}, engine_found{Found::unknown};
std::atomic<penstock_context*> contexts[kMostDevices];
std::atomic<bool> refused[kMostDevices];

class Locked {
public:
    Locked() { pthread_mutex_lock(&finding); }
    ~Locked() { pthread_mutex_unlock(&finding); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
};

// The engine's calls leave the program's current context as it is.
class KeptContext {
public:
    KeptContext() { cuda.current(&context_); }
    ~KeptContext() { cuda.set_current(context_); }
    KeptContext(const KeptContext&) = delete;
    KeptContext& operator=(const KeptContext&) = delete;

private:
    void* context_ = nullptr;
};

template <typename Function>
bool take_symbol(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

bool find_cuda() {
    if (cuda_found.load(std::memory_order_acquire) != Found::unknown) return cuda_found.load() == Found::yes;
    if (!has_cuda()) return false;
    const Locked locked;
    void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    const bool all = library != nullptr && take_symbol(library, "cuPointerGetAttributes", cuda.pointer_attributes) &&
                     take_symbol(library, "cuDeviceGetAttribute", cuda.device_attribute) &&
                     take_symbol(library, "cuCtxGetCurrent", cuda.current) &&
                     take_symbol(library, "cuCtxSetCurrent", cuda.set_current);
    cuda_found.store(all ? Found::yes : Found::no, std::memory_order_release);
    return all;
}

// Beside this library, unless the launcher says where.
void* open_engine() {
    if (watch.settings().library != nullptr) return ::dlopen(watch.settings().library, RTLD_NOW | RTLD_LOCAL);
    Dl_info self{};
    if (::dladdr(reinterpret_cast<void*>(&open_engine), &self) == 0) return nullptr;
    char name[4096];
    const char* slash = std::strrchr(self.dli_fname, '/');
    const int folder = slash == nullptr ? 0 : static_cast<int>(slash - self.dli_fname + 1);
    std::snprintf(name, sizeof name, "%.*slibpenstock.so.0", folder, self.dli_fname);
    return ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

bool find_engine() {
    if (engine_found.load(std::memory_order_acquire) != Found::unknown) return engine_found.load() == Found::yes;
    const Locked locked;
    if (engine_found.load() != Found::unknown) return engine_found.load() == Found::yes;
    void* library = open_engine();
    const bool all = library != nullptr && take_symbol(library, "penstock_context_create", engine.context_create) &&
                     take_symbol(library, "penstock_file_open", engine.file_open) &&
                     take_symbol(library, "penstock_file_close", engine.file_close) &&
                     take_symbol(library, "penstock_wrap", engine.wrap) &&
                     take_symbol(library, "penstock_read", engine.read) &&
                     take_symbol(library, "penstock_write", engine.write) &&
                     take_symbol(library, "penstock_copy_to_host", engine.copy_to_host) &&
                     take_symbol(library, "penstock_copy_to_device", engine.copy_to_device) &&
                     take_symbol(library, "penstock_synchronize_stream", engine.synchronize_stream);
    is_of_engine(library);  // notes where its code lies: its calls are none of the program's
    engine_found.store(all ? Found::yes : Found::no, std::memory_order_release);
    return all;
}

penstock_context* context_of(int device) {
    if (device < 0 || device >= kMostDevices || !find_engine() || refused[device].load()) return nullptr;
    if (penstock_context* known = contexts[device].load(std::memory_order_acquire)) return known;
    const Locked locked;
    if (penstock_context* known = contexts[device].load()) return known;
    char name[16];
    std::snprintf(name, sizeof name, "cuda:%d", device);
    penstock_context_options options = PENSTOCK_CONTEXT_OPTIONS_INIT;
    options.device = name;
    penstock_context* made = nullptr;
    if (engine.context_create(&options, &made, nullptr) != PENSTOCK_OK) {
        refused[device].store(true);
        return nullptr;
    }
    contexts[device].store(made, std::memory_order_release);
    return made;
}

// The kernel's own number where the engine has it: a quota and a limit of size are told as such.
int number_of(const penstock_error& error) {
    if (error.system_code > 0 && error.system_code < kNumbersEnd) return error.system_code;
    return error.code == PENSTOCK_NO_SPACE ? ENOSPC : EIO;
}

// Whether a descriptor of the engine's own may move what the program's may. It would move what the kernel refuses to a
// descriptor of another mode, append at another place, and not be on the disk where O_SYNC or O_DSYNC has it.
bool may_take(int flags, Direction direction) {
    const int access = flags & O_ACCMODE;
    if (direction == Direction::read) return access == O_RDONLY || access == O_RDWR;
    return (access == O_WRONLY || access == O_RDWR) && (flags & (O_APPEND | O_DSYNC)) == 0;
}

// The file of a descriptor as the engine knows it. Null: it cannot be opened that way, or the number means another file
// by now, because it was closed unseen.
penstock_file* engine_file(Descriptor& descriptor, penstock_context* context, Direction direction) {
    kernel::FileFacts facts;
    const bool same = kernel::stat(descriptor.number, facts) && facts.device == descriptor.device &&
                      facts.inode == descriptor.inode;
    if (!same || !may_take(facts.flags, direction)) return nullptr;
    std::atomic<void*>& place = descriptor.engine_file[static_cast<int>(direction)];
    if (void* known = place.load(std::memory_order_acquire)) return static_cast<penstock_file*>(known);
    const Locked locked;
    if (void* known = place.load()) return static_cast<penstock_file*>(known);
    char name[64];
    std::snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor.number);
    penstock_open_options options = PENSTOCK_OPEN_OPTIONS_INIT;
    options.mode = direction == Direction::read ? PENSTOCK_READ : PENSTOCK_READ_WRITE;
    penstock_file* file = nullptr;
    if (engine.file_open(context, name, &options, &file, nullptr) != PENSTOCK_OK) return nullptr;
    place.store(file, std::memory_order_release);
    return file;
}

// The part of a file that a call moves. Where it begins where the descriptor stands, the descriptor is put behind it
// before a byte moves: threads and processes that share it then have parts of their own, as with the kernel's calls.
class Part {
public:
    explicit Part(const GpuCall& call)
        : call_(call), begin_(call.offset >= 0 ? call.offset : kernel::advance(call.number, call.bytes)) {}
    std::int64_t begin() const { return begin_; }  // below 0: the descriptor stands nowhere
    // What did not move is given back, so that who comes next begins there.
    void moved(std::int64_t bytes) {
        if (call_.offset < 0 && bytes < call_.bytes) kernel::advance(call_.number, bytes - call_.bytes);
    }

private:
    const GpuCall& call_;
    std::int64_t begin_;
};

// Returns false if nothing moved.
bool by_engine(const GpuCall& call, penstock_context* context, penstock_memory memory, ssize_t& result) {
    Descriptor* descriptor = watch.find(call.number);
    penstock_file* file = descriptor == nullptr ? nullptr : engine_file(*descriptor, context, call.direction);
    if (file == nullptr) return false;
    Part part(call);
    const std::int64_t place = part.begin();
    if (place < 0) return false;
    penstock_request request = PENSTOCK_REQUEST_INIT;
    request.memory = memory;
    request.offset_bytes = static_cast<std::uint64_t>(place);
    penstock_result moved = PENSTOCK_RESULT_INIT;
    const auto move = call.direction == Direction::read ? engine.read : engine.write;
    penstock_error error = PENSTOCK_ERROR_INIT;
    const int code = move(file, &request, &moved, &error);
    part.moved(static_cast<std::int64_t>(moved.bytes));
    if (code != PENSTOCK_OK && code != PENSTOCK_END_OF_FILE && moved.bytes == 0) {
        if (code != PENSTOCK_NO_SPACE && code != PENSTOCK_IO_ERROR) return false;  // not for the file's sake
        errno = number_of(error);
        result = -1;
        return true;
    }
    result = static_cast<ssize_t>(moved.bytes);
    Counts& counts = descriptor->of(call.direction);
    counts.bytes.add(moved.bytes);
    add(counts.gpu, moved.bytes);
    return true;
}

long plain(const GpuCall& call, void* data, std::int64_t bytes, std::int64_t done) {
    const bool reads = call.direction == Direction::read;
    if (call.offset < 0) return ::syscall(reads ? SYS_read : SYS_write, call.number, data, bytes);
    return ::syscall(reads ? SYS_pread64 : SYS_pwrite64, call.number, data, bytes, call.offset + done);
}

// By memory of the host and ordinary calls: for what the engine does not open (pipes, appending, O_SYNC, small files).
ssize_t by_host(const GpuCall& call, penstock_context* context, char* host, std::int64_t room) {
    std::int64_t done = 0;
    while (done < call.bytes) {
        char* data = static_cast<char*>(call.data) + done;
        const std::int64_t piece = std::min(room, call.bytes - done);
        const bool writes = call.direction == Direction::write;
        int code = writes ? engine.copy_to_host(context, host, data, static_cast<std::uint64_t>(piece), nullptr) : 0;
        const long moved = code == PENSTOCK_OK ? plain(call, host, piece, done) : -1;
        if (code == PENSTOCK_OK && moved > 0 && !writes) {
            code = engine.copy_to_device(context, data, host, static_cast<std::uint64_t>(moved), nullptr);
        }
        if (code != PENSTOCK_OK) errno = EFAULT;
        if (code != PENSTOCK_OK || moved < 0) return done > 0 ? done : -1;
        done += moved;
        if (moved < piece) break;
    }
    return done;
}

bool bounce(const GpuCall& call, penstock_context* context, ssize_t& result) {
    const auto room = static_cast<std::size_t>(std::min(kBounceBytes, call.bytes));
    void* host = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (host == MAP_FAILED) return false;
    result = by_host(call, context, static_cast<char*>(host), static_cast<std::int64_t>(room));
    const int saved = errno;
    ::munmap(host, room);
    errno = saved;
    Descriptor* descriptor = watch.find(call.number);
    if (descriptor != nullptr && result > 0) {
        descriptor->of(call.direction).bytes.add(static_cast<std::uint64_t>(result));
        add(descriptor->of(call.direction).bounced, static_cast<std::uint64_t>(result));
    }
    return true;
}

// Where the GPU uses the host's page tables, the kernel reaches managed memory as it reaches any other.
bool is_coherent(int device) {
    int value = 0;
    return cuda.device_attribute(&value, kHostPageTables, device) == 0 && value != 0;
}

}  // namespace

GpuPointer gpu_pointer(void* data) {
    const int saved = errno;
    GpuPointer found;
    if (find_cuda()) {
        std::uint64_t type = 0, managed = 0, device = 0;
        const unsigned asked[] = {kMemoryType, kIsManaged, kDeviceOrdinal};
        void* told[] = {&type, &managed, &device};
        const auto place = reinterpret_cast<unsigned long long>(data);
        if (cuda.pointer_attributes(3, asked, told, place) == 0) {
            found.device = static_cast<int>(static_cast<std::uint32_t>(device));
            if ((managed & 0xff) != 0) {
                if (!is_coherent(found.device)) found.kind = GpuPointer::Kind::managed;
            } else if (static_cast<std::uint32_t>(type) == kTypeDevice) {
                found.kind = GpuPointer::Kind::device;
            }
        }
    }
    errno = saved;
    return found;
}

bool move_by_gpu(const GpuCall& asked, const GpuPointer& pointer, ssize_t& result) {
    GpuCall call = asked;
    call.bytes = std::min(call.bytes, kMostCall);
    if (call.bytes == 0 || !watch.is_ours()) return false;
    const int saved = errno;
    penstock_context* context = context_of(pointer.device);
    if (context == nullptr) {
        errno = saved;
        return false;
    }
    const KeptContext kept;
    const bool is_device = pointer.kind == GpuPointer::Kind::device;
    penstock_memory memory{call.data, static_cast<std::uint64_t>(call.bytes),
                           is_device ? PENSTOCK_DEVICE : PENSTOCK_MANAGED, 0};
    // After what the default stream was given; a failure shows in what follows. Not for managed memory, which the
    // kernel's own calls read at once.
    if (is_device) engine.synchronize_stream(context, nullptr, nullptr);
    const bool known = engine.wrap(context, &memory, nullptr) == PENSTOCK_OK;
    if (known && by_engine(call, context, memory, result)) {
        if (result >= 0) errno = saved;
        return true;
    }
    errno = saved;
    return is_device && bounce(call, context, result);
}

bool copy_to_gpu(const GpuPointer& pointer, void* data, const void* host, std::int64_t bytes) {
    const int saved = errno;
    penstock_context* context = watch.is_ours() ? context_of(pointer.device) : nullptr;
    int code = PENSTOCK_UNSUPPORTED;
    if (context != nullptr) {
        const KeptContext kept;
        engine.synchronize_stream(context, nullptr, nullptr);
        code = engine.copy_to_device(context, data, host, static_cast<std::uint64_t>(bytes), nullptr);
    }
    errno = code == PENSTOCK_OK ? saved : EFAULT;
    return code == PENSTOCK_OK;
}

void close_engine_files(Descriptor& descriptor) {
    for (std::atomic<void*>& place : descriptor.engine_file) {
        if (void* file = place.exchange(nullptr)) engine.file_close(static_cast<penstock_file*>(file), nullptr);
    }
}

void forget_engine() {
    finding = PTHREAD_MUTEX_INITIALIZER;
    for (int device = 0; device < kMostDevices; ++device) {
        contexts[device].store(nullptr);
        refused[device].store(true);
    }
}

}  // namespace preload
