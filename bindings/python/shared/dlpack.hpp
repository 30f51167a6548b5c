// DLPack: imports tensors of other libraries as memory, and exports parts of a Buffer as tensors of any type.
//
// The structs are DLPack's binary interface (version 1), which does not change within a major version. A capsule named
// "dltensor_versioned" holds a DlManagedVersioned. One named "dltensor", from older producers, holds a DlManaged. A
// consumer renames the capsule and calls the deleter once. https://dmlc.github.io/dlpack/latest/c_api.html
#pragma once

#include <cstdint>

#include "python/shared/binding.hpp"

namespace penstock::python {

enum class DlDeviceType : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };
struct DlDevice {
    std::int32_t type;
    std::int32_t id;
};
struct DlType {
    std::uint8_t code;  // 0 int, 1 unsigned, 2 float, 4 bfloat, 5 complex, 6 bool, 7 to 14 kinds of float8
    std::uint8_t bits;  // bits of a lane
    std::uint16_t lanes;
};
struct DlTensor {
    void* data;
    DlDevice device;
    std::int32_t dimensions;
    DlType type;
    std::int64_t* shape;
    std::int64_t* strides;  // in items; null: C order
    std::uint64_t byte_offset;
};
struct DlManaged {
    DlTensor tensor;
    void* owner;
    void (*deleter)(DlManaged*);
};
struct DlVersion {
    std::uint32_t major;
    std::uint32_t minor;
};
struct DlManagedVersioned {
    DlVersion version;
    void* owner;
    void (*deleter)(DlManagedVersioned*);
    std::uint64_t flags;
    DlTensor tensor;
};
inline constexpr std::uint64_t kDlReadOnly = 1, kDlCopied = 2;
inline constexpr const char* kDlName = "dltensor";
inline constexpr const char* kDlVersionedName = "dltensor_versioned";

// A tensor of another library, held until this object is destroyed. Requires: the GIL, to make and destroy it.
class DLPackMemory {
  public:
    // `stream` is passed to producers on a GPU: the work that they have queued ends before later work on that stream.
    // None: the default stream.
    DLPackMemory(nb::handle object, nb::handle stream);
    ~DLPackMemory();
    DLPackMemory(const DLPackMemory&) = delete;
    DLPackMemory& operator=(const DLPackMemory&) = delete;

    const DlTensor& tensor() const noexcept;
    bool read_only() const noexcept;
    std::byte* data() const noexcept { return static_cast<std::byte*>(tensor().data) + tensor().byte_offset; }
    std::uint64_t bytes() const;  // bytes of the items, without gaps; throws Error if the shape gives no number
    bool contiguous() const noexcept;
    bool on_gpu() const noexcept;

    // Waits for the stream that was named to the producer. Requires: the tensor was handed over, and its memory was not
    // used yet.
    void settle(const Context& context);

  private:
    void take(nb::handle capsule);

    DlManaged* plain_ = nullptr;              // either this or versioned_ is set
    DlManagedVersioned* versioned_ = nullptr;
    std::optional<std::uintptr_t> pending_;   // a stream to wait for
};

}  // namespace penstock::python
