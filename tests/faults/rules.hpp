// Which requests of the faulty file system fail, and how: rules that a test adds and removes while it runs.
//
// A rule is one line of key=value words (see Rule). Rules are tried in the order they were added, and the first that
// fires decides. One mutex guards everything, because speed does not matter here. Fired rules are counted, so that a
// test can assert that its fault happened.
#pragma once

#include <fnmatch.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace faults {

// One request, as the rules see it.
struct Step {
    std::string operation;  // "write", "fsync", ...
    std::string name;       // of the file, without folders; empty for a file without a name
    std::string other;      // the second name of a rename or a link
    std::uint64_t offset_bytes = 0;
    std::uint64_t bytes = 0;
    int pid = 0;  // of the thread that makes the request; 0 is the kernel itself
};

struct Rule {
    std::string operations = "*";   // ",write,fsync," or "*"
    std::string name = "*";         // a shell pattern
    std::string what;               // fail, short, hang, lose, signal, delay
    long value = 0;                 // error number, bytes, signal or milliseconds
    std::string when;               // signal: before or after; lose: the operations that report it; hang: "deaf"
    std::uint64_t skip = 0;         // number of matching steps that succeed first
    std::uint64_t times = ~0ULL;    // how often it fires at most
    std::uint64_t after_bytes = 0;  // fires after the matching steps asked for more bytes than this
    int client = 0;                 // 1: steps of the kernel itself do not match
    std::uint64_t matched = 0, fired = 0, seen_bytes = 0;
};

inline Rule rule_of(std::istream& words) {
    Rule rule;
    for (std::string word; words >> word;) {
        const auto split = word.find('=');
        const std::string key = word.substr(0, split), value = word.substr(split + 1);
        if (key == "op") rule.operations = value == "*" ? value : "," + value + ",";
        if (key == "name") rule.name = value;
        if (key == "do") rule.what = value;
        if (key == "value") rule.value = std::stol(value);
        if (key == "when") rule.when = value;
        if (key == "skip") rule.skip = std::stoull(value);
        if (key == "times") rule.times = std::stoull(value);
        if (key == "bytes") rule.after_bytes = std::stoull(value);
        if (key == "client") rule.client = std::stoi(value);
    }
    return rule;
}

class Rules {
  public:
    void add(std::istream& words) {
        const std::scoped_lock lock(mutex_);
        int id = 0;
        words >> id;
        rules_[id] = rule_of(words);
    }

    void remove(int id) {
        const std::scoped_lock lock(mutex_);
        rules_.erase(id);
    }

    // Returns the rule that fires for this step. Counts the step, and logs it if the test asked for a log.
    std::optional<Rule> judge(const Step& step) {
        const std::scoped_lock lock(mutex_);
        ++counts_[step.operation];
        if (logging_) log_.push_back(step);
        for (auto& [id, rule] : rules_)
            if (matches(rule, step) && fires(rule, step)) return rule;
        return std::nullopt;
    }

    void log_all(bool on) {
        const std::scoped_lock lock(mutex_);
        logging_ = on;
        log_.clear();
    }

    std::vector<std::string> log() {
        const std::scoped_lock lock(mutex_);
        std::vector<std::string> lines;
        for (const auto& step : log_) {
            std::ostringstream line;
            line << step.operation << '\t' << step.name << '\t' << step.other << '\t' << step.offset_bytes << '\t'
                 << step.bytes << '\t' << step.pid;
            lines.push_back(line.str());
        }
        return lines;
    }

    std::vector<std::string> counts() {
        const std::scoped_lock lock(mutex_);
        std::vector<std::string> lines;
        for (const auto& [operation, count] : counts_) lines.push_back(operation + '\t' + std::to_string(count));
        return lines;
    }

    std::uint64_t fired(int id) {
        const std::scoped_lock lock(mutex_);
        const auto found = rules_.find(id);
        return found == rules_.end() ? 0 : found->second.fired;
    }

  private:
    static bool matches(const Rule& rule, const Step& step) {
        if (rule.client != 0 && step.pid == 0) return false;
        if (rule.operations != "*" && rule.operations.find("," + step.operation + ",") == std::string::npos)
            return false;
        return fnmatch(rule.name.c_str(), step.name.c_str(), 0) == 0 ||
               (!step.other.empty() && fnmatch(rule.name.c_str(), step.other.c_str(), 0) == 0);
    }

    static bool fires(Rule& rule, const Step& step) {
        rule.seen_bytes += step.bytes;
        if (rule.matched++ < rule.skip || rule.fired >= rule.times) return false;
        if (rule.after_bytes != 0 && rule.seen_bytes <= rule.after_bytes) return false;
        ++rule.fired;
        return true;
    }

    std::mutex mutex_;  // guards all members below
    std::map<int, Rule> rules_;
    std::map<std::string, std::uint64_t> counts_;
    std::vector<Step> log_;
    bool logging_ = false;
};

}  // namespace faults
