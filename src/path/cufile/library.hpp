// Finds and opens libcuda and libcufile, and configures cuFile before its driver opens.
//
// The library and the probe program share this code, so that both open the same file in the same way. It opens and
// initialises libcuda first: without that, cuFile 1.16 and later spin for ever when their driver opens. It never
// changes the environment, because setenv is not safe in a process with threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "path/cufile/api.hpp"

namespace penstock::path::cufile {

struct LibraryOptions {
    std::string library;  // the libcufile to open; empty: search for it
    std::string cuda_library = "libcuda.so.1";
    std::vector<std::string> directories;  // searched first, for example <site-packages>/nvidia/cu13/lib
};

// The few driver calls that a probe needs. Opening them also shows that CUDA works before cuFile is used.
struct CudaDriver {
    int (*init)(unsigned) = nullptr;
    int (*device_get)(int*, int) = nullptr;
    int (*context_retain)(void**, int) = nullptr;
    int (*context_get)(void**) = nullptr;
    int (*context_set)(void*) = nullptr;
    int (*allocate)(std::uint64_t*, std::size_t) = nullptr;
    int (*copy_to_host)(void*, std::uint64_t, std::size_t) = nullptr;
};

// Opens libcuda and calls cuInit. On failure returns nullopt and sets `why`.
std::optional<CudaDriver> open_cuda(const std::string& library, std::string& why);

// Makes the device's primary context current in the calling thread, unless the thread has a context. cuFile's driver
// needs one when it opens. The context stays until the process ends, as with the CUDA runtime.
bool ensure_context(const CudaDriver& cuda, int device_index, std::string& why);

struct Library {
    Api api;
    std::string file;  // the path it was loaded from
    int version = 0;   // 1150 is 1.15; 0: unknown
};

// Opens the first libcufile found in this order: the named library, $PENSTOCK_CUFILE_LIBRARY, one that this process has
// loaded, the given directories, the system's search path, the folder of our own package, Python environments (active,
// on PATH or PYTHONPATH), the folders of CUDA and of the system. libcufile is never closed, because it does not survive
// that.
std::optional<Library> open_library(const LibraryOptions& options, std::string& why);

// The libcufile that this process has already loaded, or empty. Two copies in one process would disturb each other.
std::string held_library();

struct Setup {
    bool force_compat = false;
    bool skip_topology = true;  // topology detection takes seconds and compatibility mode does not use it
};

bool user_logs();  // whether the user has configured where libcufile writes its log

// Requires: the driver is not open yet. Returns notes on settings that failed. If the user configured no log file, the
// log goes to /dev/null and not to the current directory.
std::vector<std::string> configure(const Api& api, const Setup& setup);

// Returns the folder of the program or library that contains this code.
std::string own_directory();

}  // namespace penstock::path::cufile
