// The files that the kernel knows by number. Each is held by a descriptor that only names it (O_PATH).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace faults {

struct Node {
    Node(int descriptor_, std::string name_) : descriptor(descriptor_), name(std::move(name_)) {}
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node() { close(descriptor); }

    // Returns a path by which any call reaches the file, whatever its current name.
    std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor); }

    int descriptor;
    std::string name;           // the name that the kernel used last
    std::uint64_t lookups = 0;  // how many times the kernel will forget it
    int lost = 0;               // the error of writes that were accepted and thrown away
    std::string told_by;        // the operations that report this error
};

class Tree {
  public:
    explicit Tree(int root) { nodes_[1] = std::make_shared<Node>(root, "/"); }

    std::shared_ptr<Node> at(std::uint64_t id) {
        const std::scoped_lock lock(mutex_);
        const auto found = nodes_.find(id);
        return found == nodes_.end() ? nullptr : found->second;
    }

    // Returns the number of the file behind `descriptor` and takes the descriptor. The kernel holds one more reference.
    std::uint64_t add(int descriptor, const struct stat& facts, const std::string& name) {
        const std::scoped_lock lock(mutex_);
        const std::pair<dev_t, ino_t> key{facts.st_dev, facts.st_ino};
        if (const auto known = numbers_.find(key); known != numbers_.end()) {
            close(descriptor);
            auto& node = *nodes_[known->second];
            ++node.lookups;
            if (!name.empty()) node.name = name;
            return known->second;
        }
        const auto id = ++last_;
        nodes_[id] = std::make_shared<Node>(descriptor, name);
        nodes_[id]->lookups = 1;
        numbers_[key] = id;
        keys_[id] = key;
        return id;
    }

    void forget(std::uint64_t id, std::uint64_t times) {
        const std::scoped_lock lock(mutex_);
        const auto found = nodes_.find(id);
        if (id == 1 || found == nodes_.end()) return;
        if (found->second->lookups > times) {
            found->second->lookups -= times;
            return;
        }
        numbers_.erase(keys_[id]);
        keys_.erase(id);
        nodes_.erase(found);
    }

  private:
    std::mutex mutex_;  // guards all members below
    std::map<std::uint64_t, std::shared_ptr<Node>> nodes_;
    std::map<std::pair<dev_t, ino_t>, std::uint64_t> numbers_;
    std::map<std::uint64_t, std::pair<dev_t, ino_t>> keys_;
    std::uint64_t last_ = 1;
};

}  // namespace faults
