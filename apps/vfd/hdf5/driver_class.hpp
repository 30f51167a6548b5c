// What HDF5 asks of a driver plugin, declared here from the facts of its public interface, so that one binary serves
// every HDF5 that loads drivers: the struct of functions (version 1, in all releases from 1.14.0 on), the head of an
// open file, and the numbers that they use. HDF5's headers are not included and none of its functions is linked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::vfd {

using Id = std::int64_t;
using Status = int;  // negative: failed
using Address = std::uint64_t;
inline constexpr Address kNoAddress = ~Address{0};
inline constexpr Address kLastAddress = (Address{1} << 63) - 1;

// What a block of the file is used for. Raw data is all that HDF5 passes from and to memory of its caller.
enum class Use : int { same_as_before = -1, any = 0, superblock, btree, raw, global_heap, local_heap, header, count };

inline constexpr unsigned kWritable = 0x1, kTruncate = 0x2, kExclusive = 0x4, kCreate = 0x10;  // flags of open

// Features of a driver, as `query` tells them.
inline constexpr unsigned long kGatherMetadata = 0x1 | 0x6 | 0x10;  // HDF5 allocates and writes it in larger blocks
inline constexpr unsigned long kSieve = 0x8;                // HDF5 reads and writes small pieces through its own buffer
inline constexpr unsigned long kPosixHandle = 0x80;         // get_handle gives a file descriptor
inline constexpr unsigned long kSingleWriter = 0x1000;      // one writer and many readers (SWMR)
inline constexpr unsigned long kLikeDefault = 0x8000;       // files are those of HDF5's default driver
inline constexpr unsigned long kCopiesMemory = 0x10000;     // copies from and to memory of the caller are ours: control

inline constexpr std::uint64_t kCopyMemory = 7;       // an operation of control
inline constexpr std::uint64_t kMustBeKnown = 0x1;    // a flag of control: an operation that is not known fails
struct MemoryCopy {
    void* destination;
    std::uint64_t destination_offset;
    const void* source;
    std::uint64_t source_offset;
    std::size_t bytes;
};

struct DriverClass;

// HDF5 fills it, and finds it at the start of what `open` returns.
struct FileHead {
    Id driver = 0;
    const DriverClass* driver_class = nullptr;
    unsigned long serial_number = 0;
    unsigned access_flags = 0;
    unsigned long features = 0;
    Address last_address = 0;
    Address base_address = 0;
    std::uint64_t threshold = 0;
    std::uint64_t alignment = 0;
    bool in_pages = false;
};

struct DriverClass {
    unsigned version;
    int value;
    const char* name;
    Address last_address;
    int close_degree;
    Status (*terminate)();
    std::uint64_t (*superblock_size)(FileHead*);
    Status (*superblock_encode)(FileHead*, char*, unsigned char*);
    Status (*superblock_decode)(FileHead*, const char*, const unsigned char*);
    std::size_t access_bytes;
    void* (*access_get)(FileHead*);
    void* (*access_copy)(const void*);
    Status (*access_free)(void*);
    std::size_t transfer_bytes;
    void* (*transfer_copy)(const void*);
    Status (*transfer_free)(void*);
    FileHead* (*open)(const char* name, unsigned flags, Id access, Address last_address);
    Status (*close)(FileHead*);
    int (*compare)(const FileHead*, const FileHead*);
    Status (*query)(const FileHead*, unsigned long* features);
    Status (*get_type_map)(const FileHead*, Use*);
    Address (*allocate)(FileHead*, Use, Id, std::uint64_t);
    Status (*release)(FileHead*, Use, Id, Address, std::uint64_t);
    Address (*get_end_of_allocation)(const FileHead*, Use);
    Status (*set_end_of_allocation)(FileHead*, Use, Address);
    Address (*get_end_of_file)(const FileHead*, Use);
    Status (*get_handle)(FileHead*, Id, void** handle);
    Status (*read)(FileHead*, Use, Id, Address, std::size_t bytes, void* memory);
    Status (*write)(FileHead*, Use, Id, Address, std::size_t bytes, const void* memory);
    Status (*read_vector)(FileHead*, Id, std::uint32_t count, Use*, Address*, std::size_t* bytes, void** memory);
    Status (*write_vector)(FileHead*, Id, std::uint32_t count, Use*, Address*, std::size_t* bytes,
                           const void** memory);
    Status (*read_selection)(FileHead*, Use, Id, std::uint32_t count, Id* memory_spaces, Id* file_spaces,
                             Address* offsets, std::size_t* element_bytes, void** memory);
    Status (*write_selection)(FileHead*, Use, Id, std::uint32_t count, Id* memory_spaces, Id* file_spaces,
                              Address* offsets, std::size_t* element_bytes, const void** memory);
    Status (*flush)(FileHead*, Id, bool closing);
    Status (*truncate)(FileHead*, Id, bool closing);
    Status (*lock)(FileHead*, bool exclusive);
    Status (*unlock)(FileHead*);
    Status (*remove)(const char* name, Id access);
    Status (*control)(FileHead*, std::uint64_t operation, std::uint64_t flags, const void* input, void** output);
    Use free_lists[static_cast<std::size_t>(Use::count)];
};

}  // namespace penstock::vfd
