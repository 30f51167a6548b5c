// Finding and opening libcuda and libcufile, and setting cuFile up before its driver opens.
//
// Shared by the library and by the probe program, so that both open the very same file in the very same way. libcuda is
// opened and initialised first: without it, cuFile 1.16 and later spin for ever when their driver opens. Nothing here
// changes the environment: setenv is not safe in a process with threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "path/cufile/api.hpp"

namespace penstock::path::cufile {

struct LibraryOptions {
    std::string library;  // libcufile to open; empty: search
    std::string cuda_library = "libcuda.so.1";
    std::vector<std::string> directories;  // searched first, e.g. <site-packages>/nvidia/cu13/lib
};

// The few driver calls that a probe needs; also proof that CUDA works before cuFile is touched.
struct CudaDriver {
    int (*init)(unsigned) = nullptr;
    int (*device_get)(int*, int) = nullptr;
    int (*context_retain)(void**, int) = nullptr;
    int (*context_get)(void**) = nullptr;
    int (*context_set)(void*) = nullptr;
    int (*allocate)(std::uint64_t*, std::size_t) = nullptr;
    int (*copy_to_host)(void*, std::uint64_t, std::size_t) = nullptr;
};

// Opens libcuda and calls cuInit. nullopt with the reason in `why`.
std::optional<CudaDriver> open_cuda(const std::string& library, std::string& why);

// Makes the primary context of a device current in the calling thread, unless it has a context already: cuFile's driver
// wants one when it opens. The context is kept until the process ends, as the CUDA runtime keeps it.
bool ensure_context(const CudaDriver& cuda, int device_index, std::string& why);

struct Library {
    Api api;
    std::string file;  // where it was loaded from
    int version = 0;   // 1150 is 1.15; 0: unknown
};

// Opens libcufile, in this order: the named library, $PENSTOCK_CUFILE_LIBRARY, one that the process holds already, the
// given directories, the plain name, beside our own package, Python environments (active, on PATH or PYTHONPATH),
// CUDA's and the system's folders. Never closed again: libcufile does not survive it.
std::optional<Library> open_library(const LibraryOptions& options, std::string& why);

// The libcufile that this process holds already (another library's); empty: none. Two in one process would fight.
std::string held_library();

struct Setup {
    bool force_compat = false;
    bool skip_topology = true;  // topology detection costs seconds and compatibility mode has no use for it
};

bool user_logs();  // the user has told libcufile where its log goes

// To be called before the driver opens. Returns notes on what could not be set. A log file is only redirected (to
// /dev/null, away from the current directory) when the user configured none.
std::vector<std::string> configure(const Api& api, const Setup& setup);

// Folder of the program or library that contains this code.
std::string own_directory();

}  // namespace penstock::path::cufile
