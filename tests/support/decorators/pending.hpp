// Pending: what a decorator remembers of operations in flight, found by tag. For equal tags it returns any of the
// entries, because the caller cannot distinguish them either.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace penstock::path {

template <typename Value>
class Pending {
  public:
    void put(std::uint64_t tag, const Value& value) { values_.emplace(tag, value); }
    std::optional<Value> take(std::uint64_t tag) {
        const auto found = values_.find(tag);
        if (found == values_.end()) return std::nullopt;
        const Value value = found->second;
        values_.erase(found);
        return value;
    }
    std::size_t size() const noexcept { return values_.size(); }

  private:
    std::unordered_multimap<std::uint64_t, Value> values_;
};

}  // namespace penstock::path
