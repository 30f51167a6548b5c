// Helpers for tests of cuFile: they set the environment variables that control the stand-in library.
#pragma once

#include <cstdlib>
#include <string>

namespace penstock::path {

// Sets an environment variable and removes it when the test ends.
class Variable {
  public:
    Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
    ~Variable() { ::unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

  private:
    const char* name_;
};

struct Behaviour : Variable {
    explicit Behaviour(const std::string& words) : Variable("FAKE_CUFILE_BEHAVIOUR", words) {}
};

}  // namespace penstock::path
