// NVMe's own queue entries, byte for byte (NVM Express Base and NVM Command Set, revision 1.4): the 64-byte submission
// and the 16-byte completion. Device code writes every dword of an entry: zero where a command does not use it.
#pragma once

#include "penstock/ondevice/request.hpp"

namespace penstock::ondevice {

struct alignas(16) NvmeCommand {
    u32 dword[16];
};
struct NvmeCompletion {
    u32 dword[4];  // result; reserved; SQ head 15:0, SQ id 31:16; command id 15:0, phase 16, status 31:17
};
static_assert(sizeof(NvmeCommand) == 64 && sizeof(NvmeCompletion) == 16, "the specification's sizes");

enum class NvmeOpcode : u8 { flush = 0x00, write = 0x01, read = 0x02 };

// Where the bytes of a command lie: one page, two pages, or the first page and a list of the others.
struct NvmePages {
    u64 prp1;
    u64 prp2;
};

struct NvmeIo {
    NvmeOpcode opcode;
    u16 id;
    u32 namespace_id;
    u64 first_block;
    u32 blocks;  // 0 for a flush, else 1 to 65536
    NvmePages pages;
};

PENSTOCK_ONDEVICE NvmeCommand nvme_command(const NvmeIo& io) {
    NvmeCommand command = {};  // also clears fuse, PSDT (PRPs), metadata, FUA, protection and hints
    command.dword[0] = static_cast<u32>(io.opcode) | static_cast<u32>(io.id) << 16;
    command.dword[1] = io.namespace_id;
    if (io.opcode == NvmeOpcode::flush) return command;
    command.dword[6] = static_cast<u32>(io.pages.prp1);
    command.dword[7] = static_cast<u32>(io.pages.prp1 >> 32);
    command.dword[8] = static_cast<u32>(io.pages.prp2);
    command.dword[9] = static_cast<u32>(io.pages.prp2 >> 32);
    command.dword[10] = static_cast<u32>(io.first_block);
    command.dword[11] = static_cast<u32>(io.first_block >> 32);
    command.dword[12] = (io.blocks - 1) & 0xffff;
    return command;
}

PENSTOCK_ONDEVICE u32 nvme_phase(u32 dword3) { return dword3 >> 16 & 1; }
PENSTOCK_ONDEVICE u32 nvme_id(u32 dword3) { return dword3 & 0xffff; }
PENSTOCK_ONDEVICE u32 nvme_status_code(u32 dword3) { return dword3 >> 17 & 0xff; }
PENSTOCK_ONDEVICE u32 nvme_status_type(u32 dword3) { return dword3 >> 25 & 7; }

// Status code type 0 is generic, 1 command-specific; all others, media errors among them, are I/O errors.
PENSTOCK_ONDEVICE Status nvme_status(u32 dword3) {
    const u32 code = nvme_status_code(dword3);
    const u32 type = nvme_status_type(dword3);
    if (type == 0) {
        switch (code) {
            case 0x00: return Status::ok;
            case 0x01:                                // opcode
            case 0x02:                                // field
            case 0x0b:                                // namespace or format
            case 0x13: return Status::invalid;        // PRP offset
            case 0x07:                                // abort requested
            case 0x08: return Status::cancelled;      // queue deleted
            case 0x20: return Status::read_only;      // namespace write protected
            case 0x80: return Status::out_of_range;   // LBA out of range
            default: return Status::io_error;
        }
    }
    if (type == 1 && code == 0x80) return Status::invalid;    // conflicting attributes
    if (type == 1 && code == 0x82) return Status::read_only;  // write to a read-only range
    return Status::io_error;
}

}  // namespace penstock::ondevice
