// A file system that fails on command.
//
//   faultfs BACKING MOUNTPOINT CONTROL [writeback] [direct] [named] [record=FILE]
//
// A FUSE server over a backing folder, for tests. CONTROL is the number of a socket's descriptor. A test sends lines on
// it and gets answers: a count of lines, then the lines. When the socket closes, however the test ended, the server
// unmounts and exits. The kernel then ends all requests without an answer, so nothing stays mounted and nothing hangs.
// python/tests/support/faulty_fs.py is the test's side.
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <thread>

#include "passthrough.hpp"
#include "rules.hpp"

namespace {

using faults::Request;
using faults::Rule;
using faults::Step;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr int kWorkers = 8;

const std::map<std::uint32_t, std::string> kNames{
    {FUSE_LOOKUP, "lookup"},
    {FUSE_GETATTR, "getattr"},
    {FUSE_SETATTR, "setattr"},
    {FUSE_READLINK, "readlink"},
    {FUSE_SYMLINK, "symlink"},
    {FUSE_MKNOD, "mknod"},
    {FUSE_MKDIR, "mkdir"},
    {FUSE_UNLINK, "unlink"},
    {FUSE_RMDIR, "rmdir"},
    {FUSE_RENAME, "rename"},
    {FUSE_RENAME2, "rename"},
    {FUSE_LINK, "link"},
    {FUSE_OPEN, "open"},
    {FUSE_READ, "read"},
    {FUSE_WRITE, "write"},
    {FUSE_STATFS, "statfs"},
    {FUSE_RELEASE, "release"},
    {FUSE_FSYNC, "fsync"},
    {FUSE_SETXATTR, "setxattr"},
    {FUSE_GETXATTR, "getxattr"},
    {FUSE_LISTXATTR, "listxattr"},
    {FUSE_FLUSH, "flush"},
    {FUSE_REMOVEXATTR, "removexattr"},
    {FUSE_OPENDIR, "opendir"},
    {FUSE_READDIR, "readdir"},
    {FUSE_RELEASEDIR, "releasedir"},
    {FUSE_FSYNCDIR, "fsyncdir"},
    {FUSE_CREATE, "create"},
    {FUSE_FALLOCATE, "fallocate"},
    {faults::kTmpfile, "tmpfile"},
    {faults::kSyncFs, "syncfs"},
};

// Returns whether a fatal signal is pending for this thread, because it was killed or its process is ending.
bool is_dying(int thread) {
    std::ifstream status("/proc/" + std::to_string(thread) + "/status");
    if (!status) return true;
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("SigPnd:") || line.starts_with("ShdPnd:"))
            if ((std::stoull(line.substr(8), nullptr, 16) & (1ULL << (SIGKILL - 1))) != 0) return true;
    return false;
}

class Server {
  public:
    Server(int channel, int root, faults::Options options, const std::string& record)
        : channel_(channel), options_(options), record_(record), files_(root, options, record_) {}

    // Serves requests until the kernel ends the connection.
    void serve() {
        std::vector<std::byte> buffer(kMostBytes + 4096);
        while (true) {
            const auto got = ::read(channel_, buffer.data(), buffer.size());
            if (got < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN)) continue;
            if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) return;
            take(Request(channel_, std::span(buffer).first(static_cast<std::size_t>(got))));
        }
    }

    // Executes one line of the test and returns the lines of the answer.
    std::vector<std::string> obey(const std::string& line) {
        std::istringstream words(line);
        std::string verb;
        int id = 0;
        words >> verb;
        if (verb == "add") return rules_.add(words), std::vector<std::string>{};
        if (verb == "counts") return rules_.counts();
        if (verb == "log") return rules_.log();
        if (verb == "logging") return words >> id, rules_.log_all(id != 0), std::vector<std::string>{};
        if (verb == "remove") return words >> id, rules_.remove(id), std::vector<std::string>{};
        if (verb == "fired") return words >> id, std::vector{std::to_string(rules_.fired(id))};
        if (verb == "release") return release([](const Hung&) { return true; }), std::vector<std::string>{};
        if (verb == "hung") return {std::to_string(hung())};
        if (verb == "mark") return record_.mark(line.substr(5)), std::vector<std::string>{};
        return {"unknown: " + line};
    }

    // A request that hangs does so until the test releases it, or until the thread that made it is killed.
    void release_the_dying() {
        release([](const Hung& one) { return !one.deaf && is_dying(one.pid); });
    }

  private:
    struct Hung {
        std::uint64_t unique;
        int pid;
        bool deaf;
    };

    void take(const Request& request) {
        switch (request.head.opcode) {
            case FUSE_INIT:
                agree(request);
                return;
            case FUSE_DESTROY:
                request.done();
                return;
            case FUSE_INTERRUPT:
                return;
            case FUSE_FORGET:
                files_.forget(request.head.nodeid, request.as<fuse_forget_in>().nlookup);
                return;
            case FUSE_BATCH_FORGET: {
                const auto count = request.as<fuse_batch_forget_in>().count;
                for (std::size_t i = 0; i < count; ++i) {
                    const auto one =
                        request.as<fuse_forget_one>(sizeof(fuse_batch_forget_in) + i * sizeof(fuse_forget_one));
                    files_.forget(one.nodeid, one.nlookup);
                }
                return;
            }
            default:
                break;
        }
        const auto rule = rules_.judge(describe(request));
        if (!rule || !go_wrong(request, *rule)) perform(request, rule);
    }

    void agree(const Request& request) const {
        const auto in = request.as<fuse_init_in>();
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = std::min<std::uint32_t>(in.minor, FUSE_KERNEL_MINOR_VERSION);
        out.max_readahead = in.max_readahead;
        out.max_write = kMostBytes;
        out.max_pages = kMostBytes / 4096;
        out.max_background = 256;
        out.congestion_threshold = 200;
        out.time_gran = 1;
        auto flags = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_ATOMIC_O_TRUNC | FUSE_PARALLEL_DIROPS;
        if (options_.write_back) flags |= FUSE_WRITEBACK_CACHE;
        out.flags = static_cast<std::uint32_t>(flags) & in.flags;
        request.answer(out);
    }

    Step describe(const Request& request) {
        Step step;
        const auto opcode = request.head.opcode;
        const auto known = kNames.find(opcode);
        step.operation = known == kNames.end() ? std::to_string(opcode) : known->second;
        step.pid = static_cast<int>(request.head.pid);
        const bool resized = opcode == FUSE_SETATTR && (request.as<fuse_setattr_in>().valid & FATTR_SIZE) != 0;
        if (resized) step.operation = "truncate";
        step.name = name_of(request, step);
        if (opcode == FUSE_READ || opcode == FUSE_WRITE) {
            step.offset_bytes = request.as<fuse_read_in>().offset;  // both structures have them at the same place
            step.bytes = request.as<fuse_read_in>().size;
        }
        return step;
    }

    std::string name_of(const Request& request, Step& step) {
        const auto names = [&](std::size_t head) {
            const auto first = request.text(head);
            step.other = request.text(head + first.size() + 1);
            return first;
        };
        switch (request.head.opcode) {
            case FUSE_LOOKUP:
            case FUSE_UNLINK:
            case FUSE_RMDIR:
            case FUSE_SYMLINK:
                return request.text();
            case FUSE_CREATE:
                return request.text(sizeof(fuse_create_in));
            case FUSE_MKDIR:
                return request.text(sizeof(fuse_mkdir_in));
            case FUSE_MKNOD:
                return request.text(sizeof(fuse_mknod_in));
            case FUSE_RENAME:
                return names(sizeof(fuse_rename_in));
            case FUSE_RENAME2:
                return names(sizeof(fuse_rename2_in));
            case FUSE_LINK:
                return request.text(sizeof(fuse_link_in));
            case faults::kTmpfile:
                return "";
            default: {
                const auto node = files_.at(request.head.nodeid);
                return node ? node->name : "";
            }
        }
    }

    // Returns true if this answers the request, or if the request gets no answer at all.
    bool go_wrong(const Request& request, const Rule& rule) {
        if (rule.what == "fail") return request.fail(static_cast<int>(rule.value)), true;
        if (rule.what == "delay") return std::this_thread::sleep_for(std::chrono::milliseconds(rule.value)), false;
        if (rule.what == "lose") return lose(request, rule);
        if (rule.what == "hang") {
            const std::scoped_lock lock(mutex_);
            hung_.push_back({request.head.unique, static_cast<int>(request.head.pid), rule.when == "deaf"});
            return true;
        }
        if (rule.what == "signal" && rule.when == "before") {
            kill(static_cast<int>(request.head.pid), static_cast<int>(rule.value));
            // A killed thread has not done this step. A thread that was asked to end finds the step done.
            return rule.value == SIGKILL && (request.fail(EINTR), true);
        }
        return false;
    }

    bool lose(const Request& request, const Rule& rule) {
        const auto node = files_.at(request.head.nodeid);
        if (request.head.opcode != FUSE_WRITE || !node) return false;
        node->told_by = "," + rule.when + ",";
        node->lost = static_cast<int>(rule.value);
        request.answer(fuse_write_out{request.as<fuse_write_in>().size, 0});
        return true;
    }

    void perform(const Request& request, const std::optional<Rule>& rule) {
        const auto most = rule && rule->what == "short" ? static_cast<std::size_t>(rule->value) : ~std::size_t{0};
        if (rule && rule->what == "signal" && rule->when == "after")
            request.first = [&] { kill(static_cast<int>(request.head.pid), static_cast<int>(rule->value)); };
        const auto opcode = request.head.opcode;
        if (const auto node = files_.at(request.head.nodeid); node && node->lost != 0)
            if (const auto known = kNames.find(opcode); known != kNames.end())
                if (node->told_by.find("," + known->second + ",") != std::string::npos) return request.fail(node->lost);
        if (!files_.serve_files(request, most) && !files_.serve_names(request)) request.fail(ENOSYS);
    }

    void release(const std::function<bool(const Hung&)>& which) {
        const std::scoped_lock lock(mutex_);
        std::erase_if(hung_, [&](const Hung& one) {
            if (!which(one)) return false;
            const fuse_out_header out{sizeof out, -EINTR, one.unique};
            [[maybe_unused]] const auto sent = ::write(channel_, &out, sizeof out);
            return true;
        });
    }

    std::size_t hung() {
        const std::scoped_lock lock(mutex_);
        return hung_.size();
    }

    int channel_;
    faults::Options options_;
    faults::Record record_;
    faults::Passthrough files_;
    faults::Rules rules_;
    std::mutex mutex_;  // guards hung_
    std::vector<Hung> hung_;
};

bool say(int control, const std::vector<std::string>& lines) {
    std::string text = std::to_string(lines.size()) + "\n";
    for (const auto& line : lines) text += line + "\n";
    for (std::size_t sent = 0; sent < text.size();) {
        const auto some = send(control, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (some <= 0) return false;
        sent += static_cast<std::size_t>(some);
    }
    return true;
}

// Talks with the test until the test closes the socket.
void converse(Server& server, int control) {
    std::string pending;
    while (true) {
        pollfd ready{control, POLLIN, 0};
        if (poll(&ready, 1, 10) == 0) {
            server.release_the_dying();
            continue;
        }
        std::array<char, 4096> some{};
        const auto got = recv(control, some.data(), some.size(), 0);
        if (got <= 0) return;
        pending.append(some.data(), static_cast<std::size_t>(got));
        for (auto end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
            if (!say(control, server.obey(pending.substr(0, end)))) return;
            pending.erase(0, end + 1);
        }
    }
}

}  // namespace

int main(int count, char** words) {
    if (count < 4) return 2;
    const std::string backing = words[1], place = words[2];
    const int control = std::stoi(words[3]);
    faults::Options options;
    std::string record;
    for (int i = 4; i < count; ++i) {
        const std::string word = words[i];
        if (word == "writeback") options.write_back = true;
        if (word == "direct") options.direct = true;
        if (word == "named") options.unnamed = false;
        if (word.starts_with("record=")) record = word.substr(7);
    }
    // ignore signals of the test's terminal
    for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(one, SIG_IGN);
    umask(0);
    const int root = open(backing.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int channel = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (root < 0 || channel < 0)
        return say(control, {"cannot open the folder or /dev/fuse: " + std::string(strerror(errno))}), 1;
    const auto how = "fd=" + std::to_string(channel) + ",rootmode=40000,user_id=" + std::to_string(geteuid()) +
                     ",group_id=" + std::to_string(getegid()) + ",allow_other,default_permissions";
    if (mount("faultfs", place.c_str(), "fuse.faultfs", MS_NOSUID | MS_NODEV, how.c_str()) != 0)
        return say(control, {"cannot mount: " + std::string(strerror(errno))}), 1;
    Server server(channel, root, options, record);
    for (int i = 0; i < kWorkers; ++i) std::thread([&] { server.serve(); }).detach();
    if (say(control, {"ready"})) converse(server, control);
    umount2(place.c_str(), MNT_DETACH);
    _exit(0);  // this closes the channel, and the kernel ends all requests without an answer
}
