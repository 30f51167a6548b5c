// The mapped registers of an NVMe controller: of a device, or of a controller in this process.
//
// Offsets and fields are those of the NVM Express Base Specification 1.4, section 3. The mapping must outlive its
// users.
#pragma once

#include "penstock/ondevice/platform.hpp"

namespace penstock::ondevice {

namespace nvme_register {
constexpr u32 capabilities = 0x00;  // 64 bits
constexpr u32 version = 0x08;
constexpr u32 configuration = 0x14;
constexpr u32 status = 0x1c;
constexpr u32 admin_sizes = 0x24;
constexpr u32 admin_submission = 0x28;  // 64 bits
constexpr u32 admin_completion = 0x30;  // 64 bits
constexpr u32 doorbells = 0x1000;
constexpr u32 ready = 1;  // in the status register; bit 1: a fatal error
constexpr u32 fatal = 2;
constexpr u32 shutdown_mask = 3u << 2;
constexpr u32 shutdown_done = 2u << 2;
}  // namespace nvme_register

class NvmeRegisters {
  public:
    NvmeRegisters(u8* base, u64 bytes) : base_(base), bytes_(bytes) {}

    u32 read32(u32 offset) const { return Native::load<Scope::system>(at<u32>(offset)); }
    u64 read64(u32 offset) const { return Native::load<Scope::system>(at<u64>(offset)); }
    void write32(u32 offset, u32 value) const { Native::store<Scope::system>(at<u32>(offset), value); }
    void write64(u32 offset, u64 value) const { Native::store<Scope::system>(at<u64>(offset), value); }

    u32* submission_doorbell(u32 queue) const { return doorbell(2 * queue); }
    u32* completion_doorbell(u32 queue) const { return doorbell(2 * queue + 1); }
    u64 bytes() const { return bytes_; }

  private:
    template <class T>
    T* at(u32 offset) const {
        return reinterpret_cast<T*>(base_ + offset);
    }
    u32* doorbell(u32 index) const {
        const u32 stride = 4u << (read64(nvme_register::capabilities) >> 32 & 15);
        return at<u32>(nvme_register::doorbells + index * stride);
    }

    u8* base_;
    u64 bytes_;
};

}  // namespace penstock::ondevice
