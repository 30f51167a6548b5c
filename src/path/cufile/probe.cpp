// See probe.hpp. The child leads a process group of its own, so that the processes it starts also end when the time
// limit kills the group. Its standard error is /dev/null, because libcufile writes messages there.
#include "path/cufile/probe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "os/fd.hpp"
#include "path/cufile/library.hpp"
#include "penstock/types.hpp"

extern char** environ;

namespace penstock::path {
namespace {

constexpr const char* kProgram = "penstock-cufile-probe";
constexpr const char* kNoLog = "CUFILE_LOGFILE_PATH=/dev/null";
constexpr auto kAfterKill = std::chrono::seconds(1);

// The arguments of posix_spawn. The class owns them so that they are freed on every return.
class Spawn {
  public:
    Spawn() {
        ::posix_spawn_file_actions_init(&actions_);
        ::posix_spawnattr_init(&attributes_);
        ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
        ::posix_spawnattr_setpgroup(&attributes_, 0);
    }
    ~Spawn() {
        ::posix_spawnattr_destroy(&attributes_);
        ::posix_spawn_file_actions_destroy(&actions_);
    }
    Spawn(const Spawn&) = delete;
    Spawn& operator=(const Spawn&) = delete;

    int start(const std::string& program, const std::vector<std::string>& arguments, int output, pid_t& child) {
        ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
        ::posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        std::vector<char*> words{const_cast<char*>(program.c_str())};
        for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
        words.push_back(nullptr);
        std::vector<char*> variables = environment();
        return ::posix_spawn(&child, program.c_str(), &actions_, &attributes_, words.data(), variables.data());
    }

  private:
    // The caller's environment. libcufile writes a log to the current directory before any setting can stop it. So the
    // child gets a setting that turns the log off, unless the user configured one.
    static std::vector<char*> environment() {
        std::vector<char*> all;
        for (char** one = environ; *one != nullptr; ++one) all.push_back(*one);
        if (!cufile::user_logs()) all.push_back(const_cast<char*>(kNoLog));
        all.push_back(nullptr);
        return all;
    }

    posix_spawn_file_actions_t actions_;
    posix_spawnattr_t attributes_;
};

// Reads what the child writes until the child closes its end. Returns false at the deadline.
bool read_all(int fd, Deadline deadline, std::string& text) {
    while (true) {
        pollfd wait{fd, POLLIN, 0};
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
        const int ready = ::poll(&wait, 1, static_cast<int>(left) + 1);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0 && deadline.passed()) return false;
        if (ready <= 0) continue;
        char buffer[4096];
        const ssize_t count = ::read(fd, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return true;
        text.append(buffer, static_cast<std::size_t>(count));
    }
}

bool collect(pid_t child, Deadline deadline, ProbeRun& run) {
    int state = 0;
    while (true) {
        const pid_t got = ::waitpid(child, &state, WNOHANG);
        if (got == child) break;
        // other code in this process reaped it, so its exit status is unknown
        if (got < 0 && errno != EINTR) return true;
        if (deadline.passed()) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (WIFSIGNALED(state)) run.signal = WTERMSIG(state);
    if (WIFEXITED(state)) run.exit_code = WEXITSTATUS(state);
    return true;
}

std::map<std::string, std::string> parse(const std::string& text) {
    std::map<std::string, std::string> words;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string line = text.substr(begin, end - begin);
        if (const auto equals = line.find('='); equals != std::string::npos) {
            words[line.substr(0, equals)] = line.substr(equals + 1);
        }
        begin = end + 1;
    }
    return words;
}

}  // namespace

std::string find_probe_program() {
    const std::string own = cufile::own_directory();
    for (const char* folder : {"/", "/bin/", "/../bin/", "/../libexec/", "/../libexec/penstock/", "/../penstock/bin/",
                               "/../../bin/", "/../../../", "/../../../bin/"}) {
        const std::string program = own + folder + kProgram;
        if (::access(program.c_str(), X_OK) == 0) return program;
    }
    return "";
}

ProbeRun run_probe(const std::string& program, const std::vector<std::string>& arguments,
                   std::chrono::milliseconds limit) {
    ProbeRun run;
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        run.cause = std::string("pipe: ") + std::strerror(errno);
        return run;
    }
    const os::UniqueFd from_child(ends[0]);
    os::UniqueFd to_parent(ends[1]);
    const Deadline deadline = Deadline::after(limit);
    pid_t child = 0;
    if (const int error = Spawn().start(program, arguments, to_parent.get(), child); error != 0) {
        run.cause = program + ": " + std::strerror(error);
        return run;
    }
    run.started = true;
    to_parent.reset();
    std::string text;
    run.timed_out = !read_all(from_child.get(), deadline, text) || !collect(child, deadline, run);
    if (run.timed_out) {
        ::kill(-child, SIGKILL);
        collect(child, Deadline::after(kAfterKill), run);
    }
    run.words = parse(text);
    return run;
}

}  // namespace penstock::path
