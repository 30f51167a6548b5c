// ProcessMark: tells the process that made an object from a child forked later, which must let the object's things be.
//
// Asked for every transfer, so without a system call where the kernel can clear a page in forked children.
#pragma once

#include <sys/types.h>

namespace penstock::context {

class ProcessMark {
  public:
    bool here() const noexcept { return current() == process_; }

  private:
    static pid_t current() noexcept;

    pid_t process_ = current();
};

}  // namespace penstock::context
