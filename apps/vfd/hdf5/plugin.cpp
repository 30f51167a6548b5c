// What HDF5 calls: the two functions by which it finds a plugin, and those of the driver. Each checks what HDF5 does
// not, calls one function of File or Mover, and turns a Fault into a code. No exception passes through HDF5.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "vfd/hdf5/caller.hpp"
#include "vfd/hdf5/selection.hpp"
#include "vfd/file.hpp"
#include "vfd/pieces.hpp"

namespace penstock::vfd {
namespace {

constexpr int kDriverNumber = 20563;  // of the range that HDF5 leaves to all
constexpr int kPluginIsDriver = 2;

File& file_of(FileHead* head) noexcept { return *static_cast<File*>(head); }
const File& file_of(const FileHead* head) noexcept { return *static_cast<const File*>(head); }

template <typename Body>
bool worked(const FaultPlace& place, Body&& body) noexcept {
    try {
        body();
        return true;
    } catch (const Fault& fault) {
        tell(fault, place);
    } catch (const std::bad_alloc&) {
        tell({"go on with", "the process is out of memory", "", ENOMEM, 0, 0}, place);
    } catch (const std::exception& thrown) {
        tell({"go on with", thrown.what(), "", 0, 0, 0}, place);
    }
    return false;
}

template <typename Body>
Status guarded(FileHead* head, const char* minor, Body&& body) noexcept {
    const File& file = file_of(head);
    return worked({file.name(), minor, file.settings(), file.caller()}, std::forward<Body>(body)) ? 0 : -1;
}

FileHead* open(const char* name, unsigned flags, Id access, Address) noexcept {
    const Caller caller(__builtin_return_address(0));
    Settings settings;
    std::unique_ptr<File> made;
    const std::string text = name == nullptr ? "" : name;
    const auto make = [&] {
        settings = parse_settings(caller.config(access));
        if (!settings.chunk_cache && may_be_device(settings)) caller.drop_chunk_cache(access);
        made = std::make_unique<File>(text.c_str(), flags, settings, caller);
    };
    return worked({text, "H5E_CANTOPENFILE_g", settings, caller}, make) ? made.release() : nullptr;
}

Status close(FileHead* head) noexcept {
    const std::unique_ptr<File> owner(&file_of(head));
    return guarded(head, "H5E_CANTCLOSEFILE_g", [&] { owner->close(); });
}

int compare(const FileHead* one, const FileHead* other) noexcept { return file_of(one).compare(file_of(other)); }

Status query(const FileHead* head, unsigned long* features) noexcept {
    const unsigned long without_file = kGatherMetadata | kPosixHandle | kSingleWriter | kLikeDefault;
    if (features != nullptr) *features = head == nullptr ? without_file : file_of(head).features();
    return 0;
}

Address get_end_of_allocation(const FileHead* head, Use) noexcept { return file_of(head).end_of_allocation; }

Status set_end_of_allocation(FileHead* head, Use, Address address) noexcept {
    file_of(head).end_of_allocation = address;
    return 0;
}

Address get_end_of_file(const FileHead* head, Use) noexcept { return file_of(head).end_of_file(); }

Status get_handle(FileHead* head, Id, void** handle) noexcept {
    if (handle == nullptr) return -1;
    *handle = file_of(head).handle();
    return 0;
}

void check_range(const char* operation, Address address, std::size_t bytes) {
    if (address <= kLastAddress && bytes <= kLastAddress - address) return;
    throw Fault{operation, "the range leaves those of file offsets", "", 0, address, bytes};
}

Status read(FileHead* head, Use use, Id, Address address, std::size_t bytes, void* memory) noexcept {
    return guarded(head, "H5E_READERROR_g", [&] {
        check_range("read", address, bytes);
        const Piece piece{address, bytes, static_cast<std::byte*>(memory)};
        Mover& mover = file_of(head).mover();
        if (use == Use::raw) mover.move(false, piece);
        else mover.read_plain(piece);
    });
}

Status write(FileHead* head, Use use, Id, Address address, std::size_t bytes, const void* memory) noexcept {
    return guarded(head, "H5E_WRITEERROR_g", [&] {
        check_range("write", address, bytes);
        const Piece piece{address, bytes, static_cast<std::byte*>(const_cast<void*>(memory))};
        Mover& mover = file_of(head).mover();
        if (use == Use::raw) mover.move(true, piece);
        else mover.write_plain(piece);
        file_of(head).wrote(address + bytes);
    });
}

Address last_end(const PieceArrays& arrays) {
    Address end = 0;
    std::size_t bytes = 0;
    bool same = false;
    for (std::uint32_t i = 0; i < arrays.count; ++i) {
        same = same || (i > 0 && arrays.bytes[i] == 0);
        if (!same) bytes = arrays.bytes[i];
        check_range("move", arrays.offsets[i], bytes);
        end = std::max(end, arrays.offsets[i] + bytes);
    }
    return end;
}

Status read_vector(FileHead* head, Id, std::uint32_t count, Use* uses, Address* offsets, std::size_t* bytes,
                   void** memory) noexcept {
    return guarded(head, "H5E_READERROR_g", [&] {
        const PieceArrays arrays{count, uses, offsets, bytes, memory};
        last_end(arrays);
        move_pieces(file_of(head).mover(), false, arrays);
    });
}

Status write_vector(FileHead* head, Id, std::uint32_t count, Use* uses, Address* offsets, std::size_t* bytes,
                    const void** memory) noexcept {
    return guarded(head, "H5E_WRITEERROR_g", [&] {
        const PieceArrays arrays{count, uses, offsets, bytes, const_cast<void* const*>(memory)};
        const Address end = last_end(arrays);
        move_pieces(file_of(head).mover(), true, arrays);
        file_of(head).wrote(end);
    });
}

Status read_selection(FileHead* head, Use use, Id, std::uint32_t count, Id* memory_spaces, Id* file_spaces,
                      Address* offsets, std::size_t* element_bytes, void** memory) noexcept {
    return guarded(head, "H5E_READERROR_g", [&] {
        const SelectionArrays arrays{count, memory_spaces, file_spaces, offsets, element_bytes, memory};
        move_selections(file_of(head).mover(), {false, use}, arrays, SelectionCalls(file_of(head).caller()));
    });
}

Status write_selection(FileHead* head, Use use, Id, std::uint32_t count, Id* memory_spaces, Id* file_spaces,
                       Address* offsets, std::size_t* element_bytes, const void** memory) noexcept {
    return guarded(head, "H5E_WRITEERROR_g", [&] {
        const SelectionArrays arrays{count,   memory_spaces, file_spaces,
                                     offsets, element_bytes, const_cast<void* const*>(memory)};
        const SelectionCalls calls(file_of(head).caller());
        file_of(head).wrote(move_selections(file_of(head).mover(), {true, use}, arrays, calls));
    });
}

Status truncate(FileHead* head, Id, bool) noexcept {
    return guarded(head, "H5E_SEEKERROR_g", [&] { file_of(head).truncate(); });
}

Status lock(FileHead* head, bool exclusive) noexcept {
    return guarded(head, "H5E_CANTLOCKFILE_g", [&] { file_of(head).lock(exclusive); });
}

Status unlock(FileHead* head) noexcept {
    return guarded(head, "H5E_CANTUNLOCKFILE_g", [&] { file_of(head).unlock(); });
}

Status remove(const char* name, Id) noexcept {
    const Caller caller(__builtin_return_address(0));
    const std::string text = name;
    const auto unlink = [&] {
        if (::unlink(name) != 0) throw system_fault("remove", errno);
    };
    return worked({text, "H5E_CANTDELETEFILE_g", {}, caller}, unlink) ? 0 : -1;
}

Status control(FileHead* head, std::uint64_t operation, std::uint64_t flags, const void* input, void**) noexcept {
    if (operation != kCopyMemory || input == nullptr) return (flags & kMustBeKnown) != 0 ? -1 : 0;
    return guarded(head, "H5E_CANTCOPY_g", [&] {
        const auto& copy = *static_cast<const MemoryCopy*>(input);
        file_of(head).mover().copy(static_cast<std::byte*>(copy.destination) + copy.destination_offset,
                                   static_cast<const std::byte*>(copy.source) + copy.source_offset, copy.bytes);
    });
}

// What HDF5 hands over of a selection. `pieces`: small ones go through its own buffer, which touches memory of the
// caller with the CPU. `vectors`: from an HDF5 whose iterators are not to be found.
enum class Handover { pieces, vectors, selections };

constexpr DriverClass driver_class(Handover handover) {
    const bool vectors = handover != Handover::pieces, selections = handover == Handover::selections;
    return {
        .version = 1,
        .value = kDriverNumber,
        .name = "penstock",
        .last_address = kLastAddress,
        .close_degree = 1,  // a file stays open while objects in it are, as with HDF5's own driver
        .terminate = nullptr,
        .superblock_size = nullptr,
        .superblock_encode = nullptr,
        .superblock_decode = nullptr,
        .access_bytes = 0,
        .access_get = nullptr,
        .access_copy = nullptr,
        .access_free = nullptr,
        .transfer_bytes = 0,
        .transfer_copy = nullptr,
        .transfer_free = nullptr,
        .open = open,
        .close = close,
        .compare = compare,
        .query = query,
        .get_type_map = nullptr,
        .allocate = nullptr,
        .release = nullptr,
        .get_end_of_allocation = get_end_of_allocation,
        .set_end_of_allocation = set_end_of_allocation,
        .get_end_of_file = get_end_of_file,
        .get_handle = get_handle,
        .read = read,
        .write = write,
        .read_vector = vectors ? read_vector : nullptr,
        .write_vector = vectors ? write_vector : nullptr,
        .read_selection = selections ? read_selection : nullptr,
        .write_selection = selections ? write_selection : nullptr,
        .flush = nullptr,
        .truncate = truncate,
        .lock = lock,
        .unlock = unlock,
        .remove = remove,
        .control = control,
        // Metadata and raw data are allocated apart.
        .free_lists = {Use::superblock, Use::superblock, Use::superblock, Use::raw, Use::raw, Use::superblock,
                       Use::superblock},
    };
}

constexpr DriverClass kPieces = driver_class(Handover::pieces), kVectors = driver_class(Handover::vectors),
                      kSelections = driver_class(Handover::selections);

// By the environment: there is no file yet. Settings that are wrong are told when a file is opened.
const DriverClass& class_for(const Caller& caller) noexcept {
    try {
        if (!may_be_device(parse_settings(Caller().config(0)))) return kPieces;
    } catch (...) {
        return kVectors;
    }
    return SelectionCalls(caller).found() ? kSelections : kVectors;
}

}  // namespace
}  // namespace penstock::vfd

extern "C" {

int H5PLget_plugin_type() { return penstock::vfd::kPluginIsDriver; }

const void* H5PLget_plugin_info() {
    return &penstock::vfd::class_for(penstock::vfd::Caller(__builtin_return_address(0)));
}

}  // extern "C"
