// The types behind the opaque handles of penstock.h.
//
// Each begins with a number that names its type. Languages without typed pointers (Fortran's c_ptr) can confuse
// handles, and a wrong handle must be refused and not used.
#pragma once

#include <cstdint>
#include <memory>

#include "boundary.hpp"
#include "formats/data_file.hpp"
#include "penstock.h"
#include "penstock/context.hpp"
#include "penstock/history.hpp"
#include "penstock/restart.hpp"
#include "penstock/snapshot.hpp"
#include "penstock_history.h"
#include "penstock_restart.h"
#include "penstock_snapshot.h"

struct penstock_context {
    static constexpr std::uint64_t kTag = 0x70656e436f6e7478;
    static constexpr const char* kName = "penstock_context";
    std::uint64_t tag = kTag;
    penstock::Context value;
};

struct penstock_file {
    static constexpr std::uint64_t kTag = 0x70656e46696c6521;
    static constexpr const char* kName = "penstock_file";
    std::uint64_t tag = kTag;
    penstock::File value;
};

struct penstock_buffer {
    static constexpr std::uint64_t kTag = 0x70656e4275666672;
    static constexpr const char* kName = "penstock_buffer";
    std::uint64_t tag = kTag;
    penstock::Buffer value;
};

struct penstock_transfer {
    static constexpr std::uint64_t kTag = 0x70656e54726e7366;
    static constexpr const char* kName = "penstock_transfer";
    std::uint64_t tag = kTag;
    penstock::Transfer value;
};

struct penstock_datafile {
    static constexpr std::uint64_t kTag = 0x70656e4461746146;
    static constexpr const char* kName = "penstock_datafile";
    std::uint64_t tag = kTag;
    std::shared_ptr<const penstock::formats::DataFile> value;
};

namespace penstock::c {

struct OpenedDataset {
    std::shared_ptr<const formats::DataFile> file;
    formats::StoredDataset stored;
};

}  // namespace penstock::c

struct penstock_dataset {
    static constexpr std::uint64_t kTag = 0x70656e4461746153;
    static constexpr const char* kName = "penstock_dataset";
    std::uint64_t tag = kTag;
    penstock::c::OpenedDataset value;
};

struct penstock_history {
    static constexpr std::uint64_t kTag = 0x70656e4873746f72;
    static constexpr const char* kName = "penstock_history";
    std::uint64_t tag = kTag;
    penstock::History value;
};

struct penstock_snapshot {
    static constexpr std::uint64_t kTag = 0x70656e536e617073;
    static constexpr const char* kName = "penstock_snapshot";
    std::uint64_t tag = kTag;
    penstock::Snapshot value;
};

namespace penstock::c {

struct OpenedRestart {
    Restart restart;
    RestartPart moved{};  // of a write that was begun
};

}  // namespace penstock::c

struct penstock_restart {
    static constexpr std::uint64_t kTag = 0x70656e5265737472;
    static constexpr const char* kName = "penstock_restart";
    std::uint64_t tag = kTag;
    penstock::c::OpenedRestart value;
};

namespace penstock::c {

// Returns the content of a handle. Throws Error{invalid_argument} for null and for handles of another type.
template <typename Handle>
auto& opened(Handle* handle) {
    required(Handle::kName, handle);
    if (handle->tag != Handle::kTag) {
        refuse("check arguments", std::string("this handle is no ") + Handle::kName, "pass what its function returned");
    }
    return handle->value;
}

// Gives a new handle to the caller. If `make` throws, `out` stays null.
template <typename Handle, typename Make>
void give_handle(Handle** out, Make&& make) {
    required("the place for the new handle", out) = nullptr;
    *out = std::make_unique<Handle>(Handle{Handle::kTag, make()}).release();
}

template <typename Handle>
void free_handle(Handle* handle) noexcept {
    if (handle != nullptr && handle->tag == Handle::kTag) std::unique_ptr<Handle>(handle).reset();
}

}  // namespace penstock::c
