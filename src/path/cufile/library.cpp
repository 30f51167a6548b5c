// See library.hpp. Uses dlopen and dlsym.
#include "path/cufile/library.hpp"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <memory>
#include <sstream>

namespace penstock::path::cufile {
namespace {

constexpr const char* kName = "libcufile.so.0";

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::string last_dl_error() {
    const char* text = ::dlerror();
    return text == nullptr ? "unknown dlopen error" : text;
}

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    return function != nullptr;
}

std::vector<std::string> split(const std::string& folders) {
    std::vector<std::string> out;
    std::istringstream words(folders);
    for (std::string folder; std::getline(words, folder, ':');) {
        if (!folder.empty()) out.push_back(folder);
    }
    return out;
}

void add_matches(std::vector<std::string>& candidates, const std::string& pattern) {
    glob_t found{};
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
        for (std::size_t i = 0; i < found.gl_pathc; ++i) candidates.emplace_back(found.gl_pathv[i]);
    }
    ::globfree(&found);
}

std::vector<std::string> candidates_of(const LibraryOptions& options) {
    std::vector<std::string> candidates;
    for (const std::string& folder : options.directories) candidates.push_back(folder + "/" + kName);
    candidates.emplace_back(kName);
    const std::string own = own_directory();
    for (const char* up : {"/..", "/../..", "/../../.."}) {
        add_matches(candidates, own + up + "/nvidia/cu1?/lib/" + kName);
        add_matches(candidates, own + up + "/nvidia/cufile/lib/" + kName);
    }
    const std::string packages = "/lib/python3*/site-packages/nvidia/c*/lib/";
    if (const std::string venv = environment("VIRTUAL_ENV"); !venv.empty()) {
        add_matches(candidates, venv + packages + kName);
    }
    for (const std::string& folder : split(environment("PYTHONPATH"))) {
        add_matches(candidates, folder + "/nvidia/c*/lib/" + kName);
    }
    for (const std::string& folder : split(environment("PATH"))) {
        add_matches(candidates, folder + "/.." + packages + kName);
    }
    for (const char* folder : {"/usr/local/cuda/lib64/", "/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/"}) {
        candidates.push_back(std::string(folder) + kName);
    }
    return candidates;
}

void* open_named(const std::string& name, std::string& why) {
    void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) why = last_dl_error();
    return library;
}

void* search(const LibraryOptions& options, std::string& why) {
    if (!options.library.empty()) return open_named(options.library, why);
    const std::string ours = environment("PENSTOCK_CUFILE_LIBRARY");
    if (!ours.empty()) return open_named(ours, why);
    if (void* held = ::dlopen(kName, RTLD_NOW | RTLD_NOLOAD)) return held;
    std::string first_error;
    for (const std::string& candidate : candidates_of(options)) {
        if (void* library = open_named(candidate, why)) return library;
        if (first_error.empty()) first_error = why;
    }
    why = std::string(kName) + " was not found (" + first_error + ")";
    return nullptr;
}

bool resolve(void* library, Api& api) {
    if (!find(library, "cuFileDriverClose_v2", api.driver_close)) find(library, "cuFileDriverClose", api.driver_close);
    const bool complete = find(library, "cuFileDriverOpen", api.driver_open) && api.driver_close != nullptr &&
                          find(library, "cuFileDriverGetProperties", api.driver_properties) &&
                          find(library, "cuFileHandleRegister", api.handle_register) &&
                          find(library, "cuFileHandleDeregister", api.handle_deregister) &&
                          find(library, "cuFileRead", api.read) && find(library, "cuFileWrite", api.write);
    find(library, "cuFileGetVersion", api.get_version);
    find(library, "cuFileBatchIOSetUp", api.batch_setup);
    find(library, "cuFileBatchIOSubmit", api.batch_submit);
    find(library, "cuFileBatchIOGetStatus", api.batch_status);
    find(library, "cuFileBatchIODestroy", api.batch_destroy);
    find(library, "cuFileReadAsync", api.read_async);
    find(library, "cuFileWriteAsync", api.write_async);
    find(library, "cuFileSetParameterBool", api.set_bool);
    find(library, "cuFileSetParameterString", api.set_string);
    find(library, "cuFileGetParameterPosixPoolSlabArray", api.pool_slabs);
    find(library, "cuFileSetStatsLevel", api.set_stats_level);
    find(library, "cuFileStatsStart", api.stats_start);
    find(library, "cuFileGetStatsL3", api.stats_l3);
    return complete;
}

std::string file_of(void* address) {
    Dl_info info{};
    if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return "";
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(info.dli_fname, nullptr), ::free);
    return real ? real.get() : info.dli_fname;
}

}  // namespace

std::string own_directory() {
    const std::string file = file_of(reinterpret_cast<void*>(&own_directory));
    const auto slash = file.rfind('/');
    return slash == std::string::npos ? "." : file.substr(0, slash);
}

std::string held_library() {
    void* held = ::dlopen(kName, RTLD_NOW | RTLD_NOLOAD);
    if (held == nullptr) return "";
    const std::string file = file_of(::dlsym(held, "cuFileDriverOpen"));
    ::dlclose(held);
    return file;
}

std::optional<CudaDriver> open_cuda(const std::string& name, std::string& why) {
    void* library = open_named(name, why);
    if (library == nullptr) {
        why = "no NVIDIA driver: " + why;
        return std::nullopt;
    }
    CudaDriver cuda;
    const bool complete =
        find(library, "cuInit", cuda.init) && find(library, "cuDeviceGet", cuda.device_get) &&
        find(library, "cuDevicePrimaryCtxRetain", cuda.context_retain) &&
        find(library, "cuCtxGetCurrent", cuda.context_get) && find(library, "cuCtxSetCurrent", cuda.context_set) &&
        find(library, "cuMemAlloc_v2", cuda.allocate) && find(library, "cuMemcpyDtoH_v2", cuda.copy_to_host);
    if (!complete) {
        why = name + " lacks functions of the CUDA driver interface";
        return std::nullopt;
    }
    if (const int code = cuda.init(0); code != 0) {
        why = "cuInit failed: CUresult " + std::to_string(code);
        return std::nullopt;
    }
    return cuda;
}

bool ensure_context(const CudaDriver& cuda, int device_index, std::string& why) {
    int device = 0;
    void* context = nullptr;
    if (cuda.context_get(&context) == 0 && context != nullptr) return true;
    const char* call = "cuDeviceGet";
    int code = cuda.device_get(&device, device_index);
    if (code == 0) {
        call = "cuDevicePrimaryCtxRetain";
        code = cuda.context_retain(&context, device);
    }
    if (code == 0) {
        call = "cuCtxSetCurrent";
        code = cuda.context_set(context);
    }
    if (code != 0) why = std::string(call) + " failed: CUresult " + std::to_string(code);
    return code == 0;
}

std::optional<Library> open_library(const LibraryOptions& options, std::string& why) {
    void* handle = search(options, why);
    if (handle == nullptr) return std::nullopt;
    Library library;
    if (!resolve(handle, library.api)) {
        why = "the library lacks functions that every cuFile since 1.7 has";
        return std::nullopt;
    }
    library.file = file_of(reinterpret_cast<void*>(library.api.driver_open));
    int version = 0;
    if (library.api.get_version != nullptr && library.api.get_version(&version).error == 0) library.version = version;
    return library;
}

bool user_logs() { return !environment("CUFILE_LOGFILE_PATH").empty() || !environment("CUFILE_ENV_PATH_JSON").empty(); }

std::vector<std::string> configure(const Api& api, const Setup& setup) {
    std::vector<std::string> notes;
    const auto set = [&](BoolParameter parameter, const char* name) {
        if (api.set_bool == nullptr) {
            notes.push_back(std::string(name) +
                            " not set: libcufile before 1.14 only reads it from the environment or "
                            "cufile.json");
            return;
        }
        if (const CuFileError status = api.set_bool(static_cast<int>(parameter), true); status.error != 0) {
            notes.push_back(std::string(name) + " not set: " + error_text(status));
        }
    };
    if (setup.skip_topology) set(BoolParameter::skip_topology, "skip_topology_detection");
    if (setup.force_compat) {
        set(BoolParameter::allow_compat, "allow_compat_mode");
        set(BoolParameter::force_compat, "force_compat_mode");
    }
    if (!user_logs() && api.set_string != nullptr) {
        api.set_string(static_cast<int>(StringParameter::log_file), "/dev/null");
    }
    return notes;
}

}  // namespace penstock::path::cufile
