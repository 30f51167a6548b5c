// ProcessMark: tells the process that made an object from a child forked later, which must let the object's things be.
#pragma once

#include <sys/types.h>
#include <unistd.h>

namespace penstock::context {

class ProcessMark {
  public:
    bool here() const noexcept { return ::getpid() == process_; }

  private:
    pid_t process_ = ::getpid();
};

}  // namespace penstock::context
