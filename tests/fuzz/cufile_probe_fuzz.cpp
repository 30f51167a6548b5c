// Whatever the cuFile probe program prints, the verdict is consistent, and says native only if the counters do.
//
// A shell script replaces the probe and prints the fuzzer's bytes. So the test covers process, pipe, parser and
// verdict.
#include <sys/stat.h>

#include <fstream>

#include "input.hpp"
#include "path/cufile/cufile.hpp"

namespace {

using penstock::fuzz::promise;

// The script and the words that it prints.
class Stage {
  public:
    Stage() {
        std::ofstream(program()) << "#!/bin/sh\nexec cat '" << words() << "'\n";
        ::chmod(program().c_str(), 0700);
    }
    std::string program() const { return folder_ / "probe"; }
    std::string words() const { return folder_ / "words"; }

  private:
    penstock::fuzz::Folder folder_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    static const Stage stage;
    const std::string text(reinterpret_cast<const char*>(data), bytes);
    std::ofstream(stage.words(), std::ios::binary) << text;
    penstock::path::CuFileOptions options;
    options.probe_program = stage.program();
    const auto status = penstock::path::probe_cufile(options, "/a/file");
    const bool native = status.mode == penstock::path::CuFileMode::native;
    promise(status.usable || !status.cause.empty() || !status.advice.empty(), "what is unusable is explained");
    promise(!native || status.usable, "native is usable");
    promise(status.usable || status.mode == penstock::path::CuFileMode::unusable, "the mode agrees with usable");
    promise(!native || text.find("nvfs_reads=") != std::string::npos || text.find("p2p_reads=") != std::string::npos,
            "native is shown by counters");
    promise(!native || text.find("counters=ok") != std::string::npos, "native is shown by counters that were read");
    return 0;
}
