// The driver as HDF5 calls it, through the struct of functions, on a file of its own; and memory of the emulated GPU
// that it uses with device=host.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "vfd/engines.hpp"
#include "vfd/hdf5/driver_class.hpp"

extern "C" int H5PLget_plugin_type();
extern "C" const void* H5PLget_plugin_info();

namespace penstock::vfd {

inline constexpr std::size_t kBytes = 300'000;

inline std::vector<unsigned char> pattern(std::size_t bytes) {
    std::vector<unsigned char> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
    return data;
}

// Memory of the emulated GPU that the driver uses with device=host.
class DeviceMemory {
  public:
    explicit DeviceMemory(std::size_t bytes) : engine_(Engines::here().get("host")), bytes_(bytes) {
        penstock_buffer_options options = PENSTOCK_BUFFER_OPTIONS_INIT;
        penstock_buffer* made = nullptr;
        options.bytes = std::max(bytes, kBytes);  // less is of the heap, and shares pages with memory of the host
        EXPECT_EQ(penstock_buffer_allocate(engine_->context(), &options, &made, nullptr), PENSTOCK_OK);
        buffer_.reset(made);
    }
    unsigned char* data() const { return static_cast<unsigned char*>(penstock_buffer_pointer(buffer_.get())); }
    std::vector<unsigned char> fetched() const {
        std::vector<unsigned char> host(bytes_);
        engine_->copy_to_host(host.data(), data(), bytes_);
        return host;
    }

  private:
    std::shared_ptr<Engine> engine_;
    std::size_t bytes_;
    std::unique_ptr<penstock_buffer, BufferDeleter> buffer_;
};

class Driver : public testing::Test {
  protected:
    Driver() {
        std::string name = testing::TempDir() + "penstock-vfd-XXXXXX";
        folder_ = ::mkdtemp(name.data());
    }
    ~Driver() override {
        if (file_ != nullptr) driver_->close(file_);
        std::filesystem::remove_all(folder_);
    }
    void open(const std::string& config, unsigned flags = kWritable | kCreate | kTruncate) {
        ::setenv("HDF5_DRIVER_CONFIG", config.c_str(), 1);
        driver_ = static_cast<const DriverClass*>(H5PLget_plugin_info());
        file_ = driver_->open(name().c_str(), flags, 0, kLastAddress);
    }
    void close() { EXPECT_EQ(driver_->close(std::exchange(file_, nullptr)), 0); }
    std::string name(const char* leaf = "data.h5") const { return folder_ + "/" + leaf; }
    std::string text(const char* leaf) const {
        std::ifstream stream(name(leaf));
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    std::vector<unsigned char> read(Address at, std::size_t bytes) {
        std::vector<unsigned char> got(bytes, 0xee);
        EXPECT_EQ(driver_->read(file_, Use::raw, 0, at, bytes, got.data()), 0);
        return got;
    }

    std::string folder_;
    const DriverClass* driver_ = nullptr;
    FileHead* file_ = nullptr;
};

}  // namespace penstock::vfd
